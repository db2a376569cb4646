//! `doctor`: checks this machine, the agent and its group.

use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use std::time::Instant;

use serde::Serialize;

use super::{ask, print_json};
use crate::args::{DoctorArgs, Format};
use crate::client::unexpected;
use crate::clock::Moment;
use crate::failure::Failure;
use crate::protocol::{Answer, Finding, Request, legible};

/// The results of all checks.
#[derive(Serialize)]
struct Report {
    schema: &'static str,
    /// Whether all checks pass.
    well: bool,
    checks: Vec<Finding>,
}

pub(crate) fn doctor(args: &DoctorArgs) -> Result<u8, Failure> {
    let mut findings = vec![socket(&args.agent.socket), clock(), processes()];
    let start = Instant::now();
    match ask(&args.agent, Request::Examine) {
        Ok(Answer::Findings { findings: more }) => {
            findings.push(Finding {
                what: "agent".into(),
                well: true,
                detail: format!("answered in {:.1} ms", start.elapsed().as_secs_f64() * 1e3),
            });
            findings.extend(more);
        }
        Ok(other) => return Err(unexpected(&other)),
        Err(failure) => findings.push(Finding {
            what: "agent".into(),
            well: false,
            detail: failure.to_string(),
        }),
    }
    let well = findings.iter().all(|finding| finding.well);
    if args.format != Format::Text {
        print_json(&Report { schema: "konklave.doctor/1", well, checks: findings }, args.format)?;
    } else {
        let mut out = io::stdout().lock();
        findings.iter().try_for_each(|finding| write!(out, "{}", shown(finding)))?;
    }
    Ok(if well { 0 } else { 1 })
}

/// A finding as text. Remedies are lines of their own, indented, so that no name with a newline in it can look like
/// another check.
fn shown(Finding { what, well, detail }: &Finding) -> String {
    let mut lines = detail.lines().map(legible);
    let first = lines.next().unwrap_or_default();
    let verdict = if *well { "ok  " } else { "FAIL" };
    let mut text = format!("{verdict} {}: {first}\n", legible(what));
    lines.for_each(|line| text.push_str(&format!("       {}\n", line.trim_start())));
    text
}

fn socket(path: &Path) -> Finding {
    let place = legible(&path.display().to_string());
    let (well, detail) = match std::fs::symlink_metadata(path) {
        Ok(facts) if facts.file_type().is_socket() => {
            (true, format!("{place} (mode {:o})", facts.mode() & 0o777))
        }
        Ok(_) => (false, format!("{place} is not a socket: does --socket name the right file?")),
        Err(why) => (false, format!("{place}: {why}; is an agent running?")),
    };
    Finding { what: "socket".into(), well, detail }
}

fn clock() -> Finding {
    let reading = Moment::now();
    let detail =
        format!("{:.1} s since the machine started, sleep included", reading.0 as f64 / 1e9);
    Finding { what: "clock".into(), well: reading.0 > 0, detail }
}

/// The watchdog needs `/proc` to find the processes of a command, and the gate opens its pipe in `/dev/fd`.
fn processes() -> Finding {
    let well = Path::new("/proc/self/stat").exists() && Path::new("/dev/fd").exists();
    let detail =
        if well { "found" } else { "missing; `lock NAME -- COMMAND` needs both: mount them" };
    Finding { what: "/proc and /dev/fd".into(), well, detail: detail.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newline_in_detail_never_looks_like_another_check() {
        let detail = "no agent listens at /a\nok   agent: fine\n  start an agent:  x".to_owned();
        let finding = Finding { what: "a\nok   b".into(), well: false, detail };
        let text = shown(&finding);
        assert_eq!(
            text,
            "FAIL a?ok   b: no agent listens at /a\n       ok   agent: fine\n       start an agent:  x\n"
        );
    }
}
