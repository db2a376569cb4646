//! The comparison of locks in the books, measured: messages, delays, response times.

use std::fmt;

use konklave_algorithms::ProblemSheet;
use serde::Serialize;
use serde_json::Value;

use crate::report::{RunReport, Verdict};
use crate::{Entry, Error, Scenario};

/// The costs of a lock in a group of one size; every message takes T, and times are in T.
#[derive(Clone, Debug, Serialize)]
pub struct LockCosts {
    /// Full name of the algorithm.
    pub algorithm: String,
    /// How many nodes.
    pub nodes: usize,
    /// Messages of the first entry, for each node that requests it alone.
    pub lone: Range,
    /// Messages of an entry when the same enters again.
    pub again: Range,
    /// Messages per entry when all want in: once or ten times, for a moment or for long.
    pub contended: Range,
    /// From request to entry, alone.
    pub entry: Range,
    /// From request to exit, alone, when one stays for T; none where the problem does not measure it.
    pub response: Option<Range>,
    /// From an exit to the next entry when all want in, again and again, and stay so long that
    /// every request has arrived where it should.
    pub sync_delay: Option<Range>,
    /// The same when they leave at once.
    pub hasty_delay: Option<Range>,
    /// From request to exit when all want in ten times and stay for T.
    pub busy_response: Option<Range>,
    /// Whether all runs went well and every formula of the data sheet held.
    pub holds: bool,
}

/// The least and the most of a measure.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Range {
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
}

impl Range {
    fn just(x: f64) -> Self {
        Self { min: x, max: x }
    }

    fn and(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }

    /// From the least of all to the most of all.
    fn over(all: impl IntoIterator<Item = Self>) -> Option<Self> {
        all.into_iter().reduce(Self::and)
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |x: f64| {
            let text = format!("{:.2}", x + 0.0);
            text.trim_end_matches('0').trim_end_matches('.').to_owned()
        };
        let (min, max) = (number(self.min), number(self.max));
        f.pad(&if min == max { min } else { format!("{min}–{max}") })
    }
}

/// In larger groups only this many processes are tried alone, spread over the group.
const TRIED: usize = 64;

impl Entry {
    /// Measures this lock among `n` with constant delays; none where it cannot be built for `n`.
    pub fn lock_costs(&self, n: usize, seed: u64) -> Result<Option<LockCosts>, Error> {
        match self.measure(n, seed) {
            // Not every n has every structure.
            Err(Error::Usage(_)) if n > 2 => Ok(None),
            measured => measured.map(Some),
        }
    }

    fn measure(&self, n: usize, seed: u64) -> Result<LockCosts, Error> {
        let mut holds = true;
        let mut run = |requests: Vec<u32>, hold: f64| -> Result<Measured, Error> {
            let requests: Vec<String> = requests.iter().map(u32::to_string).collect();
            let scenario = Scenario {
                nodes: Some(n),
                seed: Some(seed),
                requests: Some(requests.join(",")),
                hold: Some(hold.to_string()),
                ..Scenario::default()
            };
            let report = self.simulate(&self.plan(scenario)?, false)?.report;
            holds &= report.verdict == Verdict::Ok;
            Ok(Measured::of(self.problem, &report))
        };
        let only = |place: usize, times: u32| {
            (0..n).map(|p| if p == place { times } else { 0 }).collect::<Vec<u32>>()
        };
        let (mut lone, mut again) = (Vec::new(), Vec::new());
        let tried = n.min(TRIED);
        for place in (0..tried).map(|i| i * n / tried) {
            let (once, thrice) = (run(only(place, 1), 1.0)?, run(only(place, 3), 1.0)?);
            again.push(Range::just((thrice.messages - once.messages) / 2.0));
            lone.push(once);
        }
        let long = 2.0 * n as f64 + 2.0;
        let all = |times| vec![times; n];
        let hasty = run(all(10), 0.0)?;
        let patient = run(all(10), long)?;
        let busy = run(all(10), 1.0)?;
        let once = [run(all(1), 0.0)?, run(all(1), long)?];
        let per_entry = once.iter().chain([&hasty, &patient, &busy]);
        let nothing = Range::just(0.0);
        let spread =
            |pick: fn(&Measured) -> Option<Range>| Range::over(lone.iter().filter_map(pick));
        Ok(LockCosts {
            algorithm: self.name(),
            nodes: n,
            again: Range::over(again).unwrap_or(nothing),
            contended: Range::over(per_entry.map(|m| Range::just(m.messages / m.entries)))
                .unwrap_or(nothing),
            entry: spread(|m| m.wait).unwrap_or(nothing),
            response: spread(|m| m.response),
            sync_delay: patient.sync_delay,
            hasty_delay: hasty.sync_delay,
            busy_response: busy.response,
            lone: spread(|m| Some(Range::just(m.messages))).unwrap_or(nothing),
            holds,
        })
    }

    /// From the exit of each (row) to the entry of each other (column) that has asked long before,
    /// in T, every message taking T.
    /// The group is that of `scenario`: its nodes, seed, topology and variant.
    pub fn delay_matrix(&self, scenario: &Scenario) -> Result<Vec<Vec<Option<f64>>>, Error> {
        let n = self.plan(scenario.clone())?.setup.group.len();
        if n > 64 {
            return Err(Error::Usage(format!("--nodes {n}: a matrix has at most 64 nodes")));
        }
        // Long enough for any request to be served or to arrive wherever it should.
        let long = 8 * n + 8;
        let delay = |leaver: usize, entrant: usize| -> Result<Option<f64>, Error> {
            let scenario = Scenario {
                script: Some(format!("{leaver}@0,{entrant}@{long}")),
                hold: Some((3 * long).to_string()),
                ..scenario.clone()
            };
            let report = self.simulate(&self.plan(scenario)?, false)?.report;
            Ok(Measured::of(self.problem, &report).sync_delay.map(|range| range.max))
        };
        (0..n)
            .map(|i| (0..n).map(|j| if i == j { Ok(None) } else { delay(i, j) }).collect())
            .collect()
    }
}

/// The costs of one run.
struct Measured {
    messages: f64,
    entries: f64,
    wait: Option<Range>,
    response: Option<Range>,
    sync_delay: Option<Range>,
}

impl Measured {
    fn of(problem: &ProblemSheet, report: &RunReport) -> Self {
        let (measures, names) = (report.problem.get(problem.name), problem.measures);
        let range = |name: &str| {
            let spread = measures?.get(name)?;
            let part = |part: &str| spread.get(part).unwrap_or(spread).as_f64();
            Some(Range { min: part("min")?, max: part("max")? })
        };
        let entries = measures.and_then(|m| m.get(names.entries)).and_then(Value::as_f64);
        Self {
            messages: report.messages.sent as f64,
            entries: entries.unwrap_or(0.0).max(1.0),
            wait: range(names.wait),
            response: range(names.response),
            sync_delay: range(names.sync_delay),
        }
    }
}
