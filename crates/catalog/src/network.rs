//! Runs on real tasks, in real time (feature `network`).

pub(crate) mod member;
mod message_faults;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use konklave_algorithms::Pause;
use konklave_net::{Ending, FaultKind, NetConfig, NetFault, Parts, PauseContext, Transport};
use konklave_process::{AnyData, Application, ProcessId};
use konklave_sim::{Fault, Memory, Mishap, Pause as SimPause, Purpose, UNIT, What, When};
use konklave_trace::{Footer, Recorder};

use message_faults::MessageFaults;

use crate::fault_effects::FaultEffects;
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
    let config = net_config(&plan, &world)?;
    let recorder = record.then(|| {
        let mut header = header(entry, &plan, name);
        header.unit = world.unit.as_nanos() as f64;
        Recorder::new(header)
    });
    let setup = &plan.setup;
    let effects = Arc::new(Mutex::new(FaultEffects::new(&plan.config)));
    let mut message_faults = MessageFaults::new(&plan, world.unit, Arc::clone(&effects));
    let parts = Parts {
        processes: algorithm.processes(setup),
        application: algorithm.application(&plan.workload, setup),
        monitor: algorithm.monitor(&plan.watch, setup),
        meter: algorithm.meter(setup),
        pause: pauses(&plan, world.unit),
        fates: Box::new(move |departure| message_faults.fate(departure)),
    };
    let is_hold = Box::new(|request: &AnyData| algorithm.pause(request) == Pause::Hold);
    let run = konklave_net::run_group(setup.group.clone(), parts, config, is_hold, recorder);
    let done = runtime()?.block_on(run).map_err(|e| Error::Unavailable(e.to_string()))?;
    let violations =
        done.violations.into_iter().map(|(at, v)| (at, v.property.to_owned(), v.detail)).collect();
    let asks = |p: &ProcessId| !done.down.contains(*p) && done.application.next(*p).is_some();
    let served = done.waiting.is_empty() && !setup.group.members().iter().any(asks);
    let end = done.elapsed.as_nanos() as f64 / world.unit.as_nanos() as f64;
    let struck = effects.lock().unwrap_or_else(PoisonError::into_inner).struck(end);
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
            duplicated: done.counts.duplicated,
            bytes: None,
            by_kind: done.kinds.into_iter().collect(),
        },
        violations,
        waiting: done.waiting,
        served,
        measured_messages: None,
        down: done.down.len(),
        struck,
        stall: None,
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

/// The threads of a run.
fn runtime() -> Result<tokio::runtime::Runtime, Error> {
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    let failed = |e| Error::Unavailable(format!("cannot start the threads of the run: {e}"));
    threads.enable_all().build().map_err(failed)
}

/// The plan in the units of the network: T becomes real time.
fn net_config(plan: &Plan, world: &RealWorld) -> Result<NetConfig, Error> {
    let faults = plan.config.faults.iter().filter_map(|f| fault(f, world.unit).transpose());
    Ok(NetConfig {
        transport: world.transport,
        seed: plan.config.seed,
        faults: faults.collect::<Result<_, _>>()?,
        detect_after: plan.config.detect_after.map(|t| world.unit.mul_f64(t)),
        time_limit: world.unit.mul_f64(plan.config.time_limit.min(PATIENCE)),
        warn: |warning| eprintln!("{}: {warning}", crate::program()),
        ..NetConfig::default()
    })
}

/// Refuses options that only the simulator supports.
fn only_what_is_real(plan: &Plan, world: &str) -> Result<(), Error> {
    let scenario = &plan.scenario;
    let unreal = [
        ("--delay", scenario.delay.is_some()),
        ("--no-fifo", !plan.config.fifo),
        ("--app-messages", plan.config.app_messages > 0),
        ("--script", !plan.config.script.is_empty()),
        ("--step-limit", scenario.step_limit.is_some()),
        ("--service", scenario.service.is_some()),
        ("--bandwidth", scenario.bandwidth.is_some()),
        ("--warm-up", scenario.warm_up.is_some()),
        ("--sample", scenario.sample.is_some()),
    ];
    match unreal.iter().find(|(_, asked)| *asked) {
        Some((option, _)) => Err(Error::Usage(format!(
            "{option} works only with `--world sim`: the network of {world} is real"
        ))),
        None => Ok(()),
    }
}

/// The fault as one of a process; none if it is one of messages, which [`MessageFaults`] injects.
fn fault(fault: &Fault, unit: Duration) -> Result<Option<NetFault>, Error> {
    let (process, kind, t) = match (&fault.what, fault.when) {
        (What::Crash(p), When::Time(t)) => (*p, FaultKind::Crash, t),
        (What::Restart(p, Memory::Saved), When::Time(t)) => (*p, FaultKind::Restart, t),
        (What::Message(_, Mishap::Lose | Mishap::Duplicate), _)
        | (What::Cut(..) | What::Partition(_), When::Time(_)) => return Ok(None),
        _ => {
            return Err(Error::Usage(format!(
                "--fault {fault} works only with `--world sim`; real worlds know crash:NODE@T, restart:NODE@T, \
                 lose:…, duplicate:…, cut:A>B@T[-T] and partition:A,B|C@T[-T]"
            )));
        }
    };
    Ok(Some(NetFault { at: unit.mul_f64(t), process, kind }))
}

/// The pauses of the scenario, in real time: those of the simulator, from the same streams.
fn pauses(plan: &Plan, unit: Duration) -> konklave_net::Pauses {
    let (config, n) = (&plan.config, plan.setup.group.len());
    let pause =
        |pace, purpose, weights: &[f64]| SimPause::new(pace, purpose, config.seed, weights, n);
    let mut think = pause(config.think, Purpose::Think, &config.weights);
    let mut hold = pause(config.hold, Purpose::Hold, &[]);
    let group = plan.setup.group.clone();
    let tick = unit.as_secs_f64() / UNIT as f64;
    Box::new(move |context: PauseContext| {
        let place = group.place(context.at).unwrap_or(0);
        let now = (context.now.as_secs_f64() / tick) as u64;
        let at = if context.hold { &mut hold } else { &mut think }.after(now, place);
        Duration::try_from_secs_f64((at - now) as f64 * tick).unwrap_or(Duration::MAX)
    })
}
