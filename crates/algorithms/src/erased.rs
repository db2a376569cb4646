//! An algorithm without its type, as worlds, reports and tables use it.

use std::marker::PhantomData;

use konklave_process::{
    AnyApplication, AnyData, AnyMeter, AnyMonitor, AnyProcess, Portable, ProcessId, Violation,
    encoded_size,
};
use konklave_sim::{AnyObserver, Config, Counts, Ending, Parts, Sim, Stall, Struck, Time};

use crate::mutex::coterie::Figures;
use crate::{
    Algorithm, DataSheet, Metric, Pause, Problem, ProblemSheet, ProcessSets, Setup, SetupError,
    UsualRun, Watch, Workload,
};

/// The measures of a run, for serialisation.
pub type AnySummary = Box<dyn erased_serde::Serialize>;

/// A run to be simulated.
#[derive(Clone, Copy, Debug)]
pub struct Simulation<'a> {
    /// Group, topology, mistake, variants.
    pub setup: &'a Setup,
    /// The requests of the clients.
    pub workload: &'a Workload,
    /// The properties that are judged.
    pub watch: &'a Watch,
    /// The configuration of the simulated world.
    pub config: &'a Config,
    /// Whether the result contains the processes.
    pub keep_processes: bool,
}

/// A run that was simulated.
#[derive(Debug)]
pub struct Simulated {
    /// How it ended.
    pub ending: Ending,
    /// The stall that ended it, if one did.
    pub stall: Option<Stall>,
    /// When it ended, in ticks.
    pub now: Time,
    /// The numbers of messages and steps.
    pub counts: Counts,
    /// The number of messages in the measured part of the run; none if all of it is measured.
    pub measured_messages: Option<u64>,
    /// The number of messages of each kind.
    pub kinds: Vec<(String, u64)>,
    /// The violations, with their times.
    pub violations: Vec<(Time, Violation)>,
    /// The processes whose clients still wait.
    pub waiting: Vec<ProcessId>,
    /// Whether no client waits or has a further request.
    pub served: bool,
    /// How many processes are down in the end.
    pub down: usize,
    /// The effect of each fault of the configuration, in order.
    pub struck: Vec<Struck>,
    /// The processes in node order, if the run keeps them.
    pub processes: Vec<AnyProcess>,
    /// The measures.
    pub meter: AnyMeter,
    /// The judges.
    pub monitor: AnyMonitor,
}

