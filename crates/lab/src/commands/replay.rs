//! `replay`: a recorded run once more.

#[cfg(feature = "agent")]
mod incident;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use konklave_catalog::Catalog;
use konklave_trace::{Difference, Place, Run, Salvaged, compact, text};
use serde_json::json;

use super::{plan_of, salvage};
use crate::Done;
use crate::args::ReplayArgs;
use crate::output::{Colour, Format, open_input, paint, print_csv, print_json, stdout};

/// The readable part is right, but the recording is incomplete.
const CUT_OFF: u8 = 65;

pub(crate) fn replay(catalog: &Catalog, args: &ReplayArgs) -> Done {
    let Salvaged { run, cut } = salvage(&args.file)?;
    #[cfg(feature = "agent")]
    if run.header.algorithm == konklave_agent::recorder::ALGORITHM {
        if let Some(cut) = &cut {
            tell!("{cut}; only the readable part is judged");
        }
        let code = incident::incident(args, &run)?;
        return Ok(if code == 0 && cut.is_some() { CUT_OFF } else { code });
    }
    let (entry, plan) = plan_of(catalog, &run, &args.file)?;
    let replayed = entry.replay(&plan, &run);
    let (steps, difference) = match replayed {
        Ok(replayed) => (replayed.steps, None),
        Err(difference) => (0, Some(located(&difference, &run, &args.file))),
    };
    let same = difference.is_none();
    if let Some(cut) = &cut {
        tell!("{cut}; only the readable part is compared");
    }
    match args.format {
        Format::Text => print_text(args, &run, steps, difference)?,
        Format::Json | Format::Jsonl => {
            let report = json!({
                "schema": "konklave.replay/1",
                "algorithm": run.header.algorithm,
                "nodes": run.header.nodes.len(),
                "world": run.header.world,
                "same": same,
                "complete": cut.is_none(),
                "steps": steps,
                "difference": difference,
                "recorded_verdict": run.footer.as_ref().map(|f| f.verdict.clone()),
            });
            print_json(&report, args.format)?;
        }
        Format::Csv => print_csv(&[vec![
            ("algorithm".into(), run.header.algorithm.clone()),
            ("same".into(), same.to_string()),
            ("complete".into(), cut.is_none().to_string()),
            ("steps".into(), steps.to_string()),
            ("difference".into(), difference.unwrap_or_default()),
        ]])?,
    }
    Ok(match (same, &cut) {
        (false, _) => 1,
        (true, Some(_)) => CUT_OFF,
        (true, None) => 0,
    })
}

/// The result for people, with the story if it is requested.
fn print_text(
    args: &ReplayArgs,
    run: &Run,
    steps: usize,
    difference: Option<String>,
) -> std::io::Result<()> {
    let mut out = stdout();
    tell_story(&mut out, args, run)?;
    let header = &run.header;
    writeln!(out, "{} · {} nodes, {}", header.algorithm, header.nodes.len(), header.world)?;
    let same = difference.is_none();
    match difference {
        None => {
            let same = paint("the same", Colour::Green);
            let how = how(run);
            writeln!(out, "replayed    {steps} steps: {same}, {how}")?;
        }
        Some(difference) => {
            let differs = paint("different", Colour::Red);
            writeln!(out, "replayed    {differs}: {difference}")?;
        }
    }
    match &run.footer {
        Some(footer) if same => writeln!(out, "verdict     {}", footer.verdict)?,
        Some(footer) => writeln!(out, "verdict     {} (recorded)", footer.verdict)?,
        None => writeln!(out, "verdict     none: the recording was cut off")?,
    }
    out.flush()
}

/// The run in words, if they are asked for.
fn tell_story(out: &mut impl Write, args: &ReplayArgs, run: &Run) -> std::io::Result<()> {
    if args.story || args.states || args.debug || args.only.is_some() {
        let nodes = args.only.as_ref().map(|nodes| nodes.iter().copied().collect());
        let options =
            text::Options { states: args.states, debug: args.debug, nodes, most_lines: None };
        writeln!(out, "{}", text::transcript(run, &options))?;
    }
    Ok(())
}

/// The extent of the comparison.
fn how(run: &Run) -> &'static str {
    match &*run.header.world {
        _ if run.header.scenario.is_null() => {
            "effect by effect; the events of the world are possible"
        }
        "sim" => "entry by entry, in a second run with the same seed",
        "check" => "effect by effect; the events of the world are possible",
        _ => "effect by effect, and judged again",
    }
}

/// A difference with the line of the file.
fn located(difference: &Difference, run: &Run, path: &Path) -> String {
    let wanted = difference.place.line(run.entries.len());
    let line = line_of(difference.place, wanted, path).unwrap_or(wanted);
    format!("{}:{line}: {difference}", path.display())
}

/// The line number of the `number`th line that is not blank.
fn line_of(place: Place, number: usize, path: &Path) -> Option<usize> {
    let mut source = BufReader::new(open_input(path).ok()?);
    if place == Place::Header || source.fill_buf().ok()?.starts_with(&compact::MAGIC[..7]) {
        return None;
    }
    let lines = source.split(b'\n').map_while(Result::ok).enumerate();
    let mut said = lines.filter(|(_, line)| !line.trim_ascii().is_empty());
    said.nth(number - 1).map(|(i, _)| i + 1)
}
