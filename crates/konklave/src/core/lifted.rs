//! Locks that a classic algorithm serves inside a view: one process of it for each name, as long as the
//! view lasts. What the algorithm grants it grants to this node; who here waits is served in turn.
//!
//! Inside the view nobody fails as far as the algorithm can tell. When the view ends it stands still,
//! and the next one starts it anew from what all who go on have said: see `barrier`.

mod barrier;
mod locks;
mod safety;
mod show;
mod talk;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use konklave_algorithms::Setup;
use konklave_algorithms::group::lifted::{Any, Homes, Instance};
use konklave_algorithms::group::{Member, Request, ViewId};
use konklave_algorithms::mutex;
use konklave_process::{Group, Input, Process, ProcessId, ProcessSet, Topology};

use super::Core;
use super::desk::Wish;
use crate::error::Error;
use crate::lifted::{Inside, Say};
use crate::mutex::Mutex;
use crate::table::{Claim, Hold, Key, Name, Space};
use crate::token::Token;
use crate::wire::MAX_FRAME;
use locks::{Locks, Place};
use safety::Safety;

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
enum Stage {
    #[default]
    Idle,
    Asked,
    /// It has granted us the lock, and we have not let it go.
    Inside,
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
    stage: Stage,
    user: Option<User>,
    /// Who here waits, and since when.
    queue: VecDeque<(u64, Duration)>,
    /// How many of them are served before others are: those who waited when it came.
    turn: usize,
    /// Who may hold it safely, and who knows that of us.
    safety: Safety,
    /// Who wants it only if nobody has it.
    tries: Vec<(ProcessId, u64)>,
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
            stage: Stage::default(),
            user: None,
            queue: VecDeque::new(),
            turn: 0,
            safety: Safety::default(),
            tries: Vec::new(),
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
        let others = self.safety.others().len();
        // That it lies here is only said of what others may hold.
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
    /// Locks that one who is gone may still believe to hold, and until when.
    frozen: BTreeMap<Name, BTreeMap<Member, Duration>>,
    /// What belongs to views to come.
    ahead: Vec<(ProcessId, Inside)>,
    /// How many frames went to whom in this view, and how many came.
    sent: BTreeMap<ProcessId, u64>,
    received: BTreeMap<ProcessId, u64>,
    /// Locks with news for the others.
    news: Vec<Place>,
    /// What others told.
    notes: BTreeMap<(Name, ProcessId), (crate::lifted::Note, Duration)>,
    /// What those who look on were told of others, and when all have said how they stand in this view.
    told: BTreeMap<(Name, ProcessId), Token>,
    settled: Duration,
    /// Who has not answered yet whether it held what shall be taken away.
    revoking: BTreeMap<u64, ProcessSet>,
    /// Whether a lock has been entered too often for one view.
    worn: bool,
}

impl Lifted {
    pub(super) fn new(me: ProcessId, mutex: Mutex) -> Self {
        let group = Group::new(vec![me]).expect("one member is a group");
        let alone = Topology::from_edges("alone", 1, []).expect("one place is a graph");
        let mut setup = Setup::new(group, alone);
        setup.chosen.insert("mutex", mutex.name().to_owned());
        Self {
            setup,
            view: ViewId::default(),
            homes: Homes::default(),
            locks: Locks::default(),
            frozen: BTreeMap::new(),
            ahead: Vec::new(),
            sent: BTreeMap::new(),
            received: BTreeMap::new(),
            news: Vec::new(),
            notes: BTreeMap::new(),
            told: BTreeMap::new(),
            settled: Duration::ZERO,
            revoking: BTreeMap::new(),
            worn: false,
        }
    }

    /// We are outside.
    pub(super) fn clear(&mut self) {
        let setup = self.setup.clone();
        *self = Self { setup, ..Self::new(ProcessId(0), Mutex::Table) };
    }

    /// When the first lock is free again that one who is gone may hold.
    pub(super) fn first_thaw(&self) -> Option<Duration> {
        self.frozen.values().flat_map(BTreeMap::values).min().copied()
    }

    /// The others do not know yet how this one stands here.
    fn note_news(&mut self, place: Place) {
        if !std::mem::replace(&mut self.locks[place].news, true) {
            self.news.push(place);
        }
    }
}

impl Core {
    /// Whether an algorithm serves this, not the table.
    pub(super) fn lifts(&self, key: &Key) -> bool {
        self.config.mutex != Mutex::Table && key.space == Space::Lock
    }

    /// What the algorithms cannot serve.
    pub(super) fn unserved(&self, key: &Key, hold: Hold) -> Option<Error> {
        let name = || key.name.to_string();
        (self.lifts(key) && hold != Hold::Exclusive)
            .then(|| Error::OnlyExclusive { name: name(), mutex: self.config.mutex })
    }

    /// Whether the algorithms run, and we take part.
    fn runs(&self) -> bool {
        self.is_member() && !self.below.is_wedged() && self.lifted.view == self.below.view().id
    }

