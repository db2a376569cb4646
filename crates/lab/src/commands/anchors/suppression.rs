//! Scalable reliable multicast: requests and repairs if many members lose the same message, and the longest wait.

mod adaptive;

use konklave_catalog::{Catalog, Error, RunReport, Scenario};
use konklave_process::topology::Hops;
use konklave_process::{ProcessId, Rng};

use super::{Anchor, Anchors, ERRORS, Relation, chosen, measure as figure, run};

const CHAPTER: &str = "scalable reliable multicast";
const REQUESTS: &str = "requests_per_loss";
const REPAIRS: &str = "repairs_per_loss";
const LAST: &str = "last_recovery_rtt.mean";
/// The measures of a loss, with their names.
const FIGURES: [(&str, &str); 3] =
    [(REQUESTS, "requests"), (REPAIRS, "repairs"), (LAST, "last delay/RTT")];
/// For groups in trees: the usual timers.
const FIXED: [&str; 4] = ["2", "2", "log10", "log10"];

pub(super) fn measure(all: &mut Anchors) -> Result<(), Error> {
    for (g, c2, runs) in [(20, 2, 60), (50, 2, 40), (100, 2, 30), (100, 10, 60), (100, 100, 100)] {
        star(g, c2, runs, all)?;
    }
    for n in [10, 50, 100] {
        chain(n, all)?;
    }
    // Results of an independent simulation of the same rules.
    let dense = [[1.08, 1.00, 1.26], [1.19, 1.04, 0.83], [1.31, 1.03, 0.71]];
    for (g, reference) in [10, 50, 100].into_iter().zip(dense) {
        trees("random tree", "random-tree", g, reference, all)?;
    }
    let sparse = [[2.3, 3.3, 2.4], [3.5, 4.1, 2.1], [3.9, 3.5, 1.9]];
    for (g, reference) in [10, 50, 100].into_iter().zip(sparse) {
        trees("sparse in a tree of 1000", "scattered:1000,4", g, reference, all)?;
    }
    adaptive::measure(all)
}

