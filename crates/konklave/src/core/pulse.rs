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

pub(super) struct Pulse {
    /// How often signs of life come.
    every: Duration,
    /// How long the leader's is waited for when ours is due: so long that a clock that was set before that
    /// came wakes us for every second one only. All who follow wait: where that is too long for the others,
    /// nobody does.
    patience: Duration,
    /// When we gave the last sign of life, and when the next is due.
    last: Duration,
    pub(super) next: Duration,
    /// Whose the last one went along with.
    along: Option<ProcessId>,
}

impl Pulse {
    pub(super) fn new(timings: &Timings, now: Duration) -> Self {
        let every = timings.period();
        let patience = if timings.spare_one() { every + every / 8 } else { Duration::ZERO };
        Self { every, patience, last: now, next: now, along: None }
    }
}

impl Core {
    /// A sign of life every now and then: leases, idle locks, who is there.
    pub(super) fn beat(&mut self) {
        let Pulse { every, last, next, along, .. } = &mut self.pulse;
        (*last, *next, *along) = (self.now, self.now + *every, None);
        self.beat_inside();
        self.ping();
        self.drop_idle();
        self.ask_others();
        self.give_up_hope();
        if !self.is_inside() {
            self.announce();
        }
        self.found_alone_in_time();
        self.form();
    }

    /// The leader gives a sign of life: so do we, if it is nearly time. If we just did, the next is due with
    /// the leader's; else we come nearer to that.
    pub(super) fn beat_along(&mut self, leader: ProcessId) {
        let Pulse { every, last, next, along, .. } = &mut self.pulse;
        let soon = *every / 8;
        if along.is_none() && self.now.saturating_sub(*last) <= soon {
            (*next, *along) = (self.now + *every, Some(leader));
        } else {
            *next = (*last + *every - soon).max(self.now).min(*next);
        }
        for (_, due) in self.timers.iter_mut().filter(|(timer, _)| *timer == Timer::Heartbeat) {
            *due = *next;
        }
        if *next <= self.now {
            self.tick(self.now);
            self.pulse.along = Some(leader);
        }
    }

    /// How long the leader's sign of life is waited for now. Once: then we go by our own clock.
    pub(super) fn patience(&self) -> Duration {
        let along = self.pulse.along.is_some() && self.pulse.along == self.below.view().leader();
        if along { self.pulse.patience } else { Duration::ZERO }
    }

    /// Who waited in vain for as long as a heartbeat counts that one, too: silence is counted in these.
    pub(super) fn make_up_for(&mut self, due: Duration) {
        if !self.patience().is_zero() && self.now >= due + self.pulse.every {
            self.step(|below, ctx| below.on_timer(Timer::Heartbeat, ctx));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Node;
    use crate::mutex::Mutex;
    use crate::testing::Cluster;

    const MS: Duration = Duration::from_millis(1);

    /// Three that have been together for a while; the first to follow began later, by so much.
    fn beating(later: Duration) -> Cluster {
        beating_every(Timings::default(), later)
    }

    fn beating_every(timings: Timings, later: Duration) -> Cluster {
        let cluster = Cluster::served_by(Mutex::Table, 3, 0, timings);
        cluster.block_on(async {
            cluster.node(0).ready().await.unwrap();
            cluster.sleep(500 * MS).await;
        });
        follower(&cluster).shared().with(|core, _| {
            core.beat();
            core.pulse.next = core.now + later;
            core.timers.retain(|(timer, _)| *timer != Timer::Heartbeat);
            core.timers.push((Timer::Heartbeat, core.pulse.next));
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
            assert!(beats.clone().any(|due| due == core.pulse.next), "{:?}", core.timers);
        });
    }

    #[test]
    fn who_follows_comes_to_give_its_signs_of_life_with_the_leader() {
        for later in [1, 10, 13, 40, 75, 90, 99] {
            let cluster = beating(later * MS);
            let pulses: Vec<_> = (0..3)
                .map(|i| cluster.node(i).shared().look(|c| (c.pulse.next, c.patience())))
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
            let (last, due) = (core.pulse.last, core.next_due());
            assert!(due >= last + 2 * timings.heartbeat, "{last:?} {due:?}");
            core.tick(due);
            let next = due + timings.heartbeat;
            assert_eq!((core.pulse.next, core.next_due()), (next, next));
            // It is missed in time all the same.
            let leader = core.below.view().leader().unwrap();
            let missed = |core: &Core| core.below.suspects().contains(leader);
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
                let (every, pause) = (timings.period(), core.pulse.next - core.pulse.last);
                assert!(pause <= every + every / 8, "{timings:?}: {pause:?}");
            });
        }
        assert_eq!(odd.period(), 5 * MS, "in units");
    }

    /// However often the leader says something, nobody is thought to be silent because of that.
    #[test]
    fn a_hasty_leader_hardly_hastens_others() {
        let cluster = beating(Duration::ZERO);
        follower(&cluster).shared().with(|core, _| {
            let leader = core.pulse.along.unwrap();
            let mut beats = std::collections::BTreeSet::new();
            for _ in 0..700 {
                core.at(core.now + MS);
                core.beat_along(leader);
                beats.insert(core.pulse.last);
            }
            assert!(beats.len() <= 1 + 8, "eight for seven: {beats:?}");
        });
    }
}
