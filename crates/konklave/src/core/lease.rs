//! The lease: until when this node may rely on its grants.
//!
//! Hazard: the other members form a view without this node, and grant its locks to others. A member answers a
//! ping only in the same view, and only before it promises to end that view. So if a majority answered pings
//! sent at time t, no view without this node began before t. A view without this node waits for one lease
//! before it grants this node's locks. So the lease counts from the time a ping was sent, not from its
//! answer, on a clock that runs while the machine sleeps.

use std::collections::BTreeMap;
use std::time::Duration;

use konklave_algorithms::group::{View, ViewId};
use konklave_process::{ProcessId, ProcessSet};

use super::Core;
use crate::shared::Flush;
use crate::status::Loss;
use crate::table::Op;
use crate::wire::Frame;

#[derive(Default)]
pub(super) struct Lease {
    /// For each member: the send time of the last ping it answered.
    answered_pings: BTreeMap<ProcessId, Duration>,
    /// The members whose pings this node has answered in this view.
    answered: ProcessSet,
    until: Option<Duration>,
    /// Whether this node is the only member, so that no other member can grant its locks.
    alone: bool,
}

impl Lease {
    /// A view begins; a lease that began now would end at `until`.
    pub(super) fn on_view(&mut self, view: &View, me: ProcessId, until: Duration) {
        self.answered_pings.clear();
        self.answered.clear();
        let was_alone = self.alone;
        self.alone = view.members.len() == 1 && view.has_member(me);
        if was_alone && !self.alone && view.has_member(me) {
            // Only this node could end a view in which it was alone, and it has just done so. So no view
            // without it began before now: the lease begins now, as if a majority had answered.
            self.until = self.until.max(Some(until));
        }
    }

    pub(super) fn end(&mut self) {
        (self.alone, self.until) = (false, None);
    }

    /// When to check whether the lease has run out; `None` if it cannot.
    pub(super) fn runs_out(&self) -> Option<Duration> {
        self.until.filter(|_| !self.alone)
    }

    /// The send time of the last ping this member answered in this view.
    pub(super) fn last_answered(&self, id: ProcessId) -> Option<Duration> {
        self.answered_pings.get(&id).copied()
    }

    /// When the lease ends; `None` if it cannot run out.
    pub(super) fn ends(&self) -> Option<Duration> {
        if self.alone { None } else { Some(self.until.unwrap_or_default()) }
    }

    pub(super) fn holds(&self, now: Duration) -> bool {
        self.ends().is_none_or(|until| now < until)
    }
}

impl Core {
    /// The end of the lease, for readers that do not go through the core.
    pub(crate) fn lease_ends(&self) -> Option<Duration> {
        self.lease.ends()
    }

    /// Sends a ping to every other member of the view.
    pub(super) fn ping(&mut self) {
        if !self.is_inside() {
            return;
        }
        let (view, stamp) = (self.group.view().id, self.now.as_nanos() as u64);
        for to in self.group.view().others(self.me) {
            let frames_sent = self.frames_sent_to(to);
            self.send(to, Frame::Ping { view, stamp, lifted_sent: frames_sent });
        }
    }

    pub(super) fn on_ping(&mut self, from: ProcessId, view: ViewId, stamp: u64, frames_sent: u64) {
        let ours = self.is_inside() && self.group.view().id == view;
        if ours && !self.group.is_wedged() && self.group.view().has_member(self.me) {
            self.send(from, Frame::Pong { view, stamp });
        }
        self.check_received(from, view, frames_sent);
        if ours && self.group.view().leader() == Some(from) {
            self.join_leader_heartbeat(from);
        }
    }

    pub(super) fn on_pong(&mut self, from: ProcessId, view: ViewId, stamp: u64) {
        let current = self.group.view();
        if !self.is_inside() || current.id != view || !current.has_member(from) {
            return;
        }
        let asked = Duration::from_nanos(stamp).min(self.now);
        let echo = self.lease.answered_pings.entry(from).or_default();
        *echo = asked.max(*echo);
        // Together with this node, this many others are a majority.
        let others = current.members.len() / 2;
        let mut answered_pings: Vec<Duration> =
            self.lease.answered_pings.values().copied().collect();
        answered_pings.sort_unstable_by(|a, b| b.cmp(a));
        if let Some(asked) = others.checked_sub(1).and_then(|i| answered_pings.get(i)) {
            let until = *asked + self.config.timings.held_for();
            let held = self.lease.holds(self.now);
            self.lease.until = self.lease.until.max(Some(until));
            if !held && self.lease.holds(self.now) {
                self.deliver_held_back_grants();
            }
        }
    }

