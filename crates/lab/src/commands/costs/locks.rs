//! The comparison of locks, and time from each exit to each next entry.

use std::io::{self, Write};

use konklave_catalog::{Entry, Error, LockCosts, Range, Scenario, program};
use serde_json::json;

use crate::Done;
use crate::args::CostsArgs;
use crate::commands::run::number;
use crate::output::{TableFormat, print_csv, print_jsonl, print_pretty_json, stdout};

/// The columns and their meanings.
const COLUMNS: [(&str, &str); 9] = [
    ("lock", ""),
    ("n", "how many nodes"),
    ("alone", "messages of the first entry, if only one node requests it; over all such nodes"),
    ("again", "messages if the same node enters again"),
    (
        "contended",
        "messages per entry if all nodes request it, once or ten times, with short or long hold times",
    ),
    ("entry", "from request to entry, alone"),
    (
        "response",
        "from request to exit with hold time T: for a single node, then if all nodes request ten times",
    ),
    (
        "sync delay",
        "from an exit to the next entry, if hold times are so long that every request has arrived",
    ),
    ("hasty", "the same with hold time 0"),
];

/// The time from an exit of one node (row) to the entry of another (column); none on the diagonal.
type Delays = Vec<Vec<Option<f64>>>;

/// `--table`: one row for each lock and size.
pub(super) fn table(entries: &[&Entry], args: &CostsArgs) -> Done {
    let mut rows = Vec::new();
    for entry in locks(entries)? {
        for &n in &args.nodes {
            rows.extend(entry.lock_costs(n, args.seed)?);
        }
    }
    match args.format {
        TableFormat::Text => text(&rows)?,
        TableFormat::Markdown => markdown(&rows)?,
        TableFormat::Json => print_pretty_json(&rows)?,
        TableFormat::Jsonl => rows.iter().try_for_each(print_jsonl)?,
        TableFormat::Csv => {
            let named = |row: &LockCosts| {
                COLUMNS.map(|(name, _)| name.to_owned()).into_iter().zip(cells(row))
            };
            print_csv(&rows.iter().map(|row| named(row).collect()).collect::<Vec<_>>())?;
        }
    }
    Ok(if rows.iter().all(|row| row.holds) { 0 } else { 1 })
}

fn locks<'a>(entries: &[&'a Entry]) -> Result<Vec<&'a Entry>, Error> {
    let locks: Vec<&Entry> =
        entries.iter().copied().filter(|e| !e.problem.measures.wait.is_empty()).collect();
    if locks.is_empty() {
        return Err(Error::Usage(format!(
            "--table and --matrix work only for locks, and problems that measure how long clients wait; \
             `{} list mutex` shows the locks",
            program()
        )));
    }
    Ok(locks)
}

fn cells(row: &LockCosts) -> [String; 9] {
    let optional = |range: Option<Range>| range.map_or("–".to_owned(), |r| r.to_string());
    [
        row.algorithm.rsplit('/').next().unwrap_or_default().to_owned(),
        row.nodes.to_string(),
        row.lone.to_string(),
        row.again.to_string(),
        row.contended.to_string(),
        row.entry.to_string(),
        match (row.response, row.busy_response) {
            (None, None) => optional(None),
            (lone, busy) => format!("{}; {}", optional(lone), optional(busy)),
        },
        optional(row.sync_delay),
        optional(row.hasty_delay),
    ]
}

fn text(rows: &[LockCosts]) -> io::Result<()> {
    let mut lines = vec![COLUMNS.map(|(name, _)| name.to_owned())];
    lines.extend(rows.iter().map(cells));
    let mut out = stdout();
    write_aligned(&mut out, &lines.iter().map(|l| &l[..]).collect::<Vec<_>>())?;
    writeln!(out)?;
    for (name, meaning) in COLUMNS.iter().skip(1) {
        writeln!(out, "{name:<11} {meaning}")?;
    }
    writeln!(out, "Every message takes T; times are in T.")?;
    out.flush()
}

fn markdown(rows: &[LockCosts]) -> io::Result<()> {
    let mut out = stdout();
    writeln!(out, "| {} |", COLUMNS.map(|(name, _)| name).join(" | "))?;
    writeln!(out, "|---{}|", "|---:".repeat(COLUMNS.len() - 1))?;
    for row in rows {
        writeln!(out, "| {} |", cells(row).join(" | "))?;
    }
    out.flush()
}

