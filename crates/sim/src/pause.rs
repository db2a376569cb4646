//! The pauses of clients, and the times at which requests arrive.

use crate::{Pace, Purpose, Streams, Time, UNIT};

/// The pauses of clients, in ticks.
pub struct Pause {
    pace: Pace,
    /// The draws of each client; none if pauses are constant.
    streams: Streams,
    /// By this factor the pauses of each client are longer than those of the pace; empty: 1.
    scale: Vec<f64>,
    /// For each client, the times of its scripted requests still to come, the latest first.
    script: Vec<Vec<Time>>,
    /// With open load: the last arrival of each client.
    arrivals: Vec<Arrival>,
    /// With open load or a script: when the request of each client arrived that it makes next.
    arrived: Vec<Time>,
}

/// The last arrival of a client.
#[derive(Clone, Copy, Default)]
struct Arrival {
    /// When, in T.
    at: f64,
    /// How many requests of the same burst come after it.
    more: u32,
}

impl Pause {
    /// The pauses of `n` clients in a run with this seed; `weights` as in [`Config`](crate::Config).
    pub fn new(pace: Pace, purpose: Purpose, seed: u64, weights: &[f64], n: usize) -> Self {
        let open = pace.is_open();
        Self {
            pace,
            streams: match pace {
                Pace::Constant(_) => Streams::none(),
                _ => Streams::new(seed, purpose, n),
            },
            scale: weights.iter().map(|weight| 1.0 / weight).collect(),
            script: Vec::new(),
            arrivals: if open { vec![Arrival::default(); n] } else { Vec::new() },
            arrived: if open { vec![0; n] } else { Vec::new() },
        }
    }

    /// The same with scripted requests first: places and times in T, in any order.
    pub fn scripted(mut self, script: &[(usize, f64)], n: usize) -> Self {
        if !script.is_empty() {
            self.arrived = vec![0; n];
            self.script = vec![Vec::new(); n];
            for (place, t) in script {
                self.script[*place].push(ticks(*t));
            }
            self.script.iter_mut().for_each(|times| times.sort_unstable_by(|a, b| b.cmp(a)));
        }
        self
    }

    /// When the client at `place`, which may ask from `now` on, makes its next request.
    pub fn after(&mut self, now: Time, place: usize) -> Time {
        if let Some(at) = self.script.get_mut(place).and_then(Vec::pop) {
            self.arrived[place] = at;
            return at.max(now);
        }
        let scale = self.scale.get(place).copied().unwrap_or(1.0);
        if let Some(last) = self.arrivals.get_mut(place) {
            if last.more > 0 {
                last.more -= 1;
            } else {
                last.at += self.pace.draw(self.streams.at(place)) * scale;
                last.more = if let Pace::Bursts(_, k) = self.pace { k - 1 } else { 0 };
            }
            let at = ticks(last.at);
            self.arrived[place] = at;
            return at.max(now);
        }
        let pause = match self.pace {
            Pace::Constant(t) => t,
            pace => pace.draw(self.streams.at(place)),
        };
        let at = now + ticks(pause * scale);
        if let Some(arrived) = self.arrived.get_mut(place) {
            *arrived = at;
        }
        at
    }

    /// When the request arrived that the client at `place` makes next, which may be before the client could make
    /// it; none if requests do not arrive by themselves.
    pub fn arrived(&self, place: usize) -> Option<Time> {
        self.arrived.get(place).copied()
    }
}

fn ticks(t: f64) -> Time {
    (t * UNIT as f64).round() as Time
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(pace: &str, weights: &[f64]) -> Pause {
        Pause::new(pace.parse().unwrap(), Purpose::Think, 5, weights, 2)
    }

    #[test]
    fn arrivals_do_not_depend_on_when_clients_are_ready() {
        let (mut quick, mut slow) = (open("arrivals:5", &[]), open("arrivals:5", &[]));
        for late in [0, 10_000, 1_000_000] {
            let at = quick.after(0, 1);
            assert_eq!(slow.after(late, 1), at.max(late));
            assert_eq!((quick.arrived(1), slow.arrived(1)), (Some(at), Some(at)));
            // The other client draws from a stream of its own.
            slow.after(0, 0);
        }
    }

    #[test]
    fn requests_of_a_burst_arrive_together_and_as_often_as_without_bursts() {
        let mut pause = open("bursts:5,4", &[]);
        let times: Vec<Time> = (0..40_000).map(|_| pause.after(0, 0)).collect();
        for burst in times.chunks(4) {
            assert!(burst.iter().all(|at| *at == burst[0]), "{burst:?}");
        }
        let distance = times[times.len() - 1] as f64 / times.len() as f64 / UNIT as f64;
        assert!((distance - 5.0).abs() < 0.2, "{distance}");
    }

    #[test]
    fn a_client_of_twice_the_weight_pauses_half_as_long() {
        let mut pause = open("exponential:5", &[1.0, 2.0]);
        let mut mean = |place| (0..20_000).map(|_| pause.after(0, place)).sum::<Time>() / 20_000;
        let (one, two) = (mean(0), mean(1));
        assert!((4_800..5_200).contains(&one) && (2_400..2_600).contains(&two), "{one} {two}");
    }

    #[test]
    fn a_scripted_request_arrives_at_its_time_although_its_client_is_busy() {
        let mut pause = open("3", &[]).scripted(&[(1, 4.0), (1, 2.0)], 2);
        assert_eq!((pause.after(0, 1), pause.arrived(1)), (2000, Some(2000)));
        assert_eq!((pause.after(9000, 1), pause.arrived(1)), (9000, Some(4000)));
        assert_eq!((pause.after(9000, 1), pause.arrived(1)), (12_000, Some(12_000)));
    }
}
