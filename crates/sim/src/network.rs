//! The simulated network: delays, losses, cuts and partitions.

use std::collections::BTreeMap;

use konklave_process::{Group, ProcessId, Rng};
use rustc_hash::FxHashMap;

use crate::service::{Sender, Senders};
use crate::{Config, Delay, Mishap, Purpose, Selector, Streams, Time, UNIT, What};

/// The state of the network: delays, cut links, and the faults of single messages.
#[derive(Debug)]
pub(crate) struct Network {
    /// For uniform and constant delays: the least one, and how far they spread above it.
    least: Time,
    spread: u32,
    /// All other delays.
    other: Option<Delay>,
    /// The draws of delays; none if delays are constant.
    delays: Streams,
    fifo: bool,
    loss: f64,
    duplicate: f64,
    /// The draws of losses and duplicates; none if their probability is 0.
    losses: Streams,
    duplicates: Streams,
    /// With FIFO and varying delays: when the last message of each channel arrives.
    latest: FxHashMap<(ProcessId, ProcessId), Time>,
    /// How many cuts are in effect on each channel.
    cuts: BTreeMap<(ProcessId, ProcessId), u32>,
    /// The broken links, each of which counts as two cuts. A link that broke twice is here twice.
    broken: Vec<(ProcessId, ProcessId)>,
    partitions: Vec<Partition>,
    /// The faults of single messages.
    mishaps: Vec<MessageFault>,
    /// Whether no message can meet with anything but its delay.
    pub(crate) fault_free: bool,
    /// Nodes that need time to send; none if they do not.
    senders: Option<Senders>,
}

/// A fault of a single message.
#[derive(Debug)]
struct MessageFault {
    /// Its index among all faults.
    index: usize,
    selector: Selector,
    mishap: Mishap,
    /// How many messages matched so far.
    seen: u64,
}

/// A partition of the group into sides.
#[derive(Debug)]
struct Partition {
    sides: Vec<Vec<ProcessId>>,
    /// The side of each place; places on no listed side share one more.
    side: Vec<usize>,
}

/// The fate of a message.
pub(crate) enum Fate {
    Arrives(Time),
    ArrivesTwice(Time, Time),
    Lost,
}

impl Network {
    pub(crate) fn new(config: &Config, n: usize) -> Self {
        let streams = |purpose, drawn: bool| match drawn {
            true => Streams::new(config.seed, purpose, n),
            false => Streams::none(),
        };
        let ticks = |t: f64| (t * UNIT as f64).round() as Time;
        let (least, spread, other) = match config.delay {
            Delay::Constant(t) => (ticks(t).max(1), 0, None),
            Delay::Uniform(low, high) if high < 1e6 => {
                let low = ticks(low).max(1);
                (low, (ticks(high).max(low) - low) as u32, None)
            }
            Delay::Uniform(..)
            | Delay::Exponential(_)
            | Delay::LogNormal(..)
            | Delay::PerLink(..)
            | Delay::Hops(_) => (1, 1, Some(config.delay.clone())),
        };
        let faults = config.faults.iter().enumerate();
        let mishaps: Vec<MessageFault> = faults
            .filter_map(|(index, fault)| match &fault.what {
                What::Message(selector, mishap) => {
                    let (selector, mishap) = (selector.clone(), *mishap);
                    Some(MessageFault { index, selector, mishap, seen: 0 })
                }
                _ => None,
            })
            .collect();
        let held_up = mishaps.iter().any(|fault| matches!(fault.mishap, Mishap::Delay(_)));
        let mut network = Self {
            least,
            spread,
            other,
            delays: streams(Purpose::Delay, !config.delay.is_constant()),
            fifo: config.fifo && (held_up || !config.delay.is_constant()),
            loss: config.loss,
            duplicate: config.duplicate,
            losses: streams(Purpose::Loss, config.loss > 0.0),
            duplicates: streams(Purpose::Duplicate, config.duplicate > 0.0),
            latest: FxHashMap::default(),
            cuts: BTreeMap::new(),
            broken: Vec::new(),
            partitions: Vec::new(),
            mishaps,
            fault_free: true,
            senders: Senders::new(config, n),
        };
        network.update();
        network
    }

