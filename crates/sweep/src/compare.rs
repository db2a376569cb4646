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
use crate::statistics::{Difference, Spread, holm, paired, spread};

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
    /// The algorithm that all others are compared with, pair by pair; none: the best of each column.
    pub against: Option<&'static Entry>,
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
    /// The measured part of the runs, by case, where not all of a run is measured.
    pub steady: Vec<Steady>,
    /// Differences between the algorithms of a case, pair by pair: both runs of a pair have the same seed, and so
    /// the same clients.
    pub differences: Vec<Against>,
    /// The algorithms that were left out, with the reasons.
    pub left_out: Vec<String>,
}

/// The measured part of the runs of a case.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Steady {
    /// The case.
    pub case: &'static str,
    /// How many requests each node makes.
    pub entries: u32,
    /// How many of them are left out, on average over the nodes.
    pub warm_up: u32,
}

/// One algorithm against another in one column of one case.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Against {
    /// The case.
    pub case: &'static str,
    /// The column.
    pub column: &'static str,
    /// The algorithm.
    pub algorithm: String,
    /// The one it is compared with.
    pub against: String,
    /// The difference; `p` is adjusted for the number of algorithms (Holm).
    #[serde(flatten)]
    pub difference: Difference,
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
    /// The value of each run, by column; none where there was nothing to measure.
    #[serde(skip)]
    pub values: Vec<Vec<Option<f64>>>,
    /// The measured values by column, as their spread over the runs; none if there was nothing to measure.
    pub measured: Vec<Option<Spread>>,
    /// How many single times that rests on in all runs together, by column; none where it is one
    /// figure a run.
    pub samples: Vec<Option<u64>>,
    /// Whether it is the best of its case, by column: its confidence interval is apart from those of all others
    /// that are not equal to it.
    pub best: Vec<bool>,
    /// The tightest upper bound by column: the formula as the book writes
    /// it, and its value. None if there is no formula or it does not apply.
    pub formulas: Vec<Option<(String, f64)>>,
    /// Why there is no such formula, by column; none where nobody asks for one.
    pub without: Vec<Option<String>>,
    /// Which faults it outlives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endurance: Option<Endurance>,
    /// The command that repeats the first of the runs.
    pub command: String,
}

