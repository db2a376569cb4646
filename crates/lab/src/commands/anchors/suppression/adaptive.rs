//! The same loss again and again: a member that adapts its delays asks and repairs less, and no later.

use konklave_catalog::{Catalog, Error, RunReport};

use super::{CHAPTER, FIGURES, FIXED, LAST, behind_a_link, figure, listed, lossy, mean_and_error};
use crate::commands::anchors::{Anchor, Anchors, Relation, run};

/// The time between rounds, in T: long enough that a round ends before the next begins.
const APART: u32 = 2000;
/// The rounds at which the figures are read.
const ROUNDS: [u32; 4] = [10, 20, 40, 100];

pub(super) fn measure(all: &mut Anchors) -> Result<(), Error> {
    star(30, all)?;
    tree(50, all)
}

/// Runs so many rounds of the same loss.
fn rounds(
    catalog: &Catalog,
    (g, topology): (usize, &str),
    behind: &[usize],
    timers: &str,
    rounds: u32,
    seed: u64,
) -> Result<RunReport, Error> {
    let mut scenario = lossy(g, topology, FIXED, behind, seed);
    let starts: Vec<u32> = (0..rounds).map(|round| APART * round).collect();
    let asks: Vec<String> = starts.iter().map(|at| format!("0@{at},0@{at}.01")).collect();
    scenario.script = Some(asks.join(","));
    let fault = |at: &u32| format!("partition:{}@{at}-{at}.001", listed(behind));
    scenario.faults = starts.iter().map(fault).collect();
    scenario.set[0] = format!("timers={timers}");
    run(catalog, "srm", scenario)
}

/// All members are equally far from each other, so they can adapt only the spread of their timers.
fn star(g: usize, all: &mut Anchors) -> Result<(), Error> {
    let behind: Vec<usize> = (1..g).collect();
    let (catalog, seed) = (all.catalog, all.sampling.seed);
    let requests = |timers: &str, count: u32| -> Result<(f64, String), Error> {
        let report = rounds(catalog, (g, "complete"), &behind, timers, count, seed)?;
        Ok((f64::from(count) * figure(&report, FIGURES[0].0)?, report.command))
    };
    let fixed = requests("fixed", 60)?.0 / 60.0;
    let ((early, _), (late, command)) = (requests("adaptive", 20)?, requests("adaptive", 60)?);
    let case = format!("star, G = {g}: requests, adaptive, rounds 20–60");
    let bound = (Relation::AtMost, fixed);
    let formula = "less than with fixed timers";
    all.push(Anchor::new(CHAPTER, case, formula, bound, (late - early) / 40.0, &command));
    Ok(())
}

/// Sparse members in a large tree of four links each: fixed timers make the most duplicates there.
fn tree(g: usize, all: &mut Anchors) -> Result<(), Error> {
    let place = (g, "scattered:1000,4");
    let first = all.sampling.seed;
    let trees = u64::from(all.sampling.times(12));
    // For each figure: with fixed timers, and adaptive ones in the first ten rounds, in the next
    // ten, and at last.
    let mut found: [[Vec<f64>; 4]; 3] = Default::default();
    let mut command = String::new();
    for seed in first..first + trees {
        let behind = behind_a_link(all.catalog, g, place.1, seed)?;
        let fixed = rounds(all.catalog, place, &behind, "fixed", ROUNDS[3], seed)?;
        let mut adaptive = Vec::new();
        for count in ROUNDS {
            adaptive.push(rounds(all.catalog, place, &behind, "adaptive", count, seed)?);
        }
        for (figures, (name, _)) in found.iter_mut().zip(FIGURES) {
            let sum =
                |i: usize| Ok::<f64, Error>(figure(&adaptive[i], name)? * f64::from(ROUNDS[i]));
            let sums = [sum(0)?, sum(1)?, sum(2)?, sum(3)?];
            figures[0].push(figure(&fixed, name)?);
            figures[1].push(sums[0] / 10.0);
            figures[2].push((sums[1] - sums[0]) / 10.0);
            figures[3].push((sums[3] - sums[2]) / 60.0);
        }
        command = adaptive.swap_remove(3).command;
    }
    for (figures, (name, what)) in found.iter().zip(FIGURES) {
        let [fixed, early, _, late] = figures.each_ref().map(|values| mean_and_error(values).0);
        let rows = [("0–10", 1), ("10–20", 2), ("40–100", 3)];
        for (when, i) in rows {
            let case = format!("sparse, G = {g}: {what}, adaptive, rounds {when}");
            let (formula, bound) = match (i, name) {
                (_, LAST) => ("no more than with fixed timers", fixed),
                (3, _) => ("less than in rounds 0–10", early),
                _ => ("no more than with fixed timers", fixed),
            };
            let measured = [early, mean_and_error(&figures[2]).0, late][i - 1];
            let bound = (Relation::AtMost, bound);
            all.push(Anchor::new(CHAPTER, case, formula, bound, measured, &command));
        }
    }
    Ok(())
}
