//! The φ accrual failure detector (Hayashibara, Défago, Yared, Katayama).
//!
//! Every process sends a heartbeat to every other one in each period, and learns the intervals between
//! the heartbeats of each process. The suspicion φ of a process grows with its silence, measured by
//! these intervals: with φ = 8, a suspicion is wrong in one of 10⁸ cases. From a threshold on the
//! process is suspected.
//!
//! - A process reads no clock: it counts the ticks of its own timer, several to a period.
//! - In place of a window of samples it keeps the moving mean and the moving mean deviation of the
//!   intervals: two numbers for each process.
//! - A process that was suspected wrongly may be as late again. So it is allowed one more tick after
//!   each wrong suspicion; if delays have a bound, known or not, in the end no suspicion is wrong.

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
    /// The ticks since the last heartbeat.
    ticks: u32,
    #[serde(skip)]
    settings: Fixed<Settings>,
}

#[derive(Clone, Copy, Debug)]
struct Settings {
    tick: Duration,
    ticks: u32,
    memory: u32,
    /// The distance from the mean to the threshold, in mean deviations times [`TICK`].
    reach: u32,
    skip_late: bool,
}

/// The estimates of another process's heartbeats. All but `silent` and `slack` are in 1/`TICK` ticks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Rhythm {
    /// The ticks since its last heartbeat.
    silent: u32,
    /// The mean interval between its heartbeats.
    mean: u32,
    /// The mean deviation of the intervals from their mean.
    deviation: u32,
    /// The additional ticks that it is allowed after wrong suspicions.
    slack: u32,
}

impl Rhythm {
    /// The estimates at the start: regular heartbeats.
    fn new(ticks: u32) -> Self {
        Self { silent: 0, mean: ticks * TICK, deviation: TICK, slack: 0 }
    }

    /// The mean deviation, at least one tick: the precision of the measurement.
    fn spread(&self) -> u32 {
        self.deviation.max(TICK)
    }

    /// The ticks of silence from which the process is suspected.
    fn limit(&self, reach: u32) -> u32 {
        let likely =
            u64::from(self.mean) + u64::from(reach) * u64::from(self.spread()) / u64::from(TICK);
        (likely / u64::from(TICK)) as u32 + 1 + self.slack
    }

    /// Updates the estimates with an interval of `self.silent` ticks.
    fn learn(&mut self, memory: u32) {
        let toward = |from: u32, to: u32| {
            let step = (i64::from(to) - i64::from(from)) / i64::from(memory);
            (i64::from(from) + step) as u32
        };
        let distance = self.silent.saturating_mul(TICK).min(1 << 30);
        self.deviation = toward(self.deviation, distance.abs_diff(self.mean));
        self.mean = toward(self.mean, distance);
    }

    /// The suspicion φ: the negative logarithm of the probability that a heartbeat is still to come.
    fn phi(&self) -> f64 {
        let silent = f64::from(self.silent.saturating_sub(self.slack));
        let beyond = silent - f64::from(self.mean) / f64::from(TICK);
        // The mean deviation of a normal distribution is about four fifths of its standard deviation.
        phi(beyond / (1.25 * f64::from(self.spread()) / f64::from(TICK)))
    }
}

/// −log₁₀ of the tail of the normal distribution, `y` standard deviations from the mean.
fn phi(y: f64) -> f64 {
    // The logistic approximation. For a large exponent, `exp` would overflow: there ln(1 + eˣ) ≈ x.
    let exponent = y * (1.5976 + 0.070_566 * y * y);
    let ln = if exponent > 30.0 { exponent } else { exponent.exp().ln_1p() };
    ln / std::f64::consts::LN_10
}

/// The distance from the mean, in mean deviations, at which φ reaches `threshold`.
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
    /// The present suspicion φ of `peer`.
    pub fn phi(&self, peer: ProcessId) -> f64 {
        self.rhythms[peer].phi()
    }
}

/// The heartbeat: the sender is alive.
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
        let learns_from_late = self.learns_from_late();
        let Some(rhythm) = self.rhythms.get_mut(from) else {
            return ctx.unexpected("a heartbeat from a process outside the group");
        };
        let wrong = self.suspected.remove(from);
        if wrong {
            ctx.indicate(Indication::Restore(from));
        }
        if !wrong || learns_from_late {
            rhythm.slack = rhythm.slack.saturating_add(u32::from(wrong));
            rhythm.learn(self.settings.memory);
        }
        rhythm.silent = 0;
    }

    fn on_timer(&mut self, Timer::Tick: Timer, ctx: &mut Context<'_, Self>) {
        for p in ctx.others() {
            let rhythm = &mut self.rhythms[p];
            let limit = rhythm.limit(self.settings.reach);
            // A process may come back long after a crash. That silence says little about its
            // intervals, so it counts up to twice the limit only.
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
