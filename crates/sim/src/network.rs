//! What the network does to messages.

use std::collections::BTreeMap;

use konklave_process::{Group, ProcessId, Rng};
use rustc_hash::FxHashMap;

use crate::{Config, Delay, Mishap, Selector, Time, UNIT, What};

/// The state of the network: links, delays, and mishaps to come.
#[derive(Debug)]
pub(crate) struct Network {
    /// The least delay, and how many others there may be above it, all alike.
    least: Time,
    spread: u32,
    /// Delays of any other kind.
    other: Option<Delay>,
    fifo: bool,
    loss: f64,
    duplicate: f64,
    /// With FIFO channels and changing delays: when the last message of each channel arrives.
    latest: FxHashMap<(ProcessId, ProcessId), Time>,
    /// How many cuts each link suffers.
    cuts: BTreeMap<(ProcessId, ProcessId), u32>,
    /// The links that are broken, which is two cuts: one that broke twice is here twice.
    broken: Vec<(ProcessId, ProcessId)>,
    partitions: Vec<Partition>,
    /// What will happen to messages, and how many have fitted so far.
    mishaps: Vec<(Selector, Mishap, u64)>,
    /// Whether any message at all may meet with anything but its delay.
    pub(crate) calm: bool,
}

/// Who cannot reach whom.
#[derive(Debug)]
struct Partition {
    sides: Vec<Vec<ProcessId>>,
    /// On which side each place is; who is on none is on a last one.
    side: Vec<usize>,
}

/// What becomes of a message.
pub(crate) enum Fate {
    Arrives(Time),
    ArrivesTwice(Time, Time),
    Lost,
}

impl Network {
    pub(crate) fn new(config: &Config) -> Self {
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
        let mishaps: Vec<(Selector, Mishap, u64)> = config
            .faults
            .iter()
            .filter_map(|fault| match &fault.what {
                What::Message(selector, mishap) => Some((selector.clone(), *mishap, 0)),
                _ => None,
            })
            .collect();
        let held_up = mishaps.iter().any(|(_, mishap, _)| matches!(mishap, Mishap::Delay(_)));
        let mut network = Self {
            least,
            spread,
            other,
            fifo: config.fifo && (held_up || !config.delay.is_constant()),
            loss: config.loss,
            duplicate: config.duplicate,
            latest: FxHashMap::default(),
            cuts: BTreeMap::new(),
            broken: Vec::new(),
            partitions: Vec::new(),
            mishaps,
            calm: true,
        };
        network.look();
        network
    }

    fn look(&mut self) {
        self.calm = !self.fifo
            && self.loss == 0.0
            && self.duplicate == 0.0
            && self.cuts.is_empty()
            && self.partitions.is_empty()
            && self.mishaps.is_empty();
    }

    /// Cuts a link, one way.
    pub(crate) fn cut(&mut self, from: ProcessId, to: ProcessId) {
        *self.cuts.entry((from, to)).or_insert(0) += 1;
        self.look();
    }

    /// Ends a cut; false if there is none.
    pub(crate) fn join(&mut self, from: ProcessId, to: ProcessId) -> bool {
        let Some(cuts) = self.cuts.get_mut(&(from, to)) else { return false };
        *cuts -= 1;
        if *cuts == 0 {
            self.cuts.remove(&(from, to));
        }
        self.look();
        true
    }

    /// Breaks a link.
    pub(crate) fn break_link(&mut self, one: ProcessId, other: ProcessId) {
        self.cut(one, other);
        self.cut(other, one);
        self.broken.push(link(one, other));
    }

    /// Mends a link; false if it is whole.
    pub(crate) fn mend_link(&mut self, one: ProcessId, other: ProcessId) -> bool {
        let Some(i) = self.broken.iter().position(|l| *l == link(one, other)) else { return false };
        self.broken.remove(i);
        self.join(one, other) & self.join(other, one)
    }

