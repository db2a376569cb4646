//! Measures the simulator against hand-written floors, and recording against runs without recording, in the same binary
//! and the same run.

mod checker;
mod echo;
mod elections;
mod floors;
mod groups;
mod locks;
mod mc;
mod mc_peer;
mod measure;
mod program;
mod recording;
mod spin;
mod sweep;
mod witnesses;
mod workloads;

use std::io::{ErrorKind, Write};
use std::process::ExitCode;

use serde_json::json;

use measure::{apart, child};
use workloads::What;

const HELP: &str = "\
Measures the simulator against hand-written floors, the checker against its peers, recording
against none.

Usage: konklave-bench sim [OPTIONS]
       konklave-bench elections [OPTIONS]
       konklave-bench mutex [--json] [--quick]
       konklave-bench group [--json] [--quick]
       konklave-bench trace [--json] [--quick]
       konklave-bench check [--quick] [--json]
       konklave-bench cli PROGRAM [--json] [--quick]
       konklave-bench witnesses PROGRAM [--json] [--quick]
       konklave-bench mc N K MODE
       konklave-bench run WORKLOAD sim|floor [RUNS]

Commands:
  sim        all workloads, each in a process of its own, and the sweep on two threads
  elections  every election for large groups, beside W1 of the same size or W3
  mutex      locks at the sizes they are made for, beside W2
  group      multicasts and views at scale, beside W2 and W3
  trace      recording to disk in both forms, beside the same run without; drawing
  check      MC(n,k), exhausted by our checker and by stateright, and by SPIN where it is installed
  cli        a release build of the command line: a small run from the start of the process, a sweep
             of 10 000 runs, a recording and its picture
  witnesses  how long the checker takes to the first witness of every mistake in the catalog, how many
             states it has seen by then, and how many steps the witness has
  mc         MC(n,k) once, in this process: bag or fifo, with two, compact or reduce, or peer-dfs,
             peer-bfs
  run        one side of one workload, in this process: w1:N, w2, w3, a lock, group:NAME
             or election:NAME:N:one|all

Options:
  --json    one JSON object per row instead of a table
  --quick   fewer runs, rings up to 10^5
  --huge    the ring of 10^7, too
  --help    this text

Times are per message: by the clock in the quickest of several runs, and on a processor in the mean
of them. Memory is the most that the process had in its first run.
";

struct Options {
    json: bool,
    quick: bool,
    huge: bool,
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    if args.is_empty() || args.iter().any(|arg| ["--help", "-h", "help"].contains(arg)) {
        return exit(say(HELP.trim_end()));
    }
    let done = match args[..] {
        ["mutex", ref options @ ..] => beside("mutex", options, locks::mutex),
        ["group", ref options @ ..] => beside("group", options, groups::group),
        ["sim", ref options @ ..] => options_of(options).and_then(|options| sim(&options)),
        ["elections", ref options @ ..] => {
            options_of(options).and_then(|o| elections::elections(&o))
        }
        ["trace", ref options @ ..] => options_of(options)
            .and_then(|options| recording::recording(options.quick, options.json)),
        ["cli", path, ref options @ ..] => {
            beside("cli", options, |json, quick| program::program(path, json, quick))
        }
        ["witnesses", path, ref options @ ..] => {
            beside("witnesses", options, |json, quick| witnesses::witnesses(path, json, quick))
        }
        ["check", ref options @ ..] => checker::check(options),
        ["mc", n, k, mode] => checker::one(n, k, mode),
        ["run", name, side] => run(name, side, "3"),
        ["run", name, side, runs] => run(name, side, runs),
        _ => Err(format!("`{}` is no command; try --help", args.join(" "))),
    };
    exit(done)
}

fn exit(done: Result<(), String>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("konklave-bench: {why}");
            ExitCode::from(2)
        }
    }
}

/// Prints a line. A closed pipe is no error: its reader has read enough.
fn say(line: &str) -> Result<(), String> {
    match writeln!(std::io::stdout(), "{line}") {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        written => written.map_err(|e| format!("cannot write: {e}")),
    }
}

fn options_of(args: &[&str]) -> Result<Options, String> {
    let mut options = Options { json: false, quick: false, huge: false };
    for arg in args {
        match *arg {
            "--json" => options.json = true,
            "--quick" => options.quick = true,
            "--huge" => options.huge = true,
            other => return Err(format!("`{other}` is no option; try --help")),
        }
    }
    Ok(options)
}

