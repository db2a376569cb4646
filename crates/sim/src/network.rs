//! What the network does to messages.

use std::collections::{BTreeMap, BTreeSet};

use konklave_process::{Group, ProcessId, Rng};

use crate::{Config, Delay, Mishap, Selector, Time, UNIT};

/// The state of the network: links, delays, and mishaps to come.
#[derive(Debug)]
pub(crate) struct Network {
    delay: Law,
    fifo: bool,
    loss: f64,
    duplicate: f64,
    /// With FIFO channels and changing delays: when the last message of each channel arrives.
    latest: BTreeMap<(ProcessId, ProcessId), Time>,
    cuts: BTreeSet<(ProcessId, ProcessId)>,
    /// Which side of a partition each place is on; empty while there is none.
    sides: Vec<u32>,
    mishaps: Vec<(Selector, Mishap, u64)>,
    /// Whether any message at all may meet with anything but its delay.
    pub(crate) calm: bool,
}

/// Delays in ticks, quick where they can be.
#[derive(Debug)]
enum Law {
    Constant(Time),
    Uniform(Time, u32),
    Other(Delay),
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
        let delay = match config.delay {
            Delay::Constant(t) => Law::Constant(ticks(t).max(1)),
            Delay::Uniform(low, high) if high < 1e6 => {
                let low = ticks(low).max(1);
                Law::Uniform(low, (ticks(high).max(low) - low + 1) as u32)
            }
            ref other => Law::Other(other.clone()),
        };
        let mut network = Self {
            delay,
            fifo: config.fifo && !config.delay.is_constant(),
            loss: config.loss,
            duplicate: config.duplicate,
            latest: BTreeMap::new(),
            cuts: BTreeSet::new(),
            sides: Vec::new(),
            mishaps: Vec::new(),
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
            && self.sides.is_empty()
            && self.mishaps.is_empty();
    }

    pub(crate) fn cut(&mut self, from: ProcessId, to: ProcessId) {
        self.cuts.insert((from, to));
        self.look();
    }

    pub(crate) fn join(&mut self, from: ProcessId, to: ProcessId) {
        self.cuts.remove(&(from, to));
        self.look();
    }

    pub(crate) fn partition(&mut self, sides: &[Vec<ProcessId>], group: &Group) {
        self.sides = vec![0; group.len()];
        for (i, side) in sides.iter().enumerate() {
            for place in side.iter().filter_map(|p| group.place(*p)) {
                self.sides[place] = i as u32 + 1;
            }
        }
        self.look();
    }

    pub(crate) fn unite(&mut self) {
        self.sides.clear();
        self.look();
    }

    pub(crate) fn expect(&mut self, selector: Selector, mishap: Mishap) {
        self.mishaps.push((selector, mishap, 0));
        self.look();
    }

    /// How long a message takes when nothing can happen to it.
    #[inline]
    pub(crate) fn delay(&self, from: ProcessId, to: ProcessId, rng: &mut Rng) -> Time {
        match &self.delay {
            Law::Constant(ticks) => *ticks,
            Law::Uniform(low, range) => low + Time::from(rng.below(*range)),
            Law::Other(delay) => {
                ((delay.draw(from, to, rng) * UNIT as f64).round() as Time).max(1)
            }
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
        let mut lost = rng.chance(self.loss) || self.cuts.contains(&(from, to));
        if !self.sides.is_empty() {
            let side = |p| group.place(p).map(|place| self.sides[place]);
            lost |= side(from) != side(to);
        }
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

impl Selector {
    fn fits(&self, from: ProcessId, to: ProcessId, kind: &str) -> bool {
        self.from.is_none_or(|p| p == from)
            && self.to.is_none_or(|p| p == to)
            && self.kind.as_deref().is_none_or(|k| k.eq_ignore_ascii_case(kind))
    }
}
