//! Lifted locks: a classic mutual exclusion algorithm serves them inside a view. Each lock name has its own
//! process of the algorithm, for as long as the view lasts. The algorithm grants a lock to a node; the node
//! serves its local requests in order.
//!
//! Within a view, the algorithm sees no failures. When the view ends, the algorithm stops; the next view
//! starts it anew from the summaries of all members that continue: see `view_change`.

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
use konklave_process::{Group, Input, ProcessId, ProcessSet, Topology};

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

/// With this many locks, a new view makes room by forgetting the unused ones.
const NAMES: usize = if cfg!(test) { 64 } else { 1 << 16 };
/// The same for the bytes that all members together report on unused locks when a view ends: they must stay
/// far below the longest frame.
const SUMMARIES: usize = if cfg!(test) { 48 << 10 } else { MAX_FRAME / 8 };
/// About how many bytes a report takes, without the name.
const REPORT: usize = 16;
/// After this many grants of a lock, a new view restarts the algorithms, because they count in 32 bits.
const ENTRIES: u64 = 1 << 31;

/// This node's state in the algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Phase {
    #[default]
    Idle,
    Wanting,
    /// The algorithm has granted the lock to this node.
    Held,
}

/// The local request that holds the lock.
struct User {
    number: u64,
    session: u32,
    label: Arc<str>,
    safe: bool,
    token: Token,
    since: Duration,
}

/// One lifted lock.
struct Lock {
    name: Name,
    /// This node's process of the algorithm; `None` before its first use in this view.
    instance: Option<Instance<Any>>,
    phase: Phase,
    user: Option<User>,
    /// The waiting local requests, and since when they wait.
    queue: VecDeque<(u64, Duration)>,
    /// How many of them are served before other nodes: those that waited when the lock came.
    local_turns: usize,
    /// The lease-safe holders known to this node, and the members that know of this node as one.
    safe_holders: SafeHolders,
    /// Peers that want the lock only if it is free, with the numbers of their requests.
    try_requests: Vec<(ProcessId, u64)>,
    /// Whether the algorithm failed on a message; only a new view can repair it.
    broken: bool,
    /// Whether the other members lack the latest note on this lock.
    outdated_notes: bool,
}

impl Lock {
    fn new(name: Name) -> Self {
        Self {
            name,
            instance: None,
            phase: Phase::default(),
            user: None,
            queue: VecDeque::new(),
            local_turns: 0,
            safe_holders: SafeHolders::default(),
            try_requests: Vec::new(),
            broken: false,
            outdated_notes: false,
        }
    }

    /// Notes that there have been at least `entries` grants. Starts this node's process, if it has none.
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

    /// About how many bytes this node would report on the lock, if it is unused.
    fn idle_weight(&self) -> usize {
        let others = self.safe_holders.others().len();
        // `Report::Parked` is sent only for locks that other members may hold lease-safe.
        let reports = if self.is_used() || others == 0 { 0 } else { others + 1 };
        reports * (self.name.len() + REPORT)
    }
}

pub(super) struct Lifted {
    setup: Setup,
    view: ViewId,
    /// Where each lock starts in this view.
    homes: Homes,
    locks: Locks,
    /// For each lock: excluded members that may still use it, and until when it is fenced for them.
    fenced_until: BTreeMap<Name, BTreeMap<Member, Duration>>,
    /// Frames that belong to later views.
    future_frames: Vec<(ProcessId, LiftedFrame)>,
    /// For each peer: the number of frames sent and received in this view.
    sent: BTreeMap<ProcessId, u64>,
    received: BTreeMap<ProcessId, u64>,
    /// The locks whose notes are to be sent.
    outdated_notes: Vec<LockIndex>,
    /// The notes received, and when.
    peer_notes: BTreeMap<(Name, ProcessId), (crate::lifted::LockNote, Duration)>,
    /// Holders published as events for other nodes; and when all notes of this view should have arrived.
    published: BTreeMap<(Name, ProcessId), Token>,
    notes_complete_at: Duration,
    /// For each revocation: the peers that have not answered.
    revoking: BTreeMap<u64, ProcessSet>,
    /// Whether a new view is needed: a lock is broken, a frame is missing, or room is short.
    needs_reform: bool,
}

