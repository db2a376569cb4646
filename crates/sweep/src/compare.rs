//! Algorithms side by side: the same workload, the same network, the same faults.

mod endurance;
mod formulas;
mod picture;

pub use endurance::Endurance;
pub use konklave_algorithms::problem::{Better, Column};
pub use picture::{html, svg};

use std::collections::BTreeMap;

use konklave_algorithms::problem::{Bounded, Case, ProblemSheet};
use konklave_catalog::{Entry, Error, Load, Scenario};
use serde::Serialize;

use self::formulas::{NOTHING, Told};
use crate::Row;
use crate::statistics::{Spread, spread};

/// The parameters of a comparison.
#[derive(Clone, Debug)]
pub struct Contest {
    /// The problem.
    pub problem: &'static ProblemSheet,
    /// The algorithms.
    pub entries: Vec<&'static Entry>,
    /// The common scenario.
    pub base: Scenario,
    /// Under which loads; locks only.
    pub loads: Vec<Load>,
    /// With how many seeds each.
    pub seeds: u64,
    /// Whether faults are tried, one at a time, to see which algorithms tolerate them.
    pub endurance: bool,
}

/// Algorithms side by side.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// `konklave.compare/1`.
    pub schema: &'static str,
    /// The problem.
    pub problem: &'static str,
    /// How many nodes.
    pub nodes: usize,
    /// How many seeds each.
    pub seeds: u64,
    /// The compared measures, and which direction is better.
    pub columns: Vec<Column>,
    /// A line for each algorithm and case.
    pub lines: Vec<Line>,
    /// The algorithms that were left out, with the reasons.
    pub left_out: Vec<String>,
}

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
    /// What was measured, by column: how it spreads over the runs; none where there was nothing to
    /// measure.
    pub measured: Vec<Option<Spread>>,
    /// How many single times that rests on in all runs together, by column; none where it is one
    /// figure a run.
    pub samples: Vec<Option<u64>>,
    /// Whether no algorithm in the same case is better, by column.
    pub best: Vec<bool>,
    /// What the tightest formula says of the most that may be measured, by column: as the book writes
    /// it, and its value; none where there is no formula or it does not apply.
    pub formulas: Vec<Option<(String, f64)>>,
    /// Why there is no such formula, by column; none where nobody asks for one.
    pub without: Vec<Option<String>>,
    /// Which faults it outlives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endurance: Option<Endurance>,
    /// The command that repeats the first of the runs.
    pub command: String,
}

/// Runs the contest; `watch` hears of every algorithm before its turn.
pub fn compare(contest: &Contest, mut watch: impl FnMut(&str)) -> Result<Comparison, Error> {
    let columns = contest.problem.columns;
    let (mut lines, mut left_out) = (Vec::new(), Vec::new());
    let nodes = nodes(contest);
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
            if contest.endurance && entry.problem.takes_turns {
                if endurance.is_none() {
                    endurance = Some(Endurance::of_lock(entry, &contest.base, nodes)?);
                }
            } else if contest.endurance {
                endurance = Some(Endurance::of_runs(entry, &scenario, contest.seeds)?);
            }
            if let Some(line) = lines.last_mut() {
                line.endurance.clone_from(&endurance);
            }
        }
    }
    if contest.problem.rivals {
        mark_best(&mut lines, columns);
    }
    let schema = "konklave.compare/1";
    let (problem, seeds, columns) = (contest.problem.name, contest.seeds, columns.to_vec());
    Ok(Comparison { schema, problem, nodes, seeds, columns, lines, left_out })
}

/// The number of nodes: from the option, the ids or the topology file.
fn nodes(contest: &Contest) -> usize {
    let planned = |entry: &&'static Entry| entry.plan(contest.base.clone()).ok();
    let plan = contest.entries.iter().find_map(planned);
    contest.base.nodes.unwrap_or_else(|| plan.map_or(5, |plan| plan.setup.group.len()))
}

