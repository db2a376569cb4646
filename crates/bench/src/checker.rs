//! The checker and its peers on one model.

use std::process::Command;
use std::time::Instant;

use konklave_check::Options;
use serde_json::{Value, json};

use crate::measure::{cpu_nanos, peak_kilobytes, process_nanos};
use crate::spin::Form;
use crate::{mc, mc_peer, say, spin};

/// MC(n, k) and its known counts: states and transitions.
struct Known {
    n: u8,
    k: u8,
    fifo: bool,
    states: u64,
    transitions: u64,
}

const KNOWN: [Known; 4] = [
    Known { n: 3, k: 2, fifo: false, states: 37_229, transitions: 125_212 },
    Known { n: 4, k: 1, fifo: false, states: 2_070_348, transitions: 13_381_841 },
    Known { n: 3, k: 2, fifo: true, states: 25_674, transitions: 71_372 },
    Known { n: 4, k: 1, fifo: true, states: 1_402_298, transitions: 7_398_198 },
];

/// One search in this process; prints its time and memory.
pub(crate) fn one(n: &str, k: &str, mode: &str) -> Result<(), String> {
    let number = |word: &str| word.parse::<u8>().map_err(|_| format!("`{word}` is no number"));
    let (n, k) = (usize::from(number(n)?), number(k)?);
    let mut options = Options { threads: 1, max_states: u64::MAX, ..Options::default() };
    let mut peer = None;
    for word in mode.split(',') {
        match word {
            "fifo" => options.fifo = true,
            "bag" => options.fifo = false,
            "two" => options.threads = 2,
            "compact" => {
                options.compact = true;
                options.properties = vec!["mutual exclusion".into(), "deadlock".into()];
            }
            "reduce" => options.reduce = true,
            "peer-dfs" => peer = Some(true),
            "peer-bfs" => peer = Some(false),
            other => return Err(format!("`{other}` is no mode")),
        }
    }
    let (begun, cpu, all) = (Instant::now(), cpu_nanos(), process_nanos());
    let (states, transitions, bytes) = match peer {
        Some(dfs) => {
            let (states, transitions) = mc_peer::exhaust(n, k, options.fifo, dfs)?;
            (states, transitions, 0)
        }
        None => mc::exhaust(n, k, options)?,
    };
    say(&json!({
        "states": states,
        "transitions": transitions,
        "wall": begun.elapsed().as_secs_f64(),
        "cpu": (process_nanos() - all) as f64 / 1e9,
        "first_thread_cpu": (cpu_nanos() - cpu) as f64 / 1e9,
        "bytes": bytes,
        "peak_kb": peak_kilobytes(),
    })
    .to_string())
}