impl Lifted {
    pub(super) fn new(me: ProcessId, lock_algorithm: LockAlgorithm) -> Self {
        let group = Group::new(vec![me]).expect("one member is a group");
        let alone = Topology::from_edges("alone", 1, []).expect("one place is a graph");
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
            outdated_notes: Vec::new(),
            peer_notes: BTreeMap::new(),
            published: BTreeMap::new(),
            notes_complete_at: Duration::ZERO,
            revoking: BTreeMap::new(),
            needs_reform: false,
        }
    }

    /// This node is outside the group.
    pub(super) fn clear(&mut self) {
        let setup = self.setup.clone();
        *self = Self { setup, ..Self::new(ProcessId(0), LockAlgorithm::Table) };
    }

    /// When the next fence ends.
    pub(super) fn first_fence_end(&self) -> Option<Duration> {
        self.fenced_until.values().flat_map(BTreeMap::values).min().copied()
    }

    /// Marks the lock's note as out of date at the other members.
    fn mark_unreported(&mut self, index: LockIndex) {
        if !std::mem::replace(&mut self.locks[index].outdated_notes, true) {
            self.outdated_notes.push(index);
        }
    }
}

impl Core {
    /// Whether a lifted algorithm serves this key, instead of the table.
    pub(super) fn lifts(&self, key: &Key) -> bool {
        self.config.lock_algorithm != LockAlgorithm::Table && key.space == Space::Lock
    }

    /// The error for a mode that the algorithm cannot serve.
    pub(super) fn unsupported_mode(&self, key: &Key, mode: LockMode) -> Option<Error> {
        let name = || key.name.to_string();
        (self.lifts(key) && mode != LockMode::Exclusive)
            .then(|| Error::OnlyExclusive { name: name(), algorithm: self.config.lock_algorithm })
    }

    /// Whether the algorithms run and this node takes part.
    fn runs(&self) -> bool {
        self.is_member()
            && !self.forming.group().is_wedged()
            && self.lifted.view == self.forming.group().view().id
    }

    /// Requests a lock for a local session.
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

    /// Announces what other members must know before this node may grant the request.
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

