//! The lease: until when this node may rely on its grants.
//!
//! Hazard: the other members form a view without this node, and grant its locks to others. A member answers a
//! ping only in the same view, and only before it promises to end that view. So if a majority answered pings
//! sent at time t, no view without this node began before t. A view without this node waits for one lease
//! before it grants this node's locks. So the lease counts from the time a ping was sent, not from its
//! answer, on a clock that runs while the machine sleeps.
//!
//! A grant may have a lease of its own, shorter or longer than the group's: it counts from the same time.

use std::collections::BTreeMap;
use std::time::Duration;

use konklave_algorithms::group::{Member, View, ViewId};
use konklave_process::{ProcessId, ProcessSet};

use super::Core;
use crate::builder::{held_for, lease_expiry};
use crate::shared::Flush;
use crate::table::Op;
use crate::wire::Frame;

#[derive(Default)]
pub(super) struct Lease {
    /// For each member: the send time of the last ping it answered.
    answered_pings: BTreeMap<ProcessId, Duration>,
    /// The members whose pings this node has answered in this view.
    answered: ProcessSet,
    /// The time at which a majority was asked that has answered: leases count from then.
    renewed: Option<Duration>,
    /// Whether this node is the only member, so that no other member can grant its locks.
    alone: bool,
}

impl Lease {
    /// A view begins.
    pub(super) fn on_view(&mut self, view: &View, me: ProcessId, now: Duration) {
        self.answered_pings.clear();
        self.answered.clear();
        let was_alone = self.alone;
        self.alone = view.members.len() == 1 && view.has_member(me);
        if was_alone && !self.alone && view.has_member(me) {
            // Only this node could end a view in which it was alone, and it has just done so. So no view
            // without it began before now: the lease begins now, as if a majority had answered.
            self.renewed = self.renewed.max(Some(now));
        }
    }

    pub(super) fn end(&mut self) {
        (self.alone, self.renewed) = (false, None);
    }

    /// When a grant with this lease runs out; `None` if it cannot.
    pub(super) fn runs_out(&self, lease: Duration) -> Option<Duration> {
        let renewed = self.renewed.filter(|_| !self.alone)?;
        Some(renewed + held_for(lease))
    }

    /// The send time of the last ping this member answered in this view.
    pub(super) fn last_answered(&self, id: ProcessId) -> Option<Duration> {
        self.answered_pings.get(&id).copied()
    }

    /// When a grant with this lease ends; `None` if it cannot run out.
    pub(super) fn ends(&self, lease: Duration) -> Option<Duration> {
        if self.alone { None } else { Some(self.runs_out(lease).unwrap_or_default()) }
    }

    /// Whether a majority has answered a ping sent less than `span` ago.
    pub(super) fn is_fresh(&self, span: Duration, now: Duration) -> bool {
        self.alone || self.renewed.is_some_and(|asked| now < asked + span)
    }

    /// Whether a grant with this lease is valid.
    pub(super) fn holds(&self, lease: Duration, now: Duration) -> bool {
        self.ends(lease).is_none_or(|until| now < until)
    }
}

impl Core {
    /// The time from which leases count, for readers that do not go through the core: `None` if they cannot
    /// run out, zero if none is valid.
    pub(crate) fn lease_renewed(&self) -> Option<Duration> {
        if self.lease.alone { None } else { Some(self.lease.renewed.unwrap_or_default()) }
    }

    /// Whether grants with the group's lease are valid now.
    pub(super) fn is_leased(&self) -> bool {
        self.lease.holds(self.config.timings.lease, self.now)
    }

    /// Whether this node is a member, and a majority has answered it lately.
    pub(crate) fn has_quorum(&self) -> bool {
        let recent = self.config.timings.lease.min(self.config.timings.silence);
        self.is_member()
            && !self.blocked
            && self.lease.is_fresh(recent, self.now)
            && self.trusts_majority()
    }

