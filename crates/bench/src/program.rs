//! The program itself, from the start of its process: a small run, a sweep of 10 000 runs, a picture.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use serde_json::json;

use crate::measure::{apart, children_nanos};
use crate::say;
use crate::workloads::What;

/// One measurement: the command, the number of runs, and the goal for the elapsed time.
struct Case {
    name: &'static str,
    title: &'static str,
    line: String,
    runs: u32,
    goal_millis: f64,
}

/// The result of one measurement.
struct Taken {
    /// The elapsed time of the fastest run.
    wall_millis: f64,
    /// The mean processor time.
    cpu_millis: f64,
}

/// The messages of the sweep: 10 000 runs of so many messages each.
const SWEEP_MESSAGES: f64 = 10_000.0 * 1800.0;

fn cases(quick: bool, folder: &Path) -> Vec<Case> {
    let runs = |many| if quick { 1 } else { many };
    let (run, svg) = (folder.join("r.runz"), folder.join("r.svg"));
    let sweep = "sweep --algorithms ricart-agrawala --nodes 10 --seeds 10000 --with entries=10";
    vec![
        Case {
            name: "start",
            title: "nothing: `--version`",
            line: "--version".into(),
            runs: 20 * runs(5),
            goal_millis: 50.0,
        },
        Case {
            name: "run",
            title: "run ricart-agrawala -n 5 --entries 2",
            line: "run ricart-agrawala -n 5 --entries 2".into(),
            runs: 20 * runs(5),
            goal_millis: 50.0,
        },
        Case {
            name: "sweep-one",
            title: "sweep of 10 000 runs, one thread",
            line: format!("{sweep} --jobs 1"),
            runs: runs(3),
            goal_millis: 4000.0,
        },
        Case {
            name: "sweep-two",
            title: "sweep of 10 000 runs, two threads",
            line: format!("{sweep} --jobs 2"),
            runs: runs(3),
            goal_millis: 2000.0,
        },
        Case {
            name: "record",
            title: "record 10 000 events and more",
            line: format!(
                "run ricart-agrawala -n 10 --entries 56 --record {} --format csv",
                run.display()
            ),
            runs: runs(5),
            goal_millis: 1000.0,
        },
        Case {
            name: "draw",
            title: "draw them as SVG",
            line: format!("draw {} --output {}", run.display(), svg.display()),
            runs: runs(5),
            goal_millis: 1000.0,
        },
    ]
}

/// Measures `program`, a release build of the command line.
pub(crate) fn program(program: &str, as_json: bool, quick: bool) -> Result<(), String> {
    let folder = Folder(std::env::temp_dir().join(format!("konklave-cli-{}", std::process::id())));
    std::fs::create_dir_all(&folder.0).map_err(|e| format!("no folder for recordings: {e}"))?;
    let w2 = apart(What::Mutex, false, 3)?;
    let w2 = w2.cpu_nanos.unwrap_or(w2.wall_nanos);
    if !as_json {
        say(&format!("{:<40} {:>9} {:>9} {:>9}  ratio", "case", "ms wall", "ms cpu", "goal ms"))?;
    }
    let mut start = None;
    for case in cases(quick, &folder.0) {
        let taken = measure(program, &case)?;
        let base = *start.get_or_insert(taken.cpu_millis);
        // A sweep is compared with the simulator alone; the other commands with a program that does nothing.
        let (ratio, to) = if case.name.starts_with("sweep") {
            (taken.cpu_millis * 1e6 / SWEEP_MESSAGES / w2, "W2, by message")
        } else {
            (taken.cpu_millis / base.max(0.1), "start")
        };
        if as_json {
            say(&json!({
                "program": case.name,
                "line": case.line,
                "wall_ms": taken.wall_millis,
                "cpu_ms": taken.cpu_millis,
                "goal_ms": case.goal_millis,
                "ratio": ratio,
                "ratio_to": to,
                "runs": case.runs,
            })
            .to_string())?;
        } else {
            say(&format!(
                "{:<40} {:>9.1} {:>9.1} {:>9.0}  {ratio:.1} x {to}",
                case.title, taken.wall_millis, taken.cpu_millis, case.goal_millis
            ))?;
        }
    }
    Ok(())
}

fn measure(program: &str, case: &Case) -> Result<Taken, String> {
    let (mut quickest, cpu) = (f64::INFINITY, children_nanos());
    for _ in 0..case.runs {
        let begun = Instant::now();
        let done = Command::new(program)
            .args(case.line.split_whitespace())
            .stdout(Stdio::null())
            .output()
            .map_err(|e| format!("cannot run {program}: {e}"))?;
        quickest = quickest.min(begun.elapsed().as_secs_f64() * 1e3);
        if !done.status.success() {
            let said = String::from_utf8_lossy(&done.stderr);
            return Err(format!("{program} {}: {}", case.line, said.trim()));
        }
    }
    let cpu = children_nanos().saturating_sub(cpu) as f64 / 1e6 / f64::from(case.runs);
    Ok(Taken { wall_millis: quickest, cpu_millis: cpu })
}

/// The folder of the recordings, removed after the measurement.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
