//! A small group for tests, explored by the checker or run once in the simulator.

use std::fmt;
use std::marker::PhantomData;

use konklave_algorithms::{Algorithm, Order, Problem, Setup, Simulation, Watch, Workload, erased};
use konklave_check::{Clock, Model, Options, Outcome, ScheduleStep, Swarm, Timing};
use konklave_process::{Group, Portable, ProcessId, Topology};
use konklave_sim::{Config, Ending, UNIT};

use crate::failing;

/// A group of one algorithm, built up call by call.
#[derive(Clone, Debug)]
pub struct Case<P> {
    /// Group, topology, mistake, variants.
    pub setup: Setup,
    /// The processes that start, and the number of requests of each client.
    pub workload: Workload,
    /// The properties to judge.
    pub watch: Watch,
    /// The options of the checker.
    pub options: Options,
    /// The configuration of the simulator.
    pub config: Config,
    algorithm: PhantomData<P>,
}

impl<P: Algorithm + Portable> Case<P> {
    /// The same case for another algorithm, or another form of it.
    pub fn of<Q: Algorithm + Portable>(self) -> Case<Q> {
        let Self { setup, workload, watch, options, config, algorithm: _ } = self;
        Case { setup, workload, watch, options, config, algorithm: PhantomData }
    }

    /// Members 0 to n − 1 on `topology`; all start, and each client makes one request.
    pub fn on(topology: Topology) -> Self {
        let group = Group::of(topology.len());
        Self {
            workload: Workload {
                initiators: group.members().to_vec(),
                requests: vec![1; group.len()],
            },
            setup: Setup::new(group, topology),
            watch: Watch::default(),
            options: Options::default(),
            config: Config { detect_after: Some(3.0), ..Config::default() },
            algorithm: PhantomData,
        }
    }

    /// The checker tries this many random runs in place of all runs.
    pub fn random_runs(mut self, runs: u64) -> Self {
        self.options.swarm = Some(Swarm { shard: 0, of: 1, seed: 1, runs });
        self
    }

    /// On a complete graph.
    pub fn complete(n: usize) -> Self {
        Self::on(Topology::complete(n))
    }

    /// On an undirected ring.
    pub fn ring(n: usize) -> Self {
        Self::on(Topology::ring(n))
    }

    /// On a ring in one direction.
    pub fn directed_ring(n: usize) -> Self {
        Self::on(Topology::directed_ring(n))
    }

    /// With these ids in node order; all start.
    pub fn ids(mut self, ids: &[u32]) -> Self {
        let members: Vec<ProcessId> = ids.iter().copied().map(ProcessId).collect();
        self.workload.initiators.clone_from(&members);
        self.setup.group = Group::new(members).expect("a test names different ids");
        self
    }

    /// Only these start.
    pub fn initiators(mut self, ids: &[u32]) -> Self {
        self.workload.initiators = ids.iter().copied().map(ProcessId).collect();
        self
    }

    /// The number of requests of each client, in node order.
    pub fn requests(mut self, requests: &[u32]) -> Self {
        self.workload.requests = requests.to_vec();
        self
    }

    /// With this mistake.
    pub fn mistake(mut self, name: &str) -> Self {
        let known = P::SHEET.mistakes.iter().find(|m| m.name == name);
        self.setup.mistake = Some(known.unwrap_or_else(|| panic!("no mistake {name}")).name);
        self
    }

    /// With this variant.
    pub fn set(mut self, name: &str, value: impl ToString) -> Self {
        let known = P::SHEET.switches.iter().find(|s| s.name == name);
        let name = known.unwrap_or_else(|| panic!("no switch {name}")).name;
        self.setup.chosen.insert(name, value.to_string());
        self
    }

    /// These are down from the start (in the simulator: a crash at time 0).
    pub fn down(mut self, ids: &[u32]) -> Self {
        self.setup.down = ids.iter().copied().map(ProcessId).collect();
        self.workload.initiators.retain(|p| !ids.contains(&p.0));
        self.fault_all(ids.iter().map(|p| format!("crash:{p}@0")))
    }

    /// Messages may overtake each other.
    pub fn no_fifo(mut self) -> Self {
        self.options.fifo = false;
        self.config.fifo = false;
        self
    }

    /// Timers fire only if nothing is in flight (checker only).
    pub fn synchronous(mut self) -> Self {
        self.options.timing = Timing::WhenQuiet;
        self
    }

    /// Timers fire only if nothing is in flight, except this many early ones (checker only).
    pub fn almost_synchronous(mut self, early: u8) -> Self {
        self.options.early = early;
        self.synchronous()
    }

