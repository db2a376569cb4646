//! Differences of all algorithms of a study from one of them.

use std::collections::BTreeMap;
use std::io::{self, Write};

use konklave_catalog::{Catalog, Entry, Error};
use konklave_sweep::{Difference, Row, Study, holm, paired};
use serde::Serialize;
use serde_json::Value;

use super::shown;
use crate::args::SweepArgs;
use crate::commands::run::number;
use crate::failure::Failure;

/// The full name of the algorithm that all others are compared with.
pub(super) fn against(
    catalog: &Catalog,
    args: &SweepArgs,
    study: &Study,
) -> Result<Option<String>, Failure> {
    let Some(name) = &args.against else { return Ok(None) };
    let name = catalog.find(name)?.name();
    let full = |known: &String| catalog.find(known).map_or_else(|_| known.clone(), Entry::name);
    let known: Vec<String> = study.algorithms.iter().map(full).collect();
    if !known.contains(&name) {
        let why = format!(
            "--against {name}: it is not in the study; algorithms are {}",
            known.join(", ")
        );
        return Err(Error::Usage(why).into());
    }
    if study.seeds < 2 {
        return Err(Error::Usage("--against: a difference needs at least two seeds".into()).into());
    }
    Ok(Some(name))
}

/// The difference of an algorithm from another one in a combination.
#[derive(Serialize)]
pub(super) struct Against {
    algorithm: String,
    against: String,
    parameters: BTreeMap<String, Value>,
    measure: String,
    #[serde(flatten)]
    difference: Difference,
}

/// The differences of all algorithms from `base` in `measure`: runs with the same parameters and seed are a pair.
pub(super) fn differences(rows: &[Row], measure: &str, base: &str) -> Vec<Against> {
    let parameters = |row: &Row| serde_json::to_string(&row.parameters).unwrap_or_default();
    let of_base: BTreeMap<(String, u64), Option<f64>> = rows
        .iter()
        .filter(|row| row.algorithm == base)
        .map(|row| ((parameters(row), row.seed), row.measure(measure)))
        .collect();
    let mut by_key: BTreeMap<(String, String), Vec<&Row>> = BTreeMap::new();
    let mut order = Vec::new();
    for row in rows.iter().filter(|row| row.algorithm != base) {
        let key = (parameters(row), row.algorithm.clone());
        if !by_key.contains_key(&key) {
            order.push(key.clone());
        }
        by_key.entry(key).or_default().push(row);
    }
    let one = |key: &(String, String)| {
        let rows = &by_key[key];
        let pairs = rows.iter().filter_map(|row| {
            Some((row.measure(measure), *of_base.get(&(parameters(row), row.seed))?))
        });
        let (algorithm, against, measure) = (key.1.clone(), base.to_owned(), measure.to_owned());
        let parameters = rows[0].parameters.clone();
        Some(Against { algorithm, against, parameters, measure, difference: paired(pairs)? })
    };
    let mut all: Vec<Against> = order.iter().filter_map(one).collect();
    holm(&mut all.iter_mut().map(|against| &mut against.difference).collect::<Vec<_>>());
    all
}

/// Prints them, a line for each; names take `width` letters.
pub(super) fn print(out: &mut impl Write, differences: &[Against], width: usize) -> io::Result<()> {
    if let Some(first) = differences.first() {
        let base = &first.against;
        writeln!(
            out,
            "\n{} − that of {base}, pair by pair; p by the paired t test, adjusted by Holm",
            first.measure
        )?;
    }
    for a in differences {
        let d = &a.difference;
        let p = if d.p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {:.3}", d.p) };
        let (mean, confidence) = (number(d.mean), number(d.confidence));
        writeln!(
            out,
            "{:width$}  {:<28} {mean} ± {confidence}, {p}",
            a.algorithm,
            shown(&a.parameters)
        )?;
    }
    Ok(())
}
