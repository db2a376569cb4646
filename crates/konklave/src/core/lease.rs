//! Until when it is safe to believe what we believe.
//!
//! A member answers our question only in our view, and only while it has not promised to end it. So
//! when a majority has answered what we asked at some moment, no view without us began before that
//! moment; and a view without us lets a lease pass before it gives away what we mode. We count from
//! the moment we asked, on a clock that goes on while the machine sleeps.

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
    /// When we asked what the others have answered last.
    echoes: BTreeMap<ProcessId, Duration>,
    /// Whom we have answered in this view.
    answered: ProcessSet,
    until: Option<Duration>,
    /// Whether nobody else could take anything from us.
    alone: bool,
}

impl Lease {
    /// A view begins; a lease of this moment would end at `until`.
    pub(super) fn on_view(&mut self, view: &View, me: ProcessId, until: Duration) {
        self.echoes.clear();
        self.answered.clear();
        let was_alone = self.alone;
        self.alone = view.members.len() == 1 && view.has_member(me);
        if was_alone && !self.alone && view.has_member(me) {
            // Only we could end a view in which we were alone, and we have just done so: no view
            // without us began before this moment, as if a majority had answered now.
            self.until = self.until.max(Some(until));
        }
    }

    pub(super) fn end(&mut self) {
        (self.alone, self.until) = (false, None);
    }

    /// When we have to look whether it has run out.
    pub(super) fn runs_out(&self) -> Option<Duration> {
        self.until.filter(|_| !self.alone)
    }

    /// When we asked what this one has answered last in this view.
    pub(super) fn heard(&self, id: ProcessId) -> Option<Duration> {
        self.echoes.get(&id).copied()
    }

    /// When it runs out, if it does.
    pub(super) fn ends(&self) -> Option<Duration> {
        if self.alone { None } else { Some(self.until.unwrap_or_default()) }
    }

    pub(super) fn holds(&self, now: Duration) -> bool {
        self.ends().is_none_or(|until| now < until)
    }
}

impl Core {
    /// The moment until which what we mode is ours, for everyone who looks without asking us.
    pub(crate) fn lease_ends(&self) -> Option<Duration> {
        self.lease.ends()
    }

    /// Asks everyone for a sign of life.
    pub(super) fn ping(&mut self) {
        if !self.is_inside() {
            return;
        }
        let (view, stamp) = (self.group.view().id, self.now.as_nanos() as u64);
        for to in self.group.view().others(self.me) {
            let said = self.said_to(to);
            self.send(to, Frame::Ping { view, stamp, said });
        }
    }

    pub(super) fn on_ping(&mut self, from: ProcessId, view: ViewId, stamp: u64, said: u64) {
        let ours = self.is_inside() && self.group.view().id == view;
        if ours && !self.group.is_wedged() && self.group.view().has_member(self.me) {
            self.send(from, Frame::Pong { view, stamp });
        }
        self.check_received(from, view, said);
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
        let echo = self.lease.echoes.entry(from).or_default();
        *echo = asked.max(*echo);
        // With us, so many others make a majority.
        let others = current.members.len() / 2;
        let mut echoes: Vec<Duration> = self.lease.echoes.values().copied().collect();
        echoes.sort_unstable_by(|a, b| b.cmp(a));
        if let Some(asked) = others.checked_sub(1).and_then(|i| echoes.get(i)) {
            let until = *asked + self.config.timings.held_for();
            let held = self.lease.holds(self.now);
            self.lease.until = self.lease.until.max(Some(until));
            if !held && self.lease.holds(self.now) {
                self.deliver_held_back_grants();
            }
        }
    }

    /// Who asks for a sign of life for the first time in a view may wait for a lease. After that it has one, and
    /// our answer can wait for our own next question, unless leases are hardly longer than that takes.
    pub(super) fn flush_of_pong(&mut self, to: ProcessId, view: ViewId) -> Flush {
        let lasts = self.config.timings.spare_one();
        // The view may have ended in the same step: its successor's first answer is still to come.
        let first = view != self.group.view().id || self.lease.answered.insert(to);
        if first || !lasts { Flush::Now } else { Flush::Batched }
    }

    /// What we mode is lost when the lease is.
    pub(super) fn check_lease(&mut self) {
        if self.lease.holds(self.now) {
            if self.lease.alone {
                self.deliver_held_back_grants();
            }
        } else if self.lease.until.is_some() && self.claims.has_grants() {
            self.lose_all_grants(Loss::Lease);
        }
    }

    /// The leader declares what silent members held free, when they must know.
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

    /// How the answers to one who asks again and again leave.
    fn flush_policies(heartbeat: Duration) -> Vec<Flush> {
        let timings = Timings { heartbeat, ..Timings::default() };
        let cluster = Cluster::with_lock_algorithm(LockAlgorithm::Table, 3, 0, timings);
        cluster.block_on(async { cluster.node(0).ready().await.unwrap() });
        cluster.node(0).shared().with(|core, _| {
            core.lease.answered.clear();
            let (view, to) = (core.group.view().id, ProcessId(1));
            let old = ViewId { epoch: view.epoch + 1, ..view };
            let asked = [old, view, view, old];
            asked.map(|view| core.flush(to, &Frame::Pong { view, stamp: 0 })).to_vec()
        })
    }

    #[test]
    fn only_who_may_wait_for_a_lease_is_answered_at_once() {
        use Flush::{Batched, Now};
        assert_eq!(
            flush_policies(100 * MS),
            [Now, Now, Batched, Now],
            "the first answer in a view"
        );
        assert_eq!(flush_policies(250 * MS), [Now; 4], "a lease is hardly longer than it takes");
    }

    /// A process that was stopped goes on by letting a lock go: nobody here gets it before a majority says so.
    #[test]
    fn who_lets_go_too_late_passes_nothing_on() {
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
