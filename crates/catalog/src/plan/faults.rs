//! The faults of a scenario, checked against its group.

use konklave_algorithms::Setup;
use konklave_process::ProcessId;
use konklave_sim::{Fault, What};

use super::group::some;
use super::usage;
use crate::{Error, Scenario};

/// The faults to inject, first the crashes of the nodes that are down from the start.
pub(super) fn faults(scenario: &Scenario, setup: &Setup) -> Result<Vec<Fault>, Error> {
    let mut faults = Vec::new();
    if setup.down.len() == setup.group.len() {
        return usage("--down: at least one node must be up");
    }
    for p in &setup.down {
        faults.push(Fault {
            what: What::Crash(*p),
            when: konklave_sim::When::Time(0.0),
            until: None,
        });
    }
    for text in &scenario.faults {
        let fault: Fault = text.parse().map_err(|e| Error::Usage(format!("--fault {e}")))?;
        if let Some(stranger) = fault.nodes().into_iter().find(|p| !setup.group.contains(*p)) {
            let members = some(&setup.group);
            return usage(format!(
                "--fault {text}: {stranger} is not a member of the group; members are {members}"
            ));
        }
        if let Some(why) = impossible(&fault, setup) {
            return usage(format!("--fault {text}: {why}"));
        }
        faults.push(fault);
    }
    if let Some(restart) = faults.iter().find(|fault| restarts_live_node(fault, &faults)) {
        return usage(format!("--fault {restart}: no fault crashes this node before"));
    }
    Ok(faults)
}

/// The time after which crashes are reported; none: never.
pub(super) fn detect_after(scenario: &Scenario) -> Result<Option<f64>, Error> {
    match scenario.detect_after.as_deref() {
        None => Ok(Some(3.0)),
        Some("never") => Ok(None),
        Some(text) => match text.trim_end_matches('T').parse::<f64>() {
            Ok(t) if (0.0..1e9).contains(&t) => Ok(Some(t)),
            _ => usage(format!("--detect-after {text}: expected a time in T, or `never`")),
        },
    }
}

/// Why a fault is impossible in this group, if it is.
fn impossible(fault: &Fault, setup: &Setup) -> Option<String> {
    match &fault.what {
        What::Cut(from, to) if from == to => Some(format!("{from} has no channel to itself")),
        What::Break(one, other) if !are_linked(*one, *other, setup) => {
            Some(format!("{one} has no link to {other}"))
        }
        What::Partition(sides) => {
            let mut all: Vec<ProcessId> = sides.iter().flatten().copied().collect();
            all.sort_unstable();
            let twice = all.windows(2).find(|pair| pair[0] == pair[1])?;
            Some(format!("{} stands on two sides of the partition", twice[0]))
        }
        _ => None,
    }
}

/// Whether the topology links two processes, in either direction.
fn are_linked(one: ProcessId, other: ProcessId, setup: &Setup) -> bool {
    let [one, other] = [one, other].map(|p| setup.place(p));
    let leads = |from: usize, to: usize| setup.topology.adjacent(from).any(|p| p == to);
    one != other && (leads(one, other) || leads(other, one))
}

/// Whether this fault restarts a node that no earlier fault crashes.
fn restarts_live_node(fault: &Fault, faults: &[Fault]) -> bool {
    let What::Restart(p, _) = fault.what else { return false };
    !faults.iter().any(|other| {
        let before = match (other.when, fault.when) {
            (konklave_sim::When::Time(a), konklave_sim::When::Time(b)) => a <= b,
            (konklave_sim::When::Step(a), konklave_sim::When::Step(b)) => a <= b,
            // Times and steps cannot be compared before the run.
            _ => true,
        };
        matches!(other.what, What::Crash(q) if q == p) && before
    })
}