    fn update(&mut self) {
        self.fault_free = !self.fifo
            && self.loss == 0.0
            && self.duplicate == 0.0
            && self.cuts.is_empty()
            && self.partitions.is_empty()
            && self.mishaps.is_empty()
            && self.senders.is_none();
    }

    /// Whether sending takes time, so that the size of a message counts.
    pub(crate) fn is_slow(&self) -> bool {
        self.senders.is_some()
    }

    /// When the node at `place` has sent a message of `size` bytes.
    pub(crate) fn departure(&mut self, now: Time, place: usize, size: usize) -> Time {
        self.senders.as_mut().map_or(now, |senders| senders.send(now, place, size))
    }

    /// Cuts a channel.
    pub(crate) fn cut(&mut self, from: ProcessId, to: ProcessId) {
        *self.cuts.entry((from, to)).or_insert(0) += 1;
        self.update();
    }

    /// Ends a cut; returns false if there is none.
    pub(crate) fn heal_cut(&mut self, from: ProcessId, to: ProcessId) -> bool {
        let Some(cuts) = self.cuts.get_mut(&(from, to)) else { return false };
        *cuts -= 1;
        if *cuts == 0 {
            self.cuts.remove(&(from, to));
        }
        self.update();
        true
    }

    /// Breaks a link.
    pub(crate) fn break_link(&mut self, one: ProcessId, other: ProcessId) {
        self.cut(one, other);
        self.cut(other, one);
        self.broken.push(link(one, other));
    }

    /// Mends a link; returns false if it is not broken.
    pub(crate) fn mend_link(&mut self, one: ProcessId, other: ProcessId) -> bool {
        let Some(i) = self.broken.iter().position(|l| *l == link(one, other)) else { return false };
        self.broken.remove(i);
        self.heal_cut(one, other) & self.heal_cut(other, one)
    }

    /// Whether the link between these processes is broken.
    pub(crate) fn is_broken(&self, one: ProcessId, other: ProcessId) -> bool {
        self.broken.contains(&link(one, other))
    }

    /// The processes whose link with `p` is broken.
    pub(crate) fn broken_at(&self, p: ProcessId) -> Vec<ProcessId> {
        let end = |&(a, b): &(ProcessId, ProcessId)| match p {
            p if p == a => Some(b),
            p if p == b => Some(a),
            _ => None,
        };
        self.broken.iter().filter_map(end).collect()
    }

    /// Begins a partition into these sides.
    pub(crate) fn partition(&mut self, sides: Vec<Vec<ProcessId>>, group: &Group) {
        let mut side = vec![sides.len(); group.len()];
        for (i, members) in sides.iter().enumerate() {
            for place in members.iter().filter_map(|p| group.place(*p)) {
                side[place] = i;
            }
        }
        self.partitions.push(Partition { sides, side });
        self.update();
    }

    /// Ends a partition; returns false if there is none.
    pub(crate) fn heal_partition(&mut self, sides: &[Vec<ProcessId>]) -> bool {
        let Some(i) = self.partitions.iter().position(|p| p.sides == sides) else { return false };
        self.partitions.remove(i);
        self.update();
        true
    }

    /// Whether messages from one process to the other are lost because of a cut or a partition.
    pub(crate) fn is_separated(&self, from: ProcessId, to: ProcessId, group: &Group) -> bool {
        self.cuts.contains_key(&(from, to))
            || self.partitions.iter().any(|partition| {
                let side = |p| group.place(p).map(|place| partition.side[place]);
                side(from) != side(to)
            })
    }

