//! Measurements of the operating system on this process, and runs in processes of their own.

use std::process::Command;

use serde_json::{Value, json};

use crate::say;
use crate::workloads::What;

/// The processor time of this thread; 0 where the system does not report it.
pub(crate) fn cpu_nanos() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0)
}

/// The processor time of all threads of this process; 0 where the system does not report it.
pub(crate) fn process_nanos() -> u64 {
    let tasks = std::fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let alive: u64 = tasks
        .filter_map(|task| {
            let text = std::fs::read_to_string(task.path().join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse::<u64>().ok()
        })
        .sum();
    // The time of threads that have ended is known only in hundredths of a second.
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|word| word.parse::<u64>().ok()).sum();
    alive.max(ticks * 10_000_000)
}

/// The processor time of child processes that have ended, in hundredths of a second.
pub(crate) fn children_nanos() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(13).take(2).filter_map(|word| word.parse::<u64>().ok()).sum::<u64>() * 10_000_000
}

/// The peak of this process's memory, in kilobytes; 0 where the system does not report it.
pub(crate) fn peak_kilobytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// The best of several runs of one side of a workload.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Best {
    pub(crate) messages: u64,
    /// Inputs that processes handled.
    pub(crate) events: u64,
    /// Nanoseconds per message, in the fastest run.
    pub(crate) wall_nanos: f64,
    /// Nanoseconds per message, in the mean: the system counts too coarsely for one run. None for short runs.
    pub(crate) cpu_nanos: Option<f64>,
    pub(crate) peak_kilobytes: u64,
}

impl Best {
    /// The time for one message: processor time if it is known.
    pub(crate) fn per_message(&self) -> f64 {
        self.cpu_nanos.unwrap_or(self.wall_nanos)
    }

    /// The time for one event, which is one input of one process.
    pub(crate) fn per_event(&self) -> f64 {
        self.per_message() * self.messages as f64 / self.events.max(1) as f64
    }

    /// The time for a message and for an event, each divided by that of `other`.
    pub(crate) fn ratios(&self, other: &Self) -> [f64; 2] {
        match (self.cpu_nanos, other.cpu_nanos) {
            // By processor time if both are known: a busy machine stretches elapsed time, and unevenly.
            (Some(_), Some(theirs)) if theirs > 0.0 => {
                [self.per_message() / theirs, self.per_event() / other.per_event()]
            }
            _ => {
                let by_clock = |best: &Self| Self { cpu_nanos: None, ..*best };
                let (ours, theirs) = (by_clock(self), by_clock(other));
                let events = ours.per_event() / theirs.per_event();
                [ours.per_message() / theirs.per_message(), events]
            }
        }
    }
}

/// Runs one side of `what` until it has taken long enough to be measured, at least `runs` times,
/// and prints the result.
pub(crate) fn child(what: What, floor: bool, runs: u32) -> Result<(), String> {
    const ENOUGH: u64 = 50_000_000;
    // For fewer events, reading the processor's clock takes longer than the run.
    const SHORT: u64 = 1_000_000;
    let (mut messages, mut events, mut quickest, mut peak) = (0, 0, u64::MAX, 0);
    let (mut spent, mut spent_cpu, mut done) = (0, 0, 0);
    while done < runs || spent < ENOUGH && done < 10_000 {
        let taken = if floor { what.floor()? } else { what.simulate()? };
        if done == 0 {
            // Only the first run shows the peak: later ones start with the heap that earlier ones left.
            peak = peak_kilobytes();
            (messages, events) = (taken.messages, taken.events);
        } else if messages != taken.messages {
            return Err("two runs of one seed sent different numbers of messages".into());
        }
        quickest = quickest.min(taken.wall_nanos);
        spent += taken.wall_nanos;
        spent_cpu += taken.cpu_nanos;
        done += 1;
    }
    let messages_each = messages.max(1) as f64;
    let cpu = (quickest > SHORT).then(|| spent_cpu as f64 / f64::from(done) / messages_each);
    say(&json!({
        "messages": messages,
        "events": events,
        "wall": quickest as f64 / messages_each,
        "cpu": cpu,
        "peak_kb": peak,
    })
    .to_string())
}

/// Runs one side of `what` in a process of its own, so that its peak of memory is that of this side alone.
pub(crate) fn apart(what: What, floor: bool, runs: u32) -> Result<Best, String> {
    let program = std::env::current_exe().map_err(|e| format!("cannot find ourselves: {e}"))?;
    let side = if floor { "floor" } else { "sim" };
    let output = Command::new(program)
        .args(["run", &what.name(), side, &runs.to_string()])
        .output()
        .map_err(|e| format!("cannot run ourselves: {e}"))?;
    let failed =
        || format!("{} ({side}): {}", what.name(), String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        return Err(failed());
    }
    let row: Value = serde_json::from_slice(&output.stdout).map_err(|_| failed())?;
    let number = |key: &str| row[key].as_f64().ok_or_else(failed);
    Ok(Best {
        messages: number("messages")? as u64,
        events: number("events")? as u64,
        wall_nanos: number("wall")?,
        cpu_nanos: row["cpu"].as_f64(),
        peak_kilobytes: number("peak_kb")? as u64,
    })
}
