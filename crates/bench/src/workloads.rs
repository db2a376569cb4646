//! The workloads, each in the simulator and as a floor.

use std::time::Instant;

use konklave_algorithms::election::chang_roberts::ChangRoberts;
use konklave_algorithms::mutex::ricart_agrawala::RicartAgrawala;
use konklave_algorithms::{Algorithm, Order, Pause, Problem, Setup, Watch, Workload};
use konklave_process::{Application, Group, Inspect, Meter, Monitor, ProcessId, Rng, Topology};
use konklave_sim::{Config, Counts, Delay, Ending, Pace, Parts, Sim};

use crate::echo::{Echo, Everywhere, Once, Span};
use crate::elections::Contest;
use crate::floors;
use crate::groups::Crowd;
use crate::locks::Lock;
use crate::measure::cpu_nanos;

/// A workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum What {
    /// W1: Chang–Roberts on a ring of so many processes that all start.
    Ring(usize),
    /// W2: Ricart–Agrawala, 100 nodes enter 100 times each.
    Mutex,
    /// W3: an echo wave over 10⁵ nodes and 10⁶ edges.
    Wave,
    /// Another election.
    Election(Contest),
    /// A lock with as many processes as it is meant for.
    Lock(Lock),
    /// A group with as many members as it is meant for.
    Crowd(Crowd),
}

/// The result of one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) messages: u64,
    /// Inputs that processes handled: starts, messages, timers, requests. 0 for floors.
    pub(crate) events: u64,
    pub(crate) wall_nanos: u64,
    pub(crate) cpu_nanos: u64,
}

impl What {
    /// The name of the workload with its size, such as `w1:1000`.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Ring(n) => format!("w1:{n}"),
            Self::Mutex => "w2".into(),
            Self::Wave => "w3".into(),
            Self::Election(contest) => contest.name(),
            Self::Lock(lock) => lock.name(),
            Self::Crowd(crowd) => crowd.name().into(),
        }
    }

    /// The workload of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "w2" => Some(Self::Mutex),
            "w3" => Some(Self::Wave),
            _ if name.starts_with("group:") => Crowd::named(name).map(Self::Crowd),
            _ if name.starts_with("election:") => Contest::named(name).map(Self::Election),
            _ => match name.strip_prefix("w1:") {
                Some(n) => n.parse().ok().filter(|n| *n > 1).map(Self::Ring),
                None => Lock::named(name).map(Self::Lock),
            },
        }
    }

    /// The name of the workload in the report.
    pub(crate) fn title(self) -> String {
        match self {
            Self::Ring(n) => format!("W1 Chang–Roberts n={n}"),
            Self::Mutex => "W2 Ricart–Agrawala n=100".into(),
            Self::Wave => "W3 echo n=10^5 m=10^6".into(),
            Self::Election(contest) => contest.title(),
            Self::Lock(lock) => lock.title(),
            Self::Crowd(crowd) => crowd.title().into(),
        }
    }

    /// Runs the workload once in the simulator.
    pub(crate) fn simulate(self) -> Result<Taken, String> {
        match self {
            Self::Ring(n) => {
                let ids = permutation(n);
                let group = Group::new(ids.clone()).map_err(|e| e.to_string())?;
                let setup = Setup::new(group, Topology::directed_ring(n));
                let workload = Workload { initiators: ids, requests: Vec::new() };
                let config = Config::default();
                run_algorithm::<ChangRoberts>(setup, workload, &config)
            }
            Self::Mutex => mutex_run(100, 100, 1).map(|(taken, _)| taken),
            Self::Election(contest) => contest.simulate(),
            Self::Lock(lock) => lock.simulate(),
            Self::Crowd(crowd) => crowd.simulate(),
            Self::Wave => {
                let graph = random_graph(100_000)?;
                let group = Group::of(graph.len());
                let processes =
                    (0..graph.len()).map(|p| Echo::new(graph.neighbour_ids(p, &group))).collect();
                drop(graph);
                let parts = Parts {
                    processes,
                    application: Once::default(),
                    monitor: Everywhere { unreached: group.len(), decided: false },
                    meter: Span::default(),
                    observer: (),
                };
                let config =
                    Config { delay: Delay::Uniform(0.001, 1.0), fifo: false, ..Config::default() };
                run(group, parts, &config, |_| false).map(|(taken, _)| taken)
            }
        }
    }

    /// Runs the floor of the workload once.
    pub(crate) fn floor(self) -> Result<Taken, String> {
        match self {
            Self::Ring(n) => {
                let ids: Vec<u32> = permutation(n).into_iter().map(|p| p.0).collect();
                Ok(timed(|| floors::chang_roberts(&ids)))
            }
            Self::Mutex => Ok(timed(|| floors::ricart_agrawala(100, 100, 1))),
            Self::Election(_) => {
                Err("elections are compared with W1 and W3, not with floors".into())
            }
            Self::Lock(lock) => lock.floor(),
            Self::Crowd(_) => {
                Err("groups are measured beside W2 and W3, they have no floor".into())
            }
            Self::Wave => {
                let graph = random_graph(100_000)?;
                Ok(timed(|| floors::echo(&graph, 1)))
            }
        }
    }
}

