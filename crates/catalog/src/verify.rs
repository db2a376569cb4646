//! Replay: compares a recording with a run from its own header.
//!
//! A simulated run is repeated from its header and must be the same, entry by entry. A run of a real world
//! cannot be repeated. Its processes repeat their steps, the world is [audited](Audit), and clients and
//! monitors get every event once more, so that the run is judged again.

mod replay_judge;

use konklave_trace::{
    Audit, Difference, Entry as RunEntry, Footer, Header, IncidentKind, Place, Replayed, Replayer,
    Run,
};
use serde_json::Value;

use self::replay_judge::ReplayJudge;
use crate::real::REAL_WORLDS;
use crate::{Entry, Plan, header, simulate};

/// Verifies `run`, which was made from `plan`.
pub(crate) fn verify(entry: &Entry, plan: &Plan, run: &Run) -> Result<Replayed, Difference> {
    // A recording without scenario may come from another program; its header proves nothing.
    let ours = !run.header.scenario.is_null();
    if ours && let Some(difference) = wrong_header(&run.header, header(entry, plan, "sim")) {
        return Err(difference);
    }
    let world = &*run.header.world;
    if ours && world == "sim" {
        if let Some(difference) = simulate::compare(entry, plan, run) {
            return Err(difference);
        }
        let processes = entry.algorithm.processes(&plan.setup);
        return konklave_trace::replay(run, processes, &plan.setup.group).map_err(Into::into);
    }
    let mut audit = Audit::new(&run.header);
    let mut replayer = Replayer::new(entry.algorithm.processes(&plan.setup), &plan.setup.group);
    let mut judge = (ours && world != "check").then(|| ReplayJudge::new(entry, plan));
    for (i, line) in run.entries.iter().enumerate() {
        audit.entry(line)?;
        if let Some(judge) = &mut judge {
            judge.before(i, line)?;
        }
        replayer.entry(line)?;
        if let Some(judge) = &mut judge {
            judge.after(line, &replayer);
        }
    }
    match (&mut judge, &run.footer) {
        (Some(judge), footer) => judge.close(plan, run, footer.as_ref(), &audit, &replayer)?,
        (None, Some(footer)) => witness_ends(run, footer)?,
        (None, None) => {}
    }
    Ok(replayer.replayed())
}

/// The difference of a header from the expected one; `simulated` is the header of a simulation of the plan.
fn wrong_header(recorded: &Header, simulated: Header) -> Option<Difference> {
    let expected = match &*recorded.world {
        "sim" => simulated,
        // The command has options of the search, which the scenario does not hold.
        "check" => {
            let (world, unit, time) = ("check".into(), 1.0, "steps".into());
            Header { world, unit, time, command: recorded.command.clone(), ..simulated }
        }
        // The length of T was chosen on the command line.
        world if REAL_WORLDS.contains(&world) => {
            Header { world: world.into(), unit: recorded.unit, ..simulated }
        }
        other => {
            return Some(Difference {
                place: Place::Header,
                what: "`world` differs".into(),
                recorded: other.to_owned(),
                expected: "sim, check, threads, tcp, udp or multicast".into(),
            });
        }
    };
    Difference::of_headers(recorded, &expected)
}

/// Checks that the end of a witness repeats its last entry.
fn witness_ends(run: &Run, footer: &Footer) -> Result<(), Difference> {
    let broken = run.entries.iter().enumerate().find_map(|(i, entry)| match entry {
        RunEntry::Incident(incident) => match &incident.kind {
            IncidentKind::Violation { property, detail } => Some((i, property, detail)),
            _ => None,
        },
        RunEntry::Step(_) => None,
    });
    let wrong = |place, what: &str, recorded: String, expected: String| {
        Err(Difference { place, what: what.into(), recorded, expected })
    };
    let verdict = if broken.is_some() { "violated" } else { "ok" };
    if footer.verdict != verdict && run.header.world == "check" {
        return wrong(Place::End, "`end` differs", footer.verdict.clone(), verdict.into());
    }
    let Some((i, property, detail)) = broken else { return Ok(()) };
    if i + 1 != run.entries.len() && run.header.world == "check" {
        let (recorded, expected) = ("a further entry".into(), "the end".into());
        return wrong(
            Place::Entry(i + 1),
            "the witness goes on after the violation",
            recorded,
            expected,
        );
    }
    for (name, said) in [("property", property), ("detail", detail)] {
        if let Some(known) = footer.summary.get(name).and_then(Value::as_str)
            && known != said
        {
            let what = format!("`{name}` differs from that of the last entry");
            return wrong(Place::Entry(i), &what, said.clone(), known.to_owned());
        }
    }
    Ok(())
}
