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

use std::time::Duration;

use konklave_process::topology::Shape;
use konklave_process::{
    Context, Fixed, NoRecord, NoRequest, Process, ProcessId, ProcessMap, ProcessSet,
};
use serde::{Deserialize, Serialize};

use super::{Detector, Indication};
use crate::{Algorithm, Assumption, DataSheet, Guarantee, Mistake, Setup, SetupError, Switch};

const SKIP_LATE: Mistake = Mistake {
    name: "skip-late",
    what: "what arrives during a suspicion is no sample, as in some libraries: a process that became slower is suspected for ever again",
    breaks: "accuracy",
    caught_by: "",
};

const SHEET: DataSheet = DataSheet {
    name: "phi-accrual",
    title: "φ accrual failure detector",
    idea: "Learn each process's rhythm; suspect who is silent for longer than that makes likely.",
    source: "N. Hayashibara, X. Défago, R. Yared, T. Katayama, SRDS 2004; mean deviation as in V. Jacobson, SIGCOMM 1988",
    assumes: &[Assumption::Reliable, Assumption::BoundedDelays, Assumption::KnownMembership],
    topologies: &[Shape::Complete],
    winner: None,
    costs: &[],
    guarantees: &[Guarantee::Completeness, Guarantee::EventualAccuracy],
    fence: None,
    mistakes: &[SKIP_LATE],
    switches: &[
        Switch { name: "period", values: &["2", "<number>"], what: "the period, in T" },
        Switch { name: "ticks", values: &["4", "<number>"], what: "how many ticks make a period" },
        Switch {
            name: "threshold",
            values: &["8", "<number>"],
            what: "φ from which a process is suspected",
        },
        Switch {
            name: "memory",
            values: &["16", "<number>"],
            what: "over about how many arrivals the mean is taken",
        },
    ],
};

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

impl Algorithm for PhiAccrual {
    type Problem = Detector;
    const SHEET: DataSheet = SHEET;

    fn new(_me: ProcessId, setup: &Setup) -> Self {
        let number = |name| setup.chosen(&SHEET, name).number().max(1);
        let ticks = number("ticks");
        Self {
            rhythms: ProcessMap::new(&setup.group, Rhythm::new(ticks)),
            suspected: ProcessSet::new(),
            ticks: 0,
            settings: Fixed(Settings {
                tick: setup.unit * number("period") / ticks,
                ticks,
                memory: number("memory"),
                reach: (reach(number("threshold")) * f64::from(TICK)) as u32,
                skip_late: *setup.makes(&SKIP_LATE),
            }),
        }
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        setup.need(&SHEET, 1, &["period", "ticks", "threshold", "memory"])?;
        // Finer ticks tell nothing more, and a process would do nothing but count them.
        setup.limit(&SHEET, 1000, &["ticks"])
    }
}

#[cfg(test)]
mod tests {
    use konklave_process::{Group, Topology};
    use konklave_testkit::{Bench, send, set, tell};

    use super::*;

    fn process(n: usize) -> Bench<PhiAccrual> {
        let setup = Setup::new(Group::of(n), Topology::complete(n));
        let process = PhiAccrual::new(ProcessId(0), &setup);
        Bench::new(process, ProcessId(0), &setup.group)
    }

    #[test]
    fn suspicion_follows_the_tail_of_the_normal_distribution() {
        // One in two, then the well-known tails of 1, 2 and 3 standard deviations.
        for (y, tail) in [(0.0, 0.5), (1.0, 0.1587), (2.0, 0.0228), (3.0, 0.00135)] {
            assert!((phi(y) + f64::log10(tail)).abs() < 0.05, "{y}: {}", phi(y));
        }
        assert!(phi(50.0) > 1000.0 && phi(50.0).is_finite());
        for threshold in 1..=16 {
            assert!((phi(reach(threshold) / 1.25) - f64::from(threshold)).abs() < 1e-9);
        }
    }

    #[test]
    fn it_says_that_it_is_alive_once_in_a_period() {
        let mut p = process(2);
        let tick = Duration::from_micros(500);
        assert_eq!(p.start(), [send(1, Alive), set(Timer::Tick, tick)]);
        for _ in 0..3 {
            assert_eq!(p.fire(Timer::Tick), [set(Timer::Tick, tick)]);
        }
        assert_eq!(p.fire(Timer::Tick), [send(1, Alive), set(Timer::Tick, tick)]);
    }

    #[test]
    fn suspicion_grows_with_silence_until_the_threshold() {
        let mut p = process(2);
        let mut last = 0.0;
        let ticks = (1..).find(|_| {
            let suspects = p.fire(Timer::Tick).contains(&tell(Indication::Suspect(ProcessId(1))));
            let phi = p.process.phi(ProcessId(1));
            assert!(phi > last && suspects == (phi >= 8.0), "{phi}");
            last = phi;
            suspects
        });
        // A period of 4 ticks, and 5.6 standard deviations of 1.25 ticks.
        assert_eq!(ticks, Some(11));
        assert_eq!(p.hear(1, Alive), [tell(Indication::Restore(ProcessId(1)))]);
        assert_eq!(p.process.rhythms[ProcessId(1)].slack, 1);
    }

    #[test]
    fn it_learns_another_rhythm() {
        let mut p = process(2);
        for _ in 0..200 {
            for _ in 0..9 {
                p.fire(Timer::Tick);
            }
            p.hear(1, Alive);
        }
        let Rhythm { mean, deviation, slack, .. } = p.process.rhythms[ProcessId(1)];
        assert_eq!((mean.div_ceil(TICK), slack), (9, 0));
        assert!(deviation < TICK, "{deviation}");
    }
}
