//! `ring`: the project report's program.

use std::io;
use std::time::Duration;

use konklave_catalog::{
    Catalog, Entry, Error, Plan, RealWorld, RunReport, Scenario, Transport, Verdict, program,
};
use konklave_process::topology::Shape;
use konklave_ring::{
    External, ExternalElection, ExternalResult, Flags, Options, RingError, Stop, World, run,
    run_external,
};

use crate::Done;
use crate::args::RingArgs;
use crate::failure::Failure;
use crate::interrupt;

static STOP: Stop = Stop::new();

pub(crate) fn ring(catalog: &'static Catalog, args: &RingArgs) -> Done {
    interrupt::on_signal(|| STOP.signal())?;
    let (mut out, mut err) = (io::stdout(), io::stderr());
    let failed = |error: RingError| Failure::Other(error.to_string(), error.exit_code());
    let options = Options::resolve(&args.flags).map_err(failed)?;
    let outcome = match &options.external {
        Some(External { algorithm: name, world }) => {
            let entry = algorithm(catalog, name)?;
            // An impossible election is refused before the first line of output.
            plan(entry, &options.ids(), options.ids()[0], 0).map_err(failed)?;
            let mut hold = |round: &ExternalElection| hold(entry, *world, round);
            // The program must start with the same random ids and seed.
            let flags =
                Flags { ids: Some(options.ids()), seed: Some(options.seed), ..args.flags.clone() };
            run_external(&flags, &mut hold, &mut out, &mut err, &STOP)
        }
        None => run(&args.flags, &mut out, &mut err, &STOP),
    };
    let outcome = outcome.map_err(failed)?;
    Ok(outcome.exit_code())
}

fn algorithm<'a>(catalog: &'a Catalog, name: &str) -> Result<&'a Entry, Error> {
    let entry = catalog.find(name)?;
    if *entry.problem != konklave_algorithms::election::SHEET {
        return Err(Error::Usage(format!(
            "--algorithm {}: solves {}, not election (see `{} list election`)",
            entry.sheet.name,
            entry.problem,
            program()
        )));
    }
    Ok(entry)
}

/// The plan of one election.
fn plan(entry: &Entry, ids: &[u32], initiator: u32, seed: u64) -> Result<Plan, RingError> {
    let made_for_rings =
        matches!(entry.sheet.topologies.first(), Some(Shape::DirectedRing | Shape::Ring));
    let listed: Vec<_> = ids.iter().map(u32::to_string).collect();
    let scenario = Scenario {
        algorithm: Some(entry.name()),
        nodes: Some(ids.len()),
        topology: (!made_for_rings).then(|| "ring".into()),
        ids: Some(listed.join(",")),
        initiators: Some(initiator.to_string()),
        seed: Some(seed),
        ..Scenario::default()
    };
    entry.plan(scenario).map_err(|error| RingError::Usage(error.to_string()))
}

/// Holds one election in the catalog's worlds.
fn hold(
    entry: &Entry,
    world: World,
    round: &ExternalElection,
) -> Result<ExternalResult, RingError> {
    let plan = plan(entry, &round.ids, round.initiator, round.seed)?;
    let real = |transport| RealWorld { transport, unit: round.unit };
    let outcome = match world {
        World::Simulated => entry.simulate(&plan, false),
        World::Tasks => entry.run_on_network(&plan, real(Transport::Threads), false),
        World::Tcp => entry.run_on_network(&plan, real(Transport::Tcp), false),
    };
    let outcome = outcome.map_err(|error| RingError::Usage(error.to_string()))?;
    Ok(held(&outcome.report, round.unit))
}

fn held(report: &RunReport, unit: Duration) -> ExternalResult {
    let told = |key: &str| report.problem.get("election").and_then(|told| told.get(key)?.as_f64());
    ExternalResult {
        leader: told("leader").map(|id| id as u32),
        messages: report.messages.sent,
        duration: unit.mul_f64(told("time_to_all").unwrap_or(report.time)),
        verdict: match report.verdict {
            Verdict::Ok => konklave_ring::Verdict::Ok,
            Verdict::Violated => konklave_ring::Verdict::Violated,
            Verdict::Stuck | Verdict::Unfinished | Verdict::Loop => {
                konklave_ring::Verdict::Unfinished
            }
        },
    }
}
