//! The report of a failing test: why the run went wrong, its story, and a file to replay.

use std::path::PathBuf;

use konklave_algorithms::{Algorithm, Problem, erased};
use konklave_catalog::{simulated_run, told, witness_run};
use konklave_check::Witness;
use konklave_process::{Group, Portable};
use konklave_trace::{Run, why};

use crate::Case;

/// How many steps of a simulated run are shown; the file has all of them.
const LAST_STEPS: usize = 60;

/// Longer runs are not recorded.
const MOST_RECORDED: u64 = 100_000;

/// The story of a witness, step by step, and its causes.
pub(crate) fn witness<P: Algorithm + Portable>(group: &Group, witness: &Witness) -> String {
    let run = witness_run(group, witness);
    let mut lines = told(&run, witness.starts);
    lines.extend(causes::<P>(&run));
    lines.join("\n")
}

/// The causes of a bad end of `case`, its last steps, and the file with all of them; it is simulated again for
/// that. It has `steps` steps.
pub(crate) fn simulated<P: Algorithm + Portable>(case: &Case<P>, steps: u64) -> String {
    if steps > MOST_RECORDED {
        return format!("({steps} steps: too many to be recorded)");
    }
    let watch = case.simulated_watch();
    let run = simulated_run(erased::<P>(), case.simulation(&watch));
    let mut lines = causes::<P>(&run);
    let story = told(&run, case.setup.group.len());
    let skipped = story.len().saturating_sub(LAST_STEPS);
    lines.push(match skipped {
        0 => "story:".to_owned(),
        _ => format!("story, after {skipped} steps:"),
    });
    lines.extend(story.into_iter().skip(skipped));
    lines.push(kept(&run));
    lines.join("\n")
}

fn causes<P: Algorithm + Portable>(run: &Run) -> Vec<String> {
    let mut lines = vec!["why:".to_owned()];
    lines.extend(why(run, <P::Problem as Problem<P>>::SHEET.conditions));
    lines
}

/// Writes the run to a file; returns the command that replays it.
fn kept(run: &Run) -> String {
    let folder = folder();
    let test = std::thread::current().name().unwrap_or("test").replace("::", "-");
    let plain = |c: char| if c.is_alphanumeric() || "-_".contains(c) { c } else { '-' };
    let file = folder.join(format!("{}.run", test.chars().map(plain).collect::<String>()));
    let written =
        std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&file, run.to_text()));
    match written {
        Ok(()) => format!("the whole run: cargo run -- replay {} --story", file.display()),
        Err(why) => format!("the whole run could not be written to {}: {why}", file.display()),
    }
}

/// Where runs of failing tests are kept: beside the test programs, or with temporary files.
fn folder() -> PathBuf {
    let program = std::env::current_exe().ok();
    let built = program.as_deref().and_then(|program| {
        let deps = program.parent().filter(|folder| folder.ends_with("deps"))?;
        Some(deps.parent()?.join("failed-runs"))
    });
    built.unwrap_or_else(|| std::env::temp_dir().join("konklave-failed-runs"))
}