fn beside(
    command: &str,
    args: &[&str],
    measure: impl FnOnce(bool, bool) -> Result<(), String>,
) -> Result<(), String> {
    match args.iter().find(|arg| !["--json", "--quick"].contains(arg)) {
        Some(other) => Err(format!("`{other}` is no option of `{command}`; try --help")),
        None => measure(args.contains(&"--json"), args.contains(&"--quick")),
    }
}

fn run(name: &str, side: &str, runs: &str) -> Result<(), String> {
    let what = What::named(name).ok_or(format!(
        "`{name}` is no workload: w1:N, w2, w3, a lock, group:NAME or election:NAME:N:one|all"
    ))?;
    let floor = match side {
        "sim" => false,
        "floor" => true,
        other => return Err(format!("`{other}` is neither sim nor floor")),
    };
    let runs = runs.parse().map_err(|_| format!("`{runs}` is no number of runs"))?;
    child(what, floor, runs)
}

fn sim(options: &Options) -> Result<(), String> {
    let largest: u32 = if options.quick { 5 } else { 6 };
    let mut all: Vec<What> = (1..=largest).map(|power| What::Ring(10usize.pow(power))).collect();
    if options.huge {
        all.push(What::Ring(10_000_000));
    }
    all.extend([What::Mutex, What::Wave]);
    if !options.json {
        say(&format!(
            "{:<26} {:>10} {:>9} {:>9} {:>9} {:>6} {:>9} {:>9}",
            "workload", "messages", "ns wall", "ns cpu", "floor ns", "ratio", "peak MB", "floor MB"
        ))?;
    }
    for what in all {
        row(what, options)?;
    }
    sweep_row(options)
}

fn row(what: What, options: &Options) -> Result<(), String> {
    let runs = match what {
        What::Ring(n) if n > 1_000_000 => 1,
        _ if options.quick => 3,
        _ => 9,
    };
    let (ours, floor) = (apart(what, false, runs)?, apart(what, true, runs)?);
    if ours.messages != floor.messages {
        return Err(format!(
            "{}: the simulator sent {} messages, the floor {}",
            what.title(),
            ours.messages,
            floor.messages
        ));
    }
    let ratio = ours.wall_nanos / floor.wall_nanos;
    let megabytes = |kilobytes: u64| kilobytes as f64 / 1024.0;
    if options.json {
        say(&format!(
            "{}",
            json!({
                "workload": what.name(),
                "messages": ours.messages,
                "ns_per_message": ours.wall_nanos,
                "cpu_ns_per_message": ours.cpu_nanos,
                "floor_ns_per_message": floor.wall_nanos,
                "floor_cpu_ns_per_message": floor.cpu_nanos,
                "ratio": ratio,
                "peak_mb": megabytes(ours.peak_kilobytes),
                "floor_peak_mb": megabytes(floor.peak_kilobytes),
                "runs": runs,
            })
        ))?;
    } else {
        say(&format!(
            "{:<26} {:>10} {:>9.1} {:>9} {:>9.1} {:>6.1} {:>9.1} {:>9.1}",
            what.title(),
            ours.messages,
            ours.wall_nanos,
            ours.cpu_nanos.map_or("-".into(), |nanos| format!("{nanos:.1}")),
            floor.wall_nanos,
            ratio,
            megabytes(ours.peak_kilobytes),
            megabytes(floor.peak_kilobytes),
        ))?;
    }
    Ok(())
}

fn sweep_row(options: &Options) -> Result<(), String> {
    let (seeds, runs) = if options.quick { (32, 3) } else { (128, 5) };
    let sweep = sweep::sweep(seeds, runs)?;
    let speedup = sweep.one_millis / sweep.two_millis;
    let cpu_speedup = sweep.one_cpu_millis / sweep.two_cpu_millis;
    if options.json {
        say(&format!(
            "{}",
            json!({
                "workload": "sweep",
                "seeds": sweep.seeds,
                "one_thread_ms": sweep.one_millis,
                "two_threads_ms": sweep.two_millis,
                "speedup": speedup,
                "cpu_speedup": cpu_speedup,
                "runs": runs,
            })
        ))?;
    } else {
        say(&format!(
            "sweep of {} seeds, results identical: one thread {:.0} ms, two {:.0} ms: {speedup:.2} times \
             as fast by the clock, {cpu_speedup:.2} times by the busier thread's processor time",
            sweep.seeds, sweep.one_millis, sweep.two_millis
        ))?;
    }
    Ok(())
}
