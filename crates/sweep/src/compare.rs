//! Algorithms side by side: the same workload, the same network, the same faults.

mod endurance;
mod picture;

pub use endurance::Endurance;
pub use picture::{html, svg};

use std::collections::BTreeMap;

use konklave_catalog::{Entry, Error, Load, Scenario};
use serde::Serialize;

use crate::statistics::{Spread, spread};
use crate::{Case, Row};

/// What is compared.
#[derive(Clone, Debug)]
pub struct Contest {
    /// The problem, by name.
    pub problem: String,
    /// Who takes part.
    pub entries: Vec<&'static Entry>,
    /// What all have in common.
    pub base: Scenario,
    /// Under which loads; locks only.
    pub loads: Vec<Load>,
    /// With how many seeds each.
    pub seeds: u64,
    /// Whether faults are tried, one at a time, to see who outlives them.
    pub endurance: bool,
}

/// Algorithms side by side.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// `konklave.compare/1`.
    pub schema: &'static str,
    /// The problem.
    pub problem: String,
    /// How many nodes.
    pub nodes: usize,
    /// How many seeds each.
    pub seeds: u64,
    /// What is compared, and which way is better.
    pub columns: Vec<Column>,
    /// A line for each algorithm and case.
    pub lines: Vec<Line>,
    /// Who could not take part, and why.
    pub left_out: Vec<String>,
}

/// Something that is compared.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// In which unit.
    pub unit: &'static str,
    /// Which way is better.
    pub better: Better,
    /// What it says about an algorithm, where its name does not.
    pub means: &'static str,
    /// The measure of the report it comes from.
    #[serde(skip)]
    measure: &'static str,
    /// The metric that formulas bound it by, if any.
    #[serde(skip)]
    bounded_as: &'static str,
}

/// Which way is better.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Less is better.
    Less,
    /// More is better.
    More,
}

const fn column(
    name: &'static str,
    unit: &'static str,
    better: Better,
    measure: &'static str,
) -> Column {
    Column { name, unit, better, means: "", measure, bounded_as: "" }
}

const LOCK: &[Column] = &[
    Column {
        bounded_as: "messages_per_entry",
        ..column("messages", "per entry", Better::Less, "messages_per_entry")
    },
    Column {
        bounded_as: "sync_delay",
        ..column("sync delay", "T", Better::Less, "sync_delay.mean")
    },
    column("response", "T", Better::Less, "response.mean"),
    column("throughput", "entries/T", Better::More, "throughput"),
    Column {
        means: "fairness: the most entries between a request and its own",
        ..column("bypass", "entries", Better::Less, "max_bypass")
    },
    Column {
        means: "order: entries before one that was asked for earlier, causally",
        ..column("inversions", "entries", Better::Less, "order_inversions")
    },
];
const MESSAGES: Column =
    Column { bounded_as: "messages", ..column("messages", "", Better::Less, "messages") };
const ELECTION: &[Column] = &[
    MESSAGES,
    column("leader after", "T", Better::Less, "time_to_leader"),
    Column { bounded_as: "time", ..column("all know after", "T", Better::Less, "time_to_all") },
];
const OTHER: &[Column] = &[MESSAGES, column("time", "T", Better::Less, "time")];

/// One algorithm in one case.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// The algorithm.
    pub algorithm: String,
    /// The case: low load, high load, one starts, all start.
    pub case: &'static str,
    /// How many runs ended well.
    pub fine: usize,
    /// Of how many.
    pub runs: usize,
    /// What was measured, by column; none where the problem does not have it.
    pub measured: Vec<Option<Spread>>,
    /// Whether nobody in the same case is better, by column.
    pub best: Vec<bool>,
    /// What the tightest formula says of the most that may be measured, by column: as the book writes
    /// it, and its value; none where there is no formula or it does not apply.
    pub formulas: Vec<Option<(String, f64)>>,
    /// Which faults it outlives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endurance: Option<Endurance>,
    /// What repeats the first of the runs.
    pub command: String,
}

