//! The half of a process that gives locks, and has them passed on.

use konklave_process::{ProcessId, Timestamp};
use serde::Serialize;
use smallvec::SmallVec;

use super::{CaoSinghal, Flaw, Message, Rules};
use crate::mutex::locking::{Outbox, Queue};

/// Locks itself for one request at a time, and tells the holder who is next.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug, Serialize)]
pub(super) struct Arbiter {
    /// For whose request we are locked, as far as we know.
    holder: Option<Timestamp>,
    /// The number of this lock: the generation.
    lock: u32,
    /// Whether we asked the holder to give the lock back.
    inquired: bool,
    queue: Queue,
    /// Releases of locks that were passed on before we heard of it, in order.
    early: SmallVec<[Release; 1]>,
}

/// The end of a lock.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
pub(super) struct Release {
    pub(super) lock: u32,
    pub(super) by: ProcessId,
    /// To whose request the holder passed the lock on.
    pub(super) forwarded: Option<Timestamp>,
}

impl Arbiter {
    pub(super) fn on_request(
        &mut self,
        request: Timestamp,
        rules: &Rules,
        outbox: &mut Outbox<'_, '_, CaoSinghal>,
    ) {
        // The copy of a request that we are locked for would be served again after its release.
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
        // Whom it displaced at the head must know, too, or it might keep others' locks for ever.
        if rules.flaw != Some(Flaw::NoDisplacedFailed) {
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
        // Who gives a lock back knows that it has to wait.
        holder.and_then(|holder| self.queue.insert(holder, true));
        self.grant(rules, outbox);
    }

    pub(super) fn on_release(
        &mut self,
        release: Release,
        rules: &Rules,
        outbox: &mut Outbox<'_, '_, CaoSinghal>,
    ) {
        // Whoever got the lock from its holder may be faster than the holder's own release.
        let mut next = Some(release);
        while let Some(release) = next {
            if !self.is_locked_for(release.lock, release.by) {
                let copy = rules.are_locks_numbered()
                    && (release.lock <= self.lock || self.early.contains(&release));
                if !copy && rules.flaw != Some(Flaw::NoReleaseBuffer) {
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

    /// Takes note that the holder passed its lock on.
    fn pass_on(&mut self, to: Timestamp, rules: &Rules, outbox: &mut Outbox<'_, '_, CaoSinghal>) {
        self.queue.remove(to);
        self.hold(to, rules);
        let Some(head) = self.queue.head() else { return };
        // An older request may have come too late for the one that passed the lock on.
        let inquire = head < to && rules.flaw != Some(Flaw::NoInquireAfterForward);
        self.announce(head, inquire, outbox);
        if head > to {
            self.fail(0, outbox);
        }
    }

    /// Locks for the oldest request.
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

    /// Tells the holder who is next, and maybe asks it to give the lock back.
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

    /// Tells the owner of the request behind `place` others that it has to wait.
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
