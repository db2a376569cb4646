//! The configuration of a run.

use std::time::Duration;

use konklave_process::ProcessId;

use crate::{Delay, Fault, Time};

/// T, the mean delay of a message, in ticks.
pub const UNIT: Time = 1000;

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
            faults: Vec::new(),
            detect_after: None,
            unit: Duration::from_millis(1),
            time_limit: 1e9,
            step_limit: u64::MAX,
            until_served: None,
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
    /// Requests arrive as a Poisson process with this mean distance, whether or not earlier requests were
    /// served (open load).
    Arrivals(f64),
}

impl Pace {
    /// The shortest possible pause, in T.
    pub fn least(&self) -> f64 {
        match *self {
            Self::Constant(t) => t,
            Self::Uniform(low, _) => low,
            Self::Exponential(_) | Self::Arrivals(_) => 0.0,
        }
    }

    /// The length of a constant pause, in T; none if it varies.
    pub fn constant(&self) -> Option<f64> {
        match *self {
            Self::Constant(t) => Some(t),
            Self::Uniform(..) | Self::Exponential(_) | Self::Arrivals(_) => None,
        }
    }
}

impl std::fmt::Display for Pace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Constant(t) => write!(f, "{t}"),
            Self::Uniform(low, high) => write!(f, "uniform:{low}..{high}"),
            Self::Exponential(mean) => write!(f, "exponential:{mean}"),
            Self::Arrivals(mean) => write!(f, "arrivals:{mean}"),
        }
    }
}

impl std::str::FromStr for Pace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(mean) = text.strip_prefix("arrivals:") {
            let mean: Delay = format!("constant:{mean}").parse()?;
            return Ok(Self::Arrivals(mean.longest().unwrap_or(1.0)));
        }
        match text.parse::<Delay>() {
            Ok(Delay::Constant(t)) => Ok(Self::Constant(t)),
            Ok(Delay::Uniform(low, high)) => Ok(Self::Uniform(low, high)),
            Ok(Delay::Exponential(mean)) => Ok(Self::Exponential(mean)),
            Ok(Delay::LogNormal(..) | Delay::PerLink(..) | Delay::Hops(_)) | Err(_) => {
                Err(format!(
                    "`{text}` is not a pause; a pause is a number of T, uniform:LOW..HIGH, exponential:MEAN or arrivals:MEAN"
                ))
            }
        }
    }
}