    /// Whether this node suspects no more members than the view can go on without.
    fn trusts_majority(&self) -> bool {
        let group = self.forming.group();
        let (members, suspects) = (&group.view().members, group.suspects());
        let trusted = |m: &&Member| m.id == self.me || !suspects.contains(m.id);
        suspects.is_empty() || members.iter().filter(trusted).count() > members.len() / 2
    }

    /// Why this node cannot serve requests now.
    pub(crate) fn why_not_ready(&self) -> String {
        match self.what_is_missing() {
            missing if missing.is_empty() => "no majority of its members answers".into(),
            missing => missing,
        }
    }

    /// Sends a ping to every other member of the view.
    pub(super) fn ping(&mut self) {
        if !self.is_inside() {
            return;
        }
        let (view, stamp) = (self.forming.group().view().id, self.now.as_nanos() as u64);
        for to in self.forming.group().view().others(self.me) {
            let frames_sent = self.frames_sent_to(to);
            self.send(to, Frame::Ping { view, stamp, lifted_sent: frames_sent });
        }
    }

    pub(super) fn on_ping(&mut self, from: ProcessId, view: ViewId, stamp: u64, frames_sent: u64) {
        let ours = self.is_inside() && self.forming.group().view().id == view;
        if ours
            && !self.forming.group().is_wedged()
            && self.forming.group().view().has_member(self.me)
        {
            self.send(from, Frame::Pong { view, stamp });
        }
        self.check_received(from, view, frames_sent);
        if ours && self.forming.group().view().leader() == Some(from) {
            self.join_leader_heartbeat(from);
        }
    }

    pub(super) fn on_pong(&mut self, from: ProcessId, view: ViewId, stamp: u64) {
        let current = self.forming.group().view();
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
            let asked = *asked;
            let held = self.is_leased();
            self.lease.renewed = self.lease.renewed.max(Some(asked));
            if !held && self.is_leased() || self.claims.awaits_renewal() {
                self.deliver_held_back_grants();
            }
        }
    }

    /// The first answer to a member in a view may start its lease, so it is flushed immediately. Later
    /// answers are batched with this node's next ping, unless the lease is too short for that.
    pub(super) fn flush_of_pong(&mut self, to: ProcessId, view: ViewId) -> Flush {
        let lasts = self.config.timings.spare_one();
        // The view may have ended in the same step; then the answer is the first one of the next view.
        let first = view != self.forming.group().view().id || self.lease.answered.insert(to);
        if first || !lasts { Flush::Now } else { Flush::Batched }
    }

    /// Local grants whose leases have run out are lost.
    pub(super) fn check_lease(&mut self) {
        if self.lease.alone {
            return self.deliver_held_back_grants();
        }
        let Some(shortest) = self.claims.shortest_lease() else { return };
        if self.lease.runs_out(shortest).is_some_and(|end| end <= self.now) {
            self.lose_expired_grants();
        }
    }

    /// Leader: releases the grants of excluded members whose leases have expired.
    pub(super) fn expire_leases(&mut self) {
        let due: Vec<_> = self
            .lease_expiries
            .iter()
            .filter(|(_, due)| **due <= self.now)
            .map(|(fenced, _)| *fenced)
            .collect();
        for (member, lease) in due {
            self.lease_expiries.remove(&(member, lease));
            self.submit(Op::LeaseExpired { member, lease });
        }
    }

    /// Leader: waits for the leases of fenced grants, from now on.
    pub(super) fn await_expiry(&mut self, member: Member, lease: u32) {
        let due = self.now + lease_expiry(Duration::from_millis(lease.into()));
        self.lease_expiries.entry((member, lease)).or_insert(due);
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
        let timings = Timings { heartbeat, ..Timings::fast() };
        let cluster = Cluster::with_lock_algorithm(LockAlgorithm::Table, 3, 0, timings);
        cluster.block_on(async { cluster.node(0).ready().await.unwrap() });
        cluster.node(0).shared().with(|core, _| {
            core.lease.answered.clear();
            let (view, to) = (core.forming.group().view().id, ProcessId(1));
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
            let cluster = Cluster::with_lock_algorithm(algorithm, 3, 0, Timings::fast());
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
