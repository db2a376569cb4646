//! The measures: entries, waiting, synchronisation delay, bypass.

use konklave_process::{Group, Meter, Process, ProcessId, ProcessMap};
use serde::Serialize;

use super::{Indication, Properties, Request};
use crate::Metric;
use crate::sample::{Sample, Spread};

/// What the entries of a run took.
#[derive(Clone, Debug)]
pub struct Measures {
    clients: ProcessMap<Client>,
    entries: u64,
    waiting: u32,
    inside: u32,
    /// Who waits, if nobody else has wanted in since it asked.
    lone: Option<ProcessId>,
    last_exit: Option<u64>,
    /// The first entry, and the last exit: in between the lock is at work.
    first_entry: Option<u64>,
    last_left: u64,
    /// Request to entry.
    wait: Sample,
    /// Request to exit.
    response: Sample,
    /// Exit to next entry, when someone waits at the exit.
    sync_delay: Sample,
    /// Request to entry when nobody else wanted or held, or asked in the meantime.
    lone_entry: Sample,
    /// Request to exit of the same.
    lone_response: Sample,
    max_bypass: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Client {
    asked: u64,
    waits: bool,
    /// Whether it came in without meeting anyone.
    was_lone: bool,
    entries: u64,
    /// How many entries there had been when it asked.
    entries_before: u64,
}

impl Measures {
    /// Nothing measured yet.
    pub fn new(group: &Group) -> Self {
        Self {
            clients: ProcessMap::new(group, Client::default()),
            entries: 0,
            waiting: 0,
            inside: 0,
            lone: None,
            last_exit: None,
            first_entry: None,
            last_left: 0,
            wait: Sample::default(),
            response: Sample::default(),
            sync_delay: Sample::default(),
            lone_entry: Sample::default(),
            lone_response: Sample::default(),
            max_bypass: 0,
        }
    }

    pub(super) fn summary(&self, properties: &Properties, unit: f64) -> Summary {
        let at_work = self.last_left.saturating_sub(self.first_entry.unwrap_or(0)) as f64 / unit;
        Summary {
            entries: self.entries,
            sync_delay: self.sync_delay.spread(unit),
            response: self.response.spread(unit),
            lone_response: self.lone_response.spread(unit),
            wait: self.wait.spread(unit),
            throughput: (at_work > 0.0).then(|| self.entries as f64 / at_work),
            order_inversions: properties.inversions(),
            max_bypass: self.max_bypass,
            fences_monotone: properties.fences_monotone(),
            entries_per_node: self.served(),
        }
    }

    pub(super) fn served(&self) -> Vec<(ProcessId, u64)> {
        self.clients.iter().map(|(p, client)| (p, client.entries)).collect()
    }

    pub(super) fn measured(&self, metric: Metric, unit: f64) -> Option<f64> {
        match metric {
            Metric::SyncDelay => self.sync_delay.max(unit),
            Metric::EntryDelay => self.lone_entry.max(unit),
            _ => None,
        }
    }
}

impl<P: Process<Request = Request, Indication = Indication>> Meter<P> for Measures {
    fn on_request(&mut self, now: u64, at: ProcessId, request: &Request) {
        let client = &mut self.clients[at];
        match request {
            Request::Acquire => {
                client.asked = now;
                client.waits = true;
                self.lone = (self.waiting == 0 && self.inside == 0).then_some(at);
                client.entries_before = self.entries;
                self.waiting += 1;
            }
            Request::Release => {
                self.inside = self.inside.saturating_sub(1);
                self.last_left = now;
                self.response.add(now - client.asked);
                if std::mem::take(&mut client.was_lone) {
                    self.lone_response.add(now - client.asked);
                }
                self.last_exit = (self.waiting > 0).then_some(now);
            }
        }
    }

    fn on_indication(&mut self, now: u64, at: ProcessId, indication: &Indication) {
        let Indication::Granted { .. } = indication;
        self.first_entry.get_or_insert(now);
        let client = &mut self.clients[at];
        if !std::mem::take(&mut client.waits) {
            return;
        }
        client.entries += 1;
        let waited = now - client.asked;
        if self.lone.take() == Some(at) {
            self.lone_entry.add(waited);
            client.was_lone = true;
        }
        self.max_bypass = self.max_bypass.max(self.entries - client.entries_before);
        self.entries += 1;
        self.waiting = self.waiting.saturating_sub(1);
        self.inside += 1;
        self.wait.add(waited);
        if let Some(exit) = self.last_exit.take() {
            self.sync_delay.add(now - exit);
        }
    }

    fn on_crash(&mut self, _now: u64, at: ProcessId) {
        self.clients[at].was_lone = false;
        if std::mem::take(&mut self.clients[at].waits) {
            self.waiting = self.waiting.saturating_sub(1);
        }
        self.last_exit = None;
    }
}

/// The measures of a run of mutual exclusion; times in units of T.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// How often someone entered.
    pub entries: u64,
    /// From an exit to the next entry, while someone waits.
    pub sync_delay: Option<Spread>,
    /// From request to exit.
    pub response: Option<Spread>,
    /// The same of requests that met no other: nobody was inside, waited, or asked until the entry.
    pub lone_response: Option<Spread>,
    /// From request to entry.
    pub wait: Option<Spread>,
    /// Entries per T, from the first entry to the last exit.
    pub throughput: Option<f64>,
    /// Entries that broke happened-before order; none where it was not watched.
    pub order_inversions: Option<u64>,
    /// The most entries of others between a request and its entry.
    pub max_bypass: u64,
    /// Whether fence numbers grew from entry to entry; none where there are none.
    pub fences_monotone: Option<bool>,
    /// Entries of each node.
    pub entries_per_node: Vec<(ProcessId, u64)>,
}
