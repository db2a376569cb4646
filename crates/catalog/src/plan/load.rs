//! The load of a run: traces, skewed clients, and the part of the run that is measured.

use konklave_algorithms::{Measuring, Workload};
use konklave_sim::Config;

use super::{TICK, usage};
use crate::{Error, Scenario};

/// The requests in a file with lines `time node`, as a script.
pub(super) fn trace(text: &str, file: &str) -> Result<String, Error> {
    let mut words = Vec::new();
    for (i, line) in text.lines().enumerate() {
        let plain = line.split('#').next().unwrap_or_default().trim();
        let mut parts =
            plain.split(|c: char| c.is_whitespace() || c == ',').filter(|w| !w.is_empty());
        match (parts.next(), parts.next(), parts.next()) {
            (None, ..) => {}
            (Some(time), Some(node), None) if time.parse::<f64>().is_ok() => {
                words.push(format!("{}@{time}", node.trim_start_matches('p')));
            }
            // A table may have a head.
            (Some("time"), Some("node"), None) if i == 0 => {}
            _ => {
                let line = i + 1;
                return Err(Error::Data(format!(
                    "{file}:{line}: expected `time node` (time in T), as in `3.5 2`, found `{plain}`"
                )));
            }
        }
    }
    match words.is_empty() {
        true => Err(Error::Data(format!("{file}:1: expected lines `time node`, found none"))),
        false => Ok(words.join(",")),
    }
}

/// How often each node asks, as a multiple of the mean: by Zipf's law with exponent `skew`, in node order, among the
/// nodes that ask. Empty without skew.
pub(super) fn weights(skew: Option<f64>, requests: &[u32]) -> Vec<f64> {
    let Some(skew) = skew.filter(|skew| *skew != 0.0) else { return Vec::new() };
    let askers = requests.iter().filter(|k| **k > 0).count();
    let zipf = |rank: usize| (rank as f64).powf(-skew);
    let mean = (1..=askers).map(zipf).sum::<f64>() / askers.max(1) as f64;
    let mut rank = 0;
    let mut weight = |k: &u32| {
        rank += usize::from(*k > 0);
        if *k > 0 { zipf(rank) / mean } else { 1.0 }
    };
    requests.iter().map(&mut weight).collect()
}

/// The part of the run that is measured.
pub(super) fn measuring(
    scenario: &Scenario,
    workload: &Workload,
    config: &Config,
) -> Result<Measuring, Error> {
    let requests = workload.requests.clone();
    let askers = || requests.iter().copied().filter(|k| *k > 0);
    let warm_up = scenario.warm_up.unwrap_or(0);
    if let Some(least) = askers().min()
        && warm_up >= least
        && warm_up > 0
    {
        return usage(format!(
            "--warm-up {warm_up}: must be less than the {least} request{} of a node",
            if least == 1 { "" } else { "s" }
        ));
    }
    let sample = match scenario.sample {
        None => 0,
        Some(t) if t >= TICK && t <= config.time_limit => (t / TICK).round() as u64,
        Some(t) => return usage(format!("--sample {t}: expected a time in T, at least {TICK}")),
    };
    Ok(Measuring { warm_up: u64::from(warm_up) * askers().count() as u64, requests, sample })
}
