//! The half of a process that locks itself, and has its lock passed on.

use konklave_process::{ProcessId, Timestamp};
use serde::Serialize;
use smallvec::SmallVec;

use super::{CaoSinghal, Message, Rules};
use crate::mutex::locking::{Outbox, Queue};

/// Locks itself for one request at a time, and tells the holder who is next.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug, Serialize)]
pub(super) struct Arbiter {
    /// The request for which the arbiter is locked, as far as known.
    holder: Option<Timestamp>,
    /// The number of this lock.
    lock: u32,
    /// Whether the arbiter has asked the holder to give the lock back.
    inquired: bool,
    queue: Queue,
    /// Releases of locks whose transfer is not known yet, in order.
    early: SmallVec<[Release; 1]>,
}

/// The end of a lock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
pub(super) struct Release {
    pub(super) lock: u32,
    pub(super) by: ProcessId,
    /// The request to which the holder passed the lock on.
    pub(super) forwarded: Option<Timestamp>,
}

impl Arbiter {
    pub(super) fn on_request(
        &mut self,
        request: Timestamp,
        rules: &Rules,
        outbox: &mut Outbox<'_, '_, CaoSinghal>,
    ) {
        // A copy of the holder's request would be served again after its release.
        if self.holder == Some(request) {
            return;
        }
        let Some(place) = self.queue.insert(request, false) else { return };
        let Some(holder) = self.holder else { return self.grant(rules, outbox) };
        if place > 0 {
            return self.fail(place, outbox);
        }
        self.announce(request, !self.inquired && request < holder, outbox);
        if request > holder {
            self.fail(0, outbox);
        }
        if rules.fails_displaced() {
            self.fail(1, outbox);
        }
    }

    pub(super) fn on_yield(
        &mut self,
        lock: u32,
        from: ProcessId,
        rules: &Rules,
        outbox: &mut Outbox<'_, '_, CaoSinghal>,
    ) {
        if !self.is_locked_for(lock, from) {
            return;
        }
        let holder = self.holder.take();
        // The requester knows that it has to wait: it needs no failure.
        holder.and_then(|holder| self.queue.insert(holder, true));
        self.grant(rules, outbox);
    }

    pub(super) fn on_release(
        &mut self,
        release: Release,
        rules: &Rules,
        outbox: &mut Outbox<'_, '_, CaoSinghal>,
    ) {
        // Scenario: the next holder's release overtakes the release of the holder that passed the lock on. The
        // arbiter would ignore it and stay locked for ever; so it keeps early releases.
        let mut next = Some(release);
        while let Some(release) = next {
            if !self.is_locked_for(release.lock, release.by) {
                let copy = rules.are_locks_numbered()
                    && (release.lock <= self.lock || self.early.contains(&release));
                if !copy && rules.keeps_early_releases() {
                    self.early.push(release);
                    self.early.sort_unstable();
                }
                return;
            }
            match release.forwarded {
                Some(to) => self.pass_on(to, rules, outbox),
                None => {
                    self.holder = None;
                    self.grant(rules, outbox);
                }
            }
            let due = self.early.iter().position(|r| self.is_locked_for(r.lock, r.by));
            next = due.map(|i| self.early.remove(i));
        }
    }

    /// The holder has passed its lock on.
    fn pass_on(&mut self, to: Timestamp, rules: &Rules, outbox: &mut Outbox<'_, '_, CaoSinghal>) {
        self.queue.remove(to);
        self.hold(to, rules);
        let Some(head) = self.queue.head() else { return };
        self.announce(head, rules.inquires_after_transfer(head, to), outbox);
        if head > to {
            self.fail(0, outbox);
        }
    }

    /// Locks itself for the oldest request.
    fn grant(&mut self, rules: &Rules, outbox: &mut Outbox<'_, '_, CaoSinghal>) {
        let Some(request) = self.queue.pop() else { return };
        self.hold(request, rules);
        let next = self.queue.head();
        let (by, lock, entries, clock) = (outbox.me(), self.lock, outbox.entries, outbox.clock);
        let message = Message::Locked { by, lock, request: request.time, next, entries, clock };
        outbox.send(request.process, message);
        self.fail(0, outbox);
    }

    fn hold(&mut self, request: Timestamp, rules: &Rules) {
        self.holder = Some(request);
        self.lock = rules.next_lock(self.lock, request);
        self.inquired = false;
    }

    /// Announces the next request to the holder, and may ask it to give the lock back.
    fn announce(
        &mut self,
        next: Timestamp,
        inquire: bool,
        outbox: &mut Outbox<'_, '_, CaoSinghal>,
    ) {
        let Some(holder) = self.holder else { return };
        let (lock, clock) = (self.lock, outbox.clock);
        self.inquired |= inquire;
        let message = if inquire {
            Message::Inquire { lock, next, clock }
        } else {
            Message::Transfer { lock, next, clock }
        };
        outbox.send(holder.process, message);
    }

    /// Sends a failure to the request behind `place` others, unless it got one before.
    fn fail(&mut self, place: usize, outbox: &mut Outbox<'_, '_, CaoSinghal>) {
        if let Some(request) = self.queue.fail(place) {
            outbox.send(
                request.process,
                Message::Failed { request: request.time, clock: outbox.clock },
            );
        }
    }

    fn is_locked_for(&self, lock: u32, holder: ProcessId) -> bool {
        self.lock == lock && self.holder.is_some_and(|request| request.process == holder)
    }

    pub(super) fn at_rest(&self) -> bool {
        self.holder.is_none() && self.queue.is_empty() && self.early.is_empty()
    }
}