    /// Whether the link between them is broken.
    pub(crate) fn is_broken(&self, one: ProcessId, other: ProcessId) -> bool {
        self.broken.contains(&link(one, other))
    }

    /// To whom the links of `p` are broken.
    pub(crate) fn broken_at(&self, p: ProcessId) -> Vec<ProcessId> {
        let end = |&(a, b): &(ProcessId, ProcessId)| match p {
            p if p == a => Some(b),
            p if p == b => Some(a),
            _ => None,
        };
        self.broken.iter().filter_map(end).collect()
    }

    /// Cuts all links between the sides.
    pub(crate) fn partition(&mut self, sides: Vec<Vec<ProcessId>>, group: &Group) {
        let mut side = vec![sides.len(); group.len()];
        for (i, members) in sides.iter().enumerate() {
            for place in members.iter().filter_map(|p| group.place(*p)) {
                side[place] = i;
            }
        }
        self.partitions.push(Partition { sides, side });
        self.look();
    }

    /// Ends a partition; false if there is none.
    pub(crate) fn unite(&mut self, sides: &[Vec<ProcessId>]) -> bool {
        let Some(i) = self.partitions.iter().position(|p| p.sides == sides) else { return false };
        self.partitions.remove(i);
        self.look();
        true
    }

    /// Whether nothing gets through from one to the other.
    pub(crate) fn parts(&self, from: ProcessId, to: ProcessId, group: &Group) -> bool {
        self.cuts.contains_key(&(from, to))
            || self.partitions.iter().any(|partition| {
                let side = |p| group.place(p).map(|place| partition.side[place]);
                side(from) != side(to)
            })
    }

    /// How long a message takes when nothing can happen to it.
    #[inline]
    pub(crate) fn delay(&self, from: ProcessId, to: ProcessId, rng: &mut Rng) -> Time {
        if self.spread == 0 {
            return self.least;
        }
        match &self.other {
            None => self.least + Time::from(rng.below(self.spread + 1)),
            Some(Delay::Hops(hops)) => (Time::from(hops.between(from, to)) * UNIT).max(1),
            Some(delay) => drawn(delay, from, to, rng),
        }
    }

    /// What becomes of a message sent now.
    pub(crate) fn fate(
        &mut self,
        now: Time,
        (from, to): (ProcessId, ProcessId),
        kind: &str,
        group: &Group,
        rng: &mut Rng,
    ) -> Fate {
        let mut extra = 0;
        let mut doubled = rng.chance(self.duplicate);
        let mut lost = rng.chance(self.loss) || self.parts(from, to, group);
        for (selector, mishap, seen) in &mut self.mishaps {
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
        let first = self.arrival(now, from, to, extra, rng);
        if doubled {
            return Fate::ArrivesTwice(first, self.arrival(now, from, to, 0, rng));
        }
        Fate::Arrives(first)
    }

    fn arrival(
        &mut self,
        now: Time,
        from: ProcessId,
        to: ProcessId,
        extra: Time,
        rng: &mut Rng,
    ) -> Time {
        let arrives = now + self.delay(from, to, rng) + extra;
        if !self.fifo {
            return arrives;
        }
        let latest = self.latest.entry((from, to)).or_insert(0);
        *latest = arrives.max(*latest);
        *latest
    }
}

/// A link by its ends, however they are named.
fn link(one: ProcessId, other: ProcessId) -> (ProcessId, ProcessId) {
    (one.min(other), one.max(other))
}

#[inline(never)]
fn drawn(delay: &Delay, from: ProcessId, to: ProcessId, rng: &mut Rng) -> Time {
    ((delay.draw(from, to, rng) * UNIT as f64).round() as Time).max(1)
}

impl Selector {
    fn fits(&self, from: ProcessId, to: ProcessId, kind: &str) -> bool {
        self.from.is_none_or(|p| p == from)
            && self.to.is_none_or(|p| p == to)
            && self.kind.as_deref().is_none_or(|k| k.eq_ignore_ascii_case(kind))
    }
}
