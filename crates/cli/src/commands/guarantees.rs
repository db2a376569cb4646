//! `guarantees`: what every algorithm keeps under which fault.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use konklave_catalog::guarantees::{Bounds, CONDITIONS, Cell, GuaranteeRow, page, title};
use konklave_catalog::{Entry, Error};

use super::costs::chosen;
use crate::Done;
use crate::args::GuaranteesArgs;
use crate::output::{Colour, Format, paint, print_csv, print_json, stdout};

pub(crate) fn guarantees(args: &GuaranteesArgs) -> Done {
    if !(1..=6).contains(&args.nodes) {
        let message = format!("--nodes {}: the table is for 1 to 6 nodes", args.nodes);
        return Err(Error::Usage(message).into());
    }
    let bounds = Bounds { nodes: args.nodes, states: args.max_states };
    let mut cached = args.cache.as_deref().map_or(Ok(Vec::new()), read)?;
    let mut rows = Vec::new();
    for entry in chosen(args.what.as_deref())? {
        rows.extend(rows_of(entry, bounds, &mut cached)?);
        // After each, so that a long search that is interrupted goes on from there.
        if let Some(file) = &args.cache {
            write(file, &cached)?;
        }
    }
    match args.format {
        _ if args.markdown => stdout().write_all(page(&rows, bounds).as_bytes())?,
        Format::Text => print(&rows)?,
        Format::Json => print_json(&rows, args.format)?,
        Format::Jsonl => rows.iter().try_for_each(|row| print_json(row, args.format))?,
        Format::Csv => print_csv(&rows.iter().map(csv).collect::<Vec<_>>())?,
    }
    Ok(0)
}

fn rows_of(
    entry: &Entry,
    bounds: Bounds,
    cached: &mut Vec<GuaranteeRow>,
) -> Result<Vec<GuaranteeRow>, Error> {
    let (name, hash) = (entry.name(), entry.guarantees_hash(bounds));
    let known: Vec<GuaranteeRow> =
        cached.iter().filter(|row| row.algorithm == name && row.hash == hash).cloned().collect();
    if !known.is_empty() {
        return Ok(known);
    }
    let rows = entry.guarantees(bounds)?;
    cached.retain(|row| row.algorithm != name);
    cached.extend(rows.iter().cloned());
    Ok(rows)
}

/// A cache that is not there yet is empty.
fn read(file: &Path) -> Result<Vec<GuaranteeRow>, Error> {
    let name = file.display().to_string();
    match fs::read_to_string(file) {
        Ok(text) => serde_json::from_str(&text)
            .map_err(|why| Error::Data(format!("{name}: no table of guarantees: {why}"))),
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(why) => Err(Error::Unreadable { file: name, why }),
    }
}

/// Whole or not at all.
fn write(file: &Path, rows: &[GuaranteeRow]) -> io::Result<()> {
    let part = file.with_extension("part");
    fs::write(&part, serde_json::to_string_pretty(rows)? + "\n")?;
    fs::rename(part, file)
}

fn print(rows: &[GuaranteeRow]) -> io::Result<()> {
    let mut out = stdout();
    let mut algorithm = "";
    for row in rows {
        if row.algorithm != algorithm {
            if !algorithm.is_empty() {
                writeln!(out)?;
            }
            algorithm = &row.algorithm;
            writeln!(out, "{algorithm}, {} nodes", row.nodes)?;
            let head = CONDITIONS.map(|condition| format!("{condition:<15}"));
            writeln!(out, "  {:<22}{}", "", head.concat().trim_end())?;
        }
        let cells: Vec<String> = row.cells.iter().map(painted).collect();
        writeln!(out, "  {:<22}{}", title(&row.property), cells.concat().trim_end())?;
    }
    out.flush()
}

fn painted(cell: &Cell) -> String {
    let text = format!("{:<15}", cell.to_string());
    match cell {
        Cell::Yes { .. } => paint(&text, Colour::Green),
        Cell::No { .. } => paint(&text, Colour::Red),
        Cell::Never => text,
        Cell::Bounded { .. } => paint(&text, Colour::Yellow),
    }
}

fn csv(row: &GuaranteeRow) -> Vec<(String, String)> {
    let mut fields = vec![
        ("algorithm".to_owned(), row.algorithm.clone()),
        ("nodes".to_owned(), row.nodes.to_string()),
        ("property".to_owned(), row.property.clone()),
    ];
    let cells = CONDITIONS.iter().zip(&row.cells);
    fields.extend(cells.map(|(condition, cell)| {
        (condition.replace(": ", "_").replace(' ', "_"), cell.to_string())
    }));
    fields
}
