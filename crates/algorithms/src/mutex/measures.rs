//! The measures: entries, waiting, synchronisation delay, bypass, fairness.

mod arrivals;
mod fairness;

use konklave_process::{Meter, Process, ProcessId, ProcessMap, Window};
use serde::Serialize;

pub use self::arrivals::OpenLoad;
pub use self::fairness::Fairness;

use self::arrivals::Arrivals;
use self::fairness::jain;
use super::{Indication, Properties, Request};
use crate::sample::{Sample, Spread};
use crate::{Measuring, Metric, Setup};

/// The measures of the entries of a run.
#[derive(Clone, Debug)]
pub struct Measures {
    clients: ProcessMap<Client>,
    entries: u64,
    waiting: u32,
    inside: u32,
    /// The waiting process, if it is the only one that requested since its request.
    lone: Option<ProcessId>,
    last_exit: Option<u64>,
    /// The time of the first entry. The lock is at work from here until the last exit.
    first_entry: Option<u64>,
    last_left: u64,
    /// Request to entry.
    wait: Sample,
    /// Request to exit.
    response: Sample,
    /// Exit to next entry, if a process waits at the exit.
    sync_delay: Sample,
    /// Request to entry, if no other process waits, is inside, or requests meanwhile.
    lone_entry: Sample,
    /// Request to exit of the same.
    lone_response: Sample,
    max_bypass: u64,
    arrivals: Arrivals,
    steady: Steady,
    series: Series,
}

#[derive(Clone, Copy, Debug, Default)]
struct Client {
    asked: u64,
    /// The arrival of its request, which is before `asked` if the client was busy with earlier requests.
    arrived: Option<u64>,
    waits: bool,
    /// The number of all its requests; 0: unknown.
    requests: u32,
    /// Whether its last entry is measured.
    is_measured: bool,
    /// Whether its last entry met no other request.
    was_lone: bool,
    entries: u64,
    /// The number of all entries before its request.
    entries_before: u64,
    /// The number of its measured entries, and the time that it waited for them.
    measured: u64,
    waited: u64,
}

/// The measured part of a run.
#[derive(Clone, Debug)]
struct Steady {
    warm_up: u64,
    window: Window,
    /// Its begin, its last entry, and the number of its entries.
    from: u64,
    until: u64,
    entries: u64,
}

impl Steady {
    fn new(measuring: &Measuring) -> Self {
        let window = if measuring.warm_up > 0 { Window::Before } else { Window::Always };
        Self { warm_up: measuring.warm_up, window, from: 0, until: 0, entries: 0 }
    }

    /// Entry number `entries` of all; `is_last` if its client makes no further request. Returns whether the entry is
    /// measured.
    fn enter(&mut self, now: u64, entries: u64, is_last: bool) -> bool {
        let measured = matches!(self.window, Window::Always | Window::Open);
        if measured {
            (self.until, self.entries) = (now, self.entries + 1);
        }
        if self.window == Window::Before && entries == self.warm_up {
            (self.window, self.from, self.until) = (Window::Open, now, now);
        }
        if is_last && self.window != Window::Always {
            self.window = Window::Closed;
        }
        measured
    }

    fn summary(&self, entries: u64, unit: f64) -> Option<Measured> {
        let from = self.from as f64 / unit;
        let until = self.until as f64 / unit;
        (self.window != Window::Always).then(|| Measured {
            entries: self.entries,
            from,
            until,
            messages: 0,
            words: format!(
                "{} of {entries} entries, from {from:.3} T to {until:.3} T; left out are the first {} (warm-up), \
                 and those after a client had made its last request",
                self.entries, self.warm_up
            ),
        })
    }
}

/// The state of the clients at regular times.
#[derive(Clone, Debug, Default)]
struct Series {
    every: u64,
    next: u64,
    samples: Vec<(u64, u64, u32, u32)>,
}

/// The most samples of a series.
const LONGEST_SERIES: usize = 100_000;

impl Measures {
    /// Nothing measured yet.
    pub fn new(setup: &Setup) -> Self {
        let every = setup.measuring.sample;
        let mut clients = ProcessMap::new(&setup.group, Client::default());
        for (client, requests) in clients.values_mut().zip(&setup.measuring.requests) {
            client.requests = *requests;
        }
        Self {
            clients,
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
            arrivals: Arrivals::default(),
            steady: Steady::new(&setup.measuring),
            series: Series { every, next: every, samples: Vec::new() },
        }
    }

    pub(super) fn summary(&self, properties: &Properties, unit: f64) -> Summary {
        let measured = self.steady.summary(self.entries, unit);
        let (entries, at_work) = match &measured {
            Some(measured) => (measured.entries, measured.until - measured.from),
            None => {
                let at_work = self.last_left.saturating_sub(self.first_entry.unwrap_or(0));
                (self.entries, at_work as f64 / unit)
            }
        };
        let mean = |client: &Client| client.waited as f64 / client.measured as f64 / unit;
        let served = || self.clients.iter().filter(|(_, client)| client.measured > 0);
        Summary {
            entries: self.entries,
            measured,
            sync_delay: self.sync_delay.spread(unit),
            response: self.response.spread(unit),
            lone_response: self.lone_response.spread(unit),
            wait: self.wait.spread(unit),
            throughput: (at_work > 0.0).then(|| entries as f64 / at_work),
            open_load: self.arrivals.summary(self.clients.values().count(), unit),
            order_inversions: properties.inversions(),
            max_bypass: self.max_bypass,
            fences_monotone: properties.fences_monotone(),
            fairness: Fairness {
                waits: jain(served().map(|(_, client)| mean(client))),
                entries: self.share(),
            },
            entries_per_node: self.served(),
            wait_per_node: served().map(|(p, client)| (p, mean(client))).collect(),
            series: self.series.summary(unit),
        }
    }

