//! Plans: scenarios with every value checked and every default filled in.

mod assumptions;
mod faults;
mod group;
mod load;
mod workload;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use konklave_algorithms::{Assumption, DataSheet, Facts, Order, Setup, Switch, Watch, Workload};
use konklave_process::topology::Hops;
use konklave_process::{ProcessId, Rng};
use konklave_sim::{Config, Delay, Fault, Pace, Patience, What};

use self::assumptions::broken_assumptions;
use self::faults::{detect_after, faults};
use self::group::{group, list, topology};
use self::load::{measuring, weights};
use self::workload::{script, workload};
use crate::disturbances::Disturbances;
use crate::scenario::Load;
use crate::{Error, Scenario, read_text};

/// A scenario that can be run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The scenario, with number of nodes and seed filled in.
    pub scenario: Scenario,
    /// Group, topology, mistake, variants.
    pub setup: Setup,
    /// The requests of each node.
    pub workload: Workload,
    /// The simulated world.
    pub config: Config,
    /// The properties that are judged.
    pub watch: Watch,
    /// The assumptions of the algorithm in the chosen variant.
    pub assumes: &'static [Assumption],
    /// The assumptions that the scenario breaks, each with the option or fault that does so.
    pub broken: Vec<(Assumption, String)>,
    /// Options that are given but have no effect, each with the reason.
    pub idle: Vec<(&'static str, &'static str)>,
    /// The program in the command that repeats the run: this one, or the one that recorded the run.
    pub program: String,
    /// Whether all assumptions of the plain form of the algorithm hold. Cost formulas apply only then, even
    /// if the chosen variant tolerates more faults.
    pub regular: bool,
}

/// Number of nodes if neither option nor file names one.
const DEFAULT_NODES: usize = 5;
/// The least delay of a message, in T.
const TICK: f64 = 1.0 / konklave_sim::UNIT as f64;
/// Above this many nodes, happened-before order is not watched: its vectors would be too large.
const MOST_FOR_ORDER: usize = 256;

impl Plan {
    /// The plan for `scenario`; `endless` algorithms run for a fixed time.
    pub fn new(sheet: &DataSheet, mut scenario: Scenario, endless: bool) -> Result<Self, Error> {
        // An environment variable may contain empty lines.
        scenario.set.retain(|word| !word.trim().is_empty());
        scenario.faults.retain(|fault| !fault.trim().is_empty());
        let seed = scenario.seed.unwrap_or(1);
        let rng = Rng::new(seed);
        let (topology, file_ids) = topology(sheet, &scenario, &rng)?;
        let group = group(&scenario, topology.len(), file_ids, &rng)?;
        let setup = Setup {
            mistake: mistake(sheet, &scenario)?,
            chosen: chosen(sheet, &scenario)?,
            down: list(&scenario.down, "down", &group)?,
            ..Setup::new(group, topology)
        };
        let script = script(&mut scenario, &setup.group)?;
        let workload = workload(&scenario, &setup, &script, &rng)?;
        let weights = weights(scenario.skew, &workload.requests);
        let mut config = Config { script, weights, ..config(&scenario, &setup, seed, endless)? };
        let measuring = measuring(&scenario, &workload, &config)?;
        let setup = Setup { measuring, ..setup };
        config.step_limit =
            scenario.step_limit.unwrap_or_else(|| enough(&workload, setup.group.len()));
        let mut watch = Watch::all(sheet);
        if setup.group.len() > MOST_FOR_ORDER {
            watch.order = Order::Ignore;
        }
        let restarts = config.faults.iter().any(|f| matches!(f.what, What::Restart(..)));
        if watch.order == Order::Judge && !sheet.claims_order(restarts) {
            watch.order = Order::Count;
        }
        let broken = broken_assumptions(sheet, &config, &setup, None);
        let nodes = Some(setup.group.len());
        let scenario = Scenario { nodes, seed: Some(seed), ..scenario };
        let regular = broken.is_empty();
        let assumes = sheet.assumes;
        let (idle, program) = (Vec::new(), crate::program().to_owned());
        Ok(Self {
            scenario,
            setup,
            workload,
            config,
            watch,
            assumes,
            broken,
            idle,
            program,
            regular,
        })
    }

    /// The processes that are up in the end: those that were up at the start and did not crash for good.
    pub fn survivors(&self) -> Vec<u32> {
        let comes_back = |p: ProcessId| {
            let is_restart = |f: &Fault| matches!(f.what, What::Restart(q, _) if q == p);
            self.config.faults.iter().any(is_restart)
        };
        let is_gone = |p: &ProcessId| {
            let crashes = self.config.faults.iter().any(|f| f.what == What::Crash(*p));
            (crashes || self.setup.down.contains(p)) && !comes_back(*p)
        };
        let members = self.setup.group.members().iter();
        members.filter(|p| !is_gone(p)).map(|p| p.0).collect()
    }