/// One run, in a process of its own.
fn apart(n: u8, k: u8, mode: &str) -> Result<Value, String> {
    let program = std::env::current_exe().map_err(|e| format!("cannot find ourselves: {e}"))?;
    let output = Command::new(&program)
        .args(["mc", &n.to_string(), &k.to_string(), mode])
        .output()
        .map_err(|e| format!("cannot run ourselves: {e}"))?;
    serde_json::from_slice(&output.stdout)
        .map_err(|_| format!("MC({n},{k}) {mode}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// The quickest of several runs.
fn best(known: &Known, mode: &str, runs: u32) -> Result<Value, String> {
    let network = if known.fifo { "fifo" } else { "bag" };
    let mode = [network, mode].join(",");
    let mode = mode.trim_end_matches(',');
    let mut best: Option<Value> = None;
    for _ in 0..runs {
        let row = apart(known.n, known.k, mode)?;
        let counted = (row["states"].as_u64(), row["transitions"].as_u64());
        if counted != (Some(known.states), Some(known.transitions)) {
            return Err(format!("MC({},{}) {mode}: wrong counts: {row}", known.n, known.k));
        }
        let quicker = |best: &Value| row["cpu"].as_f64() < best["cpu"].as_f64();
        if best.as_ref().is_none_or(quicker) {
            best = Some(row);
        }
    }
    best.ok_or_else(|| "no runs".into())
}

/// Models with more states are left out with `--quick`, and run less often.
const LARGE: u64 = 100_000;

/// The heads of the columns, as wide as in `row`.
const HEAD: &str = "model             states      steps    cpu s   states/s  B/state  compact   peer s     ratio 2 threads";

/// Models that are also explored with reduction: n, k, ordered channels. Some are too large to be explored whole.
const REDUCED: [(u8, u8, bool); 5] =
    [(3, 2, false), (4, 1, false), (4, 1, true), (5, 1, false), (4, 2, false)];

/// One model with partial-order reduction: one order of commuting deliveries stands for all.
fn reduced(n: u8, k: u8, fifo: bool, as_json: bool) -> Result<(), String> {
    let row = apart(n, k, if fifo { "fifo,reduce" } else { "bag,reduce" })?;
    let known = KNOWN.iter().find(|known| (known.n, known.k, known.fifo) == (n, k, fifo));
    let states = row["states"].as_u64().unwrap_or(0);
    let fewer = known.map(|known| known.states as f64 / states as f64);
    let title = format!("MC({n},{k}){} reduced", if fifo { " fifo" } else { "" });
    if as_json {
        return say(&json!({
            "model": title,
            "states": states,
            "transitions": row["transitions"],
            "cpu_seconds": row["cpu"],
            "peak_kb": row["peak_kb"],
            "times_fewer": fewer,
        })
        .to_string());
    }
    let fewer = fewer.map_or("full: not tried".to_owned(), |times| format!("{times:.1}x fewer"));
    let (cpu, peak) = (row["cpu"].as_f64(), row["peak_kb"].as_f64());
    say(&format!(
        "{title:<22} {states:>9} {:>10} {:>8.3} s {:>6.0} MB  {fewer}",
        row["transitions"].as_u64().unwrap_or(0),
        cpu.unwrap_or(f64::NAN),
        peak.unwrap_or(f64::NAN) / 1024.0,
    ))
}

/// All models, ours and stateright's, in processor time, since the machine may have other work to do.
pub(crate) fn check(options: &[&str]) -> Result<(), String> {
    let (quick, as_json) = (options.contains(&"--quick"), options.contains(&"--json"));
    if let Some(other) = options.iter().find(|o| !["--quick", "--json"].contains(o)) {
        return Err(format!("`{other}` is no option of `check`; try --help"));
    }
    if !as_json {
        say(HEAD)?;
    }
    for known in &KNOWN {
        if quick && known.states > LARGE {
            continue;
        }
        row(known, as_json)?;
    }
    for (n, k, fifo) in REDUCED {
        if !quick || n < 4 {
            reduced(n, k, fifo, as_json)?;
        }
    }
    if !spin::is_installed() {
        return if as_json { Ok(()) } else { say("SPIN or gcc is not installed: no row for it") };
    }
    let small = |known: &&Known| !quick || known.states <= LARGE;
    KNOWN
        .iter()
        .filter(|known| !known.fifo)
        .filter(small)
        .try_for_each(|known| Form::ALL.iter().try_for_each(|form| spun(known, *form, as_json)))
}

/// One model, ours and stateright's.
fn row(known: &Known, as_json: bool) -> Result<(), String> {
    let large = known.states > LARGE;
    let runs = if large { 3 } else { 9 };
    let ours = best(known, "", runs)?;
    let compact = best(known, "compact", 1)?;
    let two = best(known, "two", runs)?;
    let peer = best(known, "peer-dfs", if large { 1 } else { 5 })?;
    let seconds = |row: &Value, key: &str| row[key].as_f64().unwrap_or(f64::NAN);
    let per_state = |row: &Value| row["bytes"].as_f64().unwrap_or(0.0) / known.states as f64;
    // On free cores, the busier of the two threads decides how long both take.
    let (first, all) = (seconds(&two, "first_thread_cpu"), seconds(&two, "cpu"));
    let speedup = seconds(&ours, "cpu") / first.max(all - first);
    let title = format!("MC({},{}){}", known.n, known.k, if known.fifo { " fifo" } else { "" });
    if as_json {
        say(&json!({
            "model": title,
            "states": known.states,
            "transitions": known.transitions,
            "cpu_seconds": seconds(&ours, "cpu"),
            "states_per_second": known.states as f64 / seconds(&ours, "cpu"),
            "bytes_per_state": per_state(&ours),
            "compact_bytes_per_state": per_state(&compact),
            "stateright_dfs_cpu_seconds": seconds(&peer, "cpu"),
            "ratio": seconds(&peer, "cpu") / seconds(&ours, "cpu"),
            "two_threads_speedup": speedup,
        })
        .to_string())?;
    } else {
        say(&format!(
            "{title:<14} {:>9} {:>10} {:>8.3} {:>10.0} {:>8.1} {:>8.1} {:>8.3} {:>9.1} {speedup:>9.2}",
            known.states,
            known.transitions,
            seconds(&ours, "cpu"),
            known.states as f64 / seconds(&ours, "cpu"),
            per_state(&ours),
            per_state(&compact),
            seconds(&peer, "cpu"),
            seconds(&peer, "cpu") / seconds(&ours, "cpu"),
        ))?;
    }
    Ok(())
}

/// SPIN on one model, beside one search of ours just before it.
fn spun(known: &Known, form: Form, as_json: bool) -> Result<(), String> {
    let (n, k) = (known.n, known.k);
    let ours = best(known, "", 1)?["cpu"].as_f64().unwrap_or(f64::NAN);
    let found = spin::exhaust(n, k, form)?;
    let name = form.name();
    if (found.states, found.transitions) != (known.states, known.transitions) {
        let (states, transitions) = (found.states, found.transitions);
        return Err(format!("MC({n},{k}): SPIN counts {states} states, {transitions} transitions"));
    }
    let (cpu, ratio) = (found.cpu_seconds, found.cpu_seconds / ours);
    let per_state = found.megabytes * f64::from(1 << 20) / known.states as f64;
    if as_json {
        return say(&json!({
            "model": format!("MC({n},{k}) SPIN, {name}"),
            "states": found.states,
            "transitions": found.transitions,
            "spin_cpu_seconds": cpu,
            "spin_bytes_per_state": per_state,
            "cpu_seconds": ours,
            "spin_ratio": ratio,
        })
        .to_string());
    }
    say(&format!(
        "MC({n},{k}) SPIN, {name}: {cpu:.3} s and {per_state:.0} B/state; ours {ours:.3} s: {ratio:.1} times as fast"
    ))
}
