//! `costs --enumerate`: every arrangement of ids on a ring.

use std::io::{self, Write};

use konklave_catalog::{Assumption, Entry, Error, Scenario, Verdict};
use konklave_process::topology::Shape;
use serde::Serialize;

use super::super::run::number;
use crate::Done;
use crate::args::CostsArgs;
use crate::output::{TableFormat, print_csv, print_jsonl, print_pretty_json, stdout};

/// With more nodes there are too many arrangements.
const MOST: usize = 9;

/// The costs of an election over all arrangements of ids, if all nodes start.
#[derive(Serialize)]
struct Row {
    algorithm: String,
    nodes: usize,
    /// Rotations of an arrangement count as one.
    arrangements: u64,
    fewest: u64,
    mean: f64,
    most: u64,
    /// Arrangements of the ids in ring order that cost the fewest and the most.
    cheapest: String,
    dearest: String,
}

pub(super) fn enumerate(chosen: &[&'static Entry], args: &CostsArgs) -> Done {
    let given = args.nodes.iter().copied().filter(|n| *n <= MOST);
    let mut sizes: Vec<usize> = given.collect();
    if sizes.len() < args.nodes.len() {
        if args.nodes != super::DEFAULT {
            let message = format!("--enumerate: works for at most {MOST} nodes");
            return Err(Error::Usage(message).into());
        }
        sizes = (2..=7).collect();
    }
    let rings: Vec<_> = chosen.iter().filter(|entry| is_for_rings(entry)).collect();
    if rings.is_empty() {
        let message = "--enumerate: works only for elections on rings with ids";
        return Err(Error::Usage(message.into()).into());
    }
    let mut rows = Vec::new();
    for entry in rings {
        for &n in &sizes {
            rows.push(row(entry, n)?);
        }
    }
    match args.format {
        TableFormat::Text => print(&rows, "", " ")?,
        TableFormat::Markdown => print(&rows, "| ", " | ")?,
        TableFormat::Json => print_pretty_json(&rows)?,
        TableFormat::Jsonl => rows.iter().try_for_each(print_jsonl)?,
        TableFormat::Csv => print_csv(&rows.iter().map(csv).collect::<Vec<_>>())?,
    }
    Ok(0)
}

/// Whether it elects on a ring, and ids decide.
fn is_for_rings(entry: &Entry) -> bool {
    let sheet = &entry.sheet;
    let ring = matches!(sheet.topologies.first(), Some(Shape::DirectedRing | Shape::Ring));
    ring && entry.problem.one_shot && sheet.assumes.contains(&Assumption::UniqueIds)
}

fn row(entry: &Entry, n: usize) -> Result<Row, Error> {
    let mut ids: Vec<usize> = (0..n).collect();
    let (mut count, mut sum) = (0, 0);
    let (mut least, mut most) = ((u64::MAX, String::new()), (0, String::new()));
    loop {
        let listed = ids.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        let messages = messages(entry, n, &listed)?;
        (count, sum) = (count + 1, sum + messages);
        if messages < least.0 {
            least = (messages, listed.clone());
        }
        if messages > most.0 || most.1.is_empty() {
            most = (messages, listed);
        }
        // The first id stays in its place, since rotations count as one.
        if !next_permutation(ids.get_mut(1..).unwrap_or_default()) {
            break;
        }
    }
    Ok(Row {
        algorithm: entry.name(),
        nodes: n,
        arrangements: count,
        fewest: least.0,
        mean: sum as f64 / count as f64,
        most: most.0,
        cheapest: least.1,
        dearest: most.1,
    })
}

fn messages(entry: &Entry, n: usize, ids: &str) -> Result<u64, Error> {
    let plan = entry.plan(Scenario {
        nodes: Some(n),
        ids: (n > 1).then(|| ids.to_owned()),
        initiators: Some("all".into()),
        ..Scenario::default()
    })?;
    let report = entry.simulate(&plan, false)?.report;
    if report.verdict != Verdict::Ok {
        let why = format!("{}: {}: {}", entry.name(), report.verdict.name(), report.command);
        return Err(Error::Unavailable(why));
    }
    Ok(report.messages.sent)
}

/// The next arrangement in lexicographic order; false after the last one.
fn next_permutation(ids: &mut [usize]) -> bool {
    let Some(i) = ids.windows(2).rposition(|pair| pair[0] < pair[1]) else { return false };
    let j = ids.iter().rposition(|id| *id > ids[i]).unwrap_or(i);
    ids.swap(i, j);
    ids[i + 1..].reverse();
    true
}

fn cells(row: &Row) -> [String; 6] {
    let (fewest, most) = (row.fewest.to_string(), row.most.to_string());
    let arrangements = row.arrangements.to_string();
    [row.algorithm.clone(), row.nodes.to_string(), arrangements, fewest, number(row.mean), most]
}

fn print(rows: &[Row], edge: &str, between: &str) -> io::Result<()> {
    let mut out = stdout();
    let heads = ["algorithm", "n", "arrangements", "fewest", "mean", "most"].map(str::to_owned);
    let all: Vec<_> = std::iter::once(heads).chain(rows.iter().map(cells)).collect();
    let width = |c: usize| all.iter().map(|row| row[c].chars().count()).max().unwrap_or(0);
    for (r, row) in all.iter().enumerate() {
        let cell = |c: usize| {
            let gap = " ".repeat(width(c) - row[c].chars().count());
            if c == 0 { format!("{}{gap}", row[c]) } else { format!("{gap}{}", row[c]) }
        };
        let cells: Vec<_> = (0..row.len()).map(cell).collect();
        writeln!(out, "{}", format!("{edge}{}{between}", cells.join(between)).trim_end())?;
        if r == 0 && !edge.is_empty() {
            writeln!(out, "|{}", "---|".repeat(row.len()))?;
        }
    }
    out.flush()
}

fn csv(row: &Row) -> Vec<(String, String)> {
    let names = ["algorithm", "nodes", "arrangements", "fewest", "mean", "most"];
    let mut cells: Vec<_> = names.iter().map(|name| (*name).to_owned()).zip(cells(row)).collect();
    cells.push(("cheapest".into(), row.cheapest.clone()));
    cells.push(("dearest".into(), row.dearest.clone()));
    cells
}