/// The cases of the problem that leave room for what was given, on top of it.
fn cases(contest: &Contest, nodes: usize) -> Vec<(&'static str, Scenario)> {
    let base = Scenario { nodes: Some(nodes), ..contest.base.clone() };
    let fits = |case: &&Case| {
        let load = case.load.is_none_or(|load| contest.loads.contains(&load.into()));
        let crash = base.faults.is_empty() && base.ids.is_none() && nodes > 1;
        load && (case.initiators.is_none() || base.initiators.is_none())
            && (case.last_crashes.is_none() || crash)
    };
    let cases = contest.problem.contests.iter().filter(fits);
    let cases: Vec<_> = cases.map(|case| (case.name, base.clone().with(case, nodes))).collect();
    if cases.is_empty() { vec![("as given", base)] } else { cases }
}

const LOW: &str = "low load";

fn line(
    entry: &'static Entry,
    case: &'static str,
    scenario: &Scenario,
    seeds: u64,
    columns: &[Column],
) -> Result<Line, Error> {
    let first = scenario.seed.unwrap_or(1);
    let mut samples = BTreeMap::<String, Vec<f64>>::new();
    let mut limits = vec![Limits::default(); columns.len()];
    let (mut fine, mut command) = (0, None);
    for seed in first..first.saturating_add(seeds) {
        let scenario = Scenario { seed: Some(seed), ..scenario.clone() };
        let plan = entry.plan(scenario.clone())?;
        let report = entry.simulate(&plan, false)?.report;
        fine += usize::from(report.verdict == konklave_catalog::Verdict::Ok);
        let made = crate::Case { number: seed, entry, parameters: BTreeMap::new(), scenario };
        let row = Row::new(&made, &report);
        let told = Told { plan: &plan, report: &report, row: &row, alone: case == LOW };
        for (column, limits) in columns.iter().zip(&mut limits) {
            limits.add(told.formula(column));
        }
        let derived = derived(&row, report.messages.sent as f64, columns);
        for (name, value) in row.measures.into_iter().chain(derived) {
            samples.entry(name).or_default().push(value);
        }
        command.get_or_insert(report.command);
    }
    let measure = |column: &Column| match column.measure_low {
        Some(low) if case == LOW => low,
        Some(_) | None => column.measure,
    };
    let measured = |column: &Column| samples.get(measure(column)).map(|sample| spread(sample));
    let counted = |column: &Column| {
        let name = measure(column).strip_suffix(".mean")?;
        let counts = samples.get(&format!("{name}.count"));
        Some(counts.map_or(0, |counts| counts.iter().sum::<f64>() as u64))
    };
    Ok(Line {
        algorithm: entry.name(),
        case,
        fine,
        runs: seeds as usize,
        measured: columns.iter().map(measured).collect(),
        samples: columns.iter().map(counted).collect(),
        best: vec![false; columns.len()],
        formulas: limits.iter().map(|limits| limits.formula(seeds)).collect(),
        without: limits.into_iter().map(|limits| limits.without).collect(),
        endurance: None,
        command: command.unwrap_or_default(),
    })
}

/// The value of the formula for one column in each of the runs.
#[derive(Clone, Debug, Default)]
struct Limits {
    text: Option<String>,
    values: Vec<f64>,
    /// In so many runs there was nothing to measure.
    unmeasured: u64,
    without: Option<String>,
}

impl Limits {
    fn add(&mut self, formula: formulas::Formula) {
        match formula {
            Ok((text, value)) => {
                self.text.get_or_insert(text);
                self.values.push(value);
            }
            Err(why) => {
                self.unmeasured += u64::from(why == NOTHING);
                self.without = self.without.take().or(Some(why).filter(|why| !why.is_empty()));
            }
        }
    }

    /// The mean. A formula that holds for some of the runs says nothing of their mean.
    fn formula(&self, runs: u64) -> Option<(String, f64)> {
        let known = self.values.len() as u64;
        let text = self.text.clone().filter(|_| known + self.unmeasured == runs)?;
        Some((text, self.values.iter().sum::<f64>() / known as f64))
    }
}

