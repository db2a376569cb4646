//! The measures: entries, waiting, hand-over.

use konklave_process::{Group, Meter, Process, ProcessId, ProcessMap};
use serde::Serialize;

use super::{Indication, LockProperties, Request};
use crate::Metric;

/// The measures of the entries of a run.
#[derive(Clone, Debug)]
pub struct LockMeasures {
    asked: ProcessMap<Option<u64>>,
    /// When the next request of each client arrived, if it arrived by itself.
    arrived: ProcessMap<Option<u64>>,
    entries: ProcessMap<u64>,
    inside: ProcessMap<bool>,
    /// When the lock was released while a process waited for it.
    free_since: Option<u64>,
    wait_max: Option<u64>,
    hand_over_max: Option<u64>,
    hand_over_sum: u64,
    hand_overs: u64,
    lone_max: Option<u64>,
    /// The process that asked, if no other process has wanted the lock since.
    lone: Option<ProcessId>,
    losses: u64,
    views: u64,
    excluded: u64,
}

impl LockMeasures {
    /// Nothing measured yet.
    pub fn new(group: &Group) -> Self {
        Self {
            asked: ProcessMap::new(group, None),
            arrived: ProcessMap::new(group, None),
            entries: ProcessMap::new(group, 0),
            inside: ProcessMap::new(group, false),
            free_since: None,
            wait_max: None,
            hand_over_max: None,
            hand_over_sum: 0,
            hand_overs: 0,
            lone_max: None,
            lone: None,
            losses: 0,
            views: 0,
            excluded: 0,
        }
    }

    fn waiting(&self) -> bool {
        self.asked.values().any(Option::is_some)
    }

    fn left(&mut self, now: u64, at: ProcessId) {
        if std::mem::take(&mut self.inside[at]) && self.waiting() {
            self.free_since = Some(now);
        }
    }

    pub(super) fn summary(&self, properties: &LockProperties, unit: f64) -> LockSummary {
        let in_unit = |t: Option<u64>| t.map(|t| t as f64 / unit);
        LockSummary {
            entries: self.entries.values().sum(),
            entries_per_node: self.served(),
            wait_max: in_unit(self.wait_max),
            hand_over_max: in_unit(self.hand_over_max),
            hand_over_mean: (self.hand_overs > 0)
                .then(|| self.hand_over_sum as f64 / self.hand_overs as f64 / unit),
            hand_overs: self.hand_overs,
            lone_entry_max: in_unit(self.lone_max),
            losses: self.losses,
            views: self.views,
            excluded: self.excluded,
            refused: properties.refused(),
        }
    }

    pub(super) fn served(&self) -> Vec<(ProcessId, u64)> {
        self.entries.iter().map(|(p, entries)| (p, *entries)).collect()
    }

    pub(super) fn measured(&self, metric: Metric, unit: f64) -> Option<f64> {
        let time = match metric {
            Metric::SyncDelay => self.hand_over_max,
            Metric::EntryDelay => self.lone_max,
            _ => None,
        };
        time.map(|t| t as f64 / unit)
    }
}

impl<P: Process<Request = Request, Indication = Indication>> Meter<P> for LockMeasures {
    fn on_request(&mut self, now: u64, at: ProcessId, request: &Request) {
        match request {
            Request::Acquire { .. } => {
                let busy = self.waiting() || self.inside.values().any(|inside| *inside);
                self.lone = (!busy).then_some(at);
                self.asked[at] = Some(now);
            }
            Request::Release { .. } if self.inside[at] => self.left(now, at),
            // It gives up.
            Request::Release { .. } => self.asked[at] = None,
            Request::Adopt { .. }
            | Request::Revoke { .. }
            | Request::Join
            | Request::Leave
            | Request::Reform
            | Request::Refound
            | Request::Operate(_) => {}
        }
    }

    fn on_indication(&mut self, now: u64, at: ProcessId, indication: &Indication) {
        match indication {
            Indication::Granted { .. } => {
                let Some(asked) = self.asked[at].take() else { return };
                self.inside[at] = true;
                self.entries[at] += 1;
                let arrived = self.arrived[at].take().unwrap_or(asked);
                self.wait_max = self.wait_max.max(Some(now - arrived));
                if self.lone.take() == Some(at) {
                    self.lone_max = self.lone_max.max(Some(now - asked));
                }
                if let Some(free) = self.free_since.take() {
                    self.hand_over_max = self.hand_over_max.max(Some(now - free));
                    self.hand_over_sum += now - free;
                    self.hand_overs += 1;
                }
            }
            Indication::Lost { .. } => {
                self.losses += 1;
                self.left(now, at);
            }
            Indication::Installed(_) => self.views += 1,
            Indication::Refused { .. } => self.asked[at] = None,
            Indication::Excluded => {
                self.excluded += 1;
                self.asked[at] = None;
            }
            Indication::Left | Indication::Blocked | Indication::Replied(_) => {}
        }
    }

    fn on_arrival(&mut self, arrived: u64, at: ProcessId) {
        self.arrived[at] = Some(arrived);
    }

    fn on_crash(&mut self, now: u64, at: ProcessId) {
        self.arrived[at] = None;
        self.asked[at] = None;
        self.left(now, at);
    }
}

/// The measures of a run of locks; times in units of T.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LockSummary {
    /// How often a lock was granted.
    pub entries: u64,
    /// The same for each process.
    pub entries_per_node: Vec<(ProcessId, u64)>,
    /// The longest time from the arrival of a request to its grant.
    pub wait_max: Option<f64>,
    /// The longest time from a release to the next grant while a process waits.
    pub hand_over_max: Option<f64>,
    /// The same on average.
    pub hand_over_mean: Option<f64>,
    /// How many hand-overs that were.
    pub hand_overs: u64,
    /// The longest time from request to grant while no other process wants the lock.
    pub lone_entry_max: Option<f64>,
    /// How often a holder was told that it lost its lock.
    pub losses: u64,
    /// How many views were installed, counted at each process.
    pub views: u64,
    /// How often a process was excluded.
    pub excluded: u64,
    /// How often the fence of a resource refused an earlier holder.
    pub refused: u64,
}