/// Runs the contest; `watch` is called with every algorithm before its turn.
pub fn compare(contest: &Contest, mut watch: impl FnMut(&str)) -> Result<Comparison, Error> {
    let columns = contest.problem.columns;
    let (mut lines, mut left_out) = (Vec::new(), Vec::new());
    let nodes = nodes(contest);
    let steady = cases(contest, nodes).iter().filter_map(|(case, s)| steady(case, s)).collect();
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
    let against = contest.against.map(Entry::name);
    let differences = differences(&lines, columns, against.as_deref());
    let schema = "konklave.compare/1";
    let (problem, seeds, columns) = (contest.problem.name, contest.seeds, columns.to_vec());
    Ok(Comparison { schema, problem, nodes, seeds, columns, lines, steady, differences, left_out })
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

/// The measured part of the runs of a case, if it is only a part.
fn steady(case: &'static str, scenario: &Scenario) -> Option<Steady> {
    let warm_up = scenario.warm_up.filter(|k| *k > 0)?;
    Some(Steady { case, entries: scenario.entries?, warm_up })
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
    let measure = |column: &Column| match column.measure_low {
        Some(low) if case == LOW => low,
        Some(_) | None => column.measure,
    };
    let mut values = vec![Vec::new(); columns.len()];
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
        let own = row.measures.into_iter().filter_map(|(name, x)| Some((name, x.as_f64()?)));
        let all: BTreeMap<String, f64> = own.chain(derived).collect();
        for (column, values) in columns.iter().zip(&mut values) {
            values.push(all.get(measure(column)).copied());
        }
        for (name, value) in all {
            samples.entry(name).or_default().push(value);
        }
        command.get_or_insert(report.command);
    }
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
        values,
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
    let positive = |name: &str| row.measure(name).filter(|x| *x > 0.0);
    if let (Some(sent), Some(served)) =
        (positive("measured.messages"), positive("measured.entries"))
    {
        return vec![(Column::MESSAGES_PER_EACH.to_owned(), sent / served)];
    }
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

/// The value of a line in a column, turned so that less is better, with its confidence; none if the line cannot win.
fn turned(line: &Line, i: usize, column: &Column) -> Option<(f64, f64)> {
    let s = line.measured[i].as_ref().filter(|_| line.fine == line.runs)?;
    let mean = if column.better == Better::Less { s.mean } else { -s.mean };
    Some((mean, s.confidence))
}

/// Marks the best of every column in every case. Equal values share the first place. Nothing is best if its interval
/// is not apart from those of all others, if there are no others, or if an interval rests on one run.
fn mark_best(lines: &mut [Line], columns: &[Column]) {
    let cases: Vec<&'static str> = lines.iter().map(|line| line.case).collect();
    for (i, column) in columns.iter().enumerate() {
        for case in &cases {
            let of_case = || lines.iter().filter(|l| l.case == *case);
            let values: Vec<(f64, f64)> =
                of_case().filter_map(|line| turned(line, i, column)).collect();
            let low = values.iter().map(|(x, _)| *x).fold(f64::INFINITY, f64::min);
            // Values that agree in three digits count as equal.
            let first = |(x, _): &(f64, f64)| (x - low).abs() <= 5e-3 * low.abs() + 1e-9;
            let (winners, others): (Vec<_>, Vec<_>) = values.into_iter().partition(first);
            let most = winners.iter().map(|(x, c)| x + c).fold(f64::NEG_INFINITY, f64::max);
            let apart = others.iter().all(|(x, c)| most < x - c);
            let several = of_case().filter_map(|l| l.measured[i]).all(|s| s.runs > 1);
            if apart && several && !others.is_empty() {
                for line in lines.iter_mut().filter(|l| l.case == *case) {
                    line.best[i] = turned(line, i, column).is_some_and(|value| first(&value));
                }
            }
        }
    }
}

/// The differences of all lines from that of the algorithm `against`, or from the best of the column.
fn differences(lines: &[Line], columns: &[Column], against: Option<&str>) -> Vec<Against> {
    let mut cases: Vec<&'static str> = Vec::new();
    for line in lines {
        if !cases.contains(&line.case) {
            cases.push(line.case);
        }
    }
    let mut all = Vec::new();
    for case in cases {
        for (i, column) in columns.iter().enumerate() {
            let of_case = || lines.iter().filter(|l| l.case == case);
            let mean = |l: &&Line| turned(l, i, column).map_or(f64::INFINITY, |(mean, _)| mean);
            let base = match against {
                Some(name) => of_case().find(|l| l.algorithm == name),
                None => of_case().min_by(|a, b| mean(a).total_cmp(&mean(b))),
            };
            let Some(base) = base else { continue };
            let others = of_case().filter(|l| l.algorithm != base.algorithm);
            let mut of_column: Vec<Against> = others
                .filter_map(|line| {
                    let pairs = line.values[i].iter().copied().zip(base.values[i].iter().copied());
                    Some(Against {
                        case,
                        column: column.name,
                        algorithm: line.algorithm.clone(),
                        against: base.algorithm.clone(),
                        difference: paired(pairs)?,
                    })
                })
                .collect();
            holm(&mut of_column.iter_mut().map(|a| &mut a.difference).collect::<Vec<_>>());
            all.extend(of_column);
        }
    }
    all
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
            against: None,
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
        let lamport = |l: &&Line| l.algorithm == "mutex/lamport" && l.case == "high load";
        let lamport = all.lines.iter().find(lamport).unwrap();
        assert_eq!(lamport.measured[0].unwrap().mean, 9.0);
        assert_eq!(lamport.formulas[0].as_ref().unwrap().1, 9.0);
        // The longest hand-over takes one message; the next request may still be on its way.
        assert_eq!(lamport.formulas[1].as_ref().unwrap().1, 3.0);
    }

    #[test]
    fn the_steady_state_crowns_another_lock_than_the_start() {
        let names = ["central", "suzuki-kasami", "raymond", "naimi-trehel", "maekawa"];
        let with = |base: Scenario| {
            let loads = vec![Load::High];
            compare(&Contest { base, loads, ..contest("mutex", &names) }, |_| {}).unwrap()
        };
        let nine = Scenario { nodes: Some(9), ..Scenario::default() };
        let winners = |all: &Comparison| {
            let best = all.lines.iter().filter(|l| l.best[0]);
            best.map(|l| l.algorithm.clone()).collect::<Vec<_>>()
        };
        let steady = with(nine.clone());
        assert_eq!(winners(&steady), ["mutex/central"]);
        assert_eq!(steady.steady, [Steady { case: "high load", entries: 100, warm_up: 20 }]);
        // Without what fills and drains the queue, central needs 3(n − 1)/n messages.
        let central = steady.lines[0].measured[0].unwrap();
        assert!((central.mean - 8.0 / 3.0).abs() < 0.02, "{central:?}");
        let start = with(Scenario { entries: Some(1), ..nine });
        assert!(start.steady.is_empty() && winners(&start) != ["mutex/central"], "{start:?}");
    }

    #[test]
    fn one_sample_earns_no_star() {
        let names = ["central", "lamport", "ricart-agrawala"];
        let one = Contest { seeds: 1, ..contest("mutex", &names) };
        let all = compare(&one, |_| {}).unwrap();
        assert!(all.lines.iter().all(|line| !line.best.contains(&true)));
        assert!(all.differences.is_empty());
    }

    /// A line of one column with these mean and confidence.
    fn figure(algorithm: &str, mean: f64, confidence: f64) -> Line {
        let s = Spread { mean, confidence, ..spread(&[mean, mean]) };
        Line {
            algorithm: algorithm.into(),
            case: "high load",
            fine: 2,
            runs: 2,
            values: vec![vec![Some(mean - confidence), Some(mean + confidence)]],
            measured: vec![Some(s)],
            samples: vec![None],
            best: vec![false],
            formulas: vec![None],
            without: vec![None],
            endurance: None,
            command: String::new(),
        }
    }

    #[test]
    fn a_star_needs_intervals_that_are_apart() {
        let stars = |lines: &[(f64, f64)], better| {
            let named = lines.iter().enumerate();
            let mut lines: Vec<Line> =
                named.map(|(i, (x, c))| figure(&i.to_string(), *x, *c)).collect();
            mark_best(&mut lines, &[Column { better, ..Column::BLANK }]);
            lines.iter().map(|line| line.best[0]).collect::<Vec<_>>()
        };
        assert_eq!(stars(&[(2.0, 0.4), (3.0, 0.5)], Better::Less), [true, false]);
        assert_eq!(stars(&[(2.0, 0.6), (3.0, 0.5)], Better::Less), [false, false]);
        assert_eq!(stars(&[(2.0, 0.4), (3.0, 0.5)], Better::More), [false, true]);
        // Equal values share it; all equal, or alone, is no victory.
        assert_eq!(stars(&[(2.0, 0.0), (2.0, 0.0), (3.0, 0.1)], Better::Less), [true, true, false]);
        assert_eq!(stars(&[(2.0, 0.0), (2.0, 0.0)], Better::Less), [false, false]);
        assert_eq!(stars(&[(2.0, 0.0)], Better::Less), [false]);
        // The second is apart from the first, the third is not.
        let overlap = stars(&[(2.0, 0.3), (3.0, 0.1), (2.5, 0.3)], Better::Less);
        assert_eq!(overlap, [false, false, false]);
    }

    #[test]
    fn differences_are_pair_by_pair_from_the_one_that_is_named() {
        let mut contest = contest("mutex", &["central", "lamport", "raymond"]);
        contest.against = Some(crate::builtin().find("lamport").unwrap());
        let all = compare(&contest, |_| {}).unwrap();
        assert!(all.differences.iter().all(|d| d.against == "mutex/lamport"));
        let of_messages = |d: &&Against| d.column == "messages" && d.case == "high load";
        let messages: Vec<&Against> = all.differences.iter().filter(of_messages).collect();
        assert_eq!(messages.len(), 2);
        let central = messages[0].difference;
        let mean = |i: usize| all.lines[i].measured[0].unwrap().mean;
        assert_eq!((messages[0].algorithm.as_str(), central.pairs), ("mutex/central", 3));
        assert!((central.mean - (mean(1) - mean(3))).abs() < 1e-9 && central.p < 0.001);
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
    fn leader_of_itself_has_not_won_yet() {
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
    fn algorithm_that_cannot_take_part_is_named_with_the_reason() {
        let mut contest = contest("election", &["bully", "chang-roberts"]);
        contest.base = Scenario { topology: Some("ring".into()), ..contest.base };
        let all = compare(&contest, |_| {}).unwrap();
        assert!(all.left_out.iter().any(|why| why.starts_with("election/bully")), "{all:?}");
        assert!(all.lines.iter().all(|l| l.algorithm == "election/chang-roberts"));
    }
}
