//! The measures: entries, waiting, synchronisation delay, bypass.

use konklave_process::{Group, Meter, Process, ProcessId, ProcessMap};
use serde::Serialize;

use super::{Indication, Properties, Request};
use crate::Metric;

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
    last_event: u64,
    /// Request to entry.
    wait: Sample,
    /// Request to exit.
    response: Sample,
    /// Exit to next entry, when someone waits at the exit.
    sync_delay: Sample,
    /// Request to entry when nobody else wanted or held, or asked in the meantime.
    lone_entry: Sample,
    max_bypass: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Client {
    asked: u64,
    waits: bool,
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
            last_event: 0,
            wait: Sample::default(),
            response: Sample::default(),
            sync_delay: Sample::default(),
            lone_entry: Sample::default(),
            max_bypass: 0,
        }
    }

    pub(super) fn summary(&self, properties: &Properties, unit: f64) -> Summary {
        let time = self.last_event as f64 / unit;
        Summary {
            entries: self.entries,
            sync_delay: self.sync_delay.spread(unit),
            response: self.response.spread(unit),
            wait: self.wait.spread(unit),
            throughput: (time > 0.0).then(|| self.entries as f64 / time),
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
            Metric::Messages | Metric::MessagesPerEntry | Metric::Time => None,
        }
    }
}

impl<P: Process<Request = Request, Indication = Indication>> Meter<P> for Measures {
    fn on_request(&mut self, now: u64, at: ProcessId, request: &Request) {
        self.last_event = now;
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
                self.response.add(now - client.asked);
                self.last_exit = (self.waiting > 0).then_some(now);
            }
        }
    }

    fn on_indication(&mut self, now: u64, at: ProcessId, indication: &Indication) {
        let Indication::Granted { .. } = indication;
        self.last_event = now;
        let client = &mut self.clients[at];
        if !std::mem::take(&mut client.waits) {
            return;
        }
        client.entries += 1;
        let waited = now - client.asked;
        if self.lone.take() == Some(at) {
            self.lone_entry.add(waited);
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
        if std::mem::take(&mut self.clients[at].waits) {
            self.waiting = self.waiting.saturating_sub(1);
        }
        self.last_exit = None;
    }
}

/// Times in ticks: mean and extremes exactly, percentiles from a histogram of 64 · 32 buckets that
/// is never more than 3 % off.
#[derive(Clone, Debug, Default)]
struct Sample {
    count: u64,
    sum: u64,
    min: u64,
    max: u64,
    buckets: Vec<u32>,
}

const SUB: u32 = 32;

impl Sample {
    fn add(&mut self, ticks: u64) {
        self.min = if self.count == 0 { ticks } else { self.min.min(ticks) };
        self.max = self.max.max(ticks);
        self.count += 1;
        self.sum += ticks;
        let bucket = Self::bucket(ticks);
        if bucket >= self.buckets.len() {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
    }

    fn bucket(ticks: u64) -> usize {
        if ticks < u64::from(SUB) {
            return ticks as usize;
        }
        let magnitude = ticks.ilog2() - SUB.ilog2();
        (magnitude * SUB) as usize + (ticks >> magnitude) as usize
    }

    /// The lowest value of a bucket.
    fn floor(bucket: usize) -> u64 {
        let sub = SUB as usize;
        if bucket < 2 * sub {
            return bucket as u64;
        }
        let magnitude = bucket / sub - 1;
        ((bucket - magnitude * sub) as u64) << magnitude
    }

    fn quantile(&self, q: f64) -> u64 {
        let rank = ((self.count as f64 * q).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, &count) in self.buckets.iter().enumerate() {
            seen += u64::from(count);
            if seen >= rank {
                return Self::floor(bucket).clamp(self.min, self.max);
            }
        }
        self.max
    }

    fn max(&self, unit: f64) -> Option<f64> {
        (self.count > 0).then(|| self.max as f64 / unit)
    }

    fn spread(&self, unit: f64) -> Option<Spread> {
        (self.count > 0).then(|| Spread {
            mean: self.sum as f64 / self.count as f64 / unit,
            min: self.min as f64 / unit,
            max: self.max as f64 / unit,
            p50: self.quantile(0.50) as f64 / unit,
            p99: self.quantile(0.99) as f64 / unit,
        })
    }
}

/// How a measure spreads, in units of T.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
    /// The median, within 3 %.
    pub p50: f64,
    /// The 99th percentile, within 3 %.
    pub p99: f64,
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
    /// From request to entry.
    pub wait: Option<Spread>,
    /// Entries per T.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_within_three_percent() {
        let mut sample = Sample::default();
        for ticks in 0..100_000 {
            sample.add(ticks);
        }
        let p99 = sample.quantile(0.99) as f64;
        assert!((p99 - 99_000.0).abs() < 0.03 * 99_000.0, "{p99}");
        assert_eq!((sample.min, sample.max), (0, 99_999));
    }

    #[test]
    fn buckets_and_floors_agree() {
        for ticks in (0..200).chain([1000, 4095, 4096, 1 << 40]) {
            let floor = Sample::floor(Sample::bucket(ticks));
            assert!(floor <= ticks && ticks - floor <= ticks / 32, "{ticks} in bucket of {floor}");
        }
    }
}
