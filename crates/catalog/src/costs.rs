//! The costs of an algorithm over n, compared with its formulas.

mod locks;

pub use locks::{LockCosts, Range};

use serde::Serialize;

use crate::report::{BoundReport, Verdict};
use crate::{Entry, Error, Scenario};

/// One standard case of one algorithm.
#[derive(Clone, Debug, Serialize)]
pub struct CostRow {
    /// Full name of the algorithm.
    pub algorithm: String,
    /// The number of nodes.
    pub nodes: usize,
    /// The name of the case.
    pub case: &'static str,
    /// The verdict of the run.
    pub verdict: Verdict,
    /// The number of steps after which the run was cut off, if it was too long. Its measures end there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cut_off_after: Option<u64>,
    /// All messages sent.
    pub messages: u64,
    /// The number of entries into the critical section.
    pub entries: Option<u64>,
    /// The longest time from an exit to the next entry, in T.
    pub sync_delay: Option<f64>,
    /// From request to entry on average, in T.
    pub wait: Option<f64>,
    /// From request to exit on average, in T.
    pub response: Option<f64>,
    /// How long the run took, in T.
    pub time: f64,
    /// Each measured cost beside its formula.
    pub bounds: Vec<BoundReport>,
    /// The command that repeats the run.
    pub command: String,
}

impl CostRow {
    /// Whether the run has a good verdict, and all costs are within their formulas. A run that was cut off breaks
    /// only the formulas that it exceeds; it proves nothing about the others.
    pub fn holds(&self) -> bool {
        let exceeds = |b: &BoundReport| b.measured > b.limit;
        let breaks = |b: &&BoundReport| b.holds == Some(false);
        let mut broken = self.bounds.iter().filter(breaks);
        match self.verdict {
            Verdict::Ok | Verdict::Loop => broken.next().is_none(),
            Verdict::Unfinished => !broken.any(exceeds),
            Verdict::Violated | Verdict::Stuck => false,
        }
    }
}

impl Entry {
    /// Runs the standard cases of its problem with constant delays, for each n. A case that is too long is cut off, and
    /// its row says so: an election with the textbook's bully if all processes start.
    pub fn costs(&self, nodes: &[usize], seed: u64) -> Result<Vec<CostRow>, Error> {
        let mut rows = Vec::new();
        for &n in nodes {
            for (case, scenario) in self.cases(n, seed) {
                let plan = match self.plan(scenario) {
                    Ok(plan) => plan,
                    // Not every n has every structure: a plane needs a prime power.
                    Err(Error::Usage(_)) if n > 2 => continue,
                    Err(error) => return Err(error),
                };
                let report = match self.simulate(&plan, false) {
                    Ok(outcome) => outcome.report,
                    Err(Error::Usage(_)) => continue,
                    Err(error) => return Err(error),
                };
                let unfinished = report.verdict == Verdict::Unfinished;
                let measures = report.problem.get(self.problem.name);
                let names = self.problem.measures;
                let measure = |name: &str| measures.and_then(|m| m.get(name));
                let part = |name: &str, part: &str| {
                    let measure = measure(name)?;
                    measure.get(part).unwrap_or(measure).as_f64()
                };
                rows.push(CostRow {
                    algorithm: self.name(),
                    nodes: n,
                    case,
                    verdict: report.verdict,
                    cut_off_after: unfinished.then_some(report.steps),
                    messages: report.messages.sent,
                    entries: measure(names.entries).and_then(serde_json::Value::as_u64),
                    sync_delay: part(names.sync_delay, "max"),
                    wait: part(names.wait, "mean"),
                    response: part(names.response, "mean"),
                    time: report.time,
                    bounds: report.bounds,
                    command: report.command,
                });
            }
        }
        Ok(rows)
    }

    /// The standard workloads of the problem.
    fn cases(&self, n: usize, seed: u64) -> Vec<(&'static str, Scenario)> {
        let base = Scenario { nodes: Some(n), seed: Some(seed), ..Scenario::default() };
        let workloads = self.problem.workloads.iter();
        workloads.map(|case| (case.name, base.clone().with(case, n))).collect()
    }
}
