//! The measures: the number of elections, and the time until all processes know the leader.

use konklave_process::{Meter, Process, ProcessId, ProcessSet};
use serde::Serialize;

use super::{Indication, Properties, Request};
use crate::Metric;

/// The measures of the elections of a run.
#[derive(Clone, Debug, Default)]
pub struct Measures {
    first_start: Option<u64>,
    /// The leaders, and the time of their last change.
    leading: ProcessSet,
    settled: Option<u64>,
    last_informed: Option<u64>,
    /// How often a process became the leader.
    elections: u64,
    loops: u64,
}

impl Measures {
    pub(super) fn summary(&self, properties: &Properties, unit: f64) -> Summary {
        let since_start =
            |at: Option<u64>| Some((at? - self.first_start.unwrap_or(0).min(at?)) as f64 / unit);
        let leader = properties.leader();
        Summary {
            leader: leader.map(|(p, _)| p),
            leaders: Some(properties.leading())
                .filter(|leading| leading.len() > 1)
                .map_or_else(Vec::new, |leading| leading.iter().collect()),
            epoch: leader.map(|(_, epoch)| epoch),
            informed: properties.informed(),
            agreeing: properties.agreeing(),
            elections: self.elections,
            loops: self.loops,
            looped: properties.looped(),
            time_to_leader: since_start(self.settled).filter(|_| self.leading.len() == 1),
            time_to_all: since_start(self.last_informed),
        }
    }

    pub(super) fn measured(&self, metric: Metric, unit: f64) -> Option<f64> {
        match metric {
            // An algorithm without requests starts with the run.
            Metric::Time => {
                let informed = self.last_informed?;
                Some((informed - self.first_start.unwrap_or(0).min(informed)) as f64 / unit)
            }
            _ => None,
        }
    }
}

impl<P: Process<Request = Request, Indication = Indication>> Meter<P> for Measures {
    fn on_request(&mut self, now: u64, _at: ProcessId, Request::Elect: &Request) {
        self.first_start.get_or_insert(now);
    }

    fn on_indication(&mut self, now: u64, at: ProcessId, indication: &Indication) {
        let changes = match indication {
            Indication::Leading { .. } => self.leading.insert(at),
            Indication::Following { .. }
            | Indication::Loop
            | Indication::Candidate
            | Indication::Deposed => self.leading.remove(at),
        };
        if changes {
            self.settled = Some(now);
        }
        match indication {
            Indication::Leading { .. } => {
                self.elections += 1;
                self.last_informed = Some(now);
            }
            Indication::Following { .. } => self.last_informed = Some(now),
            Indication::Loop => self.loops += 1,
            Indication::Candidate | Indication::Deposed => {}
        }
    }

    fn on_crash(&mut self, now: u64, at: ProcessId) {
        if self.leading.remove(at) {
            self.settled = Some(now);
        }
    }
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// The measures of a run of elections; times in units of T.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// The last leader.
    pub leader: Option<ProcessId>,
    /// All processes that lead in the end, if they are several: one in each part of a divided topology.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub leaders: Vec<ProcessId>,
    /// The epoch of the last leader.
    pub epoch: Option<u32>,
    /// The number of processes that know of a leader in the end.
    pub informed: usize,
    /// The number of them that name the only leader at the end, itself included.
    pub agreeing: usize,
    /// How often a process became the leader.
    pub elections: u64,
    /// The number of processes that found a loop in the topology.
    pub loops: u64,
    /// The number of processes that have no leader because of a loop.
    #[serde(skip_serializing_if = "is_zero")]
    pub looped: usize,
    /// From the first start until exactly one process led, for good; none if that is not so in the end. In some
    /// algorithms each process leads a group of its own at first: that does not count.
    pub time_to_leader: Option<f64>,
    /// From the first start until the last process learned of the leader.
    pub time_to_all: Option<f64>,
}
