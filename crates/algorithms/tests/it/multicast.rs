//! Whole groups of every multicast: exact costs in the simulator, every run in the checker, and the
//! adversarial schedules of the sources by their names.

mod ack;
mod best_effort;
mod causal;
mod crashes;
mod fifo;
mod isis;
mod lamport_order;
mod nack;
mod sequencer;
mod srm;
mod token_order;

use konklave_algorithms::multicast::Summary;
use konklave_algorithms::{Algorithm, Facts, Metric, Problem};
use konklave_process::ProcessId;
use konklave_testkit::{Case, Seen};

/// Judges the messages and delays of a run by the formulas of the data sheet; answers how many
/// formulas applied.
#[track_caller]
fn is_within_bounds<P>(case: &Case<P>, seen: &Seen<P>) -> usize
where
    P: Algorithm<Problem: Problem<P, Summary = Summary>>,
{
    let requests = case.workload.requests.iter().map(|&r| u64::from(r));
    let served: Vec<(ProcessId, u64)> =
        case.setup.group.members().iter().copied().zip(requests).collect();
    let facts = Facts {
        setup: &case.setup,
        initiators: &[],
        served: &served,
        delay_max: case.config.delay.longest(),
        assumptions_hold: true,
        uncontended: false,
        at_once: true,
        elapsed: 0.0,
        undisturbed: case.config.loss == 0.0 && case.config.faults.is_empty(),
        steady: case.config.delay.is_constant(),
        hold: 0.0,
    };
    let mut applied = 0;
    for cost in P::SHEET.costs {
        let Some(bound) = (cost.bound)(&facts) else { continue };
        let measured = match cost.metric {
            Metric::Messages => seen.sent as f64,
            Metric::Delivery => seen.summary.last_latency.map_or(0.0, |l| l.max),
            other => panic!("{other:?} says nothing of a multicast"),
        };
        assert!(bound.holds(measured), "{}: {measured} is not within {bound:?}", cost.formula);
        applied += 1;
    }
    applied
}
