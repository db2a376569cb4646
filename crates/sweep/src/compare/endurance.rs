//! Which faults an algorithm outlives: the third corner of the triangle, measured.

use konklave_catalog::tolerance::{Fault, tolerance};
use konklave_catalog::{Entry, Error, RunReport, Scenario, Verdict};
use serde::Serialize;

/// How many of the faults that were tried, one at a time, did no harm.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct Endurance {
    /// Crashes outlived.
    pub crashes: usize,
    /// Crashes tried.
    pub crashes_tried: usize,
    /// Lost messages outlived.
    pub losses: usize,
    /// Lost messages tried.
    pub losses_tried: usize,
    /// The faults that it tolerates at whatever moment they occur, in words.
    pub survives: Vec<String>,
}

/// So many moments of each of these runs are tried.
const TRIES: u64 = 12;
const SEEDS: u64 = 3;

impl Endurance {
    /// Tries faults on `entry` in a group of `n`, in the variant and on the topology of `base`.
    pub fn of(entry: &'static Entry, base: &Scenario, n: usize) -> Result<Self, Error> {
        if entry.problem.takes_turns {
            Self::of_lock(entry, base, n)
        } else {
            Self::of_run(entry, base, n)
        }
    }

    /// A fault is harmless if all other processes are served after it, and safely.
    fn of_lock(entry: &'static Entry, base: &Scenario, n: usize) -> Result<Self, Error> {
        let mut all = Self::default();
        for row in tolerance(entry, n, &base.set)? {
            let harmless = if row.safe { row.harmless } else { 0 };
            match &row.fault {
                Fault::Crash(_) => {
                    all.crashes += harmless;
                    all.crashes_tried += row.tried;
                }
                Fault::Loss(_) => {
                    all.losses += harmless;
                    all.losses_tried += row.tried;
                }
            }
            if harmless == row.tried && row.tried > 0 {
                all.survives.push(row.fault.to_string());
            }
        }
        Ok(all)
    }

    /// A fault is harmless if the run ends without violation and every live client is served.
    fn of_run(entry: &'static Entry, base: &Scenario, n: usize) -> Result<Self, Error> {
        let mut all = Self::default();
        for seed in 1..=SEEDS {
            let base = Scenario {
                nodes: Some(n),
                seed: Some(seed),
                topology: base.topology.clone(),
                set: base.set.clone(),
                delay: Some("uniform:0.5..1.5".into()),
                ids: Some("random".into()),
                time_limit: Some(1000.0),
                ..Scenario::default()
            };
            let fine = |fault: String, survivors: usize| -> Result<bool, Error> {
                let scenario = Scenario { faults: vec![fault], ..base.clone() };
                let report = entry.simulate(&entry.plan(scenario)?, false)?.report;
                Ok(report.verdict == Verdict::Ok && is_complete(entry, &report, survivors))
            };
            let report = entry.simulate(&entry.plan(base.clone())?, false)?.report;
            for i in 0..TRIES.min(report.steps) {
                let step = 1 + i * report.steps / TRIES.min(report.steps);
                let node = (i + seed) % n as u64;
                all.crashes += usize::from(fine(format!("crash:{node}@#{step}"), n - 1)?);
                all.crashes_tried += 1;
            }
            for (kind, &count) in &report.messages.by_kind {
                for i in 0..(TRIES / 2).min(count) {
                    let nth = 1 + i * count / (TRIES / 2).min(count);
                    all.losses += usize::from(fine(format!("lose:/{kind}#{nth}"), n)?);
                    all.losses_tried += 1;
                }
            }
        }
        for (what, fine, tried) in [
            ("a crash", all.crashes, all.crashes_tried),
            ("a lost message", all.losses, all.losses_tried),
        ] {
            if fine == tried && tried > 0 {
                all.survives.push(what.to_owned());
            }
        }
        Ok(all)
    }

    /// The part of all faults that did no harm, from 0 to 1; crashes and losses count the same.
    pub fn score(&self) -> f64 {
        let part =
            |fine: usize, tried: usize| if tried == 0 { 1.0 } else { fine as f64 / tried as f64 };
        (part(self.crashes, self.crashes_tried) + part(self.losses, self.losses_tried)) / 2.0
    }
}

/// Whether each process has all that it should have in the end. A verdict is milder: it requires only
/// the promises of the algorithm under its assumptions.
fn is_complete(entry: &Entry, report: &RunReport, survivors: usize) -> bool {
    let measure = |name: &str| report.problem.get(entry.problem.name)?.get(name)?.as_f64();
    (entry.problem.is_complete)(&measure, survivors)
}