    /// The faults of single messages: the index of each among all faults, the number of the message that it is
    /// for, and how many messages matched so far.
    pub(crate) fn mishaps(&self) -> impl Iterator<Item = (usize, u64, u64)> {
        self.mishaps.iter().map(|fault| (fault.index, fault.selector.nth, fault.seen))
    }

    /// The delay of a message from a process and its place, without faults.
    #[inline]
    pub(crate) fn delay(&mut self, (from, sender): Sender, to: ProcessId) -> Time {
        if self.spread == 0 {
            return self.least;
        }
        match &self.other {
            None => self.least + Time::from(self.delays.at(sender).below(self.spread + 1)),
            Some(Delay::Hops(hops)) => (Time::from(hops.between(from, to)) * UNIT).max(1),
            Some(delay @ Delay::PerLink(..)) => constant(delay, from, to),
            Some(delay) => drawn(delay, from, to, self.delays.at(sender)),
        }
    }

    /// The delay of a message, drawn from `rng`.
    pub(crate) fn delay_by(&self, from: ProcessId, to: ProcessId, rng: &mut Rng) -> Time {
        match &self.other {
            None if self.spread == 0 => self.least,
            None => self.least + Time::from(rng.below(self.spread + 1)),
            Some(delay) => drawn(delay, from, to, rng),
        }
    }

    /// Prefetches the stream of delays of the process at `place`.
    #[inline]
    pub(crate) fn prefetch(&self, place: usize) {
        self.delays.prefetch(place);
    }

    /// The fate of a message sent now.
    pub(crate) fn fate(
        &mut self,
        now: Time,
        (from, sender): Sender,
        to: ProcessId,
        kind: &str,
        group: &Group,
    ) -> Fate {
        let mut extra = 0;
        let mut doubled = self.duplicate > 0.0 && self.duplicates.at(sender).chance(self.duplicate);
        let mut lost = self.loss > 0.0 && self.losses.at(sender).chance(self.loss)
            || self.is_separated(from, to, group);
        for MessageFault { selector, mishap, seen, .. } in &mut self.mishaps {
            if !selector.fits(from, to, kind) {
                continue;
            }
            *seen += 1;
            if *seen == selector.nth {
                match mishap {
                    Mishap::Lose => lost = true,
                    Mishap::Duplicate => doubled = true,
                    Mishap::Delay(t) => extra += (*t * UNIT as f64).round() as Time,
                }
            }
        }
        if lost {
            return Fate::Lost;
        }
        let first = self.arrival(now, (from, sender), to, extra);
        if doubled {
            return Fate::ArrivesTwice(first, self.arrival(now, (from, sender), to, 0));
        }
        Fate::Arrives(first)
    }

    fn arrival(&mut self, now: Time, (from, sender): Sender, to: ProcessId, extra: Time) -> Time {
        let arrives = now + self.delay((from, sender), to) + extra;
        if !self.fifo {
            return arrives;
        }
        let latest = self.latest.entry((from, to)).or_insert(0);
        *latest = arrives.max(*latest);
        *latest
    }
}

/// A link by its ends, in order.
fn link(one: ProcessId, other: ProcessId) -> (ProcessId, ProcessId) {
    (one.min(other), one.max(other))
}

/// A delay that needs no draw.
#[inline(never)]
fn constant(delay: &Delay, from: ProcessId, to: ProcessId) -> Time {
    drawn(delay, from, to, &mut Rng::new(0))
}

#[inline(never)]
fn drawn(delay: &Delay, from: ProcessId, to: ProcessId, rng: &mut Rng) -> Time {
    ((delay.draw(from, to, rng) * UNIT as f64).round() as Time).max(1)
}

impl Selector {
    /// Whether a message of this channel and kind matches.
    pub fn fits(&self, from: ProcessId, to: ProcessId, kind: &str) -> bool {
        self.from.is_none_or(|p| p == from)
            && self.to.is_none_or(|p| p == to)
            && self.kind.as_deref().is_none_or(|k| k.eq_ignore_ascii_case(kind))
    }
}
