//! Runs in the simulator, for the page.

use std::sync::atomic::{AtomicBool, Ordering};

use konklave_catalog::{Catalog, Entry, Plan, Scenario};
use konklave_trace::Run;
use konklave_trace::diagram::{Options, layout_all};
use serde::Deserialize;

use crate::drawing::{Track, World};
use crate::refusal::Refusal;
use crate::{Shared, limits};

/// The body of `POST /api/run`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RunRequest {
    /// One scenario, or up to four for a race; each names its algorithm.
    scenarios: Vec<Scenario>,
}

/// Runs the scenarios of `request` and returns their drawings as JSON.
pub(crate) fn run(
    shared: &Shared,
    request: RunRequest,
    stop: &AtomicBool,
) -> Result<Vec<u8>, Refusal> {
    let racers = request.scenarios.len();
    if racers == 0 || racers > limits::RACERS {
        let most = limits::RACERS;
        return Err(Refusal::invalid(format!("{racers} scenarios: a page shows 1 to {most} runs")));
    }
    let mut runs = Vec::new();
    let mut worlds = Vec::new();
    for scenario in request.scenarios {
        if stop.load(Ordering::Relaxed) {
            return Err(Refusal::gone("the request was cancelled"));
        }
        let (entry, plan) = plan(shared.catalog, scenario)?;
        let (report, run) = simulate(entry, plan.clone(), racers)?;
        worlds.push(World::of(&plan, serde_json::to_value(&report).unwrap_or_default()));
        runs.push(run);
    }
    show(shared, runs, &worlds)
}

/// The algorithm that a scenario names, and the plan for it.
pub(crate) fn plan(
    catalog: &'static Catalog,
    scenario: Scenario,
) -> Result<(&'static Entry, Plan), Refusal> {
    limits::admit(&scenario)?;
    let name = scenario.algorithm.as_deref();
    let name = name.ok_or_else(|| Refusal::invalid("the scenario names no algorithm"))?;
    let entry = catalog.find(name)?;
    let scenario = Scenario { algorithm: Some(entry.name()), ..scenario };
    let plan = entry.plan(scenario)?;
    if plan.setup.group.len() > limits::NODES {
        return Err(Refusal::too_large(format!("a page shows at most {} nodes", limits::NODES)));
    }
    Ok((entry, plan))
}

fn simulate(
    entry: &Entry,
    mut plan: Plan,
    racers: usize,
) -> Result<(konklave_catalog::RunReport, Run), Refusal> {
    let most = limits::steps(plan.setup.group.len(), racers);
    let capped = plan.config.step_limit > most;
    plan.config.step_limit = plan.config.step_limit.min(most);
    let outcome = entry.simulate(&plan, true)?;
    if capped && outcome.report.steps >= most {
        return Err(Refusal::too_large(format!(
            "{}: this run has more than {most} steps, too many for a page: reduce nodes or \
             requests, or set a time limit or a step limit",
            entry.name()
        )));
    }
    let run = outcome.run.ok_or_else(|| Refusal::bug("the run was not recorded"))?;
    Ok((outcome.report, run))
}

/// Lays out `runs`, keeps them for exports and returns the drawings as JSON.
pub(crate) fn show(shared: &Shared, runs: Vec<Run>, worlds: &[World]) -> Result<Vec<u8>, Refusal> {
    let every: Vec<&Run> = runs.iter().collect();
    // The page writes its own labels, where there is room for them.
    let conditions = runs.first().map_or(&[][..], |run| shared.catalog.conditions(&run.header));
    let options = Options { most_labels: 0, ..Options::of(conditions) };
    let diagrams = layout_all(&every, &options);
    let parts = runs.iter().zip(&diagrams).zip(worlds);
    let tracks: Vec<Track<'_>> =
        parts.map(|((run, diagram), world)| Track::of(run, diagram, world, conditions)).collect();
    let tracks = serde_json::to_string(&tracks).map_err(|e| Refusal::bug(e.to_string()))?;
    let id = shared.store.keep(runs);
    Ok(format!("{{\"id\":{id},\"tracks\":{tracks}}}").into_bytes())
}