/// A run of Ricart–Agrawala with delays of 1 to 1000 ticks and 10 ticks inside.
pub(crate) fn mutex_run(n: usize, entries: u32, seed: u64) -> Result<(Taken, Counts), String> {
    let setup = Setup::new(Group::of(n), Topology::complete(n));
    let workload = Workload { initiators: Vec::new(), requests: vec![entries; n] };
    let config = Config {
        seed,
        fifo: false,
        delay: Delay::Uniform(0.001, 1.0),
        hold: Pace::Constant(0.01),
        ..Config::default()
    };
    let parts = parts_of::<RicartAgrawala>(&setup, &workload);
    run(setup.group, parts, &config, is_hold::<RicartAgrawala>)
}

pub(crate) fn permutation(n: usize) -> Vec<ProcessId> {
    let mut ids: Vec<ProcessId> = (0..n as u32).map(ProcessId).collect();
    Rng::new(42).shuffle(&mut ids);
    ids
}

/// A random graph with ten edges for each of its nodes.
pub(crate) fn random_graph(n: usize) -> Result<Topology, String> {
    Topology::random_graph(n, 10 * n, &mut Rng::new(42)).map_err(|e| e.to_string())
}

pub(crate) type PartsOf<P> = Parts<
    P,
    <<P as Algorithm>::Problem as Problem<P>>::Application,
    <<P as Algorithm>::Problem as Problem<P>>::Monitor,
    <<P as Algorithm>::Problem as Problem<P>>::Meter,
    (),
>;

pub(crate) fn parts_of<P: Algorithm>(setup: &Setup, workload: &Workload) -> PartsOf<P> {
    let watch = Watch { order: Order::Ignore, ..Watch::all(&P::SHEET) };
    Parts {
        processes: setup.group.members().iter().map(|&p| P::new(p, setup)).collect(),
        application: <P::Problem as Problem<P>>::application(workload, setup),
        monitor: <P::Problem as Problem<P>>::monitor(&watch, setup),
        meter: <P::Problem as Problem<P>>::meter(setup),
        observer: (),
    }
}

pub(crate) fn is_hold<P: Algorithm>(request: &P::Request) -> bool {
    <P::Problem as Problem<P>>::pause(request) == Pause::Hold
}

/// Runs an algorithm with its own clients and judges.
pub(crate) fn run_algorithm<P: Algorithm>(
    setup: Setup,
    workload: Workload,
    config: &Config,
) -> Result<Taken, String> {
    let parts = parts_of::<P>(&setup, &workload);
    drop(workload);
    run(setup.group, parts, config, is_hold::<P>).map(|(taken, _)| taken)
}

/// Runs processes and clients that are built before the clock starts.
fn run<P, A, M, T>(
    group: Group,
    parts: Parts<P, A, M, T, ()>,
    config: &Config,
    is_hold: fn(&P::Request) -> bool,
) -> Result<(Taken, Counts), String>
where
    P: Inspect,
    A: Application<P>,
    M: Monitor<P>,
    T: Meter<P>,
{
    let (cpu, wall) = (cpu_nanos(), Instant::now());
    let mut sim = Sim::new(group, parts, config, is_hold);
    let ending = sim.run();
    let wall_nanos = wall.elapsed().as_nanos() as u64;
    let cpu_nanos = cpu_nanos().saturating_sub(cpu);
    let Counts { sent: messages, steps: events, .. } = *sim.counts();
    let taken = Taken { messages, events, wall_nanos, cpu_nanos };
    sim.judge(ending);
    match sim.violations().first() {
        Some((_, violation)) => Err(format!("{}: {}", violation.property, violation.detail)),
        None if ending == Ending::CutOff => Err("the run was cut off".into()),
        None => Ok((taken, sim.counts().clone())),
    }
}

pub(crate) fn timed(work: impl FnOnce() -> u64) -> Taken {
    let (cpu, wall) = (cpu_nanos(), Instant::now());
    let messages = work();
    let wall_nanos = wall.elapsed().as_nanos() as u64;
    Taken { messages, events: 0, wall_nanos, cpu_nanos: cpu_nanos().saturating_sub(cpu) }
}