    /// Someone here wants a lock.
    pub(super) fn ask_inside(&mut self, number: u64, name: &Name, wait: bool, safe: bool) {
        if !self.is_member() {
            return;
        }
        let place = self.lifted.locks.find_or_begin(name);
        let lock = &mut self.lifted.locks[place];
        if !wait && lock.is_used() {
            return self.refuse_busy(number);
        }
        lock.queue.push_back((number, self.now));
        self.lifted.note_news(place);
        self.prepare(number, place, wait, safe);
        self.advance(place);
        let user = self.lifted.locks[place].user.as_ref();
        if safe && user.is_none_or(|user| user.number != number) {
            self.spread_word(place);
        }
    }

    fn refuse_busy(&mut self, number: u64) {
        if let Some(wanted) = self.desk.take_wanted(number) {
            wanted.refuse_busy();
        }
    }

    /// Sees to what others must know before we enter.
    fn prepare(&mut self, number: u64, place: Place, wait: bool, safe: bool) {
        if !self.runs() {
            return;
        }
        let lock = &mut self.lifted.locks[place];
        if safe {
            lock.safety.want(self.me);
        }
        let here =
            lock.stage == Stage::Inside || lock.instance.as_ref().is_some_and(Instance::has_token);
        if !wait && !here {
            let name = lock.name.clone();
            self.send_to_all(&name, &Say::Try { number });
        }
    }

    /// Does what can be done for a lock: asks, serves the next, lets go.
    fn advance(&mut self, place: Place) {
        if !self.runs() {
            return;
        }
        loop {
            let lock = &mut self.lifted.locks[place];
            match lock.stage {
                Stage::Asked => return,
                Stage::Idle if lock.queue.is_empty() => return,
                Stage::Idle => {
                    lock.stage = Stage::Asked;
                    self.drive(place, Input::Request(mutex::Request::Acquire));
                }
                Stage::Inside if lock.user.is_some() => return,
                Stage::Inside if lock.turn == 0 || lock.queue.is_empty() => {
                    lock.stage = Stage::Idle;
                    self.drive(place, Input::Request(mutex::Request::Release));
                }
                Stage::Inside => {
                    if !self.enter(place) {
                        return;
                    }
                }
            }
        }
    }

    /// One step of the algorithm; whom it speaks to.
    fn drive(&mut self, place: Place, input: Input<Any>) -> ProcessSet {
        let (me, mut receivers) = (self.me, ProcessSet::new());
        let lock = &mut self.lifted.locks[place];
        if lock.broken {
            return receivers;
        }
        lock.learn(0, me, &self.lifted.homes);
        let Some(instance) = &mut lock.instance else { return receivers };
        // The algorithms trust their messages: what a member garbled may be more than they can bear.
        let step = std::panic::AssertUnwindSafe(|| instance.step(me, input));
        let Ok(outcome) = std::panic::catch_unwind(step) else {
            (lock.instance, lock.broken, self.lifted.worn) = (None, true, true);
            return receivers;
        };
        let count = instance.count;
        if outcome.granted {
            (lock.stage, lock.turn) = (Stage::Inside, lock.queue.len());
        }
        for (to, message) in outcome.sent {
            receivers.insert(to);
            let lock = &mut self.lifted.locks[place];
            let (name, (safe, noted)) = (lock.name.clone(), lock.safety.word_to(to));
            self.send_inside(to, name, Say::Step { count, safe, noted, message });
        }
        receivers
    }

    /// Lets the next one here in, if nothing forbids it; whether anything changed.
    fn enter(&mut self, place: Place) -> bool {
        if self.leaving || !self.lease.holds(self.now) {
            return false;
        }
        let lock = &mut self.lifted.locks[place];
        let frozen = self.lifted.frozen.contains_key(&lock.name);
        let Some((number, _)) = lock.queue.front().copied() else { return false };
        let Some(wish) = self.desk.wish(number) else {
            // It was given up.
            lock.queue.pop_front();
            lock.turn -= 1;
            return true;
        };
        if frozen && wish.wait {
            return false;
        }
        if frozen {
            lock.queue.pop_front();
            lock.turn -= 1;
            self.refuse_busy(number);
            return true;
        }
        if wish.safe && !lock.safety.is_known(self.below.view()) {
            lock.safety.want(self.me);
            self.ask_the_rest(place);
            // Alone, there is nobody to tell.
            return self.lifted.locks[place].safety.is_known(self.below.view());
        }
        let Some(token) = self.next_token(place) else { return false };
        let lock = &mut self.lifted.locks[place];
        lock.queue.pop_front();
        lock.turn -= 1;
        if let Some(wanted) = self.desk.take_wanted(number) {
            self.let_in(place, number, wanted.into_wish(), token);
        }
        true
    }