/// An algorithm with the clients, judges and measures of its problem, without types.
pub trait AnyAlgorithm: Send + Sync {
    /// The data sheet of its problem.
    fn problem(&self) -> &'static ProblemSheet;
    /// Its data sheet.
    fn sheet(&self) -> DataSheet;
    /// The data sheet of the variant that `setup` chose.
    fn variant(&self, setup: &Setup) -> DataSheet;
    /// The name of its type, for generated tests.
    fn type_name(&self) -> &'static str;
    /// Whether its runs never end by themselves.
    fn is_endless(&self) -> bool;
    /// The run that its source tells of.
    fn usual_run(&self) -> UsualRun;
    /// Whether it makes no progress unless a majority of all processes is up.
    fn needs_majority(&self) -> bool;
    /// Whether it goes on after all requests are served.
    fn goes_on(&self, setup: &Setup) -> bool;
    /// The longest delay, in T, that its timeouts allow for.
    fn longest_delay(&self, setup: &Setup) -> Option<f64>;
    /// The sizes of its quorums, by name.
    fn quorums(&self, setup: &Setup) -> Vec<(&'static str, Figures)>;
    /// The set of processes that each process has at the start.
    fn process_sets(&self, setup: &Setup) -> Vec<ProcessSets>;
    /// Refuses a setup that it cannot run with, beyond the checks of the data sheet.
    fn check_setup(&self, setup: &Setup) -> Result<(), SetupError>;
    /// A remark on runs with `workload`, which the figures of a single run may hide.
    fn remark(&self, setup: &Setup, workload: &Workload) -> Option<&'static str>;
    /// The process of member `me`.
    fn process(&self, me: ProcessId, setup: &Setup) -> AnyProcess;
    /// The clients that `workload` describes.
    fn application(&self, workload: &Workload, setup: &Setup) -> AnyApplication;
    /// The clients of a script.
    fn scripted(&self, workload: &Workload, setup: &Setup) -> AnyApplication;
    /// The judges of the properties that `watch` names.
    fn monitor(&self, watch: &Watch, setup: &Setup) -> AnyMonitor;
    /// Fresh measures.
    fn meter(&self, setup: &Setup) -> AnyMeter;
    /// The kind of pause before `request`.
    fn pause(&self, request: &AnyData) -> Pause;
    /// The measures of a whole run, with times in units of `unit` ticks.
    fn summary(&self, meter: &AnyMeter, monitor: &AnyMonitor, unit: f64) -> AnySummary;
    /// How often each process was served.
    fn served(&self, meter: &AnyMeter) -> Vec<(ProcessId, u64)>;
    /// The measure under `metric`.
    fn measured(&self, meter: &AnyMeter, metric: Metric, unit: f64) -> Option<f64>;
    /// Simulates a run. If the run ends by itself, its end is judged.
    fn simulate(&self, run: Simulation<'_>, observer: Option<&mut dyn AnyObserver>) -> Simulated;
}

impl dyn AnyAlgorithm {
    /// The processes of all members, in node order.
    pub fn processes(&self, setup: &Setup) -> Vec<AnyProcess> {
        setup.group.members().iter().map(|&me| self.process(me, setup)).collect()
    }
}

/// The algorithm `P` as a value.
pub const fn erased<P>() -> &'static dyn AnyAlgorithm
where
    P: Algorithm + Portable,
{
    const { &Typed::<P>(PhantomData) }
}

struct Typed<P>(PhantomData<fn() -> P>);

impl<P> AnyAlgorithm for Typed<P>
where
    P: Algorithm + Portable,
{
    fn problem(&self) -> &'static ProblemSheet {
        const { &<P::Problem as Problem<P>>::SHEET }
    }
    fn sheet(&self) -> DataSheet {
        P::SHEET
    }
    fn variant(&self, setup: &Setup) -> DataSheet {
        P::sheet(setup)
    }
    fn type_name(&self) -> &'static str {
        std::any::type_name::<P>()
    }
    fn is_endless(&self) -> bool {
        P::Problem::ENDLESS || P::ENDLESS
    }
    fn usual_run(&self) -> UsualRun {
        P::USUAL_RUN
    }
    fn needs_majority(&self) -> bool {
        P::NEEDS_MAJORITY
    }
    fn goes_on(&self, setup: &Setup) -> bool {
        P::goes_on(setup)
    }
    fn longest_delay(&self, setup: &Setup) -> Option<f64> {
        P::longest_delay(setup)
    }
    fn quorums(&self, setup: &Setup) -> Vec<(&'static str, Figures)> {
        P::quorums(setup)
    }
    fn process_sets(&self, setup: &Setup) -> Vec<ProcessSets> {
        P::process_sets(setup)
    }
    fn check_setup(&self, setup: &Setup) -> Result<(), SetupError> {
        P::check_setup(setup)
    }
    fn remark(&self, setup: &Setup, workload: &Workload) -> Option<&'static str> {
        P::remark(setup, workload)
    }
    fn process(&self, me: ProcessId, setup: &Setup) -> AnyProcess {
        AnyProcess::new(P::new(me, setup))
    }
    fn application(&self, workload: &Workload, setup: &Setup) -> AnyApplication {
        AnyApplication::new::<P>(P::Problem::application(workload, setup))
    }
    fn scripted(&self, workload: &Workload, setup: &Setup) -> AnyApplication {
        AnyApplication::new::<P>(P::Problem::scripted(workload, setup))
    }
    fn monitor(&self, watch: &Watch, setup: &Setup) -> AnyMonitor {
        AnyMonitor::new::<P>(P::Problem::monitor(watch, setup))
    }
    fn meter(&self, setup: &Setup) -> AnyMeter {
        AnyMeter::new::<P>(P::Problem::meter(setup))
    }
    fn pause(&self, request: &AnyData) -> Pause {
        P::Problem::pause(request.get())
    }
    fn summary(&self, meter: &AnyMeter, monitor: &AnyMonitor, unit: f64) -> AnySummary {
        Box::new(P::Problem::summary(meter.get(), monitor.get(), unit))
    }
    fn served(&self, meter: &AnyMeter) -> Vec<(ProcessId, u64)> {
        P::Problem::served(meter.get())
    }
    fn measured(&self, meter: &AnyMeter, metric: Metric, unit: f64) -> Option<f64> {
        P::Problem::measured(meter.get(), metric, unit)
    }
    // The simulator's loop is compiled for each algorithm: a simulated step takes about as long as one
    // virtual call, so an untyped loop would be much slower.
    fn simulate(&self, run: Simulation<'_>, observer: Option<&mut dyn AnyObserver>) -> Simulated {
        let Simulation { setup, workload, watch, config, keep_processes } = run;
        let application = match config.script.is_empty() {
            true => P::Problem::application(workload, setup),
            false => P::Problem::scripted(workload, setup),
        };
        let parts = Parts {
            processes: setup.group.members().iter().map(|&p| P::new(p, setup)).collect::<Vec<P>>(),
            application,
            monitor: P::Problem::monitor(watch, setup),
            meter: P::Problem::meter(setup),
            observer,
        };
        let is_hold = |request: &P::Request| P::Problem::pause(request) == Pause::Hold;
        let mut sim = Sim::sized(setup.group.clone(), parts, config, is_hold, encoded_size);
        let ending = sim.run();
        if ending == Ending::Quiet || self.is_endless() {
            sim.judge(ending);
        }
        let (now, counts) = (sim.now(), sim.counts().clone());
        let (measured_messages, stall) = (sim.measured_messages(), sim.stall().cloned());
        let kinds = sim.kinds().map(|(kind, count)| (kind.to_owned(), count)).collect();
        let (waiting, served, down) = (sim.waiting(), sim.is_served(), sim.down().len());
        let (violations, struck) = (sim.violations().to_vec(), sim.struck());
        let (mut processes, meter, monitor) = sim.into_parts();
        processes.truncate(if keep_processes { processes.len() } else { 0 });
        let processes = processes.into_iter().map(AnyProcess::new).collect();
        let (meter, monitor) = (AnyMeter::new::<P>(meter), AnyMonitor::new::<P>(monitor));
        Simulated {
            ending,
            stall,
            now,
            counts,
            measured_messages,
            kinds,
            violations,
            waiting,
            served,
            down,
            struck,
            processes,
            meter,
            monitor,
        }
    }
}
