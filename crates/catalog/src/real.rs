//! Facts about real worlds that replay needs, also in builds without network.

use std::time::Duration;

use konklave_algorithms::Assumption;

use crate::Plan;
use crate::report::{RunReport, Verdict};

/// The names of the real worlds, as in the header of a recording.
pub(crate) const REAL_WORLDS: [&str; 4] = ["threads", "tcp", "udp", "multicast"];

/// The options, besides the scenario, of the command that repeats a run.
pub(crate) fn command(world: &str, unit: Duration) -> String {
    format!(" --world {world} --unit {}", unit.as_secs_f64() * 1e3)
}

/// A real network may be slower than any timeout, so time bounds are not judged.
pub(crate) fn doubt_time_bounds(report: &mut RunReport, plan: &Plan) {
    let assumed = plan.assumes.contains(&Assumption::Synchronous);
    if assumed && matches!(report.verdict, Verdict::Violated | Verdict::Stuck) {
        let promised =
            format!("{}, which a real network does not promise", Assumption::Synchronous);
        report.broken_assumptions.push(promised);
    }
}
