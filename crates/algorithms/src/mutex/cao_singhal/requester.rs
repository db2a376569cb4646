//! The half of a process that collects locks, and passes them on.

use konklave_process::{ProcessId, Timestamp};
use serde::Serialize;

use super::{CaoSinghal, Flaw, Message, Rules, Transfers};
use crate::mutex::locking::{Few, Members, Outbox};

/// Asks its quorum for their locks, enters when it has all, and passes them on when it leaves.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug, Serialize)]
pub(super) struct Requester {
    state: State,
    /// The number of each lock that we have.
    locks: Few<u32>,
    /// The number of the last lock that we got of each arbiter. It gives us another only when we have
    /// parted with that one: a lock with no higher number is a copy.
    seen: Few<u32>,
    /// Who wants its lock back, and which one. An inquiry may be faster than the lock.
    inquired: Few<u32>,
    /// Who is next: for each lock that we have, or that is on its way to us, the oldest that we
    /// were told of.
    transfers: Few<(u32, Timestamp)>,
}

#[derive(Clone, Default, PartialEq, Eq, Hash, Debug, Serialize)]
enum State {
    #[default]
    Idle,
    Wanting {
        /// The time of our request.
        since: u32,
        /// Who said that we have to wait, and whose locks we gave back.
        failed: Members,
    },
    Held,
}

impl Requester {
    pub(super) fn acquire(
        &mut self,
        since: u32,
        rules: &Rules,
        outbox: &mut Outbox<'_, '_, CaoSinghal>,
    ) {
        self.state = State::Wanting { since, failed: Members::default() };
        for &arbiter in &*rules.quorum {
            outbox.send(arbiter, Message::Request { time: since });
        }
    }

    pub(super) fn release(&mut self, rules: &Rules, outbox: &mut Outbox<'_, '_, CaoSinghal>) {
        self.state = State::Idle;
        let (entries, clock) = (outbox.entries, outbox.clock);
        for (arbiter, lock) in self.locks.iter() {
            let next = self.transfers.get(arbiter).filter(|(of, _)| *of == lock);
            let forwarded = next.map(|(_, request)| request);
            if let Some(next) = forwarded {
                let (by, lock) = (arbiter, rules.next_lock(lock, next));
                let message =
                    Message::Locked { by, lock, request: next.time, next: None, entries, clock };
                outbox.send(next.process, message);
            }
            outbox.send(arbiter, Message::Release { lock, forwarded, entries, clock });
        }
        self.locks.clear();
        self.transfers.clear();
    }

    pub(super) fn on_locked(
        &mut self,
        arbiter: ProcessId,
        lock: u32,
        request: u32,
        next: Option<Timestamp>,
        rules: &Rules,
        outbox: &mut Outbox<'_, '_, CaoSinghal>,
    ) {
        if rules.are_locks_numbered() {
            if self.seen.get(arbiter).is_some_and(|last| lock <= last) {
                return;
            }
            self.seen.insert(arbiter, lock);
        }
        let failed = match &mut self.state {
            State::Wanting { since, failed } if request == *since => failed,
            State::Idle | State::Wanting { .. } | State::Held if !rules.are_locks_numbered() => {
                return;
            }
            // A copy of an earlier request was taken for one.
            State::Idle | State::Wanting { .. } | State::Held => {
                let (forwarded, entries, clock) = (None, outbox.entries, outbox.clock);
                return outbox.send(arbiter, Message::Release { lock, forwarded, entries, clock });
            }
        };
        failed.remove(arbiter);
        self.locks.insert(arbiter, lock);
        // What was about an earlier lock is void.
        if self.inquired.get(arbiter).is_some_and(|of| of != lock) {
            self.inquired.remove(arbiter);
        }
        if self.transfers.get(arbiter).is_some_and(|(of, _)| of != lock) {
            self.transfers.remove(arbiter);
        }
        if let Some(next) = next {
            self.note_transfer(arbiter, lock, next, rules);
        }
        if self.locks.len() < rules.quorum.len() {
            return self.yield_if_failing(rules, outbox);
        }
        self.state = State::Held;
        self.inquired.clear();
        outbox.enter();
    }

    pub(super) fn on_failed(
        &mut self,
        arbiter: ProcessId,
        request: u32,
        rules: &Rules,
        outbox: &mut Outbox<'_, '_, CaoSinghal>,
    ) {
        let State::Wanting { since, failed } = &mut self.state else { return };
        // A lock that was sent later may have arrived earlier.
        if request == *since && self.locks.get(arbiter).is_none() {
            failed.insert(arbiter);
            self.yield_if_failing(rules, outbox);
        }
    }

    pub(super) fn on_transfer(
        &mut self,
        arbiter: ProcessId,
        lock: u32,
        next: Timestamp,
        rules: &Rules,
    ) {
        let of_ours = match self.locks.get(arbiter) {
            Some(ours) => ours == lock,
            // It may be about a lock that is on its way.
            None => rules.transfers != Transfers::Prompt,
        };
        if of_ours && self.state != State::Idle {
            self.note_transfer(arbiter, lock, next, rules);
        }
    }

    fn note_transfer(&mut self, arbiter: ProcessId, lock: u32, next: Timestamp, rules: &Rules) {
        let known = self.transfers.get(arbiter);
        let better = match known {
            None => true,
            Some((of, _)) if of != lock => of < lock,
            Some((_, request)) => next < request || rules.transfers == Transfers::Last,
        };
        if better {
            self.transfers.insert(arbiter, (lock, next));
        }
    }

    pub(super) fn on_inquire(
        &mut self,
        arbiter: ProcessId,
        lock: u32,
        rules: &Rules,
        outbox: &mut Outbox<'_, '_, CaoSinghal>,
    ) {
        let State::Wanting { .. } = self.state else { return };
        let noted = match self.locks.get(arbiter) {
            Some(ours) => ours == lock,
            // Locks come by other ways than inquiries: it may be about one that is on its way.
            None => rules.flaw != Some(Flaw::DropEarlyInquire),
        };
        if noted && self.inquired.get(arbiter).is_none_or(|of| of < lock) {
            self.inquired.insert(arbiter, lock);
            self.yield_if_failing(rules, outbox);
        }
    }

    /// While we have to wait anyway, who wants its lock back gets it.
    fn yield_if_failing(&mut self, rules: &Rules, outbox: &mut Outbox<'_, '_, CaoSinghal>) {
        let State::Wanting { failed, .. } = &mut self.state else { return };
        if failed.is_empty() || self.inquired.is_empty() {
            return;
        }
        for (arbiter, lock) in std::mem::take(&mut self.inquired).iter() {
            if self.locks.get(arbiter) != Some(lock) {
                self.inquired.insert(arbiter, lock);
                continue;
            }
            self.locks.remove(arbiter);
            // Until we get it again, a lock that we gave back is one that we lack.
            failed.insert(arbiter);
            if rules.flaw != Some(Flaw::KeepTransfers) {
                self.transfers.remove(arbiter);
            }
            outbox.send(arbiter, Message::Yield { lock, clock: outbox.clock });
        }
    }

    pub(super) fn at_rest(&self) -> bool {
        self.state == State::Idle
    }
}
