//! The pauses of clients.

use konklave_process::Rng;

use crate::{Pace, Time, UNIT};

/// The pauses of clients, in ticks.
pub(crate) struct Pause {
    pace: Pace,
    /// For each client, the times of its scripted requests still to come, the latest first.
    script: Vec<Vec<Time>>,
    /// With open load: when the last request of each client arrived, in T.
    arrivals: Vec<f64>,
}

impl Pause {
    pub(crate) fn new(pace: Pace, n: usize) -> Self {
        let open = matches!(pace, Pace::Arrivals(_));
        let arrivals = if open { vec![0.0; n] } else { Vec::new() };
        Self { pace, script: Vec::new(), arrivals }
    }

    /// Pauses that begin with scripted requests: places and times in T, in any order.
    pub(crate) fn scripted(script: &[(usize, f64)], pace: Pace, n: usize) -> Self {
        let mut pause = Self::new(pace, n);
        if !script.is_empty() {
            pause.script = vec![Vec::new(); n];
            for (place, t) in script {
                pause.script[*place].push((t * UNIT as f64).round() as Time);
            }
            pause.script.iter_mut().for_each(|times| times.sort_unstable_by(|a, b| b.cmp(a)));
        }
        pause
    }

    /// When the client at `place` makes its next request.
    pub(crate) fn after(&mut self, now: Time, place: usize, rng: &mut Rng) -> Time {
        let unit = UNIT as f64;
        if let Some(at) = self.script.get_mut(place).and_then(Vec::pop) {
            return at.max(now);
        }
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
