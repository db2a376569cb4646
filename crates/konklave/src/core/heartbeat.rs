//! When we give signs of life.
//!
//! The leader's come round by its clock. Who follows is awake when they arrive, and gives its own then: a
//! group that has nothing to do wakes up once for all of it. If the leader's do not come, everyone has a
//! clock of its own.

use std::time::Duration;

use konklave_algorithms::group::virtual_synchrony::Timer;
use konklave_process::{Process, ProcessId};

use super::Core;
use crate::builder::Timings;

pub(super) struct HeartbeatSchedule {
    /// How often signs of life come.
    period: Duration,
    /// How long the leader's is waited for when ours is due: so long that a clock that was set before that
    /// came wakes us for period second one only. All who follow wait: where that is too long for the others,
    /// nobody does.
    patience: Duration,
    /// When we gave the last sign of life, and when the next is due.
    last: Duration,
    pub(super) next: Duration,
    /// Whose the last one went following with.
    following: Option<ProcessId>,
}

impl HeartbeatSchedule {
    pub(super) fn new(timings: &Timings, now: Duration) -> Self {
        let period = timings.period();
        let patience = if timings.spare_one() { period + period / 8 } else { Duration::ZERO };
        Self { period, patience, last: now, next: now, following: None }
    }
}

impl Core {
    /// A sign of life period now and then: leases, idle locks, who is there.
    pub(super) fn send_heartbeat(&mut self) {
        let HeartbeatSchedule { period, last, next, following, .. } = &mut self.heartbeat;
        (*last, *next, *following) = (self.now, self.now + *period, None);
        self.maintain_lifted();
        self.ping();
        self.drop_idle();
        self.ask_other_donors();
        self.dissolve_if_stalled();
        if !self.is_inside() {
            self.announce();
        }
        self.found_alone_if_due();
        self.form();
    }

    /// The leader gives a sign of life: so do we, if it is nearly time. If we just did, the next is due with
    /// the leader's; else we come nearer to that.
    pub(super) fn join_leader_heartbeat(&mut self, leader: ProcessId) {
        let HeartbeatSchedule { period, last, next, following, .. } = &mut self.heartbeat;
        let soon = *period / 8;
        if following.is_none() && self.now.saturating_sub(*last) <= soon {
            (*next, *following) = (self.now + *period, Some(leader));
        } else {
            *next = (*last + *period - soon).max(self.now).min(*next);
        }
        for (_, due) in self.timers.iter_mut().filter(|(timer, _)| *timer == Timer::Heartbeat) {
            *due = *next;
        }
        if *next <= self.now {
            self.tick(self.now);
            self.heartbeat.following = Some(leader);
        }
    }

    /// How long the leader's sign of life is waited for now. Once: then we go by our own clock.
    pub(super) fn patience(&self) -> Duration {
        let following = self.heartbeat.following.is_some()
            && self.heartbeat.following == self.group.view().leader();
        if following { self.heartbeat.patience } else { Duration::ZERO }
    }