    /// The plan with the assumptions of the chosen variant, whose timeouts allow delays up to
    /// `longest_delay`.
    pub(crate) fn judged_by(self, variant: &DataSheet, longest_delay: Option<f64>) -> Self {
        let broken = broken_assumptions(variant, &self.config, &self.setup, longest_delay);
        Self { assumes: variant.assumes, broken, ..self }
    }

    /// The plan of an algorithm that has ends of its own, unless the user gives a limit: its run ends when no client
    /// learns anything new for long. If the algorithm `goes_on` when all requests are served, its run ends then;
    /// after a fault, some time later.
    pub(crate) fn with_end(mut self, goes_on: bool) -> Self {
        if self.scenario.time_limit.is_some() || self.scenario.step_limit.is_some() {
            return self;
        }
        let n = self.setup.group.len();
        let has_faults = self.config.faults.len() > self.setup.down.len();
        let grace = if has_faults { watching_time(n) } else { 0.0 };
        self.config.until_served = goes_on.then_some(grace);
        self.config.patience = Some(patience(n));
        self
    }

    /// The facts for cost formulas of a run with these `disturbances`; `served` counts the grants of each
    /// process.
    pub(crate) fn facts<'a>(
        &'a self,
        served: &'a [(ProcessId, u64)],
        disturbances: &Disturbances<'_>,
    ) -> Facts<'a> {
        let undisturbed = disturbances.are_none() && self.setup.down.is_empty();
        let delayed = disturbances.delay();
        // Even requests of a single client can overtake each other.
        let askers = self.workload.requests.iter().filter(|&&times| times > 0).count();
        let delayed = delayed || queues(&self.config);
        let in_order = self.config.fifo || self.config.delay.is_constant();
        Facts {
            setup: &self.setup,
            initiators: &self.workload.initiators,
            served,
            delay_max: self.config.delay.longest().filter(|_| !delayed).map(|t| t.max(TICK)),
            assumptions_hold: self.regular && self.broken.is_empty(),
            uncontended: undisturbed && in_order && askers <= 1,
            at_once: self.config.script.is_empty() && self.config.think == Pace::Constant(0.0),
            elapsed: 0.0,
            undisturbed,
            steady: self.config.delay.is_constant() && !delayed,
            hold: self.config.hold.least(),
        }
    }
}

/// Whether messages wait at busy nodes, so that no delay has a bound.
fn queues(config: &Config) -> bool {
    config.service != Pace::Constant(0.0) || config.bandwidth.is_some()
}

fn usage<T>(message: impl Into<String>) -> Result<T, Error> {
    Err(Error::Usage(message.into()))
}

fn mistake(sheet: &DataSheet, scenario: &Scenario) -> Result<Option<&'static str>, Error> {
    let Some(name) = scenario.mistake.as_deref() else { return Ok(None) };
    let known = sheet.mistakes.iter().find(|m| m.name == name.replace('_', "-"));
    if let Some(mistake) = known {
        return Ok(Some(mistake.name));
    }
    let names: Vec<&str> = sheet.mistakes.iter().map(|m| m.name).collect();
    if names.is_empty() {
        return usage(format!("--mistake {name}: {} has no known mistakes", sheet.name));
    }
    usage(format!(
        "--mistake {name}: the known mistakes of {} are {}{}",
        sheet.name,
        names.join(", "),
        crate::did_you_mean(name, names.iter().copied())
    ))
}

fn chosen(sheet: &DataSheet, scenario: &Scenario) -> Result<BTreeMap<&'static str, String>, Error> {
    let mut chosen = BTreeMap::new();
    for word in &scenario.set {
        let Some((name, value)) = word.split_once('=') else {
            return usage(format!("--set {word}: expected NAME=VALUE"));
        };
        let Some(switch) = sheet.switches.iter().find(|s| s.name == name) else {
            let names: Vec<&str> = sheet.switches.iter().map(|s| s.name).collect();
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return usage(format!("--set {word}: the settings of {} are {known}", sheet.name));
        };
        if !switch.accepts(value) {
            let values = switch.values.join(", ");
            let numbers = switch.values.contains(&"<number>");
            let most = if numbers { format!(", up to {}", Switch::LARGEST) } else { String::new() };
            return usage(format!("--set {word}: {name} must be one of {values}{most}"));
        }
        chosen.insert(switch.name, value.to_owned());
    }
    Ok(chosen)
}