    /// The token of the next entry; none where only a new view can go on.
    fn next_token(&mut self, place: Place) -> Option<Token> {
        let ViewId { generation, epoch, .. } = self.lifted.view;
        let instance = self.lifted.locks[place].instance.as_mut()?;
        instance.count += 1;
        self.lifted.worn |= instance.count > ENTRIES;
        let epoch = u32::try_from(epoch).unwrap_or(u32::MAX);
        Some(Token { generation, epoch, k: instance.count })
    }

    /// Lets in whom nothing keeps out.
    fn let_in(
        &mut self,
        place: Place,
        number: u64,
        (wish, deadline): (Wish, Option<Duration>),
        token: Token,
    ) {
        let lock = &mut self.lifted.locks[place];
        let (session, label, safe) = (wish.session, wish.label.clone(), wish.safe);
        lock.user = Some(User { number, session, label, safe, token, since: self.now });
        for (from, number) in std::mem::take(&mut lock.tries) {
            let name = self.lifted.locks[place].name.clone();
            self.send_inside(from, name, Say::Used { number });
        }
        self.lifted.note_news(place);
        let claim = Claim { member: self.myself(), session, number };
        self.hand_out(number, (wish, deadline), claim, token);
    }

    /// Gives a lock that lies here unused, without a message, or the wish back.
    pub(super) fn take_idle(&mut self, number: u64, wish: Wish) -> Option<Wish> {
        let Some(place) = self.lifted.locks.find(&wish.key.name) else { return Some(wish) };
        let lock = &mut self.lifted.locks[place];
        let lies_here = lock.stage == Stage::Idle
            && lock.queue.is_empty()
            && lock.instance.as_ref().is_some_and(Instance::has_token);
        let kept_out = wish.safe && !lock.safety.is_known(self.below.view())
            || self.lifted.frozen.contains_key(&lock.name);
        let leased = self.lease.holds(self.now) && !self.unsaved && !self.leaving;
        if !lies_here || kept_out || !leased || !self.runs() {
            return Some(wish);
        }
        self.lifted.locks[place].stage = Stage::Asked;
        self.drive(place, Input::Request(mutex::Request::Acquire));
        if self.lifted.locks[place].stage != Stage::Inside {
            return Some(wish);
        }
        let Some(token) = self.next_token(place) else { return Some(wish) };
        self.let_in(place, number, (wish, None), token);
        None
    }

    /// Someone here has let a lock go, or lost it; then it is the others' turn.
    pub(super) fn let_go(&mut self, number: u64, name: &Name, lost: bool) {
        let Some(place) = self.lifted.locks.find(name) else { return };
        let lock = &mut self.lifted.locks[place];
        if lock.user.as_ref().is_some_and(|user| user.number == number) {
            lock.user = None;
            if lost {
                lock.turn = 0;
            }
            self.lifted.note_news(place);
            self.advance(place);
        }
    }

    /// Someone here waits no more.
    pub(super) fn give_up(&mut self, number: u64, name: &Name) {
        let Some(place) = self.lifted.locks.find(name) else { return };
        let lock = &mut self.lifted.locks[place];
        if let Some(rank) = lock.queue.iter().position(|(n, _)| *n == number) {
            lock.queue.remove(rank);
            lock.turn -= usize::from(rank < lock.turn);
            self.lifted.note_news(place);
            self.advance(place);
        }
    }

    /// Serves where something stood in the way that may be gone: a lease, one who was silent.
    pub(super) fn advance_all(&mut self) {
        let stands = |lock: &Lock| lock.stage == Stage::Inside && lock.user.is_none();
        for place in self.lifted.locks.sorted(stands) {
            self.advance(place);
        }
    }

    /// Whoever is gone must know by now.
    pub(super) fn thaw_inside(&mut self) {
        let now = self.now;
        if self.lifted.first_thaw().is_none_or(|due| now < due) {
            return;
        }
        self.lifted.frozen.retain(|_, members| {
            members.retain(|_, until| now < *until);
            !members.is_empty()
        });
        let view = self.below.view();
        self.lifted.forget_notes(|id| view.find(id).is_some());
        self.advance_all();
    }

    /// Every now and then: tells what is new, and makes room.
    pub(super) fn beat_inside(&mut self) {
        self.tell_news();
        self.tell_freed();
        if self.lifted.locks.len() > NAMES {
            let idle = self.lifted.locks.iter().filter(|lock| !lock.is_used()).count();
            self.lifted.worn |= idle > NAMES / 2;
        }
        let everyone = self.below.view().everyone().count().max(1);
        let part = SUMMARIES / everyone;
        // Not weighed as long as it cannot be too much.
        if self.lifted.locks.weight(everyone) > part {
            let idle: usize = self.lifted.locks.iter().map(Lock::idle_weight).sum();
            self.lifted.worn |= idle > part / 2;
        }
        if std::mem::take(&mut self.lifted.worn) {
            self.reform();
        }
    }

    /// A new view with the same members: it repairs what was lost on the way.
    fn reform(&mut self) {
        if self.runs() {
            self.step(|below, ctx| below.on_request(Request::Reform, ctx));
        }
    }
}

#[cfg(test)]
mod tests;
