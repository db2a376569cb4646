//! The half of a process that collects locks.

use konklave_process::ProcessId;
use serde::Serialize;

use super::{Flaw, Locks, Members, Message, Post, Rules};

/// Asks its arbiters for their locks, enters when it has enough, and gives locks back that others
/// need more while it has to wait anyway.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug, Serialize)]
pub(in crate::mutex) struct Requester {
    state: State,
    /// Who wants its lock back. An inquiry may be faster than the lock it asks about.
    inquired: Members,
    /// Who is taken for crashed.
    suspected: Members,
}

#[derive(Clone, Default, PartialEq, Eq, Hash, Debug, Serialize)]
enum State {
    #[default]
    Idle,
    Wanting {
        /// The time of our request.
        since: u32,
        /// Whose locks we have.
        locked: Members,
        /// Who said that we have to wait, and whose locks we gave back.
        failed: Members,
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
        let (locked, failed) = Default::default();
        self.state = State::Wanting { since, locked, failed };
        for &arbiter in &*rules.ask {
            post.send(arbiter, Message::Request { time: since });
        }
    }

    pub(super) fn release<P: Locks>(&mut self, rules: &Rules, post: &mut Post<'_, '_, P>) {
        let State::Held { since } = self.state else { return };
        self.state = State::Idle;
        let (entries, clock) = (post.entries, post.clock);
        for &arbiter in &*rules.inform {
            post.send(arbiter, Message::Release { request: since, entries, clock });
        }
    }

    pub(super) fn on_locked<P: Locks>(
        &mut self,
        from: ProcessId,
        request: u32,
        rules: &Rules,
        post: &mut Post<'_, '_, P>,
    ) {
        let State::Wanting { since, locked, failed } = &mut self.state else { return };
        if request != *since && rules.stamped() {
            return;
        }
        locked.insert(from);
        if !rules.sticky {
            failed.remove(from);
        }
        if !rules.enough.is_reached(locked, &rules.ask) {
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
        let State::Wanting { since, locked, failed } = &mut self.state else { return };
        // A lock that was sent later may have arrived earlier.
        if (request == *since || !rules.stamped()) && !locked.contains(from) {
            failed.insert(from);
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
            (State::Wanting { locked, .. }, Some(Flaw::DropEarlyInquire)) => locked.contains(from),
            (State::Wanting { since, .. }, _) => request == *since,
            // Our release will answer it, or has done so.
            (State::Idle | State::Held { .. }, _) => false,
        };
        if noted {
            self.inquired.insert(from);
            self.yield_if_failing(rules, post);
        }
    }

    /// While we have to wait anyway, who wants its lock back gets it.
    fn yield_if_failing<P: Locks>(&mut self, rules: &Rules, post: &mut Post<'_, '_, P>) {
        let State::Wanting { since, locked, failed } = &mut self.state else { return };
        if self.inquired.is_empty() {
            return;
        }
        let gone = self
            .suspected
            .iter()
            .filter(|p| rules.asks(*p) && !locked.contains(*p) && !failed.contains(*p));
        if !rules.enough.is_out_of_reach(failed.iter().chain(gone)) {
            return;
        }
        let unproven = matches!(rules.flaw, Some(Flaw::AsPrinted | Flaw::UnstampedNoYieldHeld));
        for arbiter in std::mem::take(&mut self.inquired).iter() {
            if !locked.remove(arbiter) && !unproven {
                self.inquired.insert(arbiter);
                continue;
            }
            // Until we get it again, a lock that we gave back is one that we lack.
            if rules.flaw != Some(Flaw::YieldForgotten) {
                failed.insert(arbiter);
            }
            post.send(arbiter, Message::Relinquish { request: *since, clock: post.clock });
        }
    }

    pub(super) fn on_suspect<P: Locks>(
        &mut self,
        peer: ProcessId,
        rules: &Rules,
        post: &mut Post<'_, '_, P>,
    ) {
        self.suspected.insert(peer);
        self.yield_if_failing(rules, post);
    }

    pub(super) fn on_trust(&mut self, peer: ProcessId) {
        self.suspected.remove(peer);
    }

    pub(super) fn call_up(&self) {
        if let State::Wanting { locked, failed, .. } = &self.state {
            locked.call_up();
            failed.call_up();
        }
    }

    pub(super) fn at_rest(&self) -> bool {
        self.state == State::Idle
    }
}