fn config(scenario: &Scenario, setup: &Setup, seed: u64, endless: bool) -> Result<Config, Error> {
    let probability = |p: Option<f64>, option: &str| match p {
        Some(p) if !(0.0..=1.0).contains(&p) => {
            usage(format!("--{option} {p}: a probability must lie between 0 and 1"))
        }
        p => Ok(p.unwrap_or(0.0)),
    };
    let pace = |text: &Option<String>, option: &str, default: Pace| match text {
        None => Ok(default),
        Some(text) => text.parse().map_err(|e| Error::Usage(format!("--{option}: {e}"))),
    };
    if let Some(skew) = scenario.skew
        && !(0.0..=10.0).contains(&skew)
    {
        return usage(format!("--skew {skew}: the exponent must lie between 0 and 10"));
    }
    if let Some(bandwidth) = scenario.bandwidth
        && !(bandwidth > 0.0 && bandwidth <= 1e15)
    {
        return usage(format!(
            "--bandwidth {bandwidth}: expected a positive number of bytes in one T"
        ));
    }
    let service = pace(&scenario.service, "service", Pace::Constant(0.0))?;
    if service.is_open() {
        return usage(format!(
            "--service {service}: requests arrive, but handling takes a time, as in 0.1"
        ));
    }
    let hold = pace(&scenario.hold, "hold", Pace::Constant(1.0))?;
    if hold.is_open() {
        return usage(format!(
            "--hold {hold}: requests arrive, but a client holds for a time, as in 2"
        ));
    }
    let think = match scenario.load {
        Some(Load::Low) => Pace::Exponential(100.0 * setup.group.len() as f64),
        Some(Load::High) | None => Pace::Constant(0.0),
    };
    let faults = faults(scenario, setup)?;
    let endless_limit = watching_time(setup.group.len());
    let time_limit = scenario.time_limit.unwrap_or(if endless { endless_limit } else { 1e8 });
    if !(time_limit > 0.0 && time_limit <= 1e15) {
        return usage(format!("--time-limit {time_limit}: must be positive"));
    }
    Ok(Config {
        script: Vec::new(),
        seed,
        delay: delay(scenario, setup)?,
        fifo: scenario.fifo.unwrap_or(true),
        loss: probability(scenario.loss, "loss")?,
        duplicate: probability(scenario.duplicate, "duplicate")?,
        think: pace(&scenario.think, "think", think)?,
        hold,
        weights: Vec::new(),
        service,
        bandwidth: scenario.bandwidth,
        faults,
        detect_after: detect_after(scenario)?,
        unit: Duration::from_millis(1),
        time_limit,
        step_limit: scenario.step_limit.unwrap_or(u64::MAX),
        until_served: None,
        patience: None,
        app_messages: scenario.app_messages.unwrap_or(0),
    })
}

/// How long runs without an end of their own are watched, in T: longer for larger groups.
fn watching_time(n: usize) -> f64 {
    100.0_f64.max(25.0 * n as f64)
}

/// How long a run goes on in which no client learns anything new: much longer than any algorithm of the catalog needs
/// from one event of a client to the next. Messages go round a ring of n processes a few times, and each process sends
/// to all others a few times.
fn patience(n: usize) -> Patience {
    let steps = n as u64;
    Patience { steps: 20_000 + 1000 * steps + 4 * steps * steps, time: 10_000.0 + 100.0 * n as f64 }
}

/// The default step limit. Every terminating algorithm of the catalog ends before it.
fn enough(workload: &Workload, n: usize) -> u64 {
    let n = n as u64;
    let requests: u64 = workload.requests.iter().map(|&r| u64::from(r)).sum();
    (10_000_000 + 1000 * n + 4 * n * n).min(1_000_000_000).saturating_add(requests * (100 + 20 * n))
}

fn delay(scenario: &Scenario, setup: &Setup) -> Result<Delay, Error> {
    let Some(text) = scenario.delay.as_deref() else { return Ok(Delay::default()) };
    if text == "hops" {
        return Ok(Delay::Hops(Arc::new(Hops::new(&setup.topology, &setup.group))));
    }
    let parsed = text.parse();
    let looks_like_file = text.contains('/') || text.ends_with(".txt") || text.ends_with(".links");
    match parsed {
        Ok(delay) => Ok(delay),
        Err(_) if looks_like_file => {
            let read = read_text(Path::new(text))?;
            Delay::parse_links(&read, text, &setup.group).map_err(Error::Data)
        }
        Err(e) => usage(format!("--delay: {e}")),
    }
}
