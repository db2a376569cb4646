//! The half of a process that gives locks.

use konklave_process::Timestamp;
use serde::Serialize;
use smallvec::SmallVec;

use super::{Few, Flaw, Locks, Message, Post, Queue, Rules};

/// Locks itself for one request at a time, the oldest it can.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug, Serialize)]
pub(in crate::mutex) struct Arbiter {
    /// For whose request we are locked.
    holder: Option<Timestamp>,
    /// Whether we asked the holder to give the lock back.
    inquired: bool,
    queue: Queue,
    /// Requests that gave our lock back, oldest first, and how often: the copy of a return must not
    /// pass for one of the lock that they got since.
    #[serde(skip_serializing_if = "SmallVec::is_empty")]
    returned: SmallVec<[(Timestamp, u16); 1]>,
    /// Where a release may be faster than its request: the time of each requester's last one. A
    /// request that is no younger is over, or a copy.
    #[serde(skip_serializing_if = "Few::is_empty")]
    released: Few<u32>,
}

impl Arbiter {
    pub(super) fn on_request<P: Locks>(
        &mut self,
        request: Timestamp,
        rules: &Rules,
        post: &mut Post<'_, '_, P>,
    ) {
        if self.released.get(request.process).is_some_and(|last| request.time <= last) {
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
        turn: u16,
        rules: &Rules,
        post: &mut Post<'_, '_, P>,
    ) {
        let Some(holder) = self.held_by(lock, rules) else { return };
        match self.returned.binary_search_by_key(&holder, |(request, _)| *request) {
            Ok(i) if self.returned[i].1 == turn => self.returned[i].1 = turn.wrapping_add(1),
            Err(i) if turn == 0 => self.returned.insert(i, (holder, 1)),
            Ok(_) | Err(_) if rules.counts_returns() => return,
            Ok(_) | Err(_) => {}
        }
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
        self.returned.retain(|(request, _)| *request != lock);
        if rules.may_be_early() && rules.flaw != Some(Flaw::NoTombstone) {
            let last = self.released.get(lock.process).unwrap_or(0);
            self.released.insert(lock.process, last.max(lock.time));
        }
        if self.held_by(lock, rules).is_some() {
            self.holder = None;
            self.grant(rules, post);
        } else {
            self.queue.remove(lock);
        }
    }

    /// Locks for the oldest request. Who will not tell us when it leaves does not keep us locked.
    fn grant<P: Locks>(&mut self, rules: &Rules, post: &mut Post<'_, '_, P>) {
        while self.holder.is_none()
            && let Some(next) = self.queue.pop()
        {
            let (turn, entries, clock) = (self.turn(next), post.entries, post.clock);
            post.send(next.process, Message::Locked { request: next.time, turn, entries, clock });
            if rules.tracks(next.process) {
                self.holder = Some(next);
                self.inquired = false;
            }
        }
    }

    /// How often our lock for `request` was given back.
    fn turn(&self, request: Timestamp) -> u16 {
        let found = self.returned.iter().find(|(returned, _)| *returned == request);
        found.map_or(0, |(_, turn)| *turn)
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

    pub(super) fn prefetch(&self) {
        self.queue.prefetch();
    }

    pub(super) fn at_rest(&self) -> bool {
        self.holder.is_none() && self.queue.is_empty()
    }
}
