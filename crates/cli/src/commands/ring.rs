//! `ring`: the project report's program.

use std::io;
use std::time::Duration;

use konklave_catalog::{Entry, Error, RealWorld, RunReport, Scenario, Transport, Verdict, find};
use konklave_process::topology::Shape;
use konklave_ring::{Held, Place, RingError, Round, Stop, run, run_elsewhere};

use crate::Done;
use crate::args::RingArgs;
use crate::failure::Failure;

static STOP: Stop = Stop::new();

pub(crate) fn ring(args: &RingArgs) -> Done {
    ctrlc::set_handler(|| STOP.signal())
        .map_err(|e| Failure::Other(format!("cannot catch interrupts: {e}"), 69))?;
    let (mut out, mut err) = (io::stdout(), io::stderr());
    let outcome = if args.simulate || args.tcp || args.algorithm.is_some() {
        let entry = algorithm(args.algorithm.as_deref())?;
        let mut hold = |round: &Round| hold(entry, args, round);
        let place = Place { hold: &mut hold, real: !args.simulate };
        run_elsewhere(&args.flags, place, &mut out, &mut err, &STOP)
    } else {
        run(&args.flags, &mut out, &mut err, &STOP)
    };
    let outcome = outcome.map_err(|error| Failure::Other(error.to_string(), error.exit_code()))?;
    Ok(outcome.exit_code())
}

fn algorithm(name: Option<&str>) -> Result<&'static Entry, Error> {
    let entry = find(name.unwrap_or("chang-roberts"))?;
    if entry.problem != "election" {
        return Err(Error::Usage(format!(
            "--algorithm {}: it is for {}; a ring elects (`konklave list election`)",
            entry.sheet.name, entry.problem
        )));
    }
    Ok(entry)
}

/// Holds one election in the catalog's worlds.
fn hold(entry: &'static Entry, args: &RingArgs, round: &Round) -> Result<Held, RingError> {
    let wrong = |error: Error| RingError::Usage(error.to_string());
    let ids: Vec<_> = round.ids.iter().map(u32::to_string).collect();
    let made_for_rings =
        matches!(entry.sheet.topologies.first(), Some(Shape::DirectedRing | Shape::Ring));
    let plan = entry
        .plan(Scenario {
            algorithm: Some(entry.name()),
            nodes: Some(ids.len()),
            topology: (!made_for_rings).then(|| "ring".into()),
            ids: Some(ids.join(",")),
            initiators: Some(round.initiator.to_string()),
            seed: Some(round.seed),
            ..Scenario::default()
        })
        .map_err(wrong)?;
    let report = if args.simulate {
        entry.simulate(&plan, false)
    } else {
        let transport = if args.tcp { Transport::Tcp } else { Transport::Threads };
        entry.serve(&plan, RealWorld { transport, unit: round.unit }, false)
    };
    Ok(held(&report.map_err(wrong)?.report, round.unit))
}

fn held(report: &RunReport, unit: Duration) -> Held {
    let told = |key: &str| report.problem.get("election").and_then(|told| told.get(key)?.as_f64());
    Held {
        leader: told("leader").map(|id| id as u32),
        messages: report.messages.sent,
        duration: unit.mul_f64(told("time_to_all").unwrap_or(report.time)),
        verdict: match report.verdict {
            Verdict::Ok => konklave_ring::Verdict::Ok,
            Verdict::Violated => konklave_ring::Verdict::Violated,
            Verdict::Stuck | Verdict::Unfinished => konklave_ring::Verdict::Unfinished,
        },
    }
}
