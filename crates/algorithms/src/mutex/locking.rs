//! Locking by arbiters: what Maekawa's, Sanders's and the voting algorithms have in common.
//!
//! Each process is two things: a requester, who collects the locks of its arbiters, and an arbiter,
//! who locks itself for one request at a time. Requesters with some of the locks each could wait
//! for each other for ever; so an arbiter that hears of an older request than the one it is locked
//! for inquires, and a requester that has to wait anyway gives such locks back. The algorithms
//! differ in whom a requester asks, whom it tells when it leaves, and how many locks are enough.

mod answers;
mod arbiter;
mod members;
mod queue;
mod requester;
mod search;

use std::sync::Arc;

use konklave_process::{
    Context, Fixed, Group, LamportClock, Process, ProcessId, ProcessMap, Timestamp, prefetch_whole,
};
use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

pub(super) use self::members::{Few, Members};
pub(super) use self::queue::Queue;
use self::{answers::Answers, arbiter::Arbiter, requester::Requester};
use super::{Fence, Indication, Request};
use crate::{DataSheet, Mistake, Setup, Switch};

/// What requesters and arbiters say. All of it names the request it is about by its time: what is
/// about an earlier request is known as such, so messages may overtake each other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// Lock yourself for me, says a requester.
    Request {
        /// The time of the request.
        time: u32,
    },
    /// I am locked for you, says an arbiter.
    Locked {
        /// The time of your request.
        request: u32,
        /// How often you have given this lock back.
        turn: u16,
        /// How many entries I know of.
        entries: u32,
        /// The clock of the one who says it; 0 if only requests move clocks.
        clock: u32,
    },
    /// You have to wait, says an arbiter: another goes before you.
    Failed {
        /// The time of your request.
        request: u32,
        /// The clock of the one who says it; 0 if only requests move clocks.
        clock: u32,
    },
    /// Another goes before you, says an arbiter: if you have to wait anyway, give my lock back.
    Inquire {
        /// The time of your request.
        request: u32,
        /// The clock of the one who says it; 0 if only requests move clocks.
        clock: u32,
    },
    /// Have your lock back, says a requester, who still wants it.
    Relinquish {
        /// The time of my request.
        request: u32,
        /// How often I have given this lock back before.
        turn: u16,
        /// The clock of the one who says it; 0 if only requests move clocks.
        clock: u32,
    },
    /// I left, says a requester.
    Release {
        /// The time of my request.
        request: u32,
        /// How many entries there were, this one included.
        entries: u32,
        /// The clock of the one who says it; 0 if only requests move clocks.
        clock: u32,
    },
}

impl Message {
    /// What it tells of the time.
    fn clock(self) -> u32 {
        match self {
            Self::Request { time } => time,
            Self::Locked { clock, .. }
            | Self::Failed { clock, .. }
            | Self::Inquire { clock, .. }
            | Self::Relinquish { clock, .. }
            | Self::Release { clock, .. } => clock,
        }
    }
}

/// How one process takes part. It never changes.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    /// Whom we ask for their lock, in the order of ids.
    pub(super) ask: Arc<[ProcessId]>,
    /// Whom we tell when we leave.
    pub(super) inform: Arc<[ProcessId]>,
    /// Where quorums are paths of a tree: the group whose tree it is. Who is taken for crashed is
    /// done without, and what was asked in vain is asked of those below it.
    pub(super) tree: Option<Group>,
    /// As an arbiter, who will tell us when it leaves; none: everyone.
    pub(super) informants: Option<Arc<[ProcessId]>>,
    /// How many locks it takes.
    pub(super) enough: Enough,
    /// Whether a failure counts until we enter, even if the lock comes in the meantime.
    pub(super) sticky: bool,
    /// Which messages move the clocks.
    pub(super) clocks: Clocks,
    /// What is done wrong.
    pub(super) flaw: Option<Flaw>,
}

/// Which messages move the logical clocks. Answers carry causality as requests do: a clock that
/// they do not move may give a later request an earlier time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Clocks {
    /// All of them.
    Full,
    /// Requests only, as the sources have it.
    Requests,
}

impl Clocks {
    /// How the data sheets offer the choice.
    pub(super) const SWITCH: Switch = Switch {
        name: "clock",
        values: &["full", "requests"],
        what: "which messages move the logical clocks: all, or requests only, as in the sources, \
               so that answers carry causality but no time",
    };

    /// What `setup` chose.
    pub(super) fn of(setup: &Setup, sheet: &DataSheet) -> Self {
        let requests = setup.chosen(sheet, Self::SWITCH.name).is("requests");
        if requests { Self::Requests } else { Self::Full }
    }

    /// What messages other than requests tell of the time when it is `clock`.
    pub(super) fn told(self, clock: LamportClock) -> u32 {
        match self {
            Self::Full => clock.now(),
            Self::Requests => 0,
        }
    }
}

