//! Runs on real tasks, in real time (feature `network`).

pub(crate) mod member;

use std::time::Duration;

use konklave_algorithms::Pause;
use konklave_net::{Ending, FaultKind, NetConfig, NetFault, Parts, PauseContext, Transport};
use konklave_process::{AnyData, Application, ProcessId, Rng};
use konklave_sim::{Fault, Memory, Pace, What, When};
use konklave_trace::{Footer, Recorder};

use crate::real::{command, doubt_time_bounds};
use crate::report::Messages;
use crate::simulate::{Outcome, RunFacts, report};
use crate::{Entry, Error, Plan, header};

/// Where a real run takes place, and how long T is there.
#[derive(Clone, Copy, Debug)]
pub struct RealWorld {
    /// Channels or sockets.
    pub transport: Transport,
    /// T, for pauses and timeouts.
    pub unit: Duration,
}

/// A run without an end of its own, or one that is stuck, is cut off after this many T.
const PATIENCE: f64 = 10_000.0;

/// Runs `plan` on real tasks.
pub(crate) fn run(
    entry: &Entry,
    plan: &Plan,
    world: RealWorld,
    record: bool,
) -> Result<Outcome, Error> {
    let mut plan = plan.clone();
    plan.setup.unit = world.unit;
    let algorithm = entry.algorithm;
    algorithm.check_setup(&plan.setup).map_err(|e| Error::Usage(e.to_string()))?;
    let name = world.transport.name();
    only_what_is_real(&plan, name)?;
    let config = NetConfig {
        transport: world.transport,
        seed: plan.config.seed,
        faults: plan
            .config
            .faults
            .iter()
            .map(|f| fault(f, world.unit))
            .collect::<Result<_, _>>()?,
        detect_after: plan.config.detect_after.map(|t| world.unit.mul_f64(t)),
        time_limit: world.unit.mul_f64(plan.config.time_limit.min(PATIENCE)),
        warn: |warning| eprintln!("{}: {warning}", crate::program()),
        ..NetConfig::default()
    };
    let recorder = record.then(|| {
        let mut header = header(entry, &plan, name);
        header.unit = world.unit.as_nanos() as f64;
        Recorder::new(header)
    });
    let setup = &plan.setup;
    let parts = Parts {
        processes: algorithm.processes(setup),
        application: algorithm.application(&plan.workload, setup),
        monitor: algorithm.monitor(&plan.watch, setup),
        meter: algorithm.meter(setup),
        pause: pauses(&plan, world.unit),
    };
    let is_hold = Box::new(|request: &AnyData| algorithm.pause(request) == Pause::Hold);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|e| Error::Unavailable(format!("cannot start the threads of the run: {e}")))?;
    let run = konklave_net::run_group(setup.group.clone(), parts, config, is_hold, recorder);
    let done = runtime.block_on(run).map_err(|e| Error::Unavailable(e.to_string()))?;
    let violations =
        done.violations.into_iter().map(|(at, v)| (at, v.property.to_owned(), v.detail)).collect();
    let asks = |p: &ProcessId| !done.down.contains(*p) && done.application.next(*p).is_some();
    let served = done.waiting.is_empty() && !setup.group.members().iter().any(asks);
    let facts = RunFacts {
        world: name,
        unit: world.unit.as_nanos() as f64,
        now: u64::try_from(done.elapsed.as_nanos()).unwrap_or(u64::MAX),
        steps: done.counts.steps,
        timers: done.counts.timers,
        messages: Messages {
            sent: done.counts.sent,
            delivered: done.counts.delivered,
            lost: done.counts.lost,
            duplicated: 0,
            by_kind: done.kinds.into_iter().collect(),
        },
        violations,
        waiting: done.waiting,
        served,
        cut_off: done.ending == Ending::CutOff,
    };
    let mut report = report(entry, &plan, facts, &done.meter, &done.monitor);
    doubt_time_bounds(&mut report, &plan);
    report.command += &command(name, world.unit);
    let summary = serde_json::to_value(&report).unwrap_or_default();
    let footer = Footer { verdict: report.verdict.name().into(), summary };
    let run = done.recorder.map(|recorder| recorder.finish(Some(footer)));
    Ok(Outcome { report, run })
}

/// Refuses options that only the simulator supports.
fn only_what_is_real(plan: &Plan, world: &str) -> Result<(), Error> {
    let scenario = &plan.scenario;
    let unreal = [
        ("--delay", scenario.delay.is_some()),
        ("--loss", plan.config.loss > 0.0),
        ("--duplicate", plan.config.duplicate > 0.0),
        ("--no-fifo", !plan.config.fifo),
        ("--app-messages", plan.config.app_messages > 0),
        ("--script", !plan.config.script.is_empty()),
        ("--step-limit", scenario.step_limit.is_some()),
    ];
    match unreal.iter().find(|(_, asked)| *asked) {
        Some((option, _)) => Err(Error::Usage(format!(
            "{option} works only with `--world sim`: the network of {world} is real"
        ))),
        None => Ok(()),
    }
}

fn fault(fault: &Fault, unit: Duration) -> Result<NetFault, Error> {
    let refuse = || {
        Err(Error::Usage(format!(
            "--fault {fault} works only with `--world sim`; real worlds know crash:NODE@T and restart:NODE@T"
        )))
    };
    let (process, kind) = match fault.what {
        What::Crash(p) => (p, FaultKind::Crash),
        What::Restart(p, Memory::Saved) => (p, FaultKind::Restart),
        What::Restart(..)
        | What::Pause(_)
        | What::Cut(..)
        | What::Break(..)
        | What::Partition(_)
        | What::Message(..)
        | What::Rate(..)
        | What::Suspect(..) => return refuse(),
    };
    match fault.when {
        When::Time(t) => Ok(NetFault { at: unit.mul_f64(t), process, kind }),
        When::Step(_) => refuse(),
    }
}

/// The pauses of the scenario, in real time.
fn pauses(plan: &Plan, unit: Duration) -> konklave_net::Pauses {
    let (think, hold) = (plan.config.think, plan.config.hold);
    let mut rng = Rng::new(plan.config.seed).fork(4);
    let mut arrivals = vec![0.0f64; plan.setup.group.len()];
    let group = plan.setup.group.clone();
    Box::new(move |context: PauseContext| {
        let t = match if context.hold { hold } else { think } {
            Pace::Constant(t) => t,
            Pace::Uniform(low, high) => low + (high - low) * rng.unit(),
            Pace::Exponential(mean) => mean * rng.exponential(),
            Pace::Arrivals(mean) => {
                let place = group.place(context.at).unwrap_or(0);
                arrivals[place] += mean * rng.exponential();
                let now = context.now.as_secs_f64() / unit.as_secs_f64();
                (arrivals[place] - now).max(0.0)
            }
        };
        unit.mul_f64(t)
    })
}
