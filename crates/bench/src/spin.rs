//! SPIN on the same model, where it is installed: generated, compiled, run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The result of a run of SPIN: states, time and memory.
pub(crate) struct Spun {
    pub(crate) states: u64,
    /// Without the transition that SPIN counts for the initial state.
    pub(crate) transitions: u64,
    pub(crate) cpu_seconds: f64,
    /// The memory for all states, as SPIN reports it.
    pub(crate) megabytes: f64,
}

/// The form of the model for SPIN.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// The usual form, and the one in which the peers were measured: a process for each node, a channel for each
    /// inbox.
    Channels,
    /// The cheapest form for SPIN that we know: one process, with a byte and a bit in place of each channel.
    Bytes,
}

impl Form {
    pub(crate) const ALL: [Self; 2] = [Self::Channels, Self::Bytes];

    fn model(self) -> &'static str {
        match self {
            Self::Channels => include_str!("../models/mc_channels.pml"),
            Self::Bytes => include_str!("../models/mc.pml"),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Channels => "channels",
            Self::Bytes => "bytes",
        }
    }
}

/// Whether SPIN and a C compiler are installed.
pub(crate) fn is_installed() -> bool {
    let answers = |program: &str, asked: &str| Command::new(program).arg(asked).output().is_ok();
    answers("spin", "-V") && answers("gcc", "--version")
}

/// Exhausts MC(n, k) with an unordered network: every step, none left out.
pub(crate) fn exhaust(n: u8, k: u8, form: Form) -> Result<Spun, String> {
    let folder = Folder::new()?;
    fs::write(folder.0.join("mc.pml"), form.model())
        .map_err(|e| format!("cannot write the model for SPIN: {e}"))?;
    let (nodes, requests) = (format!("-DN={n}"), format!("-DK={k}"));
    said(&folder.0, "spin", &["-a", &nodes, &requests, "mc.pml"])?;
    said(&folder.0, "gcc", &["-O2", "-DSAFETY", "-DNOREDUCE", "-o", "pan", "pan.c"])?;
    // `times` of the shell prints the processor time of its child.
    let out = said(&folder.0, "sh", &["-c", "./pan -m100000 -w24 && times"])?;
    let number = |label: &str| {
        let line = out.lines().find(|line| line.contains(label));
        let word = line.and_then(|line| line.split_whitespace().next());
        let found = word.and_then(|word| word.parse::<f64>().ok());
        found.ok_or_else(|| format!("SPIN does not say how many `{label}`: {out}"))
    };
    if !out.contains("errors: 0") {
        return Err(format!("SPIN finds an error in MC({n},{k}): {out}"));
    }
    let children = out.lines().last().unwrap_or_default();
    let cpu = children.split_whitespace().map(seconds).sum::<Option<f64>>();
    Ok(Spun {
        states: number("states, stored")? as u64,
        transitions: number("transitions (= stored+matched)")? as u64 - 1,
        cpu_seconds: cpu.ok_or_else(|| format!("the shell says no times: {children}"))?,
        megabytes: number("actual memory usage for states")?,
    })
}

/// `0m4.63s` in seconds.
fn seconds(time: &str) -> Option<f64> {
    let (minutes, seconds) = time.strip_suffix('s')?.split_once('m')?;
    Some(60.0 * minutes.parse::<f64>().ok()? + seconds.parse::<f64>().ok()?)
}

fn said(folder: &Path, program: &str, args: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(args)
        .current_dir(folder)
        .output()
        .map_err(|e| format!("cannot run {program}: {e}"))?;
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() {
        return Ok(out);
    }
    Err(format!("{program} {args:?}: {out}{}", String::from_utf8_lossy(&output.stderr)))
}

/// A folder that is removed when it is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self, String> {
        let path = std::env::temp_dir().join(format!("konklave-spin-{}", std::process::id()));
        fs::create_dir_all(&path).map_err(|e| format!("cannot make {}: {e}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
