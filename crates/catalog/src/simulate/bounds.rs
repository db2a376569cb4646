//! Compares measured costs with the formulas of the data sheet.

use konklave_algorithms::{Bound, Cost, Metric};
use konklave_process::AnyMeter;

use super::{RunFacts, unending};
use crate::disturbances::Disturbances;
use crate::report::{BoundReport, ViolationReport};
use crate::{Entry, Plan};

/// Every cost of the data sheet beside its measured value.
pub(super) fn bounds(
    entry: &Entry,
    plan: &Plan,
    run: &RunFacts,
    meter: &AnyMeter,
) -> Vec<BoundReport> {
    let served = entry.algorithm.served(meter);
    let disturbances = Disturbances::new(&plan.config, &plan.setup.down, &run.struck);
    let mut facts = plan.facts(&served, &disturbances);
    facts.elapsed = run.now as f64 / run.unit;
    if is_real(run) {
        // In real worlds the delay of messages is unknown, so T has no exact length.
        facts.delay_max = None;
    }
    let beyond = beyond_formulas(entry, plan, run, &disturbances);
    // Real processes never start at one moment. A process that receives an election message before its own start
    // starts no election, so exact formulas for several initiators do not apply.
    let apart =
        entry.problem.one_shot && facts.initiators.len() > 1 && (is_real(run) || !facts.at_once);
    let compare = |cost: &Cost| {
        let measured = measured(entry, cost.metric, run, facts.entries(), meter);
        let bound = if beyond.is_none() { (cost.bound)(&facts) } else { None };
        let (bound, why) = match (bound, measured) {
            (Some(bound), _)
                if apart && (bound.least().is_some() || cost.metric == Metric::Time) =>
            {
                (None, Some("the initiators do not start at the same time".to_owned()))
            }
            (Some(bound), Some(x)) if !bound.holds(x) => match excuse(cost, run) {
                Some(why) => (None, Some(why)),
                None => (Some(bound), None),
            },
            (Some(bound), Some(_)) => (Some(bound), None),
            (Some(bound), None) => (Some(bound), Some("no figure was measured".to_owned())),
            (None, _) => {
                let why = beyond.clone().unwrap_or_else(|| format!("only if {}", cost.when));
                (None, Some(why))
            }
        };
        bound_report(cost, bound, measured, why)
    };
    entry.sheet.costs.iter().map(compare).collect()
}

/// The condition that all formulas have in common: the reason if the run does not meet it.
///
/// Formulas speak of one election, of runs that came to their end (or have none, in a world with a clock to
/// count by), of messages that arrive once, of runs that nothing disturbs, and of requests that are served.
fn beyond_formulas(
    entry: &Entry,
    plan: &Plan,
    run: &RunFacts,
    disturbances: &Disturbances<'_>,
) -> Option<String> {
    let once = !entry.problem.one_shot
        || plan.workload.requests.iter().all(|&r| r <= 1) && plan.config.script.len() <= 1;
    if unending(entry, plan, run) || (run.cut_off && is_real(run)) {
        Some("the run was cut off".to_owned())
    } else if !once {
        Some("it holds for one election".to_owned())
    } else if run.messages.duplicated > 0 {
        Some("messages arrived twice".to_owned())
    } else if !plan.regular || !plan.broken.is_empty() {
        Some("an assumption of the algorithm does not hold".to_owned())
    } else if let Some(cause) = disturbances.cause() {
        Some(format!("it holds for runs without faults, and {cause}"))
    } else if !run.cut_off && !run.waiting.is_empty() {
        Some("a client waits for ever".to_owned())
    } else {
        None
    }
}

/// The figure of a run for `metric`.
fn measured(
    entry: &Entry,
    metric: Metric,
    run: &RunFacts,
    entries: f64,
    meter: &AnyMeter,
) -> Option<f64> {
    let sent = run.messages.sent as f64;
    match metric {
        Metric::Messages => Some(sent),
        Metric::MessagesPerEntry => (entries > 0.0).then(|| sent / entries),
        Metric::SyncDelay
        | Metric::EntryDelay
        | Metric::Time
        | Metric::Delivery
        | Metric::Other(_) => entry.algorithm.measured(meter, metric, run.unit),
    }
}

fn bound_report(
    cost: &Cost,
    bound: Option<Bound>,
    measured: Option<f64>,
    why: Option<String>,
) -> BoundReport {
    BoundReport {
        metric: cost.metric,
        formula: cost.formula.into(),
        when: cost.when.into(),
        limit: bound.map(Bound::limit),
        least: bound.and_then(Bound::least),
        exact: matches!(bound, Some(Bound::Exactly(_))),
        measured,
        holds: bound.zip(measured).map(|(bound, measured)| bound.holds(measured)),
        why,
    }
}

fn is_real(run: &RunFacts) -> bool {
    run.world != "sim"
}

/// Why a bound that is not kept in the real world says nothing against the algorithm: time had a part
/// in it, of which nobody promises anything there, or the network lost something.
fn excuse(cost: &Cost, run: &RunFacts) -> Option<String> {
    if !is_real(run) {
        return None;
    }
    let counted = matches!(cost.metric, Metric::Messages | Metric::MessagesPerEntry);
    let datagrams = !matches!(run.world, "threads" | "tcp");
    if !counted {
        Some("the delay of real messages is not known".into())
    } else if run.timers > 0 {
        Some("timers fired, and the delay of real messages is not known".into())
    } else if datagrams && run.messages.lost > 0 {
        Some("datagrams were lost".into())
    } else {
        None
    }
}

/// A bound that is not kept is a violation, where everything held that the algorithm assumes.
pub(super) fn broken(bound: &BoundReport, at: f64) -> Option<ViolationReport> {
    let (measured, limit) = (bound.measured?, bound.limit?);
    if bound.holds != Some(false) {
        return None;
    }
    let formula = &bound.formula;
    let should = match bound.least {
        Some(least) if least == limit => format!("should be {formula} = {limit}"),
        Some(least) => format!("should be {formula}, {least} to {limit}"),
        None => format!("should be at most {formula} = {limit}"),
    };
    let detail = format!("{} {should}, but {measured} was measured", bound.name());
    Some(ViolationReport { property: "bound".into(), at, detail })
}
