//! The measures: delays of messages, and how long view changes stop the group.

use std::collections::BTreeMap;

use konklave_process::{Group, Meter, Process, ProcessId, ProcessMap};
use serde::Serialize;

use super::{Bytes, Indication, Request, ViewId};
use crate::Metric;

/// The measures of the messages and view changes of a run.
#[derive(Clone, Debug)]
pub struct Measures {
    /// When each message that is under way was sent: by sender and number, in its view.
    sent: ProcessMap<BTreeMap<u32, u64>>,
    wedged: ProcessMap<Option<u64>>,
    served: ProcessMap<u64>,
    /// When the first member stopped for the present view change.
    first_wedge: Option<u64>,
    views: BTreeMap<ViewId, u64>,
    deliveries: u64,
    latency: Sample,
    change: Sample,
    pause: Sample,
    excluded: u64,
    blocked: u64,
}

impl Measures {
    /// Nothing measured yet.
    pub fn new(group: &Group) -> Self {
        Self {
            sent: ProcessMap::new(group, BTreeMap::new()),
            wedged: ProcessMap::new(group, None),
            served: ProcessMap::new(group, 0),
            first_wedge: None,
            views: BTreeMap::new(),
            deliveries: 0,
            latency: Sample::default(),
            change: Sample::default(),
            pause: Sample::default(),
            excluded: 0,
            blocked: 0,
        }
    }

    pub(super) fn summary(&self, unit: f64) -> Summary {
        Summary {
            views: self.views.len() as u64,
            deliveries: self.deliveries,
            excluded: self.excluded,
            blocked: self.blocked,
            latency_mean: self.latency.mean(unit),
            latency_max: self.latency.max(unit),
            change_max: self.change.max(unit),
            pause_max: self.pause.max(unit),
            last_view: self.views.keys().next_back().copied(),
        }
    }

    pub(super) fn served(&self) -> Vec<(ProcessId, u64)> {
        self.served.iter().map(|(p, served)| (p, *served)).collect()
    }

    pub(super) fn measured(&self, metric: Metric, unit: f64) -> Option<f64> {
        match metric {
            Metric::Time => self.change.max(unit),
            Metric::EntryDelay => self.latency.max(unit),
            _ => None,
        }
    }
}

impl<P> Meter<P> for Measures
where
    P: Process<Request = Request<Bytes>, Indication = Indication<Bytes>>,
{
    fn on_request(&mut self, _now: u64, _at: ProcessId, _request: &Request<Bytes>) {}

    fn on_indication(&mut self, now: u64, at: ProcessId, indication: &Indication<Bytes>) {
        match indication {
            Indication::Sent { seq } => {
                self.sent[at].insert(*seq, now);
            }
            Indication::Delivered { sender, seq, .. } => {
                self.deliveries += 1;
                if let Some(sent) = self.sent[*sender].get(seq) {
                    self.latency.add(now - sent);
                }
                if *sender == at {
                    self.served[at] += 1;
                }
            }
            Indication::Wedged => {
                self.wedged[at] = Some(now);
                self.first_wedge.get_or_insert(now);
            }
            Indication::Installed { view, .. } => {
                self.views.entry(view.id).or_insert(now);
                self.sent[at].clear();
                if let Some(wedged) = self.wedged[at].take() {
                    self.pause.add(now - wedged);
                    self.change.add(now - self.first_wedge.unwrap_or(wedged));
                }
                if self.wedged.values().all(Option::is_none) {
                    self.first_wedge = None;
                }
            }
            Indication::Excluded | Indication::Left => {
                self.wedged[at] = None;
                self.excluded += u64::from(*indication == Indication::Excluded);
                if self.wedged.values().all(Option::is_none) {
                    self.first_wedge = None;
                }
            }
            Indication::Blocked => self.blocked += 1,
            Indication::Refused(_) | Indication::StateWanted | Indication::State { .. } => {}
        }
    }

    fn on_crash(&mut self, _now: u64, at: ProcessId) {
        self.wedged[at] = None;
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    count: u64,
    sum: u64,
    max: u64,
}

impl Sample {
    fn add(&mut self, value: u64) {
        self.count += 1;
        self.sum += value;
        self.max = self.max.max(value);
    }

    fn mean(&self, unit: f64) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64 / unit)
    }

    fn max(&self, unit: f64) -> Option<f64> {
        (self.count > 0).then(|| self.max as f64 / unit)
    }
}

/// The measures of a run of a group; times in units of T.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// How many views were installed, the first included.
    pub views: u64,
    /// How many messages were delivered, counted at each process.
    pub deliveries: u64,
    /// How often a process was excluded that had not asked to leave.
    pub excluded: u64,
    /// How often a process found no majority.
    pub blocked: u64,
    /// The mean time from sending to delivery, over all deliveries in the view of sending.
    pub latency_mean: Option<f64>,
    /// The longest time from sending to delivery.
    pub latency_max: Option<f64>,
    /// The longest time from the first member that stopped to an installation.
    pub change_max: Option<f64>,
    /// The longest time that a member was stopped.
    pub pause_max: Option<f64>,
    /// The name of the last view.
    pub last_view: Option<ViewId>,
}
