//! Compares measured costs with the formulas of the data sheet.

use konklave_algorithms::{Bound, Cost, Metric};
use konklave_process::AnyMeter;

use super::{RunFacts, unending};
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
    let mut facts = plan.facts(&served);
    facts.elapsed = run.now as f64 / run.unit;
    if is_real(run) {
        // In real worlds the delay of messages is unknown, so T has no exact length.
        facts.delay_max = None;
    }
    let sent = run.messages.sent as f64;
    let entries = facts.entries();
    // Formulas speak of one election, of runs that came to their end (or have none, in a world with
    // a clock to count by), and of messages that arrive once: what arrives twice may be answered twice.
    let cut_off = unending(entry, plan, run) || (run.cut_off && is_real(run));
    let election = entry.problem.one_shot;
    let once = !election
        || plan.workload.requests.iter().all(|&r| r <= 1) && plan.config.script.len() <= 1;
    let undoubled = run.messages.duplicated == 0;
    // Real processes never start at one moment. A process that receives an election message before its own start
    // starts no election, so exact formulas for several initiators do not apply.
    let apart = election && facts.initiators.len() > 1 && (is_real(run) || !facts.at_once);
    let mut reports = Vec::new();
    for cost in entry.sheet.costs {
        let measured = match cost.metric {
            Metric::Messages => Some(sent),
            Metric::MessagesPerEntry => (entries > 0.0).then(|| sent / entries),
            Metric::SyncDelay
            | Metric::EntryDelay
            | Metric::Time
            | Metric::Delivery
            | Metric::Other(_) => entry.algorithm.measured(meter, cost.metric, run.unit),
        };
        let applies = !cut_off && once && undoubled && facts.assumptions_hold;
        let bound = if applies { (cost.bound)(&facts) } else { None };
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
            (None, _) if cut_off => (None, Some("the run was cut off".to_owned())),
            (None, _) if !once => (None, Some("it holds for one election".to_owned())),
            (None, _) if !undoubled => (None, Some("messages arrived twice".to_owned())),
            (None, _) if !facts.assumptions_hold => {
                (None, Some("an assumption of the algorithm does not hold".to_owned()))
            }
            (None, _) => (None, Some(format!("only if {}", cost.when))),
        };
        reports.push(bound_report(cost, bound, measured, why));
    }
    reports
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
