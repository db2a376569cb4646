//! The group of a scenario and its topology.

use std::path::Path;

use konklave_algorithms::DataSheet;
use konklave_process::topology::{Shape, Spec, Topology};
use konklave_process::{Group, MAX_ID, ProcessId, Rng};

use super::{DEFAULT_NODES, usage};
use crate::arrangements::EVERY;
use crate::{Error, Scenario, read_text};

pub(super) fn topology(
    sheet: &DataSheet,
    scenario: &Scenario,
    rng: &Rng,
) -> Result<(Topology, Option<Vec<ProcessId>>), Error> {
    let listed = match &scenario.ids {
        Some(ids) if ids.contains(',') => Some(ids.split(',').count()),
        _ => None,
    };
    if scenario.nodes == Some(0) {
        return usage("--nodes 0: a group needs at least one node");
    }
    if let (Some(n), Some(listed)) = (scenario.nodes, listed)
        && n != listed
    {
        return usage(format!("--ids names {listed} nodes, but --nodes is {n}"));
    }
    let spec = match &scenario.topology {
        None => Spec::default_for(sheet.topologies[0]),
        Some(text) => text.parse().map_err(|e| Error::Usage(format!("--topology: {e}")))?,
    };
    let from_file = matches!(spec, Spec::File(_));
    let n = scenario.nodes.or(listed).unwrap_or(if from_file { 0 } else { DEFAULT_NODES });
    if n > MAX_ID as usize + 1 {
        return usage(format!("--nodes {n}: the most is 2^24 nodes"));
    }
    let mut unread = None;
    let parsed = spec.build(n, &rng.fork(1), |file| {
        read_text(Path::new(file)).map_err(|error| {
            unread = Some(error);
            std::io::ErrorKind::Other.into()
        })
    });
    if let Some(error) = unread {
        return Err(error);
    }
    let option = scenario.topology.as_ref().map_or(String::new(), |t| format!("--topology {t}: "));
    let parsed = parsed.map_err(|e| {
        if from_file { Error::Data(e.to_string()) } else { Error::Usage(format!("{option}{e}")) }
    })?;
    let topology = parsed.topology;
    if !sheet.topologies.iter().any(|&shape| topology.fits(shape)) {
        let shapes: Vec<String> = sheet.topologies.iter().map(Shape::to_string).collect();
        return usage(format!(
            "{option}{} cannot run on {}: it needs a {}",
            sheet.name,
            topology.name,
            shapes.join(" or a ")
        ));
    }
    Ok((topology, parsed.ids))
}

pub(super) fn group(
    scenario: &Scenario,
    n: usize,
    file_ids: Option<Vec<ProcessId>>,
    rng: &Rng,
) -> Result<Group, Error> {
    let given = scenario.ids.as_deref();
    if let (Some(ids), Some(_)) = (given, &file_ids) {
        return usage(format!("--ids {ids}: the topology file already names the ids"));
    }
    let ascending = || (0..n as u32).map(ProcessId);
    let ids = match (given, file_ids) {
        (_, Some(ids)) => ids,
        (None | Some("asc" | "ascending"), None) => ascending().collect(),
        (Some("desc" | "descending"), None) => ascending().rev().collect(),
        (Some("random"), None) => {
            let mut ids: Vec<ProcessId> = ascending().collect();
            rng.fork(2).shuffle(&mut ids);
            ids
        }
        (Some(EVERY), None) => {
            return usage(format!(
                "--ids {EVERY} works only with `check`, which explores each arrangement in turn"
            ));
        }
        (Some(text), None) => {
            let ids = text.split(',').map(|word| id(word, "ids")).collect::<Result<Vec<_>, _>>()?;
            if ids.len() != n {
                return usage(format!("--ids names {} nodes, but the group has {n}", ids.len()));
            }
            ids
        }
    };
    Group::new(ids).map_err(|e| Error::Usage(format!("--ids: {e}")))
}

pub(super) fn id(word: &str, option: &str) -> Result<ProcessId, Error> {
    let word = word.trim();
    let digits = word.trim_start_matches('p');
    match digits.parse() {
        Ok(id) if id <= MAX_ID => Ok(ProcessId(id)),
        _ if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            usage(format!("--{option}: id {word} is too large; ids are numbers from 0 to {MAX_ID}"))
        }
        _ => usage(format!("--{option}: `{word}` is not an id; ids are numbers, as in 3,1,2")),
    }
}

pub(super) fn list(
    text: &Option<String>,
    option: &str,
    group: &Group,
) -> Result<Vec<ProcessId>, Error> {
    let Some(text) = text.as_deref().filter(|t| !t.trim().is_empty()) else {
        return Ok(Vec::new());
    };
    let mut members = Vec::new();
    for word in text.split(',') {
        let p = id(word, option)?;
        if !group.contains(p) {
            return usage(format!(
                "--{option}: {p} is not a member of the group; members are {}",
                some(group)
            ));
        }
        if !members.contains(&p) {
            members.push(p);
        }
    }
    Ok(members)
}

/// The members, or the first of many.
pub(super) fn some(group: &Group) -> String {
    let shown: Vec<String> = group.members().iter().take(12).map(|p| p.0.to_string()).collect();
    let more = if group.len() > 12 { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}
