//! Plans: scenarios with every value checked and every default filled in.

mod load;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use konklave_algorithms::{Assumption, DataSheet, Facts, Order, Setup, Switch, Watch, Workload};
use konklave_process::topology::{Hops, Shape, Spec, Topology};
use konklave_process::{Group, MAX_ID, ProcessId, ProcessSet, Rng};
use konklave_sim::{Config, Delay, Fault, Mishap, Pace, Patience, What};

use self::load::{measuring, trace, weights};
use crate::arrangements::EVERY;
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

fn topology(
    sheet: &DataSheet,
    scenario: &Scenario,
    rng: &Rng,
) -> Result<(Topology, Option<Vec<ProcessId>>), Error> {
    let listed = match &scenario.ids {
        Some(ids) if ids.contains(',') => Some(ids.split(',').count()),
        _ => None,
    };
    if scenario.nodes == Some(0) {
        return usage("--nodes 0: a group needs at least one node");
    }
    if let (Some(n), Some(listed)) = (scenario.nodes, listed)
        && n != listed
    {
        return usage(format!("--ids names {listed} nodes, but --nodes is {n}"));
    }
    let spec = match &scenario.topology {
        None => Spec::default_for(sheet.topologies[0]),
        Some(text) => text.parse().map_err(|e| Error::Usage(format!("--topology: {e}")))?,
    };
    let from_file = matches!(spec, Spec::File(_));
    let n = scenario.nodes.or(listed).unwrap_or(if from_file { 0 } else { DEFAULT_NODES });
    if n > MAX_ID as usize + 1 {
        return usage(format!("--nodes {n}: the most is 2^24 nodes"));
    }
    let mut unread = None;
    let parsed = spec.build(n, &rng.fork(1), |file| {
        read_text(Path::new(file)).map_err(|error| {
            unread = Some(error);
            std::io::ErrorKind::Other.into()
        })
    });
    if let Some(error) = unread {
        return Err(error);
    }
    let option = scenario.topology.as_ref().map_or(String::new(), |t| format!("--topology {t}: "));
    let parsed = parsed.map_err(|e| {
        if from_file { Error::Data(e.to_string()) } else { Error::Usage(format!("{option}{e}")) }
    })?;
    let topology = parsed.topology;
    if !sheet.topologies.iter().any(|&shape| topology.fits(shape)) {
        let shapes: Vec<String> = sheet.topologies.iter().map(Shape::to_string).collect();
        return usage(format!(
            "{option}{} cannot run on {}: it needs a {}",
            sheet.name,
            topology.name,
            shapes.join(" or a ")
        ));
    }
    Ok((topology, parsed.ids))
}

fn group(
    scenario: &Scenario,
    n: usize,
    file_ids: Option<Vec<ProcessId>>,
    rng: &Rng,
) -> Result<Group, Error> {
    let given = scenario.ids.as_deref();
    if let (Some(ids), Some(_)) = (given, &file_ids) {
        return usage(format!("--ids {ids}: the topology file already names the ids"));
    }
    let ascending = || (0..n as u32).map(ProcessId);
    let ids = match (given, file_ids) {
        (_, Some(ids)) => ids,
        (None | Some("asc" | "ascending"), None) => ascending().collect(),
        (Some("desc" | "descending"), None) => ascending().rev().collect(),
        (Some("random"), None) => {
            let mut ids: Vec<ProcessId> = ascending().collect();
            rng.fork(2).shuffle(&mut ids);
            ids
        }
        (Some(EVERY), None) => {
            return usage(format!(
                "--ids {EVERY} works only with `check`, which explores each arrangement in turn"
            ));
        }
        (Some(text), None) => {
            let ids = text.split(',').map(|word| id(word, "ids")).collect::<Result<Vec<_>, _>>()?;
            if ids.len() != n {
                return usage(format!("--ids names {} nodes, but the group has {n}", ids.len()));
            }
            ids
        }
    };
    Group::new(ids).map_err(|e| Error::Usage(format!("--ids: {e}")))
}

fn id(word: &str, option: &str) -> Result<ProcessId, Error> {
    let word = word.trim();
    let digits = word.trim_start_matches('p');
    match digits.parse() {
        Ok(id) if id <= MAX_ID => Ok(ProcessId(id)),
        _ if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            usage(format!("--{option}: id {word} is too large; ids are numbers from 0 to {MAX_ID}"))
        }
        _ => usage(format!("--{option}: `{word}` is not an id; ids are numbers, as in 3,1,2")),
    }
}