    /// Timers run out exactly on time; time passes in steps of this many microseconds (checker only).
    pub fn clock(mut self, micros: u64) -> Self {
        let step = std::time::Duration::from_micros(micros);
        self.options.clock = Some(Clock { step, limit: None, settled: false });
        self
    }

    /// Allows this many crashes and restarts (checker only).
    pub fn crashes(mut self, crashes: u8, restarts: u8) -> Self {
        self.options.crashes = crashes;
        self.options.restarts = restarts;
        self
    }

    /// Allows this many losses and duplicates (checker only).
    pub fn mishaps(mut self, losses: u8, duplicates: u8) -> Self {
        self.options.losses = losses;
        self.options.duplicates = duplicates;
        self
    }

    /// Only these properties are judged, by their full names (checker only).
    pub fn judge(mut self, properties: &[&str]) -> Self {
        self.options.properties = properties.iter().map(|&p| p.to_owned()).collect();
        if properties.contains(&"happened-before order") {
            self.watch.order = Order::Judge;
        }
        self.watch.fence |= properties.contains(&"growing fences");
        self
    }

    /// Judges happened-before order, too.
    pub fn ordered(mut self) -> Self {
        self.watch.order = Order::Judge;
        self
    }

    /// Judges fencing tokens, too.
    pub fn fenced(mut self) -> Self {
        self.watch.fence = true;
        self
    }

    /// Computes the fewest and the most messages, too (checker only).
    pub fn counting(mut self) -> Self {
        self.options.count_messages = true;
        self
    }

    /// One order of commuting deliveries stands for all (checker only).
    pub fn reduced(mut self) -> Self {
        self.options.reduce = true;
        self
    }

    /// Keeps only a 64-bit hash of each state, for models that are too large otherwise (checker only).
    pub fn compact(mut self) -> Self {
        self.options.compact = true;
        self
    }

    /// Allows this many messages of the application past the algorithm (checker only).
    pub fn app_messages(mut self, count: u8) -> Self {
        self.options.app_messages = count;
        self
    }

    /// Injects faults (simulator only), written as on the command line.
    pub fn fault(self, fault: &str) -> Self {
        self.fault_all([fault.to_owned()])
    }

    fn fault_all(mut self, faults: impl IntoIterator<Item = String>) -> Self {
        let parsed = faults.into_iter().map(|f| f.parse().unwrap_or_else(|e| panic!("{e}")));
        self.config.faults.extend(parsed);
        self
    }

    /// Changes the configuration of the simulator.
    pub fn config(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(&mut self.config);
        self
    }

    fn model(&self) -> Model {
        let algorithm = erased::<P>();
        Model {
            group: self.setup.group.clone(),
            processes: algorithm.processes(&self.setup),
            application: algorithm.application(&self.workload, &self.setup),
            monitor: algorithm.monitor(&self.watch, &self.setup),
            options: Options { down: self.setup.down.clone(), ..self.options.clone() },
        }
    }

    /// Plays a schedule as written by `check --emit test`; returns the property that it violates, if any.
    #[track_caller]
    pub fn play(&self, schedule: &[&str]) -> Option<&'static str> {
        let step = |text: &&str| {
            ScheduleStep::new(text).unwrap_or_else(|| panic!("`{text}` is not a schedule step"))
        };
        let steps: Vec<ScheduleStep> = schedule.iter().map(step).collect();
        let played = self.model().play(&steps);
        if let Some(&first) = played.skipped.first() {
            panic!("`{}`, step {}, cannot happen there", steps[first], first + 1);
        }
        played.broken.map(|(violation, _)| violation.property)
    }

    /// Explores every run.
    pub fn check(&self) -> Found {
        let report = self.model().explore(|_| true);
        let (verdict, property, length) = match &report.outcome {
            Outcome::Exhausted => ("exhausted", None, 0),
            Outcome::Bounded(_) => ("bounded", None, 0),
            Outcome::Violated(w) => ("violated", Some(w.violation.property), w.len()),
        };
        Found {
            verdict,
            property,
            length,
            states: report.states,
            transitions: report.transitions,
            messages: report.messages,
            witness: match &report.outcome {
                Outcome::Violated(w) => failing::witness::<P>(&self.setup.group, w),
                Outcome::Exhausted | Outcome::Bounded(_) => String::new(),
            },
        }
    }

    /// The properties to judge in a simulated run.
    pub(crate) fn simulated_watch(&self) -> Watch {
        Watch { order: self.watch.order, ..Watch::all(&P::SHEET) }
    }

    pub(crate) fn simulation<'a>(&'a self, watch: &'a Watch) -> Simulation<'a> {
        Simulation {
            setup: &self.setup,
            workload: &self.workload,
            watch,
            config: &self.config,
            keep_processes: true,
        }
    }

    /// Runs once in the simulator.
    pub fn simulate(&self) -> Seen<P> {
        let watch = self.simulated_watch();
        let ran = erased::<P>().simulate(self.simulation(&watch), None);
        let (meter, monitor) = (ran.meter.get(), ran.monitor.get());
        Seen {
            ending: ran.ending,
            sent: ran.counts.sent,
            kinds: ran.kinds,
            time: ran.now as f64 / UNIT as f64,
            violations: ran
                .violations
                .iter()
                .map(|(at, v)| format!("{} at {at}: {}", v.property, v.detail))
                .collect(),
            waiting: ran.waiting,
            summary: P::Problem::summary(meter, monitor, UNIT as f64),
            processes: ran.processes.iter().map(|process| process.get::<P>().clone()).collect(),
            monitor: monitor.clone(),
            steps: ran.counts.steps,
            case: self.clone(),
        }
    }
}

