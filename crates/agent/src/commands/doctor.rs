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
    if args.format == Format::Json {
        print_json(&Report { schema: "konklave.doctor/1", well, checks: findings })?;
    } else {
        let mut out = io::stdout().lock();
        for Finding { what, well, detail } in findings {
            let detail = legible(&detail);
            writeln!(out, "{} {what}: {detail}", if well { "ok  " } else { "FAIL" })?;
        }
    }
    Ok(if well { 0 } else { 1 })
}

fn socket(path: &Path) -> Finding {
    let (well, detail) = match std::fs::symlink_metadata(path) {
        Ok(facts) if facts.file_type().is_socket() => {
            (true, format!("{} (mode {:o})", path.display(), facts.mode() & 0o777))
        }
        Ok(_) => (
            false,
            format!("{} is not a socket: does --socket name the right file?", path.display()),
        ),
        Err(why) => (false, format!("{}: {why}; is an agent running?", path.display())),
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