/// `--matrix`: the time from each node's exit to each other node's entry.
pub(super) fn matrix(entries: &[&Entry], args: &CostsArgs) -> Done {
    let mut matrices = Vec::new();
    for entry in locks(entries)? {
        for &n in &args.nodes {
            let scenario = Scenario {
                nodes: Some(n),
                seed: Some(args.seed),
                topology: args.topology.clone(),
                set: args.set.clone(),
                ..Scenario::default()
            };
            match entry.delay_matrix(&scenario) {
                // Of several locks, those that cannot run in such a group have no matrix.
                Err(Error::Usage(_)) if entries.len() > 1 && (3..=64).contains(&n) => {}
                matrix => matrices.push((entry.name(), n, matrix?)),
            }
        }
    }
    let as_json = |(name, n, matrix): &(String, usize, Delays)| json!({ "algorithm": name, "nodes": n, "delays": matrix });
    match args.format {
        TableFormat::Json => {
            print_pretty_json(&matrices.iter().map(as_json).collect::<Vec<_>>())?;
        }
        TableFormat::Jsonl => matrices.iter().map(as_json).try_for_each(|m| print_jsonl(&m))?,
        TableFormat::Text => matrices.iter().try_for_each(|(name, _, m)| text_matrix(name, m))?,
        TableFormat::Markdown => {
            matrices.iter().try_for_each(|(name, _, m)| markdown_matrix(name, m))?;
        }
        TableFormat::Csv => print_csv(&csv_matrix(&matrices))?,
    }
    Ok(0)
}

fn shown(delay: Option<f64>) -> String {
    delay.map_or("–".to_owned(), number)
}

fn text_matrix(name: &str, matrix: &[Vec<Option<f64>>]) -> io::Result<()> {
    let mut out = stdout();
    writeln!(
        out,
        "{name}: time from the exit of one node (row) to the entry of another (column), in T"
    )?;
    let head = std::iter::once(String::new()).chain((0..matrix.len()).map(|j| format!("p{j}")));
    let mut lines: Vec<Vec<String>> = vec![head.collect()];
    for (i, row) in matrix.iter().enumerate() {
        let cells = row.iter().map(|delay| shown(*delay));
        lines.push(std::iter::once(format!("p{i}")).chain(cells).collect());
    }
    write_aligned(&mut out, &lines.iter().map(|l| &l[..]).collect::<Vec<_>>())?;
    out.flush()
}

fn markdown_matrix(name: &str, matrix: &[Vec<Option<f64>>]) -> io::Result<()> {
    let mut out = stdout();
    let names: Vec<String> = (0..matrix.len()).map(|j| format!("p{j}")).collect();
    writeln!(out, "| {} | {} |", name.rsplit('/').next().unwrap_or(name), names.join(" | "))?;
    writeln!(out, "|---{}|", "|---:".repeat(matrix.len()))?;
    for (i, row) in matrix.iter().enumerate() {
        let cells: Vec<String> = row.iter().map(|delay| shown(*delay)).collect();
        writeln!(out, "| p{i} | {} |", cells.join(" | "))?;
    }
    out.flush()
}

fn csv_matrix(matrices: &[(String, usize, Delays)]) -> Vec<Vec<(String, String)>> {
    let mut rows = Vec::new();
    for (name, n, matrix) in matrices {
        for (i, row) in matrix.iter().enumerate() {
            for (j, delay) in row.iter().enumerate() {
                let Some(delay) = delay else { continue };
                let cells = [
                    ("algorithm", name.clone()),
                    ("nodes", n.to_string()),
                    ("leaver", i.to_string()),
                    ("entrant", j.to_string()),
                    ("delay", number(*delay)),
                ];
                rows.push(cells.map(|(name, value)| (name.to_owned(), value)).to_vec());
            }
        }
    }
    rows
}

/// Columns two blanks apart, the first to the left, the others to the right.
fn write_aligned(out: &mut impl Write, lines: &[&[String]]) -> io::Result<()> {
    let columns = lines.first().map_or(0, |line| line.len());
    let width = |column: usize| lines.iter().map(|l| l[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for line in lines {
        let cells = line.iter().zip(&widths).enumerate().map(|(i, (cell, &width))| {
            if i == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
        });
        writeln!(out, "{}", cells.collect::<Vec<_>>().join("  ").trim_end())?;
    }
    Ok(())
}
