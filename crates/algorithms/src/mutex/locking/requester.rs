//! The half of a process that collects locks.

use konklave_process::ProcessId;
use serde::Serialize;

use super::super::coterie::Coterie;
use super::{Answers, Flaw, Locks, Members, Message, Post, Rules};

/// What is wrong with an answer from one whom we did not ask.
const STRANGER: &str = "an answer from one who was not asked";

/// Asks its arbiters for their locks, enters when it has enough, and gives locks back that others
/// need more while it has to wait anyway.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug, Serialize)]
pub(in crate::mutex) struct Requester {
    state: State,
    /// Who wants its lock back. An inquiry may be faster than the lock it asks about.
    inquired: Members,
    /// Who is taken for crashed.
    suspected: Members,
    /// Whom we ask instead of our quorum, if we have to do without some of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    way: Option<Box<Way>>,
}

/// A quorum that leads around those who are taken for crashed.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
struct Way {
    /// Whose locks it takes, lowest first.
    needed: Vec<ProcessId>,
    /// Whom we asked since we want in, lowest first. Who was asked in vain may only be slow: it must
    /// be told, too, when we leave.
    asked: Vec<ProcessId>,
}

#[derive(Clone, Default, PartialEq, Eq, Hash, Debug, Serialize)]
enum State {
    #[default]
    Idle,
    Wanting {
        /// The time of our request.
        since: u32,
        /// How it stands with those whom we asked.
        #[serde(flatten)]
        answers: Answers,
    },
    Held {
        /// The time of our request.
        since: u32,
    },
}

impl Requester {
    /// One who takes `suspected` for crashed.
    pub(super) fn new(suspected: &[ProcessId]) -> Self {
        Self { suspected: suspected.iter().copied().collect(), ..Self::default() }
    }

    pub(super) fn acquire<P: Locks>(
        &mut self,
        since: u32,
        rules: &Rules,
        post: &mut Post<'_, '_, P>,
    ) {
        self.way = self.way_around(rules, post.me()).map(|needed| {
            let asked = needed.clone();
            Box::new(Way { needed, asked })
        });
        let asked = self.way.as_ref().map_or_else(|| rules.ask.clone(), |way| way.asked[..].into());
        for &arbiter in &*asked {
            post.send(arbiter, Message::Request { time: since });
        }
        self.state = State::Wanting { since, answers: Answers::of(asked) };
    }

    /// Whom to ask in place of the quorum, if it has members that are taken for crashed and there is
    /// a way around them.
    fn way_around(&self, rules: &Rules, me: ProcessId) -> Option<Vec<ProcessId>> {
        let group = rules.tree.as_ref()?;
        if !self.suspected.iter().any(|p| rules.asks(p)) {
            return None;
        }
        Coterie::around(group, me, |p| self.suspected.contains(p))
    }

    /// Asks those who stand in for one that is taken for crashed. Locks that are not needed any more
    /// are kept until we leave: others may have them back as any lock, if we have to wait.
    fn find_way_around<P: Locks>(&mut self, rules: &Rules, post: &mut Post<'_, '_, P>) {
        let Some(needed) = self.way_around(rules, post.me()) else { return };
        let State::Wanting { since, answers } = &mut self.state else { return };
        let mut asked = match self.way.take() {
            Some(way) => way.asked,
            None => rules.ask.to_vec(),
        };
        for &arbiter in &needed {
            if let Err(i) = asked.binary_search(&arbiter) {
                asked.insert(i, arbiter);
                post.send(arbiter, Message::Request { time: *since });
            }
        }
        answers.widen(&asked);
        self.way = Some(Box::new(Way { needed, asked }));
    }

    pub(super) fn release<P: Locks>(&mut self, rules: &Rules, post: &mut Post<'_, '_, P>) {
        let State::Held { since } = self.state else { return };
        self.state = State::Idle;
        let (entries, clock) = (post.entries, post.clock);
        let way = self.way.take();
        for &arbiter in way.as_ref().map_or(&*rules.inform, |way| &way.asked) {
            post.send(arbiter, Message::Release { request: since, entries, clock });
        }
    }

    pub(super) fn on_locked<P: Locks>(
        &mut self,
        from: ProcessId,
        (request, turn): (u32, u16),
        rules: &Rules,
        post: &mut Post<'_, '_, P>,
    ) {
        match &mut self.state {
            State::Wanting { since, answers } if *since == request || !rules.stamped() => {
                let Some(seat) = answers.seat(from) else { return post.unexpected(STRANGER) };
                // A lock that we had and gave back does not come back as a copy.
                if turn == answers.turn(seat) || !rules.counts_returns() {
                    answers.lock(seat, rules.sticky);
                    self.enter_or_yield(rules, post);
                }
            }
            State::Held { since } if *since == request => {}
            // A copy of our request was taken for one. Where we left with all locks, no lock can be
            // late, and so the arbiter waits for our release again.
            State::Idle | State::Wanting { .. } | State::Held { .. } => {
                if !rules.may_be_early() && rules.stamped() {
                    let (entries, clock) = (post.entries, post.clock);
                    post.send(from, Message::Release { request, entries, clock });
                }
            }
        }
    }

