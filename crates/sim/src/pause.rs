//! How long clients pause.

use konklave_process::Rng;

use crate::{Pace, Time, UNIT};

/// The pauses of clients, in ticks.
pub(crate) struct Pause {
    pace: Pace,
    /// For arrivals: when the last wish of each client came, in T.
    arrivals: Vec<f64>,
}

impl Pause {
    pub(crate) fn new(pace: Pace, n: usize) -> Self {
        let open = matches!(pace, Pace::Arrivals(_));
        Self { pace, arrivals: if open { vec![0.0; n] } else { Vec::new() } }
    }

    /// When the next wish of the client at `place` comes.
    pub(crate) fn after(&mut self, now: Time, place: usize, rng: &mut Rng) -> Time {
        let unit = UNIT as f64;
        let pause = match self.pace {
            Pace::Constant(t) => t,
            Pace::Uniform(low, high) => low + (high - low) * rng.unit(),
            Pace::Exponential(mean) => mean * rng.exponential(),
            Pace::Arrivals(mean) => {
                self.arrivals[place] += mean * rng.exponential();
                return now.max((self.arrivals[place] * unit).round() as Time);
            }
        };
        now + (pause * unit).round() as Time
    }
}
