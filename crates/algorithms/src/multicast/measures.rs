//! The measures: deliveries, and what a loss costs.

use std::collections::BTreeMap;
use std::sync::Arc;

use konklave_process::topology::Hops;
use konklave_process::{Meter, Process, ProcessId, ProcessMap};
use serde::Serialize;

use super::unit_map::UnitMap;
use super::{Indication, Note, Properties, Request, Unit};
use crate::sample::{Sample, Spread};
use crate::{Metric, Setup};

/// The measures of the messages of a run.
#[derive(Clone, Debug)]
pub struct Measures {
    sent: ProcessMap<u64>,
    members: u32,
    delivered: u64,
    gone: u64,
    suspected: u64,
    requests: u64,
    repairs: u64,
    unwanted: u64,
    /// When each message was multicast, and how many members have not delivered it.
    open: BTreeMap<Unit, (u64, u32)>,
    /// The messages that a member missed. For each, the recovery time of the last member that got it,
    /// per link to the source.
    missed: BTreeMap<Unit, Option<u64>>,
    /// The messages that each member misses, with the times when it noticed.
    missing: ProcessMap<UnitMap<u64>>,
    /// The number of messages that members miss, in total.
    lacking: u64,
    /// The time from multicast to each delivery.
    latency: Sample,
    /// The time from multicast to the last delivery.
    last_latency: Sample,
    /// The time from notice to delivery, per link to the source.
    recovery: Sample,
    hops: Arc<Hops>,
}

impl Measures {
    /// Nothing measured yet.
    pub fn new(setup: &Setup) -> Self {
        let hops = setup.share("hops", || Hops::new(&setup.topology, &setup.group));
        let group = &setup.group;
        Self {
            sent: ProcessMap::new(group, 0),
            members: group.len() as u32,
            delivered: 0,
            gone: 0,
            suspected: 0,
            requests: 0,
            repairs: 0,
            unwanted: 0,
            open: BTreeMap::new(),
            missed: BTreeMap::new(),
            missing: ProcessMap::new(group, UnitMap::default()),
            lacking: 0,
            latency: Sample::default(),
            last_latency: Sample::default(),
            recovery: Sample::default(),
            hops,
        }
    }

    pub(super) fn summary(&self, properties: &Properties, unit: f64) -> Summary {
        let losses = self.missed.len() as u64;
        let per_loss = |count: u64| (losses > 0).then(|| count as f64 / losses as f64);
        let mut last_recovery = Sample::default();
        self.missed.values().flatten().for_each(|took| last_recovery.add(*took));
        Summary {
            sent: self.sent.values().sum(),
            delivered: self.delivered,
            undelivered: properties.undelivered(),
            latency: self.latency.spread(unit),
            last_latency: self.last_latency.spread(unit),
            losses,
            requests_per_loss: per_loss(self.requests),
            repairs_per_loss: per_loss(self.repairs),
            recovery_rtt: self.recovery.spread(2.0 * unit),
            last_recovery_rtt: last_recovery.spread(2.0 * unit),
            unwanted_per_member: self.unwanted as f64 / f64::from(self.members),
            gone: self.gone,
            suspected: self.suspected,
            order_violations: properties.order_violations(),
        }
    }

    pub(super) fn served(&self) -> Vec<(ProcessId, u64)> {
        self.sent.iter().map(|(p, &sent)| (p, sent)).collect()
    }

    pub(super) fn measured(&self, metric: Metric, unit: f64) -> Option<f64> {
        match metric {
            Metric::Delivery => self.last_latency.max(unit),
            _ => None,
        }
    }

    /// `at` misses `unit` no more. The result is when it noticed, if it missed it.
    fn found(&mut self, at: ProcessId, unit: Unit) -> Option<u64> {
        let since = (self.lacking > 0).then(|| self.missing[at].remove(unit)).flatten();
        self.lacking -= u64::from(since.is_some());
        since
    }

    fn recovered(&mut self, now: u64, at: ProcessId, unit: Unit) {
        let Some(since) = self.found(at, unit) else { return };
        let links = u64::from(self.hops.between(at, unit.from).max(1));
        let took = (now - since) / links;
        self.recovery.add(took);
        if let Some(last) = self.missed.get_mut(&unit) {
            *last = Some(took);
        }
    }

    /// A member has delivered `unit` or given it up; the last one closes it.
    fn done(&mut self, now: u64, unit: Unit) {
        let Some((sent, left)) = self.open.get_mut(&unit) else { return };
        self.latency.add(now - *sent);
        *left -= 1;
        if *left == 0 {
            self.last_latency.add(now - *sent);
            self.open.remove(&unit);
        }
    }
}

impl<P: Process<Request = Request, Indication = Indication>> Meter<P> for Measures {
    fn on_request(&mut self, now: u64, at: ProcessId, request: &Request) {
        let Request::Multicast(number) = *request;
        self.sent[at] += 1;
        self.open.insert(Unit { from: at, number }, (now, self.members));
    }

    fn on_indication(&mut self, now: u64, at: ProcessId, indication: &Indication) {
        match *indication {
            Indication::Delivered(unit) => {
                self.delivered += 1;
                self.done(now, unit);
                self.recovered(now, at, unit);
            }
            Indication::Gone(unit) => {
                self.gone += 1;
                self.found(at, unit);
            }
            Indication::Suspected(_) => self.suspected += 1,
            Indication::Note(Note::Missing(unit)) => {
                self.lacking += u64::from(self.missing[at].insert(unit, now));
                self.missed.entry(unit).or_default();
            }
            Indication::Note(Note::Asked(_)) => self.requests += 1,
            Indication::Note(Note::Repaired(_)) => self.repairs += 1,
            Indication::Note(Note::Unwanted(_)) => self.unwanted += 1,
            Indication::Note(Note::Held(_)) => {}
        }
    }
}

/// The measures of a run of multicast; times in units of T.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Summary {
    /// Messages multicast by applications.
    pub sent: u64,
    /// Deliveries to applications.
    pub delivered: u64,
    /// Missing deliveries at members that were up all the time.
    pub undelivered: u64,
    /// The time from multicast to delivery.
    pub latency: Option<Spread>,
    /// From multicast to the last delivery.
    pub last_latency: Option<Spread>,
    /// Messages that a member missed.
    pub losses: u64,
    /// How often a missed message was asked for.
    pub requests_per_loss: Option<f64>,
    /// How often a missed message was sent again.
    pub repairs_per_loss: Option<f64>,
    /// The time from notice to delivery, in round trips to the source.
    pub recovery_rtt: Option<Spread>,
    /// The same for the last member that got each missed message.
    pub last_recovery_rtt: Option<Spread>,
    /// Repairs that a member received and did not need.
    pub unwanted_per_member: f64,
    /// Messages reported as gone to a member.
    pub gone: u64,
    /// How often a member was given up.
    pub suspected: u64,
    /// Deliveries that broke an order.
    pub order_violations: u64,
}