/// Measures that follow from those of a run.
fn derived(row: &Row, sent: f64, columns: &[Column]) -> Vec<(String, f64)> {
    let positive = |name: &str| row.measures.get(name).copied().filter(|x| *x > 0.0);
    let served = columns.iter().find_map(|column| match column.bound {
        Bounded::PerEach(measure) => Some(measure),
        _ => None,
    });
    let each = served.and_then(positive);
    let derived =
        [(Column::MESSAGES_PER_EACH, each), (Column::MESSAGES_PER_TIME, positive("time"))];
    let quotient = |(name, by): (&str, Option<f64>)| Some((name.to_owned(), sent / by?));
    derived.into_iter().filter_map(quotient).collect()
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
            // Values that agree in three digits count as equal.
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

    fn contest(problem: &str, names: &[&str]) -> Contest {
        Contest {
            problem: crate::builtin().of_problem(problem)[0].problem,
            entries: names.iter().map(|name| crate::builtin().find(name).unwrap()).collect(),
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
        assert_eq!(lamport.formulas[1].as_ref().unwrap().1, 3.0);
    }

    #[test]
    fn response_and_throughput_keep_to_their_formulas() {
        let names = ["central", "maekawa", "raymond", "ricart-agrawala", "suzuki-kasami", "voting"];
        let all = compare(&contest("mutex", &names), |_| {}).unwrap();
        let column = |name: &str| all.columns.iter().position(|c| c.name == name).unwrap();
        let (response, throughput) = (column("response"), column("throughput"));
        for line in &all.lines {
            let (text, most) = line.formulas[response].as_ref().unwrap();
            assert!(line.measured[response].unwrap().mean <= most + 1e-9, "{line:?}");
            let saturated = line.case == "high load";
            assert_eq!(text.starts_with("n(E + S)"), saturated, "{text}");
            assert_eq!(line.formulas[throughput].is_some(), saturated, "{line:?}");
            if let Some((_, least)) = &line.formulas[throughput] {
                assert!(line.measured[throughput].unwrap().mean >= least - 1e-9, "{line:?}");
            } else {
                let why = line.without[throughput].as_deref();
                assert_eq!(why, Some("only if a node waits at every exit"));
            }
        }
        // A formula with a condition says which.
        let acknowledged = contest("mutex", &["ricart-agrawala-acknowledged"]);
        let why = compare(&acknowledged, |_| {}).unwrap().lines[1].without[0].clone().unwrap();
        assert!(why.starts_with("only if only one process asks"), "{why}");
        // Alone: to the coordinator and back, and inside for T.
        let central = all.lines.iter().find(|l| l.algorithm == "mutex/central").unwrap();
        assert_eq!(central.formulas[response].as_ref().unwrap().1, 3.0);
        let alone = compare(
            &Contest {
                base: Scenario { nodes: Some(1), ..contest("mutex", &[]).base },
                ..contest("mutex", &["central"])
            },
            |_| {},
        )
        .unwrap();
        assert!(alone.lines.iter().all(|l| l.measured[1].is_none() && l.samples[1] == Some(0)));
    }

    #[test]
    fn a_multicast_that_makes_up_for_nothing_survives_no_loss() {
        let mut contest = contest("multicast", &["ack", "best-effort", "causal", "fifo"]);
        contest.endurance = true;
        let all = compare(&contest, |_| {}).unwrap();
        for line in &all.lines {
            let endurance = line.endurance.as_ref().unwrap();
            let kept = if line.algorithm == "multicast/ack" { endurance.losses_tried } else { 0 };
            assert!(endurance.losses_tried > 0 && endurance.losses == kept, "{line:?}");
            // Not how long the run took: acknowledgements come after the last delivery.
            assert_eq!(line.measured[1].unwrap().mean, 1.0, "{line:?}");
            assert_eq!(line.formulas[1].as_ref().unwrap().1, 1.0, "{line:?}");
        }
    }

    #[test]
    fn what_leads_itself_has_not_won_yet() {
        let mut contest = contest("election", &["invitation", "chang-roberts"]);
        contest.base = Scenario { entries: None, ..contest.base };
        contest.endurance = true;
        let all = compare(&contest, |_| {}).unwrap();
        for line in &all.lines {
            let [one, known] = [1, 2].map(|i| line.measured[i].unwrap().mean);
            assert!(0.0 < one && one <= known, "{line:?}");
            let endurance = line.endurance.as_ref().unwrap();
            // On a ring, no process takes the place of a crashed one.
            if line.algorithm == "election/chang-roberts" {
                assert!(endurance.crashes < endurance.crashes_tried, "{line:?}");
            }
        }
    }

    #[test]
    fn as_many_take_part_as_have_ids() {
        let mut contest = contest("mutex", &["central"]);
        contest.base = Scenario { ids: Some("4,2,9".into()), ..Scenario::default() };
        assert_eq!(compare(&contest, |_| {}).unwrap().nodes, 3);
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