    /// The first answer to a member in a view may start its lease, so it is flushed immediately. Later
    /// answers are batched with this node's next ping, unless the lease is too short for that.
    pub(super) fn flush_of_pong(&mut self, to: ProcessId, view: ViewId) -> Flush {
        let lasts = self.config.timings.spare_one();
        // The view may have ended in the same step; then the answer is the first one of the next view.
        let first = view != self.group.view().id || self.lease.answered.insert(to);
        if first || !lasts { Flush::Now } else { Flush::Batched }
    }

    /// If the lease has run out, all local grants are lost.
    pub(super) fn check_lease(&mut self) {
        if self.lease.holds(self.now) {
            if self.lease.alone {
                self.deliver_held_back_grants();
            }
        } else if self.lease.until.is_some() && self.claims.has_grants() {
            self.lose_all_grants(Loss::Lease);
        }
    }

    /// Leader: releases the grants of excluded members whose leases have expired.
    pub(super) fn expire_leases(&mut self) {
        let due: Vec<_> = self
            .lease_expiries
            .iter()
            .filter(|(_, due)| **due <= self.now)
            .map(|(m, _)| *m)
            .collect();
        for member in due {
            self.lease_expiries.remove(&member);
            self.submit(Op::LeaseExpired { member });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::sync::atomic::Ordering;
    use std::task::Poll;

    use super::*;
    use crate::builder::Timings;
    use crate::clock::Clock;
    use crate::lock_algorithm::LockAlgorithm;
    use crate::testing::Cluster;

    const MS: Duration = Duration::from_millis(1);

    /// The flush policies of repeated answers to one member.
    fn flush_policies(heartbeat: Duration) -> Vec<Flush> {
        let timings = Timings { heartbeat, ..Timings::default() };
        let cluster = Cluster::with_lock_algorithm(LockAlgorithm::Table, 3, 0, timings);
        cluster.block_on(async { cluster.node(0).ready().await.unwrap() });
        cluster.node(0).shared().with(|core, _| {
            core.lease.answered.clear();
            let (view, to) = (core.group.view().id, ProcessId(1));
            let old = ViewId { epoch: view.epoch + 1, ..view };
            let asked = [old, view, view, old];
            asked.map(|view| core.flush_policy(to, &Frame::Pong { view, stamp: 0 })).to_vec()
        })
    }

    #[test]
    fn first_pong_in_view_is_sent_immediately() {
        use Flush::{Batched, Now};
        assert_eq!(
            flush_policies(100 * MS),
            [Now, Now, Batched, Now],
            "the first answer in a view"
        );
        assert_eq!(flush_policies(250 * MS), [Now; 4], "a lease is hardly longer than it takes");
    }

    /// Scenario: a process is stopped for longer than its lease, and continues by releasing a lock. No local
    /// request may get the lock before a majority has answered.
    #[test]
    fn late_release_does_not_pass_lock_on() {
        for algorithm in [LockAlgorithm::Table, LockAlgorithm::NaimiTrehel] {
            let cluster = Cluster::with_lock_algorithm(algorithm, 3, 0, Timings::default());
            cluster.block_on(async {
                let node = cluster.node(0);
                let held = node.lock("a").acquire().await.unwrap();
                let mut next = pin!(node.lock("a").acquire());
                let mut waits =
                    async || poll_fn(|t| Poll::Ready(next.as_mut().poll(t).is_pending())).await;
                assert!(waits().await);
                cluster.sleep(10 * MS).await;
                let Clock::Fake(clock) = &node.shared().clock else { panic!("it is a test") };
                clock.fetch_add(5_000_000_000, Ordering::SeqCst);
                drop(held);
                assert!(waits().await, "{algorithm}");
            });
        }
    }
}