    /// Enters with enough locks; without, gives back those that others need more.
    fn enter_or_yield<P: Locks>(&mut self, rules: &Rules, post: &mut Post<'_, '_, P>) {
        let State::Wanting { since, answers } = &self.state else { return };
        let needed = self.way.as_ref().map(|way| &*way.needed);
        if !rules.enough.is_reached(answers, needed) {
            return self.yield_if_failing(rules, post);
        }
        self.state = State::Held { since: *since };
        if rules.flaw != Some(Flaw::AsPrinted) {
            self.inquired = Members::default();
        }
        post.enter();
    }

    pub(super) fn on_failed<P: Locks>(
        &mut self,
        from: ProcessId,
        request: u32,
        rules: &Rules,
        post: &mut Post<'_, '_, P>,
    ) {
        let State::Wanting { since, answers } = &mut self.state else { return };
        if request == *since || !rules.stamped() {
            let Some(seat) = answers.seat(from) else { return post.unexpected(STRANGER) };
            answers.fail(seat);
            self.yield_if_failing(rules, post);
        }
    }

    pub(super) fn on_inquire<P: Locks>(
        &mut self,
        from: ProcessId,
        request: u32,
        rules: &Rules,
        post: &mut Post<'_, '_, P>,
    ) {
        let noted = match (&self.state, rules.flaw) {
            (_, Some(Flaw::AsPrinted)) => true,
            (State::Wanting { .. }, Some(Flaw::UnstampedNoYieldHeld)) => true,
            (State::Wanting { answers, .. }, Some(Flaw::DropEarlyInquire)) => {
                answers.is_locked(from)
            }
            (State::Wanting { since, .. }, _) => request == *since,
            // Our release will answer it, or has done so.
            (State::Idle | State::Held { .. }, _) => false,
        };
        if noted
            && matches!(&self.state, State::Wanting { answers, .. } if answers.seat(from).is_none())
        {
            return post.unexpected(STRANGER);
        }
        if noted {
            self.inquired.insert(from);
            self.yield_if_failing(rules, post);
        }
    }

    /// While we have to wait anyway, who wants its lock back gets it.
    fn yield_if_failing<P: Locks>(&mut self, rules: &Rules, post: &mut Post<'_, '_, P>) {
        let State::Wanting { since, answers } = &mut self.state else { return };
        if self.inquired.is_empty() {
            return;
        }
        let way = self.way.as_ref();
        let needed = way.map_or(&*rules.ask, |way| &way.needed);
        let is_needed = |p: &ProcessId| way.is_none() || needed.binary_search(p).is_ok();
        let is_gone = |p: &ProcessId| needed.binary_search(p).is_ok() && answers.is_silent(*p);
        let gone = self.suspected.iter().filter(is_gone);
        if !rules.enough.is_out_of_reach(answers.failed().filter(is_needed).chain(gone)) {
            return;
        }
        let unproven = matches!(rules.flaw, Some(Flaw::AsPrinted | Flaw::UnstampedNoYieldHeld));
        let forgotten = rules.flaw == Some(Flaw::YieldForgotten);
        for arbiter in std::mem::take(&mut self.inquired).iter() {
            let Some(seat) = answers.seat(arbiter) else { continue };
            if !answers.is_locked(arbiter) && !unproven {
                self.inquired.insert(arbiter);
                continue;
            }
            // Until we get it again, a lock that we gave back is one that we lack.
            let turn = answers.give_back(seat, forgotten);
            post.send(arbiter, Message::Relinquish { request: *since, turn, clock: post.clock });
        }
    }

    pub(super) fn on_suspect<P: Locks>(
        &mut self,
        peer: ProcessId,
        rules: &Rules,
        post: &mut Post<'_, '_, P>,
    ) {
        self.suspected.insert(peer);
        self.find_way_around(rules, post);
        self.enter_or_yield(rules, post);
    }

    pub(super) fn on_trust(&mut self, peer: ProcessId) {
        self.suspected.remove(peer);
    }

    pub(super) fn prefetch(&self) {
        if let State::Wanting { answers, .. } = &self.state {
            answers.prefetch();
        }
    }

    pub(super) fn at_rest(&self) -> bool {
        self.state == State::Idle
    }
}
