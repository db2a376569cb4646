//! Locks that a classic algorithm serves inside a view: one process of it for each name, as long as the
//! view lasts. What the algorithm grants it grants to this node; who here waits is served in turn.
//!
//! LiftedFrame the view nobody fails as far as the algorithm can tell. When the view ends it stands still,
//! and the next one starts it anew from what all who go on have said: see `barrier`.

mod locks;
mod messages;
mod safe_holders;
mod status;
mod view_change;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use konklave_algorithms::Setup;
use konklave_algorithms::group::lifted::{Any, Homes, Instance};
use konklave_algorithms::group::{Member, Request, ViewId};
use konklave_algorithms::mutex;
use konklave_process::{Group, Input, Process, ProcessId, ProcessSet, Topology};

use super::Core;
use super::local_claims::LocalRequest;
use crate::error::Error;
use crate::lifted::{LiftedFrame, LockMessage};
use crate::lock_algorithm::LockAlgorithm;
use crate::table::{ClaimId, Key, LockMode, Name, Space};
use crate::token::Token;
use crate::wire::MAX_FRAME;
use locks::{LockIndex, Locks};
use safe_holders::SafeHolders;

/// From so many names on, a new view makes room: it forgets what nobody uses.
const NAMES: usize = if cfg!(test) { 64 } else { 1 << 16 };
/// And from so many bytes on that all members together say of what nobody uses when a view ends: it must
/// be far less than a frame may be.
const SUMMARIES: usize = if cfg!(test) { 48 << 10 } else { MAX_FRAME / 8 };
/// About how many bytes a report takes, without the name.
const REPORT: usize = 16;
/// After so many entries a new view lets the algorithms, which count in 32 bits, begin anew.
const ENTRIES: u64 = 1 << 31;

/// Where this node stands with the algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Phase {
    #[default]
    Idle,
    Wanting,
    /// It has granted us the lock, and we have not let it go.
    Held,
}

/// Who here has it.
struct User {
    number: u64,
    session: u32,
    label: Arc<str>,
    safe: bool,
    token: Token,
    since: Duration,
}

/// One lock.
struct Lock {
    name: Name,
    /// Our process of the algorithm; none before we had to do with it in this view.
    instance: Option<Instance<Any>>,
    phase: Phase,
    user: Option<User>,
    /// Who here waits, and since when.
    queue: VecDeque<(u64, Duration)>,
    /// How many of them are served before others are: those who waited when it came.
    turn: usize,
    /// Who may mode it safely, and who knows that of us.
    safe_holders: SafeHolders,
    /// Who wants it only if nobody has it.
    try_requests: Vec<(ProcessId, u64)>,
    /// Whether a message made no sense to the algorithm, so that only a new view can go on.
    broken: bool,
    /// Whether others do not know yet how it stands here.
    news: bool,
}

impl Lock {
    fn new(name: Name) -> Self {
        Self {
            name,
            instance: None,
            phase: Phase::default(),
            user: None,
            queue: VecDeque::new(),
            turn: 0,
            safe_holders: SafeHolders::default(),
            try_requests: Vec::new(),
            broken: false,
            news: false,
        }
    }

    /// There have been so many entries at least. Our process of the algorithm begins, if it has not yet.
    fn learn(&mut self, entries: u64, me: ProcessId, homes: &Homes) {
        if self.instance.is_none() && !self.broken {
            self.instance = Instance::fresh_in(me, &self.name, homes);
        }
        if let Some(instance) = &mut self.instance {
            instance.count = instance.count.max(entries);
        }
    }

    fn count(&self) -> u64 {
        self.instance.as_ref().map_or(0, |instance| instance.count)
    }

    fn is_used(&self) -> bool {
        self.user.is_some() || !self.queue.is_empty()
    }

    /// About how many bytes we would say of it, if nobody uses it.
    fn idle_weight(&self) -> usize {
        let others = self.safe_holders.others().len();
        // That it lies here is only said of what others may mode.
        let reports = if self.is_used() || others == 0 { 0 } else { others + 1 };
        reports * (self.name.len() + REPORT)
    }
}