/// The result of the checker.
#[derive(Clone)]
pub struct Found {
    /// The verdict: exhausted, violated or bounded.
    pub verdict: &'static str,
    /// The violated property.
    pub property: Option<&'static str>,
    /// The length of a shortest witness.
    pub length: usize,
    /// The number of states.
    pub states: u64,
    /// The number of steps between them.
    pub transitions: u64,
    /// The fewest and the most messages, if they were counted.
    pub messages: Option<(u32, u32)>,
    /// The witness and its causes, for a failing test to show.
    pub witness: String,
}

impl fmt::Debug for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.verdict)?;
        if let Some(property) = self.property {
            write!(f, ": {property} breaks in {} steps", self.length)?;
        }
        write!(f, ", {} states, {} transitions", self.states, self.transitions)?;
        if let Some((least, most)) = self.messages {
            write!(f, ", {least}…{most} messages")?;
        }
        if self.witness.is_empty() { Ok(()) } else { write!(f, "\n{}", self.witness) }
    }
}

impl Found {
    /// Asserts that all states were explored, that no property is violated, and how many states there are.
    #[track_caller]
    pub fn exhausted(&self, states: u64) {
        assert_eq!((self.verdict, self.states), ("exhausted", states), "{self:?}");
    }

    /// Asserts that this property is violated, and that a shortest witness has this many steps.
    #[track_caller]
    pub fn violated(&self, property: &str, length: usize) {
        let found = (self.verdict, self.property, self.length);
        assert_eq!(found, ("violated", Some(property), length), "{self:?}");
    }
}

/// The result of a simulated run.
#[derive(Debug)]
pub struct Seen<P: Algorithm> {
    /// Whether the run ended by itself: no event was possible any more.
    pub ending: Ending,
    /// Messages.
    pub sent: u64,
    /// Messages by kind.
    pub kinds: Vec<(String, u64)>,
    /// The duration of the run, in T.
    pub time: f64,
    /// The violations, in words.
    pub violations: Vec<String>,
    /// The processes whose clients wait at the end.
    pub waiting: Vec<ProcessId>,
    /// The measures of the problem.
    pub summary: <P::Problem as Problem<P>>::Summary,
    /// The processes at the end.
    pub processes: Vec<P>,
    /// The judges at the end.
    pub monitor: <P::Problem as Problem<P>>::Monitor,
    /// The number of steps of all processes.
    pub steps: u64,
    /// The simulated case, whose story is printed if a test fails.
    case: Case<P>,
}

impl<P: Algorithm + Portable> Seen<P> {
    /// Asserts that no property is violated and all clients were served.
    #[track_caller]
    pub fn well(&self) -> &Self {
        assert!(self.violations.is_empty(), "{}\n{}", self.violations.join("\n"), self.told());
        let waiting: Vec<String> = self.waiting.iter().map(ProcessId::to_string).collect();
        assert!(waiting.is_empty(), "{} wait for ever\n{}", waiting.join(", "), self.told());
        self
    }

    /// Why the run went wrong, its last steps, and a file with all of them.
    fn told(&self) -> String {
        failing::simulated(&self.case, self.steps)
    }

    /// How many messages of this kind were sent.
    pub fn kind(&self, kind: &str) -> u64 {
        self.kinds.iter().find(|(k, _)| k == kind).map_or(0, |(_, count)| *count)
    }
}