/// Runs the contest; `watch` hears of every algorithm before its turn.
pub fn compare(contest: &Contest, mut watch: impl FnMut(&str)) -> Result<Comparison, Error> {
    let columns = match contest.problem.as_str() {
        "mutex" => LOCK,
        "election" => ELECTION,
        _ => OTHER,
    };
    let (mut lines, mut left_out) = (Vec::new(), Vec::new());
    let nodes = contest.base.nodes.unwrap_or(5);
    for &entry in &contest.entries {
        watch(entry.sheet.name);
        let mut endurance = None;
        for (case, scenario) in cases(contest, nodes) {
            match line(entry, case, &scenario, contest.seeds, columns) {
                Ok(line) => lines.push(line),
                Err(Error::Usage(why)) => {
                    left_out.push(format!("{}, {case}: {why}", entry.name()));
                    continue;
                }
                Err(other) => return Err(other),
            }
            if contest.endurance && endurance.is_none() {
                endurance = Some(Endurance::of(entry, nodes)?);
            }
            if let Some(line) = lines.last_mut() {
                line.endurance.clone_from(&endurance);
            }
        }
    }
    mark_best(&mut lines, columns);
    let schema = "konklave.compare/1";
    let (problem, seeds, columns) = (contest.problem.clone(), contest.seeds, columns.to_vec());
    Ok(Comparison { schema, problem, nodes, seeds, columns, lines, left_out })
}

/// The cases of the problem, on top of what all have in common.
fn cases(contest: &Contest, nodes: usize) -> Vec<(&'static str, Scenario)> {
    let base = Scenario { nodes: Some(nodes), ..contest.base.clone() };
    match contest.problem.as_str() {
        "mutex" => {
            // Messages past the algorithm are what makes order visible.
            let base = Scenario { app_messages: base.app_messages.or(Some(1)), ..base };
            let case = |load: &Load| {
                let name = match load {
                    Load::Low => "low load",
                    Load::High => "high load",
                };
                (name, Scenario { load: Some(*load), ..base.clone() })
            };
            contest.loads.iter().map(case).collect()
        }
        "election" if base.initiators.is_none() => {
            let ids = base.ids.clone().or(Some("random".into()));
            let start = |who: &str| Scenario {
                initiators: Some(who.into()),
                ids: ids.clone(),
                ..base.clone()
            };
            vec![("one starts", start("1x")), ("all start", start("all"))]
        }
        _ => vec![("as given", base)],
    }
}

fn line(
    entry: &'static Entry,
    case: &'static str,
    scenario: &Scenario,
    seeds: u64,
    columns: &[Column],
) -> Result<Line, Error> {
    let first = scenario.seed.unwrap_or(1);
    let mut samples = BTreeMap::<String, Vec<f64>>::new();
    let mut limits = vec![(None, Vec::new()); columns.len()];
    let (mut fine, mut command) = (0, None);
    for seed in first..first + seeds {
        let scenario = Scenario { seed: Some(seed), ..scenario.clone() };
        let report = entry.simulate(&entry.plan(scenario.clone())?, false)?.report;
        fine += usize::from(report.verdict == konklave_catalog::Verdict::Ok);
        let made = Case { number: seed, entry, parameters: BTreeMap::new(), scenario };
        let row = Row::new(&made, &report);
        let entries = row.measures.get("entries").copied().filter(|e| *e > 0.0);
        for (column, (formula, limits)) in columns.iter().zip(&mut limits) {
            let said = row.formulas.get(column.bounded_as).map(|(text, x)| (text, *x));
            // What all entries cost together is so much for each.
            let of_all = || {
                let of_all = row.formulas.get("messages").zip(entries);
                let of_all = of_all.filter(|_| column.bounded_as == "messages_per_entry");
                of_all.map(|((text, x), entries)| (text, x / entries))
            };
            if let Some((text, limit)) = said.or_else(of_all) {
                formula.get_or_insert_with(|| text.clone());
                limits.push(limit);
            }
        }
        let per_entry =
            entries.map(|e| ("messages_per_entry".into(), report.messages.sent as f64 / e));
        for (name, value) in row.measures.into_iter().chain(per_entry) {
            samples.entry(name).or_default().push(value);
        }
        command.get_or_insert(report.command);
    }
    let measured = |column: &Column| samples.get(column.measure).map(|sample| spread(sample));
    let mean = |limits: &[f64]| limits.iter().sum::<f64>() / limits.len().max(1) as f64;
    // A formula that holds for some of the runs says nothing of their mean.
    let formulas = limits.into_iter().map(|(text, limits)| {
        let whole = limits.len() as u64 == seeds;
        text.filter(|_| whole).map(|text| (text, mean(&limits)))
    });
    Ok(Line {
        algorithm: entry.name(),
        case,
        fine,
        runs: seeds as usize,
        measured: columns.iter().map(measured).collect(),
        best: vec![false; columns.len()],
        formulas: formulas.collect(),
        endurance: None,
        command: command.unwrap_or_default(),
    })
}