pub(super) struct Lifted {
    setup: Setup,
    view: ViewId,
    /// How a lock begins in this view.
    homes: Homes,
    locks: Locks,
    /// Locks that one who is gone may still believe to mode, and until when.
    fenced_until: BTreeMap<Name, BTreeMap<Member, Duration>>,
    /// What belongs to views to come.
    future_frames: Vec<(ProcessId, LiftedFrame)>,
    /// How many frames went to whom in this view, and how many came.
    sent: BTreeMap<ProcessId, u64>,
    received: BTreeMap<ProcessId, u64>,
    /// Locks with news for the others.
    news: Vec<LockIndex>,
    /// What others told.
    peer_notes: BTreeMap<(Name, ProcessId), (crate::lifted::LockNote, Duration)>,
    /// What those who look on were told of others, and when all have said how they stand in this view.
    told: BTreeMap<(Name, ProcessId), Token>,
    notes_complete_at: Duration,
    /// Who has not answered yet whether it held what shall be taken away.
    revoking: BTreeMap<u64, ProcessSet>,
    /// Whether a lock has been entered too often for one view.
    needs_reform: bool,
}

impl Lifted {
    pub(super) fn new(me: ProcessId, lock_algorithm: LockAlgorithm) -> Self {
        let group = Group::new(vec![me]).expect("one member is a group");
        let alone = Topology::from_edges("alone", 1, []).expect("one index is a graph");
        let mut setup = Setup::new(group, alone);
        setup.chosen.insert("mutex", lock_algorithm.name().to_owned());
        Self {
            setup,
            view: ViewId::default(),
            homes: Homes::default(),
            locks: Locks::default(),
            fenced_until: BTreeMap::new(),
            future_frames: Vec::new(),
            sent: BTreeMap::new(),
            received: BTreeMap::new(),
            news: Vec::new(),
            peer_notes: BTreeMap::new(),
            told: BTreeMap::new(),
            notes_complete_at: Duration::ZERO,
            revoking: BTreeMap::new(),
            needs_reform: false,
        }
    }

    /// We are outside.
    pub(super) fn clear(&mut self) {
        let setup = self.setup.clone();
        *self = Self { setup, ..Self::new(ProcessId(0), LockAlgorithm::Table) };
    }

    /// When the first lock is free again that one who is gone may mode.
    pub(super) fn first_fence_end(&self) -> Option<Duration> {
        self.fenced_until.values().flat_map(BTreeMap::values).min().copied()
    }

    /// The others do not know yet how this one stands here.
    fn mark_unreported(&mut self, index: LockIndex) {
        if !std::mem::replace(&mut self.locks[index].news, true) {
            self.news.push(index);
        }
    }
}

impl Core {
    /// Whether an algorithm serves this, not the table.
    pub(super) fn lifts(&self, key: &Key) -> bool {
        self.config.lock_algorithm != LockAlgorithm::Table && key.space == Space::Lock
    }

    /// What the algorithms cannot serve.
    pub(super) fn unsupported_mode(&self, key: &Key, mode: LockMode) -> Option<Error> {
        let name = || key.name.to_string();
        (self.lifts(key) && mode != LockMode::Exclusive)
            .then(|| Error::OnlyExclusive { name: name(), mutex: self.config.lock_algorithm })
    }

    /// Whether the algorithms run, and we take part.
    fn runs(&self) -> bool {
        self.is_member() && !self.group.is_wedged() && self.lifted.view == self.group.view().id
    }

    /// Someone here wants a lock.
    pub(super) fn request_lifted(&mut self, number: u64, name: &Name, wait: bool, safe: bool) {
        if !self.is_member() {
            return;
        }
        let index = self.lifted.locks.find_or_begin(name);
        let lock = &mut self.lifted.locks[index];
        if !wait && lock.is_used() {
            return self.refuse_busy(number);
        }
        lock.queue.push_back((number, self.now));
        self.lifted.mark_unreported(index);
        self.prepare(number, index, wait, safe);
        self.advance(index);
        let user = self.lifted.locks[index].user.as_ref();
        if safe && user.is_none_or(|user| user.number != number) {
            self.announce_safe(index);
        }
    }

    fn refuse_busy(&mut self, number: u64) {
        if let Some(pending) = self.claims.remove_pending(number) {
            pending.refuse_busy();
        }
    }

    /// Sees to what others must know before we enter.
    fn prepare(&mut self, number: u64, index: LockIndex, wait: bool, safe: bool) {
        if !self.runs() {
            return;
        }
        let lock = &mut self.lifted.locks[index];
        if safe {
            lock.safe_holders.want(self.me);
        }
        let here =
            lock.phase == Phase::Held || lock.instance.as_ref().is_some_and(Instance::has_token);
        if !wait && !here {
            let name = lock.name.clone();
            self.send_to_all(&name, &LockMessage::Try { number });
        }
    }

