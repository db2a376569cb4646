//! The half of a process that collects locks, and passes them on.

use konklave_process::{ProcessId, Timestamp};
use serde::Serialize;

use super::{CaoSinghal, Message, Rules};
use crate::mutex::locking::{Few, Members, Outbox};

/// Asks its quorum for their locks, enters when it has all, and passes them on when it leaves.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug, Serialize)]
pub(super) struct Requester {
    state: State,
    /// The number of each lock that the process has.
    locks: Few<u32>,
    /// The number of the last lock that arrived of each arbiter. The next one comes only after that one is gone: a lock
    /// with no higher number is a copy.
    seen: Few<u32>,
    /// The arbiters that want their lock back, and its number. An inquiry may overtake the lock.
    inquired: Few<u32>,
    /// The next request for each lock that is here or on its way: the oldest that was announced.
    transfers: Few<(u32, Timestamp)>,
}

#[derive(Clone, Default, PartialEq, Eq, Hash, Debug, Serialize)]
enum State {
    #[default]
    Released,
    Wanted {
        /// The timestamp of the request.
        since: u32,
        /// The arbiters that sent a failure, or whose locks were given back.
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
        self.state = State::Wanted { since, failed: Members::default() };
        for &arbiter in &*rules.quorum {
            outbox.send(arbiter, Message::Request { time: since });
        }
    }

    pub(super) fn release(&mut self, rules: &Rules, outbox: &mut Outbox<'_, '_, CaoSinghal>) {
        self.state = State::Released;
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
            State::Wanted { since, failed } if request == *since => failed,
            State::Released | State::Wanted { .. } | State::Held if !rules.are_locks_numbered() => {
                return;
            }
            // The arbiter took a copy of an earlier request for a new one.
            State::Released | State::Wanted { .. } | State::Held => {
                let (forwarded, entries, clock) = (None, outbox.entries, outbox.clock);
                return outbox.send(arbiter, Message::Release { lock, forwarded, entries, clock });
            }
        };
        failed.remove(arbiter);
        self.locks.insert(arbiter, lock);
        // Inquiries and announcements about an earlier lock are void.
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
        let State::Wanted { since, failed } = &mut self.state else { return };
        // A lock that was sent later may have overtaken the failure.
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
            None => rules.notes_early_transfer(),
        };
        if of_ours && self.state != State::Released {
            self.note_transfer(arbiter, lock, next, rules);
        }
    }

    fn note_transfer(&mut self, arbiter: ProcessId, lock: u32, next: Timestamp, rules: &Rules) {
        let known = self.transfers.get(arbiter);
        let better = match known {
            None => true,
            Some((of, _)) if of != lock => of < lock,
            Some((_, request)) => rules.goes_before(next, request),
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
        let State::Wanted { .. } = self.state else { return };
        let noted = match self.locks.get(arbiter) {
            Some(ours) => ours == lock,
            None => rules.notes_early_inquiry(),
        };
        if noted && self.inquired.get(arbiter).is_none_or(|of| of < lock) {
            self.inquired.insert(arbiter, lock);
            self.yield_if_failing(rules, outbox);
        }
    }

    /// While the process has to wait anyway, it gives back the locks that arbiters want.
    fn yield_if_failing(&mut self, rules: &Rules, outbox: &mut Outbox<'_, '_, CaoSinghal>) {
        let State::Wanted { failed, .. } = &mut self.state else { return };
        if failed.is_empty() || self.inquired.is_empty() {
            return;
        }
        for (arbiter, lock) in std::mem::take(&mut self.inquired).iter() {
            if self.locks.get(arbiter) != Some(lock) {
                self.inquired.insert(arbiter, lock);
                continue;
            }
            self.locks.remove(arbiter);
            // From now on the lock is missing, as if the arbiter had sent a failure.
            failed.insert(arbiter);
            rules.void_transfer(&mut self.transfers, arbiter);
            outbox.send(arbiter, Message::Yield { lock, clock: outbox.clock });
        }
    }

    pub(super) fn at_rest(&self) -> bool {
        self.state == State::Released
    }
}
