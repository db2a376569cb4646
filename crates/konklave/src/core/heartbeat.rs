//! Schedule of heartbeats: pings, and the heartbeats of virtual synchrony.
//!
//! The leader sends by its own clock. A follower is awake when the leader's heartbeat arrives, and sends its
//! own then: so an idle group wakes up once per period. If the leader's heartbeat does not come, the follower
//! sends by its own clock.

use std::time::Duration;

use konklave_algorithms::group::forming::Timer;
use konklave_algorithms::group::virtual_synchrony;
use konklave_process::{Process, ProcessId};

use super::Core;
use crate::builder::Timings;

/// The heartbeat of virtual synchrony.
pub(super) const TIMER: Timer = Timer::Group(virtual_synchrony::Timer::Heartbeat);

pub(super) struct HeartbeatSchedule {
    /// The time between heartbeats.
    period: Duration,
    /// How long a follower waits for the leader's heartbeat when its own is due: long enough that a timer set
    /// before the last one arrived fires only every second period. All followers wait; with timings that
    /// leave no time for it, none does.
    patience: Duration,
    /// When the last heartbeat was sent, and when the next is due.
    last: Duration,
    pub(super) next: Duration,
    /// The leader whose heartbeat the last one followed.
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
    /// Sends a heartbeat, and does the periodic work: idle locks, missing state donors, founding.
    pub(super) fn send_heartbeat(&mut self) {
        let HeartbeatSchedule { period, last, next, following, .. } = &mut self.heartbeat;
        (*last, *next, *following) = (self.now, self.now + *period, None);
        self.maintain_lifted();
        self.ping();
        self.drop_idle();
        self.forget_longer_leases();
        self.ask_other_donors();
        self.step(|forming, ctx| forming.on_beat(ctx));
    }

    /// The leader's heartbeat arrived. If the own heartbeat is nearly due, it is sent now. If it was just
    /// sent, the next is due together with the leader's. Otherwise the next one moves towards the leader's.
    pub(super) fn join_leader_heartbeat(&mut self, leader: ProcessId) {
        let HeartbeatSchedule { period, last, next, following, .. } = &mut self.heartbeat;
        let soon = *period / 8;
        if following.is_none() && self.now.saturating_sub(*last) <= soon {
            (*next, *following) = (self.now + *period, Some(leader));
        } else {
            *next = (*last + *period - soon).max(self.now).min(*next);
        }
        for (_, due) in self.timers.iter_mut().filter(|(timer, _)| *timer == TIMER) {
            *due = *next;
        }
        if *next <= self.now {
            self.tick(self.now);
            self.heartbeat.following = Some(leader);
        }
    }

    /// How long to wait for the leader's heartbeat now. Only once: afterwards the own clock counts.
    pub(super) fn patience(&self) -> Duration {
        let following = self.heartbeat.following.is_some()
            && self.heartbeat.following == self.forming.group().view().leader();
        if following { self.heartbeat.patience } else { Duration::ZERO }
    }

    /// After a whole period of waiting in vain, counts the heartbeat that was due meanwhile: virtual
    /// synchrony measures silence in its own heartbeats.
    pub(super) fn count_missed_heartbeat(&mut self, due: Duration) {
        if !self.patience().is_zero() && self.now >= due + self.heartbeat.period {
            self.step(|forming, ctx| forming.on_timer(TIMER, ctx));
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

    /// Three members that have run for a while; the first follower's heartbeats are shifted by `later`.
    fn beating(later: Duration) -> Cluster {
        beating_every(Timings::fast(), later)
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
            core.timers.retain(|(timer, _)| *timer != TIMER);
            core.timers.push((TIMER, core.heartbeat.next));
        });
        cluster.block_on(cluster.sleep(2000 * MS));
        cluster
    }

    fn follower(cluster: &Cluster) -> Node {
        let follows = |node: &Node| node.shared().look(|core| !core.is_leader());
        (0..3).map(|i| cluster.node(i)).find(follows).unwrap()
    }

    #[test]
    fn pings_and_group_heartbeats_are_due_together() {
        let cluster = beating(Duration::ZERO);
        follower(&cluster).shared().look(|core| {
            let beats = core.timers.iter().map(|(_, due)| *due);
            assert!(beats.clone().any(|due| due == core.heartbeat.next), "{:?}", core.timers);
        });
    }

    #[test]
    fn followers_converge_to_leader_heartbeat() {
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
    fn follower_waits_for_silent_leader_once() {
        let cluster = beating(Duration::ZERO);
        let timings = Timings::fast();
        follower(&cluster).shared().with(|core, _| {
            let (last, due) = (core.heartbeat.last, core.next_due());
            assert!(due >= last + 2 * timings.heartbeat, "{last:?} {due:?}");
            core.tick(due);
            let next = due + timings.heartbeat;
            assert_eq!((core.heartbeat.next, core.next_due()), (next, next));
            // The silent leader is suspected in time all the same.
            let leader = core.forming.group().view().leader().unwrap();
            let missed = |core: &Core| core.forming.group().suspects().contains(leader);
            while !missed(core) {
                core.tick(core.next_due());
            }
            let silent = core.now - last;
            assert!(silent > timings.silence - timings.heartbeat, "{silent:?}");
            assert!(silent < timings.silence + timings.heartbeat / 4, "{silent:?}");
        });
    }

    #[test]
    fn follower_does_not_wait_with_tight_timings() {
        let default = Timings::fast();
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

    /// Hazard: frequent heartbeats of a leader hurry the followers' clocks, so that others seem silent.
    #[test]
    fn frequent_leader_heartbeats_hardly_hurry_followers() {
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
