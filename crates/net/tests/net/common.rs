//! Runs an algorithm on the network, for tests.

use std::time::Duration;

use konklave_algorithms::{AnyAlgorithm, Facts, Metric, Pause, Setup, Watch, Workload};
use konklave_net::{
    IsHold, NetConfig, NetOutcome, Parts, Pauses, Running, no_message_faults, no_pause, run_group,
    start_group,
};
use konklave_process::ProcessId;
use konklave_trace::{Header, Recorder, Run};

fn parts(algorithm: &'static dyn AnyAlgorithm, setup: &Setup, workload: &Workload) -> Parts {
    Parts {
        processes: algorithm.processes(setup),
        application: algorithm.application(workload, setup),
        monitor: algorithm.monitor(&Watch::all(&algorithm.sheet()), setup),
        meter: algorithm.meter(setup),
        pause: no_pause(),
        fates: no_message_faults(),
    }
}

fn recorder(algorithm: &'static dyn AnyAlgorithm, setup: &Setup) -> Recorder<Run> {
    let nodes = setup.group.members().iter().map(|p| p.0).collect();
    Recorder::new(Header::new(algorithm.sheet().name, nodes))
}

fn is_hold(algorithm: &'static dyn AnyAlgorithm) -> IsHold {
    Box::new(|request| algorithm.pause(request) == Pause::Hold)
}

/// Runs and records, with clients that never pause.
pub(crate) async fn run(
    algorithm: &'static dyn AnyAlgorithm,
    setup: &Setup,
    workload: &Workload,
    config: NetConfig,
) -> NetOutcome {
    let (group, parts) = (setup.group.clone(), parts(algorithm, setup, workload));
    let recorder = recorder(algorithm, setup);
    run_group(group, parts, config, is_hold(algorithm), Some(recorder)).await.unwrap()
}

/// Starts without a recording.
pub(crate) async fn start(
    algorithm: &'static dyn AnyAlgorithm,
    setup: &Setup,
    workload: &Workload,
    config: NetConfig,
    pause: Pauses,
) -> Running {
    let parts = Parts { pause, ..parts(algorithm, setup, workload) };
    start_group(setup.group.clone(), parts, config, is_hold(algorithm), None).await.unwrap()
}

/// The number of messages of this run by the formula of the data sheet.
pub(crate) fn messages_hold(
    algorithm: &'static dyn AnyAlgorithm,
    setup: &Setup,
    initiators: &[ProcessId],
    outcome: &NetOutcome,
) -> bool {
    let served = algorithm.served(&outcome.meter);
    let facts = Facts {
        setup,
        initiators,
        served: &served,
        delay_max: None,
        assumptions_hold: true,
        uncontended: false,
        at_once: true,
        elapsed: 0.0,
        undisturbed: true,
        steady: false,
        hold: 0.0,
    };
    let sent = outcome.counts.sent as f64;
    let measured = |metric| match metric {
        Metric::Messages => Some(sent),
        Metric::MessagesPerEntry => Some(sent / facts.entries()),
        _ => None,
    };
    let sheet = algorithm.sheet();
    let mut bounds =
        sheet.costs.iter().filter_map(|cost| Some(((cost.bound)(&facts)?, measured(cost.metric)?)));
    bounds.all(|(bound, measured)| bound.holds(measured))
}

pub(crate) fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
