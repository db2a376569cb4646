//! The effect of a crash or a lost message on a lock: the evaluation slides, computed.
//!
//! A fault-free run shows at which moments who plays which part. Then the same run is made again
//! with one fault: someone in that part crashes, or one message of a kind is lost. Who waits for
//! ever after that?

mod roles;
mod tables;

pub use roles::Role;
pub use tables::{markdown, table};

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use crate::report::RunReport;
use crate::{Entry, Error, Scenario};

/// The effect of one kind of fault on an algorithm.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Full name of the algorithm.
    pub algorithm: String,
    /// The fault.
    pub fault: Fault,
    /// How often it was tried: at different moments, of different runs.
    pub tried: usize,
    /// How often everyone else was served nevertheless.
    pub harmless: usize,
    /// The clients that are served in the worst of these runs.
    pub served: Served,
    /// How many wait for ever in the worst of these runs.
    pub waiting: usize,
    /// How many are there to be served.
    pub survivors: usize,
    /// Whether no two were ever inside together, and whatever else must never happen did not.
    pub safe: bool,
    /// The command that repeats the worst of these runs; none if all clients were served.
    pub example: Option<String>,
}

/// A kind of fault.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// Someone in this part crashes.
    Crash(Role),
    /// A message of this kind is lost.
    Loss(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Crash(role) => write!(f, "crash: {role}"),
            Self::Loss(kind) => write!(f, "loss: {kind}"),
        }
    }
}

/// The clients that are still served.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Served {
    /// All.
    All,
    /// All but one.
    AllButOne,
    /// Some.
    Some,
    /// None.
    Nobody,
}

impl Served {
    fn of(waiting: usize, survivors: usize) -> Self {
        match waiting {
            0 => Self::All,
            _ if waiting >= survivors => Self::Nobody,
            1 => Self::AllButOne,
            _ => Self::Some,
        }
    }
}

impl fmt::Display for Served {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::All => "all",
            Self::AllButOne => "all but one",
            Self::Some => "some",
            Self::Nobody => "nobody",
        })
    }
}

/// The number of fault-free runs.
const SEEDS: u64 = 4;
/// The most trials of a fault in each run.
const TRIES: usize = 12;
/// The requests of each node.
const ENTRIES: u32 = 6;

/// The effect of single crashes and losses on the lock `entry` in a group of `n`, in the variant that
/// `set` chooses.
pub fn tolerance(entry: &Entry, n: usize, set: &[String]) -> Result<Vec<Row>, Error> {
    let mut rows: BTreeMap<Fault, Row> = BTreeMap::new();
    for seed in 1..=SEEDS {
        let scenario = Scenario { set: set.to_vec(), ..scenario(n, seed) };
        let plan = entry.plan(scenario.clone())?;
        let outcome = entry.simulate(&plan, true)?;
        let Some(run) = outcome.run else { continue };
        let coordinator = entry.coordinator(&plan)?;
        let moments = roles::moments(&run, coordinator, entry.problem.conditions);
        let mut faults: Vec<(Fault, String)> = Vec::new();
        for (role, cases) in moments {
            let crash = |(node, step): (u32, usize)| format!("crash:{node}@#{step}");
            faults.extend(spread(&cases).map(|&case| (Fault::Crash(role), crash(case))));
        }
        for (kind, &count) in &outcome.report.messages.by_kind {
            // Early ones, while everyone still wants something, and the last: nothing comes later
            // that could make up for them.
            let early: Vec<u64> = (1..=count.div_ceil(3)).collect();
            let late: Vec<u64> = (1..=count).rev().take(n).collect();
            let loss = |nth: &u64| format!("lose:/{kind}#{nth}");
            let nths = spread(&early).chain(spread(&late));
            faults.extend(nths.map(|nth| (Fault::Loss(kind.clone()), loss(nth))));
        }
        for (fault, text) in faults {
            let scenario = Scenario { faults: vec![text], ..scenario.clone() };
            let report = entry.simulate(&entry.plan(scenario)?, false)?.report;
            let survivors = n - usize::from(matches!(fault, Fault::Crash(_)));
            let row = rows.entry(fault.clone()).or_insert_with(|| Row {
                algorithm: entry.name(),
                fault,
                tried: 0,
                harmless: 0,
                served: Served::All,
                waiting: 0,
                survivors,
                safe: true,
                example: None,
            });
            row.add(&report, entry.problem.safety);
        }
    }
    Ok(rows.into_values().collect())
}

/// Everyone asks now and then: some wait, some are idle.
fn scenario(n: usize, seed: u64) -> Scenario {
    Scenario {
        nodes: Some(n),
        entries: Some(ENTRIES),
        think: Some(format!("exponential:{}", 3 * n)),
        delay: Some("uniform:0.5..1.5".into()),
        seed: Some(seed),
        ..Scenario::default()
    }
}

/// A few of these, from all over.
fn spread<T>(cases: &[T]) -> impl Iterator<Item = &T> {
    let tries = cases.len().min(TRIES);
    (0..tries).map(move |i| &cases[i * cases.len() / tries])
}

impl Row {
    fn add(&mut self, report: &RunReport, safety: &[&str]) {
        self.tried += 1;
        let waiting = report.waiting.len();
        self.harmless += usize::from(waiting == 0);
        self.safe &= report.violations.iter().all(|v| !safety.contains(&v.property.as_str()));
        if waiting > self.waiting {
            self.waiting = waiting;
            self.served = Served::of(waiting, self.survivors);
            self.example = Some(report.command.clone());
        }
    }
}
