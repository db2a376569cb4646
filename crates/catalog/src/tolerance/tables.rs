//! The rows as tables: for people, and for documents.

use std::collections::BTreeSet;

use super::{Fault, Role, Row};

/// The rows as a table for people.
pub fn table(rows: &[Row]) -> String {
    let mut lines = vec![["", "served", "harmless", "safe"].map(str::to_owned)];
    let mut algorithm = "";
    for row in rows {
        if row.algorithm != algorithm {
            algorithm = &row.algorithm;
            lines.push([algorithm.to_owned(), String::new(), String::new(), String::new()]);
        }
        lines.push([
            format!("  {}", row.fault),
            row.served.to_string(),
            format!("{} of {}", row.harmless, row.tried),
            if row.safe { "yes" } else { "no" }.to_owned(),
        ]);
    }
    let width =
        |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths = [0, 1, 2, 3].map(width);
    let mut table = String::new();
    for line in &lines {
        let cells = line.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
        table += cells.collect::<Vec<_>>().join("  ").trim_end();
        table.push('\n');
    }
    table
}

/// All parts that one can play, in the order of the columns.
const ROLES: [Role; 7] = [
    Role::Idle,
    Role::IdleTokenHolder,
    Role::OnPath,
    Role::Arbiter,
    Role::Coordinator,
    Role::Waiting,
    Role::Holder,
];

/// The rows as two Markdown tables: crashes and lost messages.
pub fn markdown(rows: &[Row]) -> String {
    let mut algorithms: Vec<&str> = rows.iter().map(|row| row.algorithm.as_str()).collect();
    algorithms.dedup();
    let find = |algorithm: &str, fault: &Fault| {
        rows.iter().find(|row| row.algorithm == algorithm && row.fault == *fault)
    };
    let mut text =
        line(["crashed"].map(str::to_owned).into_iter().chain(ROLES.map(|r| r.to_string())));
    text += &rule(ROLES.len());
    for algorithm in &algorithms {
        let cells = ROLES.map(|role| cell(find(algorithm, &Fault::Crash(role))));
        text += &line(std::iter::once(short(algorithm)).chain(cells));
    }
    text += "\n";
    let kinds: Vec<BTreeSet<&str>> = algorithms
        .iter()
        .map(|algorithm| {
            let of = rows.iter().filter(|row| row.algorithm == *algorithm);
            of.filter_map(|row| match &row.fault {
                Fault::Loss(kind) => Some(kind.as_str()),
                Fault::Crash(_) => None,
            })
            .collect()
        })
        .collect();
    let most = kinds.iter().map(BTreeSet::len).max().unwrap_or(0);
    text += &line(["lost".to_owned()].into_iter().chain((0..most).map(|_| String::new())));
    text += &rule(most);
    for (algorithm, kinds) in algorithms.iter().zip(&kinds) {
        let cells = kinds.iter().map(|kind| {
            format!("{kind}: {}", cell(find(algorithm, &Fault::Loss((*kind).to_owned()))))
        });
        let rest = (kinds.len()..most).map(|_| String::new());
        text += &line(std::iter::once(short(algorithm)).chain(cells).chain(rest));
    }
    text
}

/// The name without the problem.
fn short(algorithm: &str) -> String {
    algorithm.rsplit('/').next().unwrap_or(algorithm).to_owned()
}

/// The clients served in the worst case, and the number of harmless cases.
fn cell(row: Option<&Row>) -> String {
    let Some(row) = row else { return "–".to_owned() };
    let broken = if row.safe { "" } else { ", **unsafe**" };
    format!("{} ({}/{}){broken}", row.served, row.harmless, row.tried)
}

fn line(cells: impl Iterator<Item = String>) -> String {
    let cells: Vec<String> = cells.collect();
    format!("| {} |\n", cells.join(" | "))
}

fn rule(columns: usize) -> String {
    format!("|---{}|\n", "|---".repeat(columns))
}
