//! `guarantees`: the properties that each algorithm keeps under each fault.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use konklave_catalog::guarantees::{
    Bounds, CONDITIONS, Cell, GuaranteeRow, LEGEND, SYNCHRONOUS, head, page, title,
};
use konklave_catalog::{Catalog, Entry, Error};

use super::costs::chosen;
use super::run::recording;
use crate::Done;
use crate::args::GuaranteesArgs;
use crate::output::{Colour, Format, Target, heading, paint, print_csv, print_json, stdout};

pub(crate) fn guarantees(catalog: &'static Catalog, args: &GuaranteesArgs) -> Done {
    if !(1..=6).contains(&args.nodes) {
        let message = format!("--nodes {}: must be between 1 and 6", args.nodes);
        return Err(Error::Usage(message).into());
    }
    let bounds = Bounds { nodes: args.nodes, states: args.max_states };
    if let Some(folder) = &args.witnesses {
        let file = folder.display().to_string();
        fs::create_dir_all(folder).map_err(|why| Error::Unwritable { file, why })?;
    }
    let rows =
        all_rows(catalog, &chosen(catalog, args.what.as_deref())?, bounds, args.cache.as_deref())?;
    if let Some(folder) = &args.witnesses {
        write_witnesses(catalog, &rows, bounds, folder)?;
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

/// The rows of all `entries`, in their order; computed on all cores.
fn all_rows(
    catalog: &Catalog,
    entries: &[&'static Entry],
    bounds: Bounds,
    cache: Option<&Path>,
) -> Result<Vec<GuaranteeRow>, Error> {
    let cached = Mutex::new(cache.map_or(Ok(Vec::new()), read)?);
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(entry) = entries.get(next.fetch_add(1, Ordering::Relaxed)) {
            let rows = rows_of(entry, bounds, &cached).and_then(|rows| {
                // After each, so that a long search that is interrupted goes on from there.
                cache.map_or(Ok(()), |file| write(catalog, file, &cached))?;
                Ok(rows)
            });
            let failed = rows.is_err();
            done.lock().unwrap_or_else(PoisonError::into_inner).push((entry.name(), rows));
            if failed {
                next.store(entries.len(), Ordering::Relaxed);
            }
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        (1..workers.min(entries.len())).for_each(|_| drop(scope.spawn(work)));
        work();
    });
    let mut rows = Vec::new();
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(name, _)| entries.iter().position(|entry| entry.name() == *name));
    for (_, found) in done {
        rows.extend(found?);
    }
    Ok(rows)
}

fn rows_of(
    entry: &Entry,
    bounds: Bounds,
    cached: &Mutex<Vec<GuaranteeRow>>,
) -> Result<Vec<GuaranteeRow>, Error> {
    let (name, hash) = (entry.name(), entry.guarantees_hash(bounds));
    let lock = || cached.lock().unwrap_or_else(PoisonError::into_inner);
    let is_it = |row: &&GuaranteeRow| row.algorithm == name && row.hash == hash;
    let known: Vec<GuaranteeRow> = lock().iter().filter(is_it).cloned().collect();
    if !known.is_empty() {
        return Ok(known);
    }
    let rows = entry.guarantees(bounds)?;
    let mut cached = lock();
    cached.retain(|row| row.algorithm != name);
    cached.extend(rows.iter().cloned());
    Ok(rows)
}

/// Records a run for every *no*.
fn write_witnesses(
    catalog: &Catalog,
    rows: &[GuaranteeRow],
    bounds: Bounds,
    folder: &Path,
) -> Result<(), Error> {
    let word = |text: &str| text.replace(": ", "-").replace([' ', '/'], "-").to_lowercase();
    for row in rows {
        let entry = catalog.find(&row.algorithm)?;
        for (i, condition) in CONDITIONS.iter().enumerate() {
            let Some(run) = entry.guarantee_witness(row, i, bounds)? else { continue };
            let names = [&*row.algorithm, &row.property, condition].map(word);
            let path = folder.join(names.join("-") + ".run");
            let bytes = recording(&run, Some(&path));
            let file = path.display().to_string();
            let bytes = bytes.map_err(|why| Error::Unwritable { file, why })?;
            Target::open(&path)?.finish(&bytes)?;
        }
    }
    Ok(())
}

/// Reads the cache; a missing file counts as empty.
fn read(file: &Path) -> Result<Vec<GuaranteeRow>, Error> {
    let name = file.display().to_string();
    match fs::read_to_string(file) {
        Ok(text) => serde_json::from_str(&text)
            .map_err(|why| Error::Data(format!("{name}: not a table of guarantees: {why}"))),
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(why) => Err(Error::Unreadable { file: name, why }),
    }
}

/// Writes the cache, whole or not at all, in the order of the catalog.
fn write(catalog: &Catalog, file: &Path, cached: &Mutex<Vec<GuaranteeRow>>) -> Result<(), Error> {
    let rows = cached.lock().unwrap_or_else(PoisonError::into_inner);
    let mut rows: Vec<&GuaranteeRow> = rows.iter().collect();
    let place = |row: &GuaranteeRow| {
        catalog.entries().iter().position(|entry| entry.name() == row.algorithm)
    };
    rows.sort_by_key(|row| place(row));
    let bytes = serde_json::to_string_pretty(&rows).map_err(|why| Error::Data(why.to_string()))?;
    // One after the other: the list is held until the file is there.
    Target::open(file)?.finish((bytes + "\n").as_bytes())
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
            writeln!(out, "{}", heading(&head(row, 0)))?;
            let heads = CONDITIONS.map(|condition| format!("{condition:<0$}", width(condition)));
            writeln!(out, "  {:<22}{}", "", heads.concat().trim_end())?;
        }
        let cells = row.cells.iter().zip(CONDITIONS);
        let cells = cells.map(|(cell, condition)| painted(cell, row.nodes, width(condition)));
        let cells: Vec<String> = cells.collect();
        writeln!(out, "  {:<22}{}", title(&row.property), cells.concat().trim_end())?;
    }
    if rows.is_empty() {
        writeln!(out, "no table: guarantees are computed only for elections and mutual exclusion")?;
        return out.flush();
    }
    writeln!(out)?;
    let is_shown = |sign: &str| {
        let cells = || rows.iter().flat_map(|row| row.cells.iter().map(move |cell| (cell, row)));
        match sign {
            "yes" => cells().any(|(cell, _)| matches!(cell, Cell::Yes { .. })),
            "no (k)" => cells().any(|(cell, _)| matches!(cell, Cell::No { .. })),
            "≤k in r" => cells().any(|(cell, _)| matches!(cell, Cell::Bypass { .. })),
            "? (d)" => cells().any(|(cell, _)| matches!(cell, Cell::Bounded { .. })),
            "–" => cells().any(|(cell, _)| matches!(cell, Cell::Never)),
            SYNCHRONOUS => rows.iter().any(|row| row.synchronous),
            _ => cells().any(|(cell, row)| cell.beside(row.nodes) != cell.to_string()),
        }
    };
    let legend: Vec<_> = LEGEND.iter().filter(|(sign, _)| is_shown(sign)).collect();
    let width = legend.iter().map(|(sign, _)| sign.chars().count()).max().unwrap_or(0);
    for (sign, meaning) in legend {
        writeln!(out, "{sign:<width$}  {meaning}")?;
    }
    out.flush()
}

/// The width of the column of a condition.
fn width(condition: &str) -> usize {
    (condition.len() + 1).max(15)
}

fn painted(cell: &Cell, nodes: usize, width: usize) -> String {
    let text = format!("{:<width$}", cell.beside(nodes));
    match cell {
        Cell::Yes { .. } => paint(&text, Colour::Green),
        Cell::No { .. } => paint(&text, Colour::Red),
        Cell::Never => text,
        Cell::Bypass { .. } | Cell::Bounded { .. } => paint(&text, Colour::Yellow),
    }
}

fn csv(row: &GuaranteeRow) -> Vec<(String, String)> {
    let mut fields = vec![
        ("algorithm".to_owned(), row.algorithm.clone()),
        ("nodes".to_owned(), row.nodes.to_string()),
        ("synchronous".to_owned(), row.synchronous.to_string()),
        ("property".to_owned(), row.property.clone()),
    ];
    let cells = CONDITIONS.iter().zip(&row.cells);
    fields.extend(cells.map(|(condition, cell)| {
        (condition.replace(": ", "_").replace(' ', "_"), cell.beside(row.nodes))
    }));
    fields
}