    /// Does what can be done for a lock: asks, serves the next, lets go.
    fn advance(&mut self, index: LockIndex) {
        if !self.runs() {
            return;
        }
        loop {
            let lock = &mut self.lifted.locks[index];
            match lock.phase {
                Phase::Wanting => return,
                Phase::Idle if lock.queue.is_empty() => return,
                Phase::Idle => {
                    lock.phase = Phase::Wanting;
                    self.drive(index, Input::Request(mutex::Request::Acquire));
                }
                Phase::Held if lock.user.is_some() => return,
                Phase::Held if lock.turn == 0 || lock.queue.is_empty() => {
                    lock.phase = Phase::Idle;
                    self.drive(index, Input::Request(mutex::Request::Release));
                }
                Phase::Held => {
                    if !self.enter(index) {
                        return;
                    }
                }
            }
        }
    }

    /// One step of the algorithm; whom it speaks to.
    fn drive(&mut self, index: LockIndex, input: Input<Any>) -> ProcessSet {
        let (me, mut receivers) = (self.me, ProcessSet::new());
        let lock = &mut self.lifted.locks[index];
        if lock.broken {
            return receivers;
        }
        lock.learn(0, me, &self.lifted.homes);
        let Some(instance) = &mut lock.instance else { return receivers };
        // The algorithms trust their messages: what a member garbled may be more than they can bear.
        let step = std::panic::AssertUnwindSafe(|| instance.step(me, input));
        let Ok(outcome) = std::panic::catch_unwind(step) else {
            (lock.instance, lock.broken, self.lifted.needs_reform) = (None, true, true);
            return receivers;
        };
        let count = instance.count;
        if outcome.granted {
            (lock.phase, lock.turn) = (Phase::Held, lock.queue.len());
        }
        for (to, message) in outcome.sent {
            receivers.insert(to);
            let lock = &mut self.lifted.locks[index];
            let (name, (safe, noted)) = (lock.name.clone(), lock.safe_holders.piggyback_for(to));
            self.send_lifted(to, name, LockMessage::Step { count, safe, noted, message });
        }
        receivers
    }

    /// Lets the next one here in, if nothing forbids it; whether anything changed.
    fn enter(&mut self, index: LockIndex) -> bool {
        if self.leaving || !self.lease.holds(self.now) {
            return false;
        }
        let lock = &mut self.lifted.locks[index];
        let fenced = self.lifted.fenced_until.contains_key(&lock.name);
        let Some((number, _)) = lock.queue.front().copied() else { return false };
        let Some(request) = self.claims.request(number) else {
            // It was given up.
            lock.queue.pop_front();
            lock.turn -= 1;
            return true;
        };
        if fenced && request.wait {
            return false;
        }
        if fenced {
            lock.queue.pop_front();
            lock.turn -= 1;
            self.refuse_busy(number);
            return true;
        }
        if request.safe && !lock.safe_holders.is_known(self.group.view()) {
            lock.safe_holders.want(self.me);
            self.ask_the_rest(index);
            // Alone, there is nobody to tell.
            return self.lifted.locks[index].safe_holders.is_known(self.group.view());
        }
        let Some(token) = self.next_token(index) else { return false };
        let lock = &mut self.lifted.locks[index];
        lock.queue.pop_front();
        lock.turn -= 1;
        if let Some(pending) = self.claims.remove_pending(number) {
            self.grant_to(index, number, pending.into_request(), token);
        }
        true
    }

    /// The token of the next entry; none where only a new view can go on.
    fn next_token(&mut self, index: LockIndex) -> Option<Token> {
        let ViewId { generation, epoch, .. } = self.lifted.view;
        let instance = self.lifted.locks[index].instance.as_mut()?;
        instance.count += 1;
        self.lifted.needs_reform |= instance.count > ENTRIES;
        let epoch = u32::try_from(epoch).unwrap_or(u32::MAX);
        Some(Token { generation, epoch, k: instance.count })
    }

    /// Lets in whom nothing keeps out.
    fn grant_to(
        &mut self,
        index: LockIndex,
        number: u64,
        (request, deadline): (LocalRequest, Option<Duration>),
        token: Token,
    ) {
        let lock = &mut self.lifted.locks[index];
        let (session, label, safe) = (request.session, request.label.clone(), request.safe);
        lock.user = Some(User { number, session, label, safe, token, since: self.now });
        for (from, number) in std::mem::take(&mut lock.try_requests) {
            let name = self.lifted.locks[index].name.clone();
            self.send_lifted(from, name, LockMessage::Used { number });
        }
        self.lifted.mark_unreported(index);
        let claim = ClaimId { member: self.own_member(), session, number };
        self.deliver_grant(number, (request, deadline), claim, token);
    }