/// How many locks it takes to enter.
#[derive(Clone, Debug)]
pub(super) enum Enough {
    /// Those of all who were asked.
    All,
    /// Those of more than half of all votes.
    Votes {
        /// How many votes each process has.
        votes: Arc<ProcessMap<u32>>,
        /// How many votes there are.
        total: u64,
        /// Whether a single failure counts as failing, although the rest might suffice.
        eager: bool,
        /// Whether half of the votes is taken for enough.
        half: bool,
    },
}

/// What can be done wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Flaw {
    /// A request that is displaced from the head of a queue does not fail.
    NoDisplacedFailed,
    /// A lock that was given back does not count as failed.
    YieldForgotten,
    /// Messages do not say which request they are about; every inquiry is noted.
    AsPrinted,
    /// The same, but an inquiry that finds us inside or outside is ignored.
    UnstampedNoYieldHeld,
    /// The same, but an inquiry for a lock that we do not have is ignored.
    DropEarlyInquire,
    /// No failures, no inquiries.
    NoDeadlockHandling,
    /// A release that arrives before its request is ignored.
    NoTombstone,
    /// The locks that one request gets of one arbiter, one after the other, have one name.
    UncountedReturns,
}

impl Flaw {
    /// The flaw of the mistake that `setup` makes, if it is one of these.
    pub(super) fn of(setup: &Setup, flaws: &[(&Mistake, Self)]) -> Option<Self> {
        let made = flaws.iter().find(|(mistake, _)| setup.mistake == Some(mistake.name));
        made.map(|(_, flaw)| *flaw)
    }
}

impl Rules {
    fn tracks(&self, requester: ProcessId) -> bool {
        let all = self.informants.as_ref();
        all.is_none_or(|informants| informants.binary_search(&requester).is_ok())
    }

    fn asks(&self, arbiter: ProcessId) -> bool {
        self.ask.binary_search(&arbiter).is_ok()
    }

    /// Whether messages name the request they are about.
    fn stamped(&self) -> bool {
        use Flaw::{AsPrinted, DropEarlyInquire, UnstampedNoYieldHeld};
        !matches!(self.flaw, Some(AsPrinted | DropEarlyInquire | UnstampedNoYieldHeld))
    }

    /// Whether they also name the lock, by how often it was given back.
    fn counts_returns(&self) -> bool {
        self.stamped() && self.flaw != Some(Flaw::UncountedReturns)
    }

    /// Whether a request may be served before it has arrived everywhere, so that its release may come
    /// before it, and a lock after that.
    fn may_be_early(&self) -> bool {
        self.tree.is_some() || matches!(self.enough, Enough::Votes { .. })
    }
}

impl Enough {
    /// Whether the locks that we have are enough, those of `needed` or else of all whom we asked.
    fn is_reached(&self, answers: &Answers, needed: Option<&[ProcessId]>) -> bool {
        match self {
            Self::All => match needed {
                None => answers.are_all_locks(),
                Some(needed) => needed.iter().all(|p| answers.is_locked(*p)),
            },
            Self::Votes { votes, total, half, .. } => {
                let sum: u64 = answers.locked().map(|p| u64::from(votes[p])).sum();
                2 * sum > *total || *half && 2 * sum == *total
            }
        }
    }

    /// Whether what is left without these is not enough. No process is given twice.
    fn is_out_of_reach(&self, lost: impl Iterator<Item = ProcessId>) -> bool {
        match self {
            Self::All | Self::Votes { eager: true, .. } => lost.take(1).count() > 0,
            Self::Votes { votes, total, .. } => {
                let lost: u64 = lost.map(|p| u64::from(votes[p])).sum();
                2 * (total - lost) <= *total
            }
        }
    }
}

/// A process that speaks this language.
pub(super) trait Locks: Process<Message = Message, Indication = Indication> {}
impl<P: Process<Message = Message, Indication = Indication>> Locks for P {}

/// One process: a requester and an arbiter.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub(super) struct Node {
    clock: LamportClock,
    /// How many entries we know of: the latest had this number as its fence. Any two processes
    /// that enter have an arbiter in common that hears of the first before it locks itself for the
    /// second; so the numbers grow from entry to entry.
    entries: u32,
    #[serde(flatten)]
    halves: Halves,
    #[serde(skip)]
    rules: Fixed<Arc<Rules>>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
struct Halves {
    requester: Requester,
    arbiter: Arbiter,
}

/// Where messages go: out, or, to ourselves, to the end of what is left to do in this step.
pub(super) struct Post<'a, 'c, P: Process> {
    ctx: &'a mut Context<'c, P>,
    own: SmallVec<[P::Message; 4]>,
    /// How many entries we know of.
    pub(super) entries: u32,
    /// What messages other than requests tell of the time.
    pub(super) clock: u32,
}

impl<'a, 'c, P: Process<Indication = Indication>> Post<'a, 'c, P> {
    pub(super) fn new(entries: u32, clock: u32, ctx: &'a mut Context<'c, P>) -> Self {
        Self { ctx, own: SmallVec::new(), entries, clock }
    }

