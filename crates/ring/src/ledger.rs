//! The state of the ring, computed from the events of the workers: live workers, leaders, messages in flight.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use konklave_process::{Group, ProcessId};

use crate::log::Record;

/// An event that a worker reports to the ring. Causes arrive before their effects.
#[derive(Debug)]
pub(crate) enum Event {
    /// A record for the log.
    Log(Record),
    /// A message is about to be put into a neighbour's slot.
    Sent,
    /// The message was not taken in time and is withdrawn.
    TimedOut,
    /// The message was withdrawn because the ring stops.
    Withdrawn,
    /// A task is finished.
    Handled,
    /// Accepted tasks will never be handled.
    Lost(usize),
    /// The worker leads.
    Leading(ProcessId),
    /// The worker stepped down.
    Deposed(ProcessId),
    /// The worker knows its leader.
    Following { who: ProcessId, leader: ProcessId },
    /// The announcement of the leader has returned to it.
    Complete { leader: ProcessId, at: Instant },
    /// The worker fails.
    Failed(ProcessId),
}

/// The state of the ring, computed from the events of the workers.
#[derive(Debug)]
pub(crate) struct Ledger {
    live: BTreeSet<ProcessId>,
    leaders: BTreeSet<ProcessId>,
    /// The leader that each worker knows.
    beliefs: BTreeMap<ProcessId, ProcessId>,
    /// Tasks put, accepted or being handled.
    in_flight: usize,
    /// Hops, also those to failed neighbours.
    pub(crate) messages: u64,
    /// Hops that no worker took.
    pub(crate) timed_out: u64,
    /// The worker that completed the election, and the time.
    pub(crate) complete: Option<(ProcessId, Instant)>,
}

/// Several workers lead at once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct TwoLeaders(pub(crate) Vec<ProcessId>);

impl Ledger {
    pub(crate) fn new(group: &Group) -> Self {
        Self {
            live: group.members().iter().copied().collect(),
            leaders: BTreeSet::new(),
            beliefs: BTreeMap::new(),
            in_flight: 0,
            messages: 0,
            timed_out: 0,
            complete: None,
        }
    }

    /// The live workers, lowest id first.
    pub(crate) fn live(&self) -> Vec<ProcessId> {
        self.live.iter().copied().collect()
    }

    pub(crate) fn is_live(&self, id: ProcessId) -> bool {
        self.live.contains(&id)
    }

    /// A new election begins: counts start at 0.
    pub(crate) fn begin(&mut self) {
        (self.messages, self.timed_out) = (0, 0);
        self.begin_attempt();
    }

    /// An election begins, possibly again.
    pub(crate) fn begin_attempt(&mut self) {
        self.complete = None;
        self.beliefs.clear();
    }

    /// The controller gave a worker a task.
    pub(crate) fn assigned(&mut self) {
        self.in_flight += 1;
    }

    /// Whether no worker has a task.
    pub(crate) fn at_rest(&self) -> bool {
        self.in_flight == 0
    }

    /// The live workers that do not know `leader` as their leader.
    pub(crate) fn uninformed(&self, leader: ProcessId) -> Vec<ProcessId> {
        let knows = |p: &&ProcessId| self.beliefs.get(p) == Some(&leader);
        self.live.iter().filter(|p| !knows(p)).copied().collect()
    }

    /// Applies `event`. Fails if there are two leaders.
    pub(crate) fn note(&mut self, event: &Event) -> Result<(), TwoLeaders> {
        match *event {
            Event::Log(_) => {}
            Event::Sent => {
                self.messages += 1;
                self.in_flight += 1;
            }
            Event::TimedOut => {
                self.timed_out += 1;
                self.done(1);
            }
            Event::Withdrawn | Event::Handled => self.done(1),
            Event::Lost(tasks) => self.done(tasks),
            Event::Leading(id) => {
                self.beliefs.insert(id, id);
                self.leaders.insert(id);
                if self.leaders.len() > 1 {
                    return Err(TwoLeaders(self.leaders.iter().copied().collect()));
                }
            }
            Event::Deposed(id) => {
                self.leaders.remove(&id);
                self.beliefs.remove(&id);
            }
            Event::Following { who, leader } => {
                self.beliefs.insert(who, leader);
            }
            Event::Complete { leader, at } => self.complete = Some((leader, at)),
            Event::Failed(id) => {
                self.live.remove(&id);
                self.leaders.remove(&id);
            }
        }
        Ok(())
    }

    fn done(&mut self, tasks: usize) {
        debug_assert!(self.in_flight >= tasks, "causes arrive before their effects");
        self.in_flight = self.in_flight.saturating_sub(tasks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const P1: ProcessId = ProcessId(1);
    const P2: ProcessId = ProcessId(2);

    fn ledger() -> Ledger {
        Ledger::new(&Group::of(3))
    }

    #[test]
    fn two_leaders_at_once_are_noticed() {
        let mut ledger = ledger();
        assert_eq!(ledger.note(&Event::Leading(P1)), Ok(()));
        assert_eq!(ledger.note(&Event::Leading(P2)), Err(TwoLeaders(vec![P1, P2])));
    }

    #[test]
    fn a_leader_that_stepped_down_or_failed_does_not_count() {
        let mut ledger = ledger();
        for event in [
            Event::Leading(P1),
            Event::Deposed(P1),
            Event::Leading(P2),
            Event::Failed(P2),
            Event::Leading(P1),
        ] {
            assert_eq!(ledger.note(&event), Ok(()));
        }
        assert_eq!(ledger.live(), [ProcessId(0), P1]);
    }

    #[test]
    fn the_ring_is_at_rest_when_every_task_was_handled_or_lost() {
        let mut ledger = ledger();
        ledger.assigned();
        for event in [Event::Sent, Event::TimedOut, Event::Sent, Event::Handled] {
            assert_eq!(ledger.note(&event), Ok(()));
            assert!(!ledger.at_rest());
        }
        assert_eq!(ledger.note(&Event::Lost(1)), Ok(()));
        assert!(ledger.at_rest());
        assert_eq!((ledger.messages, ledger.timed_out), (2, 1));
    }

    #[test]
    fn only_the_living_need_to_be_informed() {
        let mut ledger = ledger();
        ledger.note(&Event::Leading(P2)).unwrap();
        ledger.note(&Event::Following { who: P1, leader: P2 }).unwrap();
        assert_eq!(ledger.uninformed(P2), [ProcessId(0)]);
        ledger.note(&Event::Failed(ProcessId(0))).unwrap();
        assert_eq!(ledger.uninformed(P2), []);
    }
}