    /// Gives a lock that lies here unused, without a message, or the request back.
    pub(super) fn grant_idle(
        &mut self,
        number: u64,
        request: LocalRequest,
    ) -> Option<LocalRequest> {
        let Some(index) = self.lifted.locks.find(&request.key.name) else { return Some(request) };
        let lock = &mut self.lifted.locks[index];
        let lies_here = lock.phase == Phase::Idle
            && lock.queue.is_empty()
            && lock.instance.as_ref().is_some_and(Instance::has_token);
        let kept_out = request.safe && !lock.safe_holders.is_known(self.group.view())
            || self.lifted.fenced_until.contains_key(&lock.name);
        let leased = self.lease.holds(self.now) && !self.unsaved && !self.leaving;
        if !lies_here || kept_out || !leased || !self.runs() {
            return Some(request);
        }
        self.lifted.locks[index].phase = Phase::Wanting;
        self.drive(index, Input::Request(mutex::Request::Acquire));
        if self.lifted.locks[index].phase != Phase::Held {
            return Some(request);
        }
        let Some(token) = self.next_token(index) else { return Some(request) };
        self.grant_to(index, number, (request, None), token);
        None
    }

    /// Someone here has let a lock go, or lost it; then it is the others' turn.
    pub(super) fn release_lifted(&mut self, number: u64, name: &Name, lost: bool) {
        let Some(index) = self.lifted.locks.find(name) else { return };
        let lock = &mut self.lifted.locks[index];
        if lock.user.as_ref().is_some_and(|user| user.number == number) {
            lock.user = None;
            if lost {
                lock.turn = 0;
            }
            self.lifted.mark_unreported(index);
            self.advance(index);
        }
    }

    /// Someone here waits no more.
    pub(super) fn drop_queued(&mut self, number: u64, name: &Name) {
        let Some(index) = self.lifted.locks.find(name) else { return };
        let lock = &mut self.lifted.locks[index];
        if let Some(rank) = lock.queue.iter().position(|(n, _)| *n == number) {
            lock.queue.remove(rank);
            lock.turn -= usize::from(rank < lock.turn);
            self.lifted.mark_unreported(index);
            self.advance(index);
        }
    }

    /// Serves where something stood in the way that may be gone: a lease, one who was silent.
    pub(super) fn advance_all(&mut self) {
        let stands = |lock: &Lock| lock.phase == Phase::Held && lock.user.is_none();
        for index in self.lifted.locks.sorted(stands) {
            self.advance(index);
        }
    }

    /// Whoever is gone must know by now.
    pub(super) fn lift_fences(&mut self) {
        let now = self.now;
        if self.lifted.first_fence_end().is_none_or(|due| now < due) {
            return;
        }
        self.lifted.fenced_until.retain(|_, members| {
            members.retain(|_, until| now < *until);
            !members.is_empty()
        });
        let view = self.group.view();
        self.lifted.forget_notes(|id| view.find(id).is_some());
        self.advance_all();
    }

    /// Every now and then: tells what is new, and makes room.
    pub(super) fn maintain_lifted(&mut self) {
        self.send_notes();
        self.tell_freed();
        if self.lifted.locks.len() > NAMES {
            let idle = self.lifted.locks.iter().filter(|lock| !lock.is_used()).count();
            self.lifted.needs_reform |= idle > NAMES / 2;
        }
        let everyone = self.group.view().everyone().count().max(1);
        let part = SUMMARIES / everyone;
        // Not weighed as long as it cannot be too much.
        if self.lifted.locks.weight(everyone) > part {
            let idle: usize = self.lifted.locks.iter().map(Lock::idle_weight).sum();
            self.lifted.needs_reform |= idle > part / 2;
        }
        if std::mem::take(&mut self.lifted.needs_reform) {
            self.reform();
        }
    }

    /// A new view with the same members: it repairs what was lost on the way.
    fn reform(&mut self) {
        if self.runs() {
            self.step(|group, ctx| group.on_request(Request::Reform, ctx));
        }
    }
}

#[cfg(test)]
mod tests;