/// In every case, the best of every column; ties all win, and a column without losers has no winner.
fn mark_best(lines: &mut [Line], columns: &[Column]) {
    let cases: Vec<&'static str> = lines.iter().map(|line| line.case).collect();
    for (i, column) in columns.iter().enumerate() {
        let value = |line: &Line| {
            let mean = line.measured[i].as_ref()?.mean;
            (line.fine == line.runs).then_some(match column.better {
                Better::Less => mean,
                Better::More => -mean,
            })
        };
        for case in &cases {
            let values = lines.iter().filter(|l| l.case == *case).filter_map(value);
            let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| {
                (low.min(x), high.max(x))
            });
            // What looks alike in three digits is alike.
            let near = |x: f64| (x - low).abs() <= 5e-3 * low.abs() + 1e-9;
            if low < high && !near(high) {
                for line in lines.iter_mut().filter(|l| l.case == *case) {
                    line.best[i] = value(line).is_some_and(near);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use konklave_catalog::find;

    fn contest(problem: &str, names: &[&str]) -> Contest {
        Contest {
            problem: problem.into(),
            entries: names.iter().map(|name| find(name).unwrap()).collect(),
            base: Scenario { nodes: Some(4), entries: Some(3), ..Scenario::default() },
            loads: vec![Load::Low, Load::High],
            seeds: 3,
            endurance: false,
        }
    }

    #[test]
    fn the_cheapest_lock_wins_the_column_of_messages() {
        let all = compare(&contest("mutex", &["central", "lamport", "ricart-agrawala"]), |_| {});
        let all = all.unwrap();
        assert_eq!(all.lines.len(), 6);
        let winners = |case| {
            let best = all.lines.iter().filter(|l| l.case == case && l.best[0]);
            best.map(|l| l.algorithm.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(winners("low load"), ["mutex/central"]);
        assert_eq!(winners("high load"), ["mutex/central"]);
        let lamport = all.lines.iter().find(|l| l.algorithm == "mutex/lamport").unwrap();
        assert_eq!(lamport.measured[0].unwrap().mean, 9.0);
        assert_eq!(lamport.formulas[0].as_ref().unwrap().1, 9.0);
        // The longest hand-over takes one message; the next request may still be on its way.
        assert!(lamport.formulas[1].is_some() && lamport.formulas[2].is_none());
    }

    #[test]
    fn who_cannot_take_part_is_named_with_the_reason() {
        let mut contest = contest("election", &["bully", "chang-roberts"]);
        contest.base = Scenario { topology: Some("ring".into()), ..contest.base };
        let all = compare(&contest, |_| {}).unwrap();
        assert!(all.left_out.iter().any(|why| why.starts_with("election/bully")), "{all:?}");
        assert!(all.lines.iter().all(|l| l.algorithm == "election/chang-roberts"));
    }
}