fn list(text: &Option<String>, option: &str, group: &Group) -> Result<Vec<ProcessId>, Error> {
    let Some(text) = text.as_deref().filter(|t| !t.trim().is_empty()) else {
        return Ok(Vec::new());
    };
    let mut members = Vec::new();
    for word in text.split(',') {
        let p = id(word, option)?;
        if !group.contains(p) {
            return usage(format!(
                "--{option}: {p} is not a member of the group; members are {}",
                some(group)
            ));
        }
        if !members.contains(&p) {
            members.push(p);
        }
    }
    Ok(members)
}

/// The members, or the first of many.
fn some(group: &Group) -> String {
    let shown: Vec<String> = group.members().iter().take(12).map(|p| p.0.to_string()).collect();
    let more = if group.len() > 12 { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
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

/// The times of requests.
fn script(scenario: &mut Scenario, group: &Group) -> Result<Vec<(ProcessId, f64)>, Error> {
    if let Some(file) = scenario.script.take_if(|text| !text.is_empty() && !text.contains('@')) {
        if !Path::new(&file).exists() {
            return usage(format!(
                "--script {file}: neither requests of the form NODE@TIME, as in 2@3.5, nor a file"
            ));
        }
        // A recording must not depend on a file that may change, so it has the times themselves.
        scenario.script = Some(trace(&read_text(Path::new(&file))?, &file)?);
    }
    let mut script = Vec::new();
    for word in scenario.script.iter().flat_map(|s| s.split(',')) {
        let wrong = || {
            Error::Usage(format!("--script: `{word}` is not of the form NODE@TIME, as in 2@3.5"))
        };
        let (node, time) = word.trim().split_once('@').ok_or_else(wrong)?;
        let p = id(node, "script")?;
        if !group.contains(p) {
            return usage(format!(
                "--script: {p} is not a member of the group; members are {}",
                some(group)
            ));
        }
        let time = time.trim_end_matches('T').parse::<f64>().ok();
        script.push((p, time.filter(|t| (0.0..1e12).contains(t)).ok_or_else(wrong)?));
    }
    Ok(script)
}

fn workload(
    scenario: &Scenario,
    setup: &Setup,
    script: &[(ProcessId, f64)],
    rng: &Rng,
) -> Result<Workload, Error> {
    let group = &setup.group;
    if !script.is_empty() {
        return scripted(scenario, group, script);
    }
    let initiators = initiators(scenario, setup, rng)?;
    let starters: ProcessSet = initiators.iter().copied().collect();
    let requests = match (&scenario.requests, scenario.entries) {
        (Some(_), Some(_)) => return usage("--requests and --entries cannot be combined"),
        (Some(text), None) => numbers_of_requests(text, group)?,
        (None, entries) => {
            // A node that is no initiator makes no requests, whatever the problem is.
            let asks = |p: &ProcessId| scenario.initiators.is_none() || starters.contains(*p);
            let times = entries.unwrap_or(1);
            let even: Vec<u32> =
                group.members().iter().map(|p| if asks(p) { times } else { 0 }).collect();
            let weights = weights(scenario.skew, &even);
            let skewed = |(k, w): (&u32, &f64)| (f64::from(*k) * w).round().max(1.0) as u32;
            match times == 0 || weights.is_empty() {
                true => even,
                false => {
                    let each = even.iter().zip(&weights);
                    each.map(|(k, w)| if *k > 0 { skewed((k, w)) } else { 0 }).collect()
                }
            }
        }
    };
    let times = |p: &ProcessId| group.place(*p).map_or(0, |place| requests[place]);
    if let (Some(_), Some(_)) = (&scenario.initiators, &scenario.requests)
        && let Some(p) = group.members().iter().find(|p| times(p) > 0 && !starters.contains(**p))
    {
        let times = times(p);
        return usage(format!(
            "--requests lets {p} make {times} request{}, but --initiators does not name it",
            if times == 1 { "" } else { "s" }
        ));
    }
    let initiators = initiators.into_iter().filter(|p| times(p) > 0).collect();
    Ok(Workload { initiators, requests })
}

/// The requests of a script.
fn scripted(
    scenario: &Scenario,
    group: &Group,
    script: &[(ProcessId, f64)],
) -> Result<Workload, Error> {
    let given = [
        ("initiators", scenario.initiators.is_some()),
        ("requests", scenario.requests.is_some()),
        ("entries", scenario.entries.is_some()),
    ];
    if let Some((option, _)) = given.iter().find(|(_, given)| *given) {
        return usage(format!("--script and --{option} cannot be combined"));
    }
    let times = |p: &ProcessId| script.iter().filter(|(q, _)| q == p).count() as u32;
    let asks = |p: &ProcessId| times(p) > 0;
    Ok(Workload {
        initiators: group.members().iter().copied().filter(asks).collect(),
        requests: group.members().iter().map(times).collect(),
    })
}

/// The value of `--initiators`: a list, or a random choice of so many nodes; without it, all nodes that are up.
fn initiators(scenario: &Scenario, setup: &Setup, rng: &Rng) -> Result<Vec<ProcessId>, Error> {
    let group = &setup.group;
    let up = |p: &ProcessId| !setup.down.contains(p);
    match scenario.initiators.as_deref() {
        None | Some("all") => Ok(group.members().iter().copied().filter(up).collect()),
        Some(text) => match text.strip_suffix('x').map(str::parse::<usize>) {
            Some(Ok(k)) if k <= group.len() => {
                let mut members = group.members().to_vec();
                rng.fork(3).shuffle(&mut members);
                members.truncate(k);
                Ok(members)
            }
            Some(_) => {
                let n = group.len();
                usage(format!("--initiators {text}: the group has only {n} nodes"))
            }
            None => list(&scenario.initiators, "initiators", group),
        },
    }
}

/// The value of `--requests`: a number for each node.
fn numbers_of_requests(text: &str, group: &Group) -> Result<Vec<u32>, Error> {
    let number = |word: &str| {
        let wrong =
            || format!("--requests: `{word}` is not a number; expected a list, as in 2,1,0");
        word.trim().parse::<u32>().map_err(|_| Error::Usage(wrong()))
    };
    let requests = text.split(',').map(number).collect::<Result<Vec<_>, _>>()?;
    if requests.len() != group.len() {
        let (k, n) = (requests.len(), group.len());
        return usage(format!("--requests has {k} numbers, but the group has {n} nodes"));
    }
    Ok(requests)
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

/// The faults to inject, first the crashes of the nodes that are down from the start.
fn faults(scenario: &Scenario, setup: &Setup) -> Result<Vec<Fault>, Error> {
    let mut faults = Vec::new();
    if setup.down.len() == setup.group.len() {
        return usage("--down: at least one node must be up");
    }
    for p in &setup.down {
        faults.push(Fault {
            what: What::Crash(*p),
            when: konklave_sim::When::Time(0.0),
            until: None,
        });
    }
    for text in &scenario.faults {
        let fault: Fault = text.parse().map_err(|e| Error::Usage(format!("--fault {e}")))?;
        if let Some(stranger) = fault.nodes().into_iter().find(|p| !setup.group.contains(*p)) {
            let members = some(&setup.group);
            return usage(format!(
                "--fault {text}: {stranger} is not a member of the group; members are {members}"
            ));
        }
        if let Some(why) = impossible(&fault, setup) {
            return usage(format!("--fault {text}: {why}"));
        }
        faults.push(fault);
    }
    if let Some(restart) = faults.iter().find(|fault| restarts_live_node(fault, &faults)) {
        return usage(format!("--fault {restart}: no fault crashes this node before"));
    }
    Ok(faults)
}

/// The time after which crashes are reported; none: never.
fn detect_after(scenario: &Scenario) -> Result<Option<f64>, Error> {
    match scenario.detect_after.as_deref() {
        None => Ok(Some(3.0)),
        Some("never") => Ok(None),
        Some(text) => match text.trim_end_matches('T').parse::<f64>() {
            Ok(t) if (0.0..1e9).contains(&t) => Ok(Some(t)),
            _ => usage(format!("--detect-after {text}: expected a time in T, or `never`")),
        },
    }
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

/// Why a fault is impossible in this group, if it is.
fn impossible(fault: &Fault, setup: &Setup) -> Option<String> {
    match &fault.what {
        What::Cut(from, to) if from == to => Some(format!("{from} has no channel to itself")),
        What::Break(one, other) if !are_linked(*one, *other, setup) => {
            Some(format!("{one} has no link to {other}"))
        }
        What::Partition(sides) => {
            let mut all: Vec<ProcessId> = sides.iter().flatten().copied().collect();
            all.sort_unstable();
            let twice = all.windows(2).find(|pair| pair[0] == pair[1])?;
            Some(format!("{} stands on two sides of the partition", twice[0]))
        }
        _ => None,
    }
}

/// Whether the topology links two processes, in either direction.
fn are_linked(one: ProcessId, other: ProcessId, setup: &Setup) -> bool {
    let [one, other] = [one, other].map(|p| setup.place(p));
    let leads = |from: usize, to: usize| setup.topology.adjacent(from).any(|p| p == to);
    one != other && (leads(one, other) || leads(other, one))
}

/// Whether this fault restarts a node that no earlier fault crashes.
fn restarts_live_node(fault: &Fault, faults: &[Fault]) -> bool {
    let What::Restart(p, _) = fault.what else { return false };
    !faults.iter().any(|other| {
        let before = match (other.when, fault.when) {
            (konklave_sim::When::Time(a), konklave_sim::When::Time(b)) => a <= b,
            (konklave_sim::When::Step(a), konklave_sim::When::Step(b)) => a <= b,
            // Times and steps cannot be compared before the run.
            _ => true,
        };
        matches!(other.what, What::Crash(q) if q == p) && before
    })
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

/// The assumptions that the world breaks, each with its cause.
fn broken_assumptions(
    sheet: &DataSheet,
    config: &Config,
    setup: &Setup,
    longest_delay: Option<f64>,
) -> Vec<(Assumption, String)> {
    let broken_by = |&assumption: &Assumption| {
        Some((assumption, cause(assumption, config, setup, longest_delay)?))
    };
    sheet.assumes.iter().filter_map(broken_by).collect()
}

/// The cause that breaks an assumption, if any does.
fn cause(
    assumption: Assumption,
    config: &Config,
    setup: &Setup,
    longest_delay: Option<f64>,
) -> Option<String> {
    let struck = |fits: fn(&What) -> bool| first_fault(&config.faults, fits);
    match assumption {
        Assumption::Reliable => loss(config, true),
        Assumption::ReliableLinks => loss(config, false),
        Assumption::AccurateDetector => {
            struck(|w| matches!(w, What::Suspect(..))).or_else(|| unreported(config, setup))
        }
        Assumption::NoDuplicates if config.duplicate > 0.0 => {
            Some(format!("messages arrive twice with probability {}", config.duplicate))
        }
        Assumption::NoDuplicates => struck(|w| matches!(w, What::Message(_, Mishap::Duplicate))),
        Assumption::Fifo if !config.fifo && !config.delay.is_constant() => {
            Some("messages may overtake each other".into())
        }
        Assumption::Fifo if !config.fifo => {
            struck(|w| matches!(w, What::Message(_, Mishap::Delay(_))))
        }
        Assumption::NoCrash => struck(|w| matches!(w, What::Crash(_)))
            .filter(|_| config.faults.len() > setup.down.len()),
        Assumption::BoundedDelays if matches!(config.delay, Delay::Hops(_)) && !queues(config) => {
            None
        }
        Assumption::BoundedDelays => unbounded(config),
        Assumption::Synchronous => {
            unbounded(config).or_else(|| late(config, longest_delay)).or_else(|| {
                struck(|w| {
                    matches!(
                        w,
                        What::Pause(_) | What::Suspect(..) | What::Message(_, Mishap::Delay(_))
                    )
                })
            })
        }
        Assumption::NoRestart => struck(|w| matches!(w, What::Restart(..))),
        Assumption::SteadyClocks => struck(|w| match w {
            What::Pause(_) => true,
            What::Rate(_, rate) => !(0.95..1.05).contains(rate),
            _ => false,
        }),
        Assumption::StableStorage => {
            struck(|w| matches!(w, What::Restart(_, konklave_sim::Memory::Nothing)))
        }
        Assumption::Fifo | Assumption::KnownMembership | Assumption::UniqueIds => None,
    }
}

/// The first fault of a kind, in words.
fn first_fault(faults: &[Fault], fits: impl Fn(&What) -> bool) -> Option<String> {
    faults.iter().find(|f| fits(&f.what)).map(Fault::to_string)
}

/// The cause if messages may be lost; broken links count only if `links_break`.
fn loss(config: &Config, links_break: bool) -> Option<String> {
    if config.loss > 0.0 {
        return Some(format!("messages are lost with probability {}", config.loss));
    }
    first_fault(&config.faults, |w| match w {
        What::Cut(..) | What::Partition(_) | What::Message(_, Mishap::Lose) => true,
        What::Break(..) => links_break,
        _ => false,
    })
}

/// The cause if the failure detector never reports a crash or a broken link.
fn unreported(config: &Config, setup: &Setup) -> Option<String> {
    let faults = &config.faults[setup.down.len()..];
    let fault = first_fault(faults, |w| matches!(w, What::Crash(_) | What::Break(..)));
    let fault = fault.filter(|_| config.detect_after.is_none())?;
    Some(format!("no process learns of {fault}"))
}

/// The cause if delays have no bound.
fn unbounded(config: &Config) -> Option<String> {
    if queues(config) {
        return Some("messages wait at busy nodes".into());
    }
    config.delay.longest().is_none().then(|| "delays have no bound".into())
}

/// The cause if delays may exceed the timeouts.
fn late(config: &Config, most: Option<f64>) -> Option<String> {
    let (longest, most) = (config.delay.longest()?, most?);
    (longest > most)
        .then(|| format!("a message may take {longest} T but the timeouts allow for {most} T"))
}
