//! The requests of a scenario.

use std::path::Path;

use konklave_algorithms::{Setup, Workload};
use konklave_process::{Group, ProcessId, ProcessSet, Rng};

use super::group::{id, list, some};
use super::load::{trace, weights};
use super::usage;
use crate::{Error, Scenario, read_text};

/// The times of requests.
pub(super) fn script(
    scenario: &mut Scenario,
    group: &Group,
) -> Result<Vec<(ProcessId, f64)>, Error> {
    if let Some(file) = scenario.script.take_if(|text| !text.is_empty() && !text.contains('@')) {
        if !Path::new(&file).exists() {
            return usage(format!(
                "--script {file}: neither requests of the form NODE@TIME, as in 2@3.5, nor a file"
            ));
        }
        // A recording must not depend on a file that may change, so it has the times themselves.
        scenario.script = Some(trace(&read_text(Path::new(&file))?, &file)?);
    }
    let mut script = Vec::new();
    for word in scenario.script.iter().flat_map(|s| s.split(',')) {
        let wrong = || {
            Error::Usage(format!("--script: `{word}` is not of the form NODE@TIME, as in 2@3.5"))
        };
        let (node, time) = word.trim().split_once('@').ok_or_else(wrong)?;
        let p = id(node, "script")?;
        if !group.contains(p) {
            return usage(format!(
                "--script: {p} is not a member of the group; members are {}",
                some(group)
            ));
        }
        let time = time.trim_end_matches('T').parse::<f64>().ok();
        script.push((p, time.filter(|t| (0.0..1e12).contains(t)).ok_or_else(wrong)?));
    }
    Ok(script)
}

pub(super) fn workload(
    scenario: &Scenario,
    setup: &Setup,
    script: &[(ProcessId, f64)],
    rng: &Rng,
) -> Result<Workload, Error> {
    let group = &setup.group;
    if !script.is_empty() {
        return scripted(scenario, group, script);
    }
    let initiators = initiators(scenario, setup, rng)?;
    let starters: ProcessSet = initiators.iter().copied().collect();
    let requests = match (&scenario.requests, scenario.entries) {
        (Some(_), Some(_)) => return usage("--requests and --entries cannot be combined"),
        (Some(text), None) => numbers_of_requests(text, group)?,
        (None, entries) => {
            // A node that is no initiator makes no requests, whatever the problem is.
            let asks = |p: &ProcessId| scenario.initiators.is_none() || starters.contains(*p);
            let times = entries.unwrap_or(1);
            let even: Vec<u32> =
                group.members().iter().map(|p| if asks(p) { times } else { 0 }).collect();
            let weights = weights(scenario.skew, &even);
            let skewed = |(k, w): (&u32, &f64)| (f64::from(*k) * w).round().max(1.0) as u32;
            match times == 0 || weights.is_empty() {
                true => even,
                false => {
                    let each = even.iter().zip(&weights);
                    each.map(|(k, w)| if *k > 0 { skewed((k, w)) } else { 0 }).collect()
                }
            }
        }
    };
    let times = |p: &ProcessId| group.place(*p).map_or(0, |place| requests[place]);
    if let (Some(_), Some(_)) = (&scenario.initiators, &scenario.requests)
        && let Some(p) = group.members().iter().find(|p| times(p) > 0 && !starters.contains(**p))
    {
        let times = times(p);
        return usage(format!(
            "--requests lets {p} make {times} request{}, but --initiators does not name it",
            if times == 1 { "" } else { "s" }
        ));
    }
    let initiators = initiators.into_iter().filter(|p| times(p) > 0).collect();
    Ok(Workload { initiators, requests })
}

/// The requests of a script.
fn scripted(
    scenario: &Scenario,
    group: &Group,
    script: &[(ProcessId, f64)],
) -> Result<Workload, Error> {
    let given = [
        ("initiators", scenario.initiators.is_some()),
        ("requests", scenario.requests.is_some()),
        ("entries", scenario.entries.is_some()),
    ];
    if let Some((option, _)) = given.iter().find(|(_, given)| *given) {
        return usage(format!("--script and --{option} cannot be combined"));
    }
    let times = |p: &ProcessId| script.iter().filter(|(q, _)| q == p).count() as u32;
    let asks = |p: &ProcessId| times(p) > 0;
    Ok(Workload {
        initiators: group.members().iter().copied().filter(asks).collect(),
        requests: group.members().iter().map(times).collect(),
    })
}

/// The value of `--initiators`: a list, or a random choice of so many nodes; without it, all nodes that are up.
fn initiators(scenario: &Scenario, setup: &Setup, rng: &Rng) -> Result<Vec<ProcessId>, Error> {
    let group = &setup.group;
    let up = |p: &ProcessId| !setup.down.contains(p);
    match scenario.initiators.as_deref() {
        None | Some("all") => Ok(group.members().iter().copied().filter(up).collect()),
        Some(text) => match text.strip_suffix('x').map(str::parse::<usize>) {
            Some(Ok(k)) if k <= group.len() => {
                let mut members = group.members().to_vec();
                rng.fork(3).shuffle(&mut members);
                members.truncate(k);
                Ok(members)
            }
            Some(_) => {
                let n = group.len();
                usage(format!("--initiators {text}: the group has only {n} nodes"))
            }
            None => list(&scenario.initiators, "initiators", group),
        },
    }
}

/// The value of `--requests`: a number for each node.
fn numbers_of_requests(text: &str, group: &Group) -> Result<Vec<u32>, Error> {
    let number = |word: &str| {
        let wrong =
            || format!("--requests: `{word}` is not a number; expected a list, as in 2,1,0");
        word.trim().parse::<u32>().map_err(|_| Error::Usage(wrong()))
    };
    let requests = text.split(',').map(number).collect::<Result<Vec<_>, _>>()?;
    if requests.len() != group.len() {
        let (k, n) = (requests.len(), group.len());
        return usage(format!("--requests has {k} numbers, but the group has {n} nodes"));
    }
    Ok(requests)
}