/// The first of `n` members sends two messages; the first message is lost on its way to all members `behind`.
fn lossy(n: usize, topology: &str, timers: [&str; 4], behind: &[usize], seed: u64) -> Scenario {
    let [c1, c2, d1, d2] = timers;
    Scenario {
        nodes: Some(n),
        topology: Some(topology.into()),
        delay: Some("hops".into()),
        script: Some("0@0,0@0.01".into()),
        seed: Some(seed),
        faults: vec![format!("partition:{}@0-0.001", listed(behind))],
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

fn listed(members: &[usize]) -> String {
    let members: Vec<String> = members.iter().map(usize::to_string).collect();
    members.join(",")
}

/// The same measures of many runs.
#[derive(Default)]
struct Runs {
    figures: [Vec<f64>; 3],
    command: String,
}

impl Runs {
    fn add(&mut self, report: RunReport) -> Result<(), Error> {
        for (values, (name, _)) in self.figures.iter_mut().zip(FIGURES) {
            values.push(figure(&report, name)?);
        }
        self.command = report.command;
        Ok(())
    }

    /// The mean of each, and its standard error.
    fn means(&self) -> [(f64, f64); 3] {
        self.figures.each_ref().map(|values| mean_and_error(values))
    }
}

fn mean_and_error(sample: &[f64]) -> (f64, f64) {
    let n = sample.len() as f64;
    let mean = sample.iter().sum::<f64>() / n;
    let variance = sample.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    (mean, (variance / n).sqrt())
}

/// All are equally far from each other, as the leaves of a star: only chance tells them apart.
fn star(g: usize, c2: u32, runs: u32, all: &mut Anchors) -> Result<(), Error> {
    let behind: Vec<usize> = (1..g).collect();
    let (spread, first) = (c2.to_string(), all.sampling.seed);
    let mut sampled = Runs::default();
    for seed in first..first + u64::from(all.sampling.times(runs)) {
        let scenario = lossy(g, "complete", ["2", &spread, "1", "1"], &behind, seed);
        sampled.add(run(all.catalog, "srm", scenario)?)?;
    }
    let (size, spread) = (g as f64, f64::from(c2));
    // The formula of requests holds for large groups: it neglects the dependence between two members.
    let requests = (0.1, "1 + (G − 2)/C2", 1.0 + (size - 2.0) / spread);
    let last = (2.0 + spread / size + 2.0 + 1.0 + 0.5) / 2.0;
    let last = (0.0, "(C1 + C2/G + D1 + D2/2 + 2)/2", last);
    for (i, (part, formula, theory)) in [(0, requests), (2, last)] {
        let (mean, error) = sampled.means()[i];
        let bound = (Relation::Within(part * theory + ERRORS * error), theory);
        let case = format!("star, G = {g}, C2 = {c2}: {}", FIGURES[i].1);
        all.push(Anchor::new(CHAPTER, case, formula, bound, mean, &sampled.command));
    }
    let (repairs, bound) = (sampled.means()[1].0, (Relation::Exactly, 1.0));
    let case = format!("star, G = {g}, C2 = {c2}: repairs");
    all.push(Anchor::new(CHAPTER, case, "1", bound, repairs, &sampled.command));
    Ok(())
}

/// A break in the middle of a chain: nothing is random.
fn chain(n: usize, all: &mut Anchors) -> Result<(), Error> {
    let behind: Vec<usize> = (n / 2..n).collect();
    let timers = ["1", "0", "1", "0"];
    let report = run(all.catalog, "srm", lossy(n, "path", timers, &behind, all.sampling.seed))?;
    let last = (n as f64 / 2.0 + 3.0) / (2.0 * (n as f64 - 1.0));
    let theory = [("1", 1.0), ("1", 1.0), ("(n/2 + 3)/2(n − 1)", last)];
    for ((name, what), (formula, theory)) in FIGURES.into_iter().zip(theory) {
        let measured = figure(&report, name)?;
        let case = format!("chain of {n}: {what}");
        // Times come in ticks, of which a delay has a thousand.
        let relation = if name == LAST { Relation::Within(0.001) } else { Relation::Exactly };
        let bound = (relation, theory);
        all.push(Anchor::new(CHAPTER, case, formula, bound, measured, &report.command));
    }
    Ok(())
}

/// A link of a tree loses the message. There is no formula; an independent simulation has
/// found the reference.
fn trees(
    name: &str,
    topology: &str,
    g: usize,
    reference: [f64; 3],
    all: &mut Anchors,
) -> Result<(), Error> {
    let (mut sampled, first) = (Runs::default(), all.sampling.seed);
    for seed in first..first + u64::from(all.sampling.times(60)) {
        let behind = behind_a_link(all.catalog, g, topology, seed)?;
        sampled.add(run(all.catalog, "srm", lossy(g, topology, FIXED, &behind, seed))?)?;
    }
    for (i, (mean, error)) in sampled.means().into_iter().enumerate() {
        let case = format!("{name}, G = {g}: {}", FIGURES[i].1);
        // Both are samples: of the other one only the digits are known.
        let bound = (Relation::Within(ERRORS * error + 0.15 * reference[i]), reference[i]);
        all.push(Anchor::new(CHAPTER, case, "reference", bound, mean, &sampled.command));
    }
    Ok(())
}

/// The members that miss a message of the first member if a random link on its way to a random member fails.
fn behind_a_link(
    catalog: &Catalog,
    g: usize,
    topology: &str,
    seed: u64,
) -> Result<Vec<usize>, Error> {
    // The tree follows from the seed: it is built once to see what lies behind a link.
    let plan = catalog.find("srm")?.plan(lossy(g, topology, FIXED, &[1], seed))?;
    let (hops, group) = (Hops::new(&plan.setup.topology, &plan.setup.group), &plan.setup.group);
    let mut rng = Rng::new(seed);
    let (first, other) = (group.id(0), group.id(1 + rng.below(g as u32 - 1) as usize));
    let sides: Vec<Vec<ProcessId>> = (1..hops.nodes()).map(|link| hops.beyond(link)).collect();
    let parts = |side: &&Vec<ProcessId>| side.contains(&first) != side.contains(&other);
    let links: Vec<&Vec<ProcessId>> = sides.iter().filter(parts).collect();
    let below = links[rng.below(links.len() as u32) as usize];
    let lost = |place: &usize| below.contains(&group.id(*place)) == below.contains(&other);
    Ok((0..g).filter(lost).collect())
}
