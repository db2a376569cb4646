//! The φ accrual failure detector.
//!
//! Everyone tells everyone in every period that it is alive, and learns from the arrivals how regular
//! each process is. The longer one is silent, measured by its own rhythm, the higher rises the
//! suspicion φ: φ = 8 means that it would be wrong to suspect now in one of 10⁸ cases. From a
//! threshold on it is suspected.
//!
//! A process reads no clock, so it measures in ticks of a timer of its own, several to a period. In
//! place of a window of samples it keeps a moving mean and a moving mean deviation of the distances
//! between arrivals: two numbers for each process, however long it has been watched. And as a
//! process that was suspected wrongly once may be that late again, it is given one tick more each
//! time; so in the end no mistakes are made where delays have a bound, known or not.

mod sheet;
#[cfg(test)]
mod tests;

use std::time::Duration;

use konklave_process::{
    Context, Fixed, NoRecord, NoRequest, Process, ProcessId, ProcessMap, ProcessSet,
};
use serde::{Deserialize, Serialize};

use super::Indication;

/// One tick in the fixed-point numbers of the estimates.
const TICK: u32 = 256;

/// One process of the detector.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct PhiAccrual {
    rhythms: ProcessMap<Rhythm>,
    suspected: ProcessSet,
    /// How many ticks of the present period are over.
    ticks: u32,
    #[serde(skip)]
    settings: Fixed<Settings>,
}

#[derive(Clone, Copy, Debug)]
struct Settings {
    tick: Duration,
    ticks: u32,
    memory: u32,
    /// How many mean deviations beyond the mean the threshold lies, in 1/[`TICK`].
    reach: u32,
    skip_late: bool,
}

/// What is known of another process, in ticks and fractions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Rhythm {
    /// How long it has been silent, in ticks.
    silent: u32,
    /// The mean distance of its messages.
    mean: u32,
    /// How far the distances are from the mean, on average.
    deviation: u32,
    /// What wrong suspicions have earned it, in ticks.
    slack: u32,
}

impl Rhythm {
    /// A regular one, until we know better.
    fn new(ticks: u32) -> Self {
        Self { silent: 0, mean: ticks * TICK, deviation: TICK, slack: 0 }
    }

    /// The mean deviation, and at least a tick: we measure no better.
    fn spread(&self) -> u32 {
        self.deviation.max(TICK)
    }

    /// From how many ticks of silence on it is suspected.
    fn limit(&self, reach: u32) -> u32 {
        let likely =
            u64::from(self.mean) + u64::from(reach) * u64::from(self.spread()) / u64::from(TICK);
        (likely / u64::from(TICK)) as u32 + 1 + self.slack
    }

    /// A message arrived after `self.silent` ticks.
    fn learn(&mut self, memory: u32) {
        let toward = |from: u32, to: u32| {
            let step = (i64::from(to) - i64::from(from)) / i64::from(memory);
            (i64::from(from) + step) as u32
        };
        let distance = self.silent.saturating_mul(TICK).min(1 << 30);
        self.deviation = toward(self.deviation, distance.abs_diff(self.mean));
        self.mean = toward(self.mean, distance);
    }

    /// The suspicion: the negative logarithm of the chance that it still comes.
    fn phi(&self) -> f64 {
        let silent = f64::from(self.silent.saturating_sub(self.slack));
        let beyond = silent - f64::from(self.mean) / f64::from(TICK);
        // The mean deviation of a normal distribution is about four fifths of its standard deviation.
        phi(beyond / (1.25 * f64::from(self.spread()) / f64::from(TICK)))
    }
}

/// −log₁₀ of the tail of the normal distribution, `y` standard deviations from the mean.
fn phi(y: f64) -> f64 {
    // The logistic approximation; the logarithm is taken apart so that no tail is too thin.
    let exponent = y * (1.5976 + 0.070_566 * y * y);
    let ln = if exponent > 30.0 { exponent } else { exponent.exp().ln_1p() };
    ln / std::f64::consts::LN_10
}

/// How many mean deviations make a suspicion of `threshold`.
fn reach(threshold: u32) -> f64 {
    let (mut low, mut high) = (0.0, 100.0);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        if phi(middle) < f64::from(threshold) {
            low = middle;
        } else {
            high = middle;
        }
    }
    1.25 * high
}

impl PhiAccrual {
    /// How much it suspects `peer` now.
    pub fn phi(&self, peer: ProcessId) -> f64 {
        self.rhythms[peer].phi()
    }
}

/// I am alive.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Alive;

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// The end of a tick.
    Tick,
}

impl Process for PhiAccrual {
    type Message = Alive;
    type Timer = Timer;
    type Request = NoRequest;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_start(&mut self, ctx: &mut Context<'_, Self>) {
        ctx.send_to_others(Alive);
        ctx.set_timer(Timer::Tick, self.settings.tick);
    }

    fn on_request(&mut self, request: NoRequest, _ctx: &mut Context<'_, Self>) {
        match request {}
    }

    fn on_message(&mut self, from: ProcessId, Alive: Alive, ctx: &mut Context<'_, Self>) {
        let Some(rhythm) = self.rhythms.get_mut(from) else {
            return ctx.unexpected("a message from a stranger");
        };
        let wrong = self.suspected.remove(from);
        if wrong {
            ctx.indicate(Indication::Restore(from));
        }
        if !(wrong && self.settings.skip_late) {
            rhythm.slack = rhythm.slack.saturating_add(u32::from(wrong));
            rhythm.learn(self.settings.memory);
        }
        rhythm.silent = 0;
    }

    fn on_timer(&mut self, Timer::Tick: Timer, ctx: &mut Context<'_, Self>) {
        for p in ctx.others() {
            let rhythm = &mut self.rhythms[p];
            let limit = rhythm.limit(self.settings.reach);
            // A long silence of one that crashed and came back says little about its rhythm.
            rhythm.silent = (rhythm.silent + 1).min(limit.saturating_mul(2));
            if rhythm.silent >= limit && self.suspected.insert(p) {
                ctx.indicate(Indication::Suspect(p));
            }
        }
        self.ticks = (self.ticks + 1) % self.settings.ticks;
        if self.ticks == 0 {
            ctx.send_to_others(Alive);
        }
        ctx.set_timer(Timer::Tick, self.settings.tick);
    }
}
