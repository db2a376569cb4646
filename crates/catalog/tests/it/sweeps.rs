//! Every lock of the catalog in many worlds: whatever the delays and the load, all is well and
//! everyone is served. `KONKLAVE_LONG=1` makes it five times as many.

use konklave_algorithms::Assumption;
use konklave_catalog::{Entry, Error, RunReport, Scenario, Verdict};
use konklave_process::Rng;
use konklave_process::topology::Shape;

use crate::catalog;

fn seeds() -> u64 {
    if std::env::var_os("KONKLAVE_LONG").is_some() { 1000 } else { 200 }
}

fn one_of<'a>(words: &[&'a str], rng: &mut Rng) -> &'a str {
    words[rng.below(words.len() as u32) as usize]
}

/// A world by chance, within what the algorithm assumes.
fn world(entry: &Entry, n: usize, seed: u64, rng: &mut Rng) -> Scenario {
    let fifo = entry.sheet.assumes.contains(&Assumption::Fifo) || rng.below(2) == 0;
    let duplicates = !entry.sheet.assumes.contains(&Assumption::NoDuplicates) && rng.below(4) == 0;
    let any_graph = entry.sheet.topologies.contains(&Shape::Connected) && n > 2;
    let graphs = ["path", "star", "tree:2", "random-tree", "ring", "complete"];
    // An algorithm that relies on time bounds gets bounded delays.
    let timely = entry.sheet.assumes.contains(&Assumption::Synchronous);
    let delays = ["constant", "uniform:0.1..2", "exponential", "log-normal:1,1"];
    let delays = if timely { &delays[..2] } else { &delays[..] };
    let pauses = ["0", "0", "exponential:2", "exponential:20", "exponential:500", "arrivals:10"];
    Scenario {
        nodes: Some(n),
        topology: any_graph.then(|| one_of(&graphs, rng).to_owned()),
        ids: Some(one_of(&["asc", "desc", "random"], rng).to_owned()),
        entries: Some(1 + rng.below(4)),
        delay: Some(one_of(delays, rng).to_owned()),
        think: Some(one_of(&pauses, rng).to_owned()),
        hold: Some(one_of(&["0", "1", "exponential:1", "uniform:0..5"], rng).to_owned()),
        fifo: Some(fifo),
        duplicate: duplicates.then_some(0.1),
        app_messages: Some(rng.below(2)),
        seed: Some(seed),
        time_limit: Some(1e6),
        ..Scenario::default()
    }
}

/// One run. Not every number of nodes suits every algorithm: the next one that does is taken.
fn run(entry: &Entry, seed: u64) -> RunReport {
    let mut rng = Rng::new(seed).fork(77);
    let first = 1 + rng.below(12) as usize;
    for n in (first..=13).chain(1..first) {
        let scenario = world(entry, n, seed, &mut rng.clone());
        match entry.plan(scenario).and_then(|plan| entry.simulate(&plan, false)) {
            Ok(outcome) => return outcome.report,
            Err(Error::Usage(_)) => {}
            Err(error) => panic!("{}, seed {seed}: {error}", entry.name()),
        }
    }
    panic!("{}: no number of nodes suits it", entry.name());
}

#[test]
fn every_lock_serves_everyone_in_every_world_it_is_made_for() {
    let mut failures = Vec::new();
    for entry in catalog().entries().iter().filter(|entry| entry.problem.name == "mutex") {
        for seed in 1..=seeds() {
            let report = run(entry, seed);
            let wanted = report.problem["mutex"]["entries_per_node"].as_array();
            let entries: Vec<u64> = wanted
                .into_iter()
                .flatten()
                .filter_map(|node| node.get(1).and_then(serde_json::Value::as_u64))
                .collect();
            let alike = entries.len() == report.nodes && entries.iter().all(|&k| k == entries[0]);
            let served = report.waiting.is_empty() && alike && entries[0] > 0;
            if report.verdict != Verdict::Ok || !served {
                let why = report.violations.first().map_or(String::new(), |v| v.detail.clone());
                let verdict = report.verdict.name();
                failures.push(format!("{verdict} {entries:?} {why}\n    {}", report.command));
                break;
            }
        }
    }
    assert!(failures.is_empty(), "run again:\n{}", failures.join("\n"));
}
