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
    /// The faults that never did harm, in words that say how many were tried.
    pub survives: Vec<String>,
}

/// In so many runs of the row faults are tried.
const SEEDS: u64 = 3;
/// Faults of one kind are tried until the trials have made about so many steps: every fault in small runs, and
/// at least `LEAST` in large ones.
const STEPS: u64 = 100_000;
const LEAST: u64 = 12;

impl Endurance {
    /// Tries faults on the lock `entry` in a group of `n`, in the variant of `base`: the faults of
    /// [`tolerance()`], with its workload. Harmless is a fault after which everyone else is served, and safely.
    pub fn of_lock(entry: &'static Entry, base: &Scenario, n: usize) -> Result<Self, Error> {
        let mut all = Self::default();
        for row in tolerance(entry, n, &base.set)? {
            let harmless = if row.safe { row.harmless } else { 0 };
            let (fine, tried) = match &row.fault {
                Fault::Crash(_) => (&mut all.crashes, &mut all.crashes_tried),
                Fault::Loss(_) => (&mut all.losses, &mut all.losses_tried),
            };
            *fine += harmless;
            *tried += row.tried;
            all.tell(&row.fault.to_string(), harmless, row.tried, false);
        }
        Ok(all)
    }

    /// Tries faults in the runs of `scenario`, with the first of `seeds` seeds: every process crashes after
    /// every step, and every message is lost, as far as the run is small. A fault is harmless if the run ends
    /// without violation and every live client is served.
    pub fn of_runs(entry: &'static Entry, scenario: &Scenario, seeds: u64) -> Result<Self, Error> {
        let mut all = Self::default();
        let (mut every_crash, mut every_loss) = (true, true);
        let first = scenario.seed.unwrap_or(1);
        for seed in first..first.saturating_add(seeds.min(SEEDS)) {
            let run = FaultFree::of(entry, Scenario { seed: Some(seed), ..scenario.clone() })?;
            let crashes: Vec<String> = (1..run.steps)
                .flat_map(|step| run.alive.iter().map(move |node| format!("crash:{node}@#{step}")))
                .collect();
            let losses: Vec<String> = (1..=run.sent).map(|nth| format!("lose:#{nth}")).collect();
            let survivors = run.alive.len();
            let (fine, tried) = run.try_all(&crashes, survivors.saturating_sub(1))?;
            all.crashes += fine;
            all.crashes_tried += tried;
            every_crash &= tried == crashes.len();
            let (fine, tried) = run.try_all(&losses, survivors)?;
            all.losses += fine;
            all.losses_tried += tried;
            every_loss &= tried == losses.len();
        }
        let (fine, tried) = (all.crashes, all.crashes_tried);
        all.tell("a crash", fine, tried, every_crash);
        let (fine, tried) = (all.losses, all.losses_tried);
        all.tell("a lost message", fine, tried, every_loss);
        Ok(all)
    }

    /// Notes a fault that never did harm. A sample is no proof, so the words say how many were tried.
    fn tell(&mut self, fault: &str, fine: usize, tried: usize, every: bool) {
        if fine == tried && tried > 0 {
            self.survives.push(match every {
                true => format!("{fault}, wherever it happens (all {tried} tried)"),
                false => format!("{fault}, in {fine} of {tried} tried"),
            });
        }
    }

    /// The kinds of faults that never did harm; if there is none, how many faults did no harm.
    pub fn words(&self) -> String {
        if !self.survives.is_empty() {
            return self.survives.join("; ");
        }
        let survived = |fine: usize, tried: usize, what: &str| {
            (tried > 0).then(|| format!("{fine} of {tried} {what} survived"))
        };
        let crashes = survived(self.crashes, self.crashes_tried, "crashes");
        let losses = survived(self.losses, self.losses_tried, "losses");
        let parts: Vec<String> = crashes.into_iter().chain(losses).collect();
        match parts.is_empty() {
            true => "no fault could be tried".to_owned(),
            false => format!("none ({})", parts.join(", ")),
        }
    }

    /// The part of all faults that did no harm, from 0 to 1; crashes and losses count the same.
    pub fn score(&self) -> f64 {
        let part =
            |fine: usize, tried: usize| if tried == 0 { 1.0 } else { fine as f64 / tried as f64 };
        (part(self.crashes, self.crashes_tried) + part(self.losses, self.losses_tried)) / 2.0
    }
}

/// A run without the faults to try.
struct FaultFree {
    entry: &'static Entry,
    scenario: Scenario,
    steps: u64,
    sent: u64,
    /// The processes that are up in the end.
    alive: Vec<u32>,
}

impl FaultFree {
    fn of(entry: &'static Entry, scenario: Scenario) -> Result<Self, Error> {
        let plan = entry.plan(scenario.clone())?;
        let report = entry.simulate(&plan, false)?.report;
        let alive = plan.survivors();
        Ok(Self { entry, scenario, steps: report.steps, sent: report.messages.sent, alive })
    }

    /// How many of `faults` did no harm, and how many were tried.
    fn try_all(&self, faults: &[String], survivors: usize) -> Result<(usize, usize), Error> {
        let most = (STEPS / self.steps.max(1)).max(LEAST) as usize;
        let tries = faults.len().min(most);
        let mut fine = 0;
        for i in 0..tries {
            let mut scenario = self.scenario.clone();
            scenario.faults.push(faults[i * faults.len() / tries].clone());
            let report = self.entry.simulate(&self.entry.plan(scenario)?, false)?.report;
            let ok = report.verdict == Verdict::Ok;
            fine += usize::from(ok && is_complete(self.entry, &report, survivors));
        }
        Ok((fine, tries))
    }
}

/// Whether each process has all that it should have in the end. A verdict is milder: it requires only
/// the promises of the algorithm under its assumptions.
fn is_complete(entry: &Entry, report: &RunReport, survivors: usize) -> bool {
    let measure = |name: &str| report.problem.get(entry.problem.name)?.get(name)?.as_f64();
    (entry.problem.is_complete)(&measure, survivors)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_agree_with_counts() {
        let counted = |crashes, crashes_tried, losses, losses_tried| Endurance {
            crashes,
            crashes_tried,
            losses,
            losses_tried,
            survives: Vec::new(),
        };
        let some = "none (270 of 285 crashes survived, 0 of 42 losses survived)";
        assert_eq!(counted(270, 285, 0, 42).words(), some);
        assert_eq!(counted(0, 0, 1, 2).words(), "none (1 of 2 losses survived)");
        assert_eq!(counted(0, 0, 0, 0).words(), "no fault could be tried");
        let mut all = counted(2, 2, 0, 3);
        all.tell("a crash", 2, 2, true);
        all.tell("a lost message", 0, 3, true);
        assert_eq!(all.words(), "a crash, wherever it happens (all 2 tried)");
    }
}
