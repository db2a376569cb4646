//! The configuration of a run.

use std::time::Duration;

use konklave_process::{ProcessId, Rng};

use crate::{Delay, Fault, Patience, Time};

/// T, the mean delay of a message, in ticks.
pub const UNIT: Time = 1000;

/// The longest pause, in T: more would overflow the clock of a long run.
const LONGEST_PAUSE: f64 = 1e9;

/// The configuration of a run: delays, faults, pauses, limits.
#[derive(Clone, PartialEq, Debug)]
pub struct Config {
    /// The seed of all random choices.
    pub seed: u64,
    /// The delays of messages.
    pub delay: Delay,
    /// Whether messages of one channel keep their order.
    pub fifo: bool,
    /// The probability that a message is lost.
    pub loss: f64,
    /// The probability that a message arrives twice.
    pub duplicate: f64,
    /// Requests at given times, in T. Further requests follow after pauses.
    pub script: Vec<(ProcessId, f64)>,
    /// The pause of a client before a request, in T.
    pub think: Pace,
    /// The time for which a client holds what it was granted, in T.
    pub hold: Pace,
    /// How often each client asks, as a multiple of the mean over all clients, in node order: its pauses before
    /// requests are divided by this. Empty: all ask equally often.
    pub weights: Vec<f64>,
    /// The time that a node needs to handle a message, in T: messages that arrive meanwhile wait at the node.
    pub service: Pace,
    /// How many bytes a node sends in one T. A node sends one message at a time. None: any number.
    pub bandwidth: Option<f64>,
    /// The faults to inject.
    pub faults: Vec<Fault>,
    /// The time after which all processes know of a crash, in T; none: they never do.
    pub detect_after: Option<f64>,
    /// The length of T for timers.
    pub unit: Duration,
    /// The run is cut off at this time, in T.
    pub time_limit: f64,
    /// The run is cut off after this many steps.
    pub step_limit: u64,
    /// Whether the run is cut off once all requests are served and no fault is to come: after this time since the
    /// last fault, in T.
    pub until_served: Option<f64>,
    /// How long the run goes on without an event of a client, if no request and no fault is to come; none: until
    /// another limit.
    pub patience: Option<Patience>,
    /// How many messages of the application go with each request.
    pub app_messages: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            seed: 1,
            delay: Delay::default(),
            fifo: true,
            loss: 0.0,
            duplicate: 0.0,
            script: Vec::new(),
            think: Pace::Constant(0.0),
            hold: Pace::Constant(0.0),
            weights: Vec::new(),
            service: Pace::Constant(0.0),
            bandwidth: None,
            faults: Vec::new(),
            detect_after: None,
            unit: Duration::from_millis(1),
            time_limit: 1e9,
            step_limit: u64::MAX,
            until_served: None,
            patience: None,
            app_messages: 0,
        }
    }
}

/// How long a client pauses, in T.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Pace {
    /// Always this long.
    Constant(f64),
    /// Uniform between these bounds.
    Uniform(f64, f64),
    /// Exponential with this mean.
    Exponential(f64),
    /// Pareto with this mean and this exponent, which is more than 1: most pauses are short, a few very long.
    Pareto(f64, f64),
    /// Requests arrive as a Poisson process with this mean distance, whether or not earlier requests were
    /// served (open load).
    Arrivals(f64),
    /// As [`Arrivals`](Self::Arrivals) with the same mean distance, but so many requests arrive at a time.
    Bursts(f64, u32),
}

/// The forms of a pause, for errors.
pub const PAUSE_FORMS: &str = "a number of T, uniform:LOW..HIGH, exponential:MEAN, pareto:MEAN,EXPONENT (more than 1), arrivals:MEAN or bursts:MEAN,K";

impl Pace {
    /// The shortest possible pause, in T.
    pub fn least(&self) -> f64 {
        match *self {
            Self::Constant(t) => t,
            Self::Uniform(low, _) => low,
            Self::Pareto(mean, exponent) => mean * (exponent - 1.0) / exponent,
            Self::Exponential(_) | Self::Arrivals(_) | Self::Bursts(..) => 0.0,
        }
    }

