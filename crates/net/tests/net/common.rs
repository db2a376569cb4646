//! How tests run an algorithm of the catalog on the network.

use std::time::Duration;

use konklave_algorithms::{Algorithm, Facts, Metric, Pause, Problem, Setup, Watch, Workload};
use konklave_net::{
    NetConfig, NetOutcome, NetProcess, Parts, Pauses, Running, no_pause, run_group, start_group,
};
use konklave_process::ProcessId;
use konklave_trace::{Header, Recorder, Run};

type Solves<P> = <P as Algorithm>::Problem;
pub(crate) type Clients<P> = <Solves<P> as Problem<P>>::Application;
pub(crate) type Judges<P> = <Solves<P> as Problem<P>>::Monitor;
pub(crate) type Measures<P> = <Solves<P> as Problem<P>>::Meter;
pub(crate) type Outcome<P> = NetOutcome<P, Clients<P>, Judges<P>, Measures<P>, Run>;
pub(crate) type UnderWay<P> = Running<P, Clients<P>, Judges<P>, Measures<P>, Run>;

/// An algorithm of the catalog that the network can run.
pub(crate) trait Runnable:
    Algorithm<
        Problem: Problem<
            Self,
            Application: Send + 'static,
            Monitor: konklave_process::Monitor<Self, Tag: Send> + Send + 'static,
            Meter: Send + 'static,
        >,
    > + NetProcess
{
}

impl<P> Runnable for P where
    P: Algorithm<
            Problem: Problem<
                P,
                Application: Send + 'static,
                Monitor: konklave_process::Monitor<P, Tag: Send> + Send + 'static,
                Meter: Send + 'static,
            >,
        > + NetProcess
{
}

pub(crate) fn processes<P: Algorithm>(setup: &Setup) -> Vec<P> {
    setup.group.members().iter().map(|&p| P::new(p, setup)).collect()
}

fn parts<P: Runnable>(
    setup: &Setup,
    workload: &Workload,
) -> Parts<P, Clients<P>, Judges<P>, Measures<P>> {
    Parts {
        processes: processes(setup),
        application: Solves::<P>::application(workload, setup),
        monitor: Solves::<P>::monitor(&Watch::all(&P::SHEET), setup),
        meter: Solves::<P>::meter(setup),
        pause: no_pause(),
    }
}

fn recorder<P: Runnable>(setup: &Setup) -> Recorder<P, Run> {
    let nodes = setup.group.members().iter().map(|p| p.0).collect();
    Recorder::new(Header::new(P::SHEET.name, nodes))
}

fn is_hold<P: Runnable>(request: &P::Request) -> bool {
    Solves::<P>::pause(request) == Pause::Hold
}

/// Runs and records, with clients that never pause.
pub(crate) async fn run<P: Runnable>(
    setup: &Setup,
    workload: &Workload,
    config: NetConfig,
) -> Outcome<P> {
    let (group, parts) = (setup.group.clone(), parts(setup, workload));
    run_group(group, parts, config, is_hold::<P>, Some(recorder(setup))).await.unwrap()
}

/// Starts without a recording.
pub(crate) async fn start<P: Runnable>(
    setup: &Setup,
    workload: &Workload,
    config: NetConfig,
    pause: Pauses,
) -> UnderWay<P> {
    let (group, parts) = (setup.group.clone(), Parts { pause, ..parts(setup, workload) });
    start_group(group, parts, config, is_hold::<P>, None).await.unwrap()
}

/// What the data sheet says of the messages of this run.
pub(crate) fn messages_hold<P: Runnable>(
    setup: &Setup,
    initiators: &[ProcessId],
    outcome: &Outcome<P>,
) -> bool {
    let served = Solves::<P>::served(&outcome.meter);
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
        Metric::SyncDelay | Metric::EntryDelay | Metric::Time | Metric::Delivery => None,
    };
    let mut bounds = P::SHEET
        .costs
        .iter()
        .filter_map(|cost| Some(((cost.bound)(&facts)?, measured(cost.metric)?)));
    bounds.all(|(bound, measured)| bound.holds(measured))
}

pub(crate) fn millis(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