    pub(super) fn me(&self) -> ProcessId {
        self.ctx.me()
    }

    pub(super) fn send(&mut self, to: ProcessId, message: P::Message) {
        if to == self.me() {
            self.own.push(message);
        } else {
            self.ctx.send(to, message);
        }
    }

    /// The next message to ourselves.
    pub(super) fn next_own(&mut self) -> Option<P::Message> {
        (!self.own.is_empty()).then(|| self.own.remove(0))
    }

    /// Something that the assumptions rule out.
    fn unexpected(&mut self, what: &'static str) {
        self.ctx.unexpected(what);
    }

    /// We are inside.
    pub(super) fn enter(&mut self) {
        self.entries = self.entries.saturating_add(1);
        let fence = Fence(0, self.entries.into());
        self.ctx.indicate(Indication::Granted { fence: Some(fence) });
    }
}

impl Node {
    /// A process that goes by `rules` and knows `down` to have crashed.
    pub(super) fn new(rules: Rules, down: &[ProcessId]) -> Self {
        Self {
            clock: LamportClock::default(),
            entries: 0,
            halves: Halves { requester: Requester::new(down), arbiter: Arbiter::default() },
            rules: Fixed(Arc::new(rules)),
        }
    }

    pub(super) fn on_request<P: Locks>(&mut self, request: Request, ctx: &mut Context<'_, P>) {
        let time = match request {
            Request::Acquire => self.clock.tick(),
            Request::Release => self.clock.now(),
        };
        self.step(ctx, |halves, rules, post| match request {
            Request::Acquire => halves.requester.acquire(time, rules, post),
            Request::Release => halves.requester.release(rules, post),
        });
    }

    pub(super) fn on_message<P: Locks>(
        &mut self,
        from: ProcessId,
        message: Message,
        ctx: &mut Context<'_, P>,
    ) {
        self.clock.witness(message.clock());
        self.step(ctx, |halves, rules, post| halves.hear(from, message, rules, post));
    }

    pub(super) fn on_suspect<P: Locks>(&mut self, peer: ProcessId, ctx: &mut Context<'_, P>) {
        self.step(ctx, |halves, rules, post| halves.requester.on_suspect(peer, rules, post));
    }

    /// Whether it does without those who are taken for crashed.
    pub(super) fn finds_ways_around(&self) -> bool {
        self.rules.tree.is_some()
    }

    pub(super) fn on_trust(&mut self, peer: ProcessId) {
        self.halves.requester.on_trust(peer);
    }

    /// Does `what`, and then all that follows from it within this process.
    fn step<P: Locks>(
        &mut self,
        ctx: &mut Context<'_, P>,
        what: impl FnOnce(&mut Halves, &Rules, &mut Post<'_, '_, P>),
    ) {
        let mut post = Post::new(self.entries, self.rules.clocks.told(self.clock), ctx);
        what(&mut self.halves, &self.rules, &mut post);
        while let Some(message) = post.next_own() {
            self.halves.hear(post.me(), message, &self.rules, &mut post);
        }
        self.entries = post.entries;
    }

    /// Our logical time.
    pub(super) fn stamp(&self) -> u64 {
        self.clock.now().into()
    }

    pub(super) fn on_stamp(&mut self, stamp: u64) {
        self.clock.witness(u32::try_from(stamp).unwrap_or(u32::MAX));
    }

    /// Prefetches what most messages look at: quorums and queues of a large group are long.
    pub(super) fn prefetch(&self) {
        prefetch_whole(&**self.rules);
        self.halves.requester.prefetch();
        self.halves.arbiter.prefetch();
    }

    pub(super) fn at_rest(&self) -> bool {
        self.halves.requester.at_rest() && self.halves.arbiter.at_rest()
    }
}

impl Halves {
    fn hear<P: Locks>(
        &mut self,
        from: ProcessId,
        message: Message,
        rules: &Rules,
        post: &mut Post<'_, '_, P>,
    ) {
        let of_sender = |time: u32| Timestamp { time, process: from };
        match message {
            Message::Request { time } => self.arbiter.on_request(of_sender(time), rules, post),
            Message::Locked { request, turn, entries, .. } => {
                post.entries = post.entries.max(entries);
                self.requester.on_locked(from, (request, turn), rules, post);
            }
            Message::Failed { request, .. } => self.requester.on_failed(from, request, rules, post),
            Message::Inquire { request, .. } => {
                self.requester.on_inquire(from, request, rules, post)
            }
            Message::Relinquish { request, turn, .. } => {
                self.arbiter.on_relinquish(of_sender(request), turn, rules, post);
            }
            Message::Release { request, entries, .. } => {
                post.entries = post.entries.max(entries);
                self.arbiter.on_release(of_sender(request), rules, post);
            }
        }
    }
}