    /// Whether requests arrive at their own times, however long earlier ones take (open load).
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Arrivals(_) | Self::Bursts(..))
    }

    /// A pause, in T; with open load, the time from one arrival (of a burst) to the next.
    pub(crate) fn draw(&self, rng: &mut Rng) -> f64 {
        match *self {
            Self::Constant(t) => t,
            Self::Uniform(low, high) => low + (high - low) * rng.unit(),
            Self::Exponential(mean) | Self::Arrivals(mean) => mean * rng.exponential(),
            Self::Bursts(mean, k) => mean * f64::from(k) * rng.exponential(),
            // The inverse of the distribution function, cut off where clocks would overflow.
            Self::Pareto(_, exponent) => {
                (self.least() * (rng.exponential() / exponent).exp()).min(LONGEST_PAUSE)
            }
        }
    }

    /// The length of a constant pause, in T; none if it varies.
    pub fn constant(&self) -> Option<f64> {
        match *self {
            Self::Constant(t) => Some(t),
            Self::Uniform(..)
            | Self::Exponential(_)
            | Self::Pareto(..)
            | Self::Arrivals(_)
            | Self::Bursts(..) => None,
        }
    }
}

impl std::fmt::Display for Pace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Constant(t) => write!(f, "{t}"),
            Self::Uniform(low, high) => write!(f, "uniform:{low}..{high}"),
            Self::Exponential(mean) => write!(f, "exponential:{mean}"),
            Self::Pareto(mean, exponent) => write!(f, "pareto:{mean},{exponent}"),
            Self::Arrivals(mean) => write!(f, "arrivals:{mean}"),
            Self::Bursts(mean, k) => write!(f, "bursts:{mean},{k}"),
        }
    }
}

impl std::str::FromStr for Pace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not a pause; a pause is {PAUSE_FORMS}");
        let time = |word: &str| {
            let t = word.trim().trim_end_matches('T').parse::<f64>().ok();
            t.filter(|t| (0.0..=LONGEST_PAUSE).contains(t)).ok_or_else(wrong)
        };
        let pair = |args: &str| {
            let (first, second) = args.split_once(',').ok_or_else(wrong)?;
            Ok::<_, String>((time(first)?, second.trim().to_owned()))
        };
        if let Some(mean) = text.strip_prefix("arrivals:") {
            return Ok(Self::Arrivals(time(mean)?));
        }
        if let Some(args) = text.strip_prefix("bursts:") {
            let (mean, k) = pair(args)?;
            let k = k.parse().ok().filter(|k| *k > 0).ok_or_else(wrong)?;
            return Ok(Self::Bursts(mean, k));
        }
        if let Some(args) = text.strip_prefix("pareto:") {
            let (mean, exponent) = pair(args)?;
            let exponent = exponent.parse::<f64>().ok().filter(|x| *x > 1.0 && *x <= 1e3);
            return Ok(Self::Pareto(mean, exponent.ok_or_else(wrong)?));
        }
        match text.parse::<Delay>() {
            Ok(Delay::Constant(t)) => Ok(Self::Constant(t)),
            Ok(Delay::Uniform(low, high)) => Ok(Self::Uniform(low, high)),
            Ok(Delay::Exponential(mean)) => Ok(Self::Exponential(mean)),
            Ok(Delay::LogNormal(..) | Delay::PerLink(..) | Delay::Hops(_)) | Err(_) => Err(wrong()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_parsed_as_they_are_written() {
        for text in
            ["5", "uniform:0..9", "exponential:5", "pareto:5,1.5", "arrivals:5", "bursts:5,4"]
        {
            assert_eq!(text.parse::<Pace>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn errors_name_the_valid_pauses() {
        for text in [
            "",
            "x",
            "pareto:5",
            "pareto:5,1",
            "pareto:5,x",
            "bursts:5",
            "bursts:5,0",
            "arrivals:",
            "arrivals:-1",
            "arrivals:nan",
            "log-normal:1,1",
            "hops",
        ] {
            let error = text.parse::<Pace>().unwrap_err();
            assert!(error.contains("bursts:MEAN,K"), "{text}: {error}");
        }
    }

    #[test]
    fn drawn_pauses_have_the_mean_of_their_distribution() {
        let mut rng = Rng::new(3);
        for (text, mean, off) in [
            ("uniform:0..2", 1.0, 0.02),
            ("exponential:2", 2.0, 0.04),
            ("pareto:2,3", 2.0, 0.05),
            ("arrivals:3", 3.0, 0.06),
            // Four requests at a time, so four times as far apart.
            ("bursts:3,4", 12.0, 0.3),
        ] {
            let pace: Pace = text.parse().unwrap();
            let sum: f64 = (0..100_000).map(|_| pace.draw(&mut rng)).sum();
            assert!((sum / 1e5 - mean).abs() < off, "{text}: {}", sum / 1e5);
        }
    }

    #[test]
    fn no_pareto_pause_is_shorter_than_the_least() {
        let (mut rng, pace) = (Rng::new(3), Pace::Pareto(3.0, 1.5));
        let least = (0..100_000).map(|_| pace.draw(&mut rng)).fold(f64::INFINITY, f64::min);
        assert!((least - 1.0).abs() < 1e-3 && pace.least() <= least, "{least}");
    }
}
