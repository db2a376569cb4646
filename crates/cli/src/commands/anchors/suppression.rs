//! Scalable reliable multicast: how many ask and how many repair when all lose the same.

use konklave_catalog::{Error, RunReport, Scenario, find};
use konklave_process::Rng;
use konklave_process::topology::Hops;

use super::{Anchor, Relation, chosen, measure as figure, run};

const CHAPTER: &str = "scalable reliable multicast";

pub(super) fn measure(seed: u64, all: &mut Vec<Anchor>) -> Result<(), Error> {
    for (g, c2, runs) in [(20, 2, 60), (50, 2, 40), (100, 2, 30), (100, 10, 60), (100, 100, 100)] {
        star(g, c2, runs, seed, all)?;
    }
    for n in [10, 50, 100] {
        let behind: Vec<usize> = (n / 2..n).collect();
        let report = run("srm", lossy(n, "path", ["1", "0", "1", "0"], &behind, seed))?;
        for (what, name) in [("requests", "requests_per_loss"), ("repairs", "repairs_per_loss")] {
            let case = format!("chain of {n}: {what}");
            let (bound, measured) = ((Relation::Exactly, 1.0), figure(&report, name)?);
            all.push(Anchor::new(CHAPTER, case, "1", bound, measured, &report.command));
        }
    }
    for g in [10, 50, 100] {
        trees(g, 40, seed, all)?;
    }
    adaptive(30, seed, all)
}

/// The first of `n` sends two messages; the first of them is lost on its way to all `behind`.
fn lossy(n: usize, topology: &str, timers: [&str; 4], behind: &[usize], seed: u64) -> Scenario {
    let [c1, c2, d1, d2] = timers;
    let side: Vec<String> = behind.iter().map(usize::to_string).collect();
    Scenario {
        nodes: Some(n),
        topology: Some(topology.into()),
        delay: Some("hops".into()),
        script: Some("0@0,0@0.01".into()),
        seed: Some(seed),
        faults: vec![format!("partition:{}@0-0.001", side.join(","))],
        set: chosen(&[
            ("timers", "fixed"),
            ("sessions", "0"),
            ("c1", c1),
            ("c2", c2),
            ("d1", d1),
            ("d2", d2),
        ]),
        ..Scenario::default()
    }
}

/// All are equally far from each other, as the leaves of a star: only chance tells them apart.
fn star(g: usize, c2: u32, runs: u64, seed: u64, all: &mut Vec<Anchor>) -> Result<(), Error> {
    let behind: Vec<usize> = (1..g).collect();
    let spread = c2.to_string();
    let (mut requests, mut repairs, mut command) = (Vec::new(), 0.0, String::new());
    for seed in seed..seed + runs {
        let scenario = lossy(g, "complete", ["2", &spread, "1", "1"], &behind, seed);
        let report = run("srm", scenario)?;
        requests.push(figure(&report, "requests_per_loss")?);
        repairs += figure(&report, "repairs_per_loss")? / runs as f64;
        command = report.command;
    }
    let (mean, error) = mean_and_error(&requests);
    let theory = 1.0 + (g as f64 - 2.0) / f64::from(c2);
    // The formula is for many members; four standard errors besides.
    let bound = (Relation::Within(0.1 * theory + 4.0 * error), theory);
    let case = format!("star, G = {g}, C2 = {c2}: requests");
    all.push(Anchor::new(CHAPTER, case, "1 + (G − 2)/C2", bound, mean, &command));
    let case = format!("star, G = {g}, C2 = {c2}: repairs");
    all.push(Anchor::new(CHAPTER, case, "1", (Relation::Exactly, 1.0), repairs, &command));
    Ok(())
}

fn mean_and_error(sample: &[f64]) -> (f64, f64) {
    let n = sample.len() as f64;
    let mean = sample.iter().sum::<f64>() / n;
    let variance = sample.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    (mean, (variance / n).sqrt())
}

/// A random edge of a random tree loses the message.
fn trees(g: usize, runs: u64, seed: u64, all: &mut Vec<Anchor>) -> Result<(), Error> {
    let (mut requests, mut repairs, mut command) = (0.0, 0.0, String::new());
    for seed in seed..seed + runs {
        let timers = ["2", "2", "log10", "log10"];
        // The tree follows from the seed: it is built once to see what lies behind an edge.
        let plan = find("srm")?.plan(lossy(g, "random-tree", timers, &[1], seed))?;
        let hops = Hops::new(&plan.setup.topology, &plan.setup.group);
        let edge = 1 + Rng::new(seed).below(g as u32 - 1) as usize;
        let behind = hops.beyond(edge);
        let behind: Vec<usize> = behind.iter().filter_map(|p| plan.setup.group.place(*p)).collect();
        let report = run("srm", lossy(g, "random-tree", timers, &behind, seed))?;
        requests += figure(&report, "requests_per_loss")? / runs as f64;
        repairs += figure(&report, "repairs_per_loss")? / runs as f64;
        command = report.command;
    }
    for (what, measured) in [("requests", requests), ("repairs", repairs)] {
        let case = format!("random trees of {g}: {what}");
        let bound = (Relation::AtMost, 2.0);
        all.push(Anchor::new(CHAPTER, case, "about 1", bound, measured, &command));
    }
    Ok(())
}

/// The same loss again and again: whoever learns from it asks less.
fn adaptive(g: usize, seed: u64, all: &mut Vec<Anchor>) -> Result<(), Error> {
    let rounds = |timers: &str, rounds: u32| -> Result<RunReport, Error> {
        let behind: Vec<usize> = (1..g).collect();
        let mut scenario = lossy(g, "complete", ["2", "2", "log10", "log10"], &behind, seed);
        let side: Vec<String> = behind.iter().map(usize::to_string).collect();
        let starts: Vec<u32> = (0..rounds).map(|round| 2000 * round).collect();
        let asks: Vec<String> = starts.iter().map(|at| format!("0@{at},0@{at}.01")).collect();
        scenario.script = Some(asks.join(","));
        let fault = |at: &u32| format!("partition:{}@{at}-{at}.001", side.join(","));
        scenario.faults = starts.iter().map(fault).collect();
        scenario.set[0] = format!("timers={timers}");
        run("srm", scenario)
    };
    let per_loss = |report: &RunReport| figure(report, "requests_per_loss");
    let fixed = per_loss(&rounds("fixed", 60)?)?;
    let (early, late) = (rounds("adaptive", 20)?, rounds("adaptive", 60)?);
    let settled = (60.0 * per_loss(&late)? - 20.0 * per_loss(&early)?) / 40.0;
    let case = format!("star, G = {g}: requests, adaptive, rounds 20–60");
    let bound = (Relation::AtMost, fixed);
    let formula = "less than with fixed timers";
    all.push(Anchor::new(CHAPTER, case, formula, bound, settled, "konklave list srm"));
    Ok(())
}