    /// Jain's index of the entries of all clients with requests, divided by their requests.
    fn share(&self) -> Option<f64> {
        let asked = self.clients.values().filter(|client| client.requests > 0);
        jain(asked.map(|client| client.measured as f64 / f64::from(client.requests)))
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

    /// Records the state before an event at `now`, at all times of the series until then.
    #[inline]
    fn record(&mut self, now: u64) {
        if self.series.every > 0 {
            self.series.record(now, (self.entries, self.waiting, self.inside));
        }
    }
}

impl Series {
    #[inline(never)]
    fn record(&mut self, now: u64, (entries, waiting, inside): (u64, u32, u32)) {
        while self.next <= now && self.samples.len() < LONGEST_SERIES {
            self.samples.push((self.next, entries, waiting, inside));
            self.next += self.every;
        }
    }

    fn summary(&self, unit: f64) -> Vec<Moment> {
        let moment = |&(at, entries, waiting, inside): &(u64, u64, u32, u32)| Moment {
            time: at as f64 / unit,
            entries,
            waiting,
            inside,
        };
        self.samples.iter().map(moment).collect()
    }
}

impl<P: Process<Request = Request, Indication = Indication>> Meter<P> for Measures {
    fn on_request(&mut self, now: u64, at: ProcessId, request: &Request) {
        self.record(now);
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
                let arrived = client.arrived.take().unwrap_or(client.asked);
                // A request that waited for an earlier one of its client did meet another one.
                let was_lone = std::mem::take(&mut client.was_lone) && arrived == client.asked;
                if client.is_measured {
                    self.response.add(now - arrived);
                }
                if client.is_measured && was_lone {
                    self.lone_response.add(now - arrived);
                }
                self.last_exit = (self.waiting > 0).then_some(now);
            }
        }
    }

    fn on_indication(&mut self, now: u64, at: ProcessId, indication: &Indication) {
        let Indication::Granted { .. } = indication;
        self.record(now);
        self.first_entry.get_or_insert(now);
        let client = &mut self.clients[at];
        if !std::mem::take(&mut client.waits) {
            return;
        }
        client.entries += 1;
        client.is_measured = {
            let is_last = client.entries == u64::from(client.requests);
            self.steady.enter(now, self.entries + 1, is_last)
        };
        let lone = self.lone.take() == Some(at);
        let waited = now - client.arrived.unwrap_or(client.asked);
        client.was_lone = lone;
        let bypass = self.entries - client.entries_before;
        self.entries += 1;
        self.waiting = self.waiting.saturating_sub(1);
        self.inside += 1;
        self.arrivals.enter(now);
        let exit = self.last_exit.take();
        if !client.is_measured {
            return;
        }
        (client.measured, client.waited) = (client.measured + 1, client.waited + waited);
        if lone {
            self.lone_entry.add(now - client.asked);
        }
        self.max_bypass = self.max_bypass.max(bypass);
        self.wait.add(waited);
        if let Some(exit) = exit {
            self.sync_delay.add(now - exit);
        }
    }

    fn on_arrival(&mut self, arrived: u64, at: ProcessId) {
        self.clients[at].arrived = Some(arrived);
        self.arrivals.arrive(arrived);
    }

    fn window(&self) -> Window {
        self.steady.window
    }

    fn on_crash(&mut self, now: u64, at: ProcessId) {
        self.record(now);
        self.clients[at].was_lone = false;
        self.clients[at].arrived = None;
        if std::mem::take(&mut self.clients[at].waits) {
            self.waiting = self.waiting.saturating_sub(1);
        }
        self.last_exit = None;
    }
}

/// The measures of a run of mutual exclusion; times in units of T.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// The number of entries.
    pub entries: u64,
    /// The measured part of the run, if a warm-up is left out. The following measures describe this part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
    /// From an exit to the next entry, if a process waits.
    pub sync_delay: Option<Spread>,
    /// From request to exit; with open load, from the arrival of the request.
    pub response: Option<Spread>,
    /// The response time of requests that met no other: no other process was inside, waited, or requested until
    /// the entry.
    pub lone_response: Option<Spread>,
    /// From request to entry; with open load, from the arrival of the request.
    pub wait: Option<Spread>,
    /// Entries per T, from the first entry to the last exit.
    pub throughput: Option<f64>,
    /// Arrivals and backlog, if requests arrive at times of their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_load: Option<OpenLoad>,
    /// The number of entries that broke the happened-before order; none if no judge watched it.
    pub order_inversions: Option<u64>,
    /// The most entries of others between a request and its entry.
    pub max_bypass: u64,
    /// Whether fence numbers grew from entry to entry; none if the algorithm has no fence.
    pub fences_monotone: Option<bool>,
    /// Fairness between clients.
    pub fairness: Fairness,
    /// Entries of each node, in the whole run.
    pub entries_per_node: Vec<(ProcessId, u64)>,
    /// The mean waiting time of each node that entered.
    pub wait_per_node: Vec<(ProcessId, f64)>,
    /// The state of the clients at regular times, if asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Moment>,
}

/// The measured part of a run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Measured {
    /// The number of its entries.
    pub entries: u64,
    /// Its begin.
    pub from: f64,
    /// Its last entry.
    pub until: f64,
    /// The number of messages sent in it, as the host counts them.
    pub messages: u64,
    /// The limits of the measured part as a sentence.
    pub words: String,
}

/// The clients at a time.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Moment {
    /// The time.
    pub time: f64,
    /// The number of entries until then.
    pub entries: u64,
    /// The number of clients that wait.
    pub waiting: u32,
    /// The number of clients in the critical section.
    pub inside: u32,
}
