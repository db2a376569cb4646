//! The half of a process that gives locks.

use konklave_process::Timestamp;
use serde::Serialize;
use smallvec::SmallVec;

use super::{Flaw, Locks, Message, Post, Queue, Rules};

/// Locks itself for one request at a time, the oldest it can.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug, Serialize)]
pub(in crate::mutex) struct Arbiter {
    /// For whose request we are locked.
    holder: Option<Timestamp>,
    /// Whether we asked the holder to give the lock back.
    inquired: bool,
    queue: Queue,
    /// Requests whose release has arrived before them.
    over: SmallVec<[Timestamp; 1]>,
}

impl Arbiter {
    pub(super) fn on_request<P: Locks>(
        &mut self,
        request: Timestamp,
        rules: &Rules,
        post: &mut Post<'_, '_, P>,
    ) {
        if let Some(i) = self.over.iter().position(|over| *over == request) {
            self.over.remove(i);
            return;
        }
        // The copy of a request that we are locked for would be served again after its release.
        if self.holder == Some(request) {
            return;
        }
        let Some(place) = self.queue.insert(request, false) else { return };
        let Some(holder) = self.holder else { return self.grant(rules, post) };
        if rules.flaw == Some(Flaw::NoDeadlockHandling) {
            return;
        }
        if place > 0 || request > holder {
            return self.fail(place, post);
        }
        if !self.inquired {
            self.inquired = true;
            post.send(holder.process, Message::Inquire { request: holder.time, clock: post.clock });
        }
        // Whom it displaced at the head must know, too, or it might keep others' locks for ever.
        if rules.flaw != Some(Flaw::NoDisplacedFailed) {
            self.fail(1, post);
        }
    }

    pub(super) fn on_relinquish<P: Locks>(
        &mut self,
        lock: Timestamp,
        rules: &Rules,
        post: &mut Post<'_, '_, P>,
    ) {
        let Some(holder) = self.held_by(lock, rules) else { return };
        self.holder = None;
        // Who gives a lock back knows that it has to wait.
        self.queue.insert(holder, true);
        self.grant(rules, post);
    }

    pub(super) fn on_release<P: Locks>(
        &mut self,
        lock: Timestamp,
        rules: &Rules,
        post: &mut Post<'_, '_, P>,
    ) {
        if self.held_by(lock, rules).is_some() {
            self.holder = None;
            self.grant(rules, post);
        } else if !self.queue.remove(lock) && rules.may_be_over() {
            // It needed no lock of ours, and its request is still on the way.
            self.over.push(lock);
            self.over.sort_unstable();
        }
    }

    /// Locks for the oldest request. Who will not tell us when it leaves does not keep us locked.
    fn grant<P: Locks>(&mut self, rules: &Rules, post: &mut Post<'_, '_, P>) {
        while self.holder.is_none()
            && let Some(next) = self.queue.pop()
        {
            let (entries, clock) = (post.entries, post.clock);
            post.send(next.process, Message::Locked { request: next.time, entries, clock });
            if rules.tracks(next.process) {
                self.holder = Some(next);
                self.inquired = false;
            }
        }
    }

    /// Tells the owner of the request behind `place` others that it has to wait.
    fn fail<P: Locks>(&mut self, place: usize, post: &mut Post<'_, '_, P>) {
        if let Some(request) = self.queue.fail(place) {
            post.send(
                request.process,
                Message::Failed { request: request.time, clock: post.clock },
            );
        }
    }

    /// The request we are locked for, if `lock` names it.
    fn held_by(&self, lock: Timestamp, rules: &Rules) -> Option<Timestamp> {
        let named = |holder: &Timestamp| {
            holder.process == lock.process && (holder.time == lock.time || !rules.stamped())
        };
        self.holder.filter(named)
    }

    pub(super) fn call_up(&self) {
        self.queue.call_up();
    }

    pub(super) fn at_rest(&self) -> bool {
        self.holder.is_none() && self.queue.is_empty() && self.over.is_empty()
    }
}