    /// Who waited in vain for as long as a heartbeat counts that one, too: silence is counted in these.
    pub(super) fn count_missed_heartbeat(&mut self, due: Duration) {
        if !self.patience().is_zero() && self.now >= due + self.heartbeat.period {
            self.step(|group, ctx| group.on_timer(Timer::Heartbeat, ctx));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Node;
    use crate::lock_algorithm::LockAlgorithm;
    use crate::testing::Cluster;

    const MS: Duration = Duration::from_millis(1);

    /// Three that have been together for a while; the first to follow began later, by so much.
    fn beating(later: Duration) -> Cluster {
        beating_every(Timings::default(), later)
    }

    fn beating_every(timings: Timings, later: Duration) -> Cluster {
        let cluster = Cluster::with_lock_algorithm(LockAlgorithm::Table, 3, 0, timings);
        cluster.block_on(async {
            cluster.node(0).ready().await.unwrap();
            cluster.sleep(500 * MS).await;
        });
        follower(&cluster).shared().with(|core, _| {
            core.send_heartbeat();
            core.heartbeat.next = core.now + later;
            core.timers.retain(|(timer, _)| *timer != Timer::Heartbeat);
            core.timers.push((Timer::Heartbeat, core.heartbeat.next));
        });
        cluster.block_on(cluster.sleep(2000 * MS));
        cluster
    }

    fn follower(cluster: &Cluster) -> Node {
        let follows = |node: &Node| node.shared().look(|core| !core.is_leader());
        (0..3).map(|i| cluster.node(i)).find(follows).unwrap()
    }

    /// The group's signs of life and our own are due at the same times.
    #[test]
    fn signs_of_life_leave_together() {
        let cluster = beating(Duration::ZERO);
        follower(&cluster).shared().look(|core| {
            let beats = core.timers.iter().map(|(_, due)| *due);
            assert!(beats.clone().any(|due| due == core.heartbeat.next), "{:?}", core.timers);
        });
    }

    #[test]
    fn who_follows_comes_to_give_its_signs_of_life_with_the_leader() {
        for later in [1, 10, 13, 40, 75, 90, 99] {
            let cluster = beating(later * MS);
            let pulses: Vec<_> = (0..3)
                .map(|i| cluster.node(i).shared().look(|c| (c.heartbeat.next, c.patience())))
                .collect();
            let together = pulses.iter().all(|(next, _)| next.abs_diff(pulses[0].0) < 10 * MS);
            assert!(together, "{later}: {pulses:?}");
            let waiting = pulses.iter().filter(|(_, patience)| !patience.is_zero()).count();
            assert_eq!(waiting, 2, "{later}: {pulses:?}");
        }
    }

    #[test]
    fn a_leader_that_says_nothing_is_waited_for_once() {
        let cluster = beating(Duration::ZERO);
        let timings = Timings::default();
        follower(&cluster).shared().with(|core, _| {
            let (last, due) = (core.heartbeat.last, core.next_due());
            assert!(due >= last + 2 * timings.heartbeat, "{last:?} {due:?}");
            core.tick(due);
            let next = due + timings.heartbeat;
            assert_eq!((core.heartbeat.next, core.next_due()), (next, next));
            // It is missed in time all the same.
            let leader = core.group.view().leader().unwrap();
            let missed = |core: &Core| core.group.suspects().contains(leader);
            while !missed(core) {
                core.tick(core.next_due());
            }
            let silent = core.now - last;
            assert!(silent > timings.silence - timings.heartbeat, "{silent:?}");
            assert!(silent < timings.silence + timings.heartbeat / 4, "{silent:?}");
        });
    }

    /// Where there is little time for signs of life, none is waited for, and all go by the same beat.
    #[test]
    fn who_has_no_time_to_lose_waits_for_nobody() {
        let default = Timings::default();
        let (silence, lease) = (3 * default.heartbeat, 2 * default.heartbeat);
        let odd = Timings { heartbeat: 9 * MS, silence: 20 * MS, lease: 20 * MS, ..default };
        for timings in [Timings { silence, ..default }, Timings { lease, ..default }, odd] {
            let cluster = beating_every(timings, MS);
            follower(&cluster).shared().look(|core| {
                assert_eq!(core.patience(), Duration::ZERO, "{timings:?}");
                let (period, pause) = (timings.period(), core.heartbeat.next - core.heartbeat.last);
                assert!(pause <= period + period / 8, "{timings:?}: {pause:?}");
            });
        }
        assert_eq!(odd.period(), 5 * MS, "in units");
    }

    /// However often the leader says something, nobody is thought to be silent because of that.
    #[test]
    fn a_hasty_leader_hardly_hastens_others() {
        let cluster = beating(Duration::ZERO);
        follower(&cluster).shared().with(|core, _| {
            let leader = core.heartbeat.following.unwrap();
            let mut beats = std::collections::BTreeSet::new();
            for _ in 0..700 {
                core.at(core.now + MS);
                core.join_leader_heartbeat(leader);
                beats.insert(core.heartbeat.last);
            }
            assert!(beats.len() <= 1 + 8, "eight for seven: {beats:?}");
        });
    }
}