    /// Advances a lock as far as possible: requests it, grants it to the next local request, or releases it.
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
                    self.run_algorithm(index, Input::Request(mutex::Request::Acquire));
                }
                Phase::Held if lock.user.is_some() => return,
                Phase::Held if lock.local_turns == 0 || lock.queue.is_empty() => {
                    lock.phase = Phase::Idle;
                    self.run_algorithm(index, Input::Request(mutex::Request::Release));
                }
                Phase::Held => {
                    if !self.grant_next(index) {
                        return;
                    }
                }
            }
        }
    }

    /// Runs one step of the algorithm; returns the receivers of its messages.
    fn run_algorithm(&mut self, index: LockIndex, input: Input<Any>) -> ProcessSet {
        let (me, mut receivers) = (self.me, ProcessSet::new());
        let lock = &mut self.lifted.locks[index];
        if lock.broken {
            return receivers;
        }
        lock.learn(0, me, &self.lifted.homes);
        let Some(instance) = &mut lock.instance else { return receivers };
        // The algorithms trust their messages, so a garbled one may make them panic.
        let step = std::panic::AssertUnwindSafe(|| instance.step(me, input));
        let Ok(outcome) = std::panic::catch_unwind(step) else {
            (lock.instance, lock.broken, self.lifted.needs_reform) = (None, true, true);
            return receivers;
        };
        let count = instance.count;
        if outcome.granted {
            (lock.phase, lock.local_turns) = (Phase::Held, lock.queue.len());
        }
        for (to, message) in outcome.sent {
            receivers.insert(to);
            let lock = &mut self.lifted.locks[index];
            let (name, (safe, noted)) = (lock.name.clone(), lock.safe_holders.piggyback_for(to));
            self.send_lifted(to, name, LockMessage::Step { count, safe, noted, message });
        }
        receivers
    }

    /// Grants the lock to the next local request, unless something forbids it. Returns whether anything
    /// changed.
    fn grant_next(&mut self, index: LockIndex) -> bool {
        if self.leaving || !self.is_leased() {
            return false;
        }
        let lock = &mut self.lifted.locks[index];
        let fenced = self.lifted.fenced_until.contains_key(&lock.name);
        let Some((number, _)) = lock.queue.front().copied() else { return false };
        let Some(request) = self.claims.request(number) else {
            // The request was withdrawn.
            lock.queue.pop_front();
            lock.local_turns -= 1;
            return true;
        };
        if fenced && request.wait {
            return false;
        }
        if fenced {
            lock.queue.pop_front();
            lock.local_turns -= 1;
            self.refuse_busy(number);
            return true;
        }
        if request.safe && !lock.safe_holders.is_known(self.forming.group().view()) {
            lock.safe_holders.want(self.me);
            self.ask_remaining(index);
            // With no other member, there is nobody to ask.
            return self.lifted.locks[index].safe_holders.is_known(self.forming.group().view());
        }
        let Some(token) = self.next_token(index) else { return false };
        let lock = &mut self.lifted.locks[index];
        lock.queue.pop_front();
        lock.local_turns -= 1;
        if let Some(pending) = self.claims.remove_pending(number) {
            self.grant_to(index, number, pending.into_request(), token);
        }
        true
    }

    /// The token of the next grant; `None` if only a new view can go on.
    fn next_token(&mut self, index: LockIndex) -> Option<Token> {
        let ViewId { generation, epoch, .. } = self.lifted.view;
        let instance = self.lifted.locks[index].instance.as_mut()?;
        instance.count += 1;
        self.lifted.needs_reform |= instance.count > ENTRIES;
        let epoch = u32::try_from(epoch).unwrap_or(u32::MAX);
        Some(Token { generation, epoch, k: instance.count })
    }

    /// Grants the lock to a request.
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
            self.send_lifted(from, name, LockMessage::InUse { number });
        }
        self.lifted.mark_unreported(index);
        let claim = ClaimId { member: self.own_member(), session, number };
        self.deliver_grant(number, (request, deadline), claim, token);
    }

    /// Grants an idle lock that is at this node, without a message. Returns the request if that is
    /// impossible.
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
        let kept_out = request.safe && !lock.safe_holders.is_known(self.forming.group().view())
            || self.lifted.fenced_until.contains_key(&lock.name);
        let leased = self.is_leased() && !self.unsaved && !self.leaving;
        if !lies_here || kept_out || !leased || !self.runs() {
            return Some(request);
        }
        self.lifted.locks[index].phase = Phase::Wanting;
        self.run_algorithm(index, Input::Request(mutex::Request::Acquire));
        if self.lifted.locks[index].phase != Phase::Held {
            return Some(request);
        }
        let Some(token) = self.next_token(index) else { return Some(request) };
        self.grant_to(index, number, (request, None), token);
        None
    }

    /// The local holder released the lock, or lost it. A lost lock goes to other nodes first.
    pub(super) fn release_lifted(&mut self, number: u64, name: &Name, lost: bool) {
        let Some(index) = self.lifted.locks.find(name) else { return };
        let lock = &mut self.lifted.locks[index];
        if lock.user.as_ref().is_some_and(|user| user.number == number) {
            lock.user = None;
            if lost {
                lock.local_turns = 0;
            }
            self.lifted.mark_unreported(index);
            self.advance(index);
        }
    }

    /// Removes a waiting local request.
    pub(super) fn drop_queued(&mut self, number: u64, name: &Name) {
        let Some(index) = self.lifted.locks.find(name) else { return };
        let lock = &mut self.lifted.locks[index];
        if let Some(rank) = lock.queue.iter().position(|(n, _)| *n == number) {
            lock.queue.remove(rank);
            lock.local_turns -= usize::from(rank < lock.local_turns);
            self.lifted.mark_unreported(index);
            self.advance(index);
        }
    }

    /// Advances the locks that waited for something that may have changed: the lease, or a fence.
    pub(super) fn advance_all(&mut self) {
        let stands = |lock: &Lock| lock.phase == Phase::Held && lock.user.is_none();
        for index in self.lifted.locks.sorted(stands) {
            self.advance(index);
        }
    }

    /// Ends the fences whose time has come.
    pub(super) fn lift_fences(&mut self) {
        let now = self.now;
        if self.lifted.first_fence_end().is_none_or(|due| now < due) {
            return;
        }
        self.lifted.fenced_until.retain(|_, members| {
            members.retain(|_, until| now < *until);
            !members.is_empty()
        });
        let view = self.forming.group().view();
        self.lifted.forget_notes(|id| view.find(id).is_some());
        self.advance_all();
    }

    /// Periodic work: sends notes, and asks for a new view if room is short.
    pub(super) fn maintain_lifted(&mut self) {
        self.send_notes();
        self.publish_freed();
        if self.lifted.locks.len() > NAMES {
            let idle = self.lifted.locks.iter().filter(|lock| !lock.is_used()).count();
            self.lifted.needs_reform |= idle > NAMES / 2;
        }
        let everyone = self.forming.group().view().everyone().count().max(1);
        let part = SUMMARIES / everyone;
        // An upper bound; below it, no exact weight is needed.
        if self.lifted.locks.weight(everyone) > part {
            let idle: usize = self.lifted.locks.iter().map(Lock::idle_weight).sum();
            self.lifted.needs_reform |= idle > part / 2;
        }
        if std::mem::take(&mut self.lifted.needs_reform) {
            self.reform();
        }
    }

    /// Asks for a new view with the same members; it repairs what was lost.
    fn reform(&mut self) {
        if self.runs() {
            self.request(Request::Reform);
        }
    }
}

#[cfg(test)]
mod tests;
