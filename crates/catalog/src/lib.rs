//! Where names meet types: the only crate that knows all algorithms and all worlds.
//!
//! An [`Entry`] is an algorithm without its type: its data sheet and the operations on it
//! with it (simulate, check, replay). A [`Catalog`] is a value: ours, `Catalog::builtin()`, can be extended by
//! anyone, `.with::<Mine>()`.

mod arrangements;
mod builtin;
mod checking;
mod collection;
mod costs;
mod disturbances;
mod error;
mod fault_effects;
mod files;
pub mod guarantees;
mod kit;
#[cfg(feature = "network")]
mod network;
mod plan;
mod program;
mod real;
mod report;
mod scenario;
mod simulate;
pub mod tolerance;
mod verify;

pub use checking::{CheckPlan, Checked, Extreme, told, witness_run};
pub use collection::Catalog;
pub use costs::{CostRow, LockCosts, Range};
pub use error::Error;
pub use files::{open_input, read_text};
pub use kit::Shrunk;
pub use konklave_algorithms::Assumption;
pub use konklave_check::{
    Checkpoints, Clock, Options as CheckOptions, Progress, Swarm, Timing, Victim,
};
#[cfg(feature = "network")]
pub use konklave_net::Transport;
#[cfg(feature = "network")]
pub use network::{
    RealWorld,
    member::{MemberPlan, Told},
};
pub use plan::Plan;
pub use program::{name_program, program};
pub use report::{
    ArrangementsReport, BoundReport, CheckReport, Messages, RunReport, SymmetryReport, Verdict,
    ViolationReport,
};
pub use scenario::{Load, Scenario};
pub use simulate::{Outcome, simulated_run};

use std::fmt;
use std::io::{self, Write};

use konklave_algorithms::{
    Algorithm, AnyAlgorithm, DataSheet, ProblemSheet, ProcessSets, Setup, SetupError, UsualRun,
    erased,
};
use konklave_process::Portable;
use konklave_trace::{Difference, Header, Replayed, Run};

/// An algorithm of the catalog: its data sheet and the operations on it.
#[derive(Clone)]
pub struct Entry {
    /// The problem it solves.
    pub problem: &'static ProblemSheet,
    /// Its data sheet.
    pub sheet: DataSheet,
    pub(crate) algorithm: &'static dyn AnyAlgorithm,
    /// The hardened form, where that is a process of its own: chosen by the switch `mode`.
    hardened: Option<Box<Self>>,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

impl Entry {
    /// The entry of the algorithm `P`.
    pub fn new<P: Algorithm + Portable>() -> Self {
        Self::of(erased::<P>())
    }

    /// The entry of an algorithm without its type.
    pub fn of(algorithm: &'static dyn AnyAlgorithm) -> Self {
        let (problem, sheet) = (algorithm.problem(), algorithm.sheet());
        Self { problem, sheet, algorithm, hardened: None }
    }

    /// With a hardened form that is a process of its own.
    pub fn hardened(mut self, form: &'static dyn AnyAlgorithm) -> Self {
        self.hardened = Some(Box::new(Self::of(form)));
        self
    }

    /// The form that `setup` chose.
    fn form(&self, setup: &Setup) -> &Self {
        match &self.hardened {
            Some(form) if setup.chosen(&self.sheet, "mode").is("hardened") => form,
            _ => self,
        }
    }

    /// Its full name.
    pub fn name(&self) -> String {
        format!("{}/{}", self.problem.name, self.sheet.name)
    }

    /// How large its quorums are in the group of `scenario`, and how they share the work, without a
    /// run: as reports of runs tell it. None where there are none.
    pub fn quorums(&self, scenario: Scenario) -> Result<Option<serde_json::Value>, Error> {
        let plan = self.plan(scenario)?;
        let Some(mut quorums) = simulate::quorums(self.form(&plan.setup), &plan.setup) else {
            return Ok(None);
        };
        quorums["nodes"] = plan.setup.group.len().into();
        Ok(Some(quorums))
    }

    /// The set of processes that each process has at the start in the group of `scenario`.
    pub fn process_sets(&self, scenario: Scenario) -> Result<Vec<ProcessSets>, Error> {
        let plan = self.plan(scenario)?;
        Ok(self.form(&plan.setup).algorithm.process_sets(&plan.setup))
    }

    /// The plan for `scenario`, with every value checked.
    pub fn plan(&self, scenario: Scenario) -> Result<Plan, Error> {
        let mut plan = Plan::new(&self.sheet, scenario, self.algorithm.is_endless())?;
        let form = self.form(&plan.setup).algorithm;
        form.check_setup(&plan.setup).map_err(|e| lacking(&e, &plan.scenario))?;
        plan.idle = idle(self.problem, &plan.scenario);
        let (variant, longest) = (form.variant(&plan.setup), form.longest_delay(&plan.setup));
        let plan = plan.judged_by(&variant, longest);
        let goes_on = form.goes_on(&plan.setup);
        Ok(if form.is_endless() { plan } else { plan.with_end(goes_on) })
    }

    /// `scenario` with the workload that the algorithm's source tells of, where the user gave none.
    pub fn usual(&self, scenario: Scenario) -> Result<Scenario, Error> {
        let given = scenario.initiators.is_some()
            || scenario.requests.is_some()
            || scenario.entries.is_some()
            || scenario.script.is_some();
        let group = match self.algorithm.usual_run() {
            UsualRun::HighestDown if !given => self.plan(scenario.clone())?.setup.group,
            UsualRun::HighestDown | UsualRun::AllStart => return Ok(scenario),
        };
        if group.len() == 1 {
            return Ok(scenario);
        }
        let highest = group.highest().0.to_string();
        let down = scenario.down.clone().or(scenario.faults.is_empty().then_some(highest));
        let plan = self.plan(Scenario { down: down.clone(), ..scenario.clone() })?;
        let up = group.members().iter().filter(|p| !plan.setup.down.contains(p)).min();
        Ok(Scenario { down, initiators: up.map(|p| p.0.to_string()), ..scenario })
    }

    /// A remark on runs of `plan`, which the figures of a single run may hide.
    pub fn remark(&self, plan: &Plan) -> Option<&'static str> {
        self.form(&plan.setup).algorithm.remark(&plan.setup, &plan.workload)
    }

    /// Runs it in the simulator.
    pub fn simulate(&self, plan: &Plan, record: bool) -> Result<Outcome, Error> {
        simulate::simulate(self.form(&plan.setup), plan, record)
    }

    /// Runs it in the simulator and records the run in the compact form while it goes on. The inner
    /// result holds errors of `out`, the outer one errors of the plan.
    pub fn record(&self, plan: &Plan, out: &mut dyn Write) -> Result<io::Result<RunReport>, Error> {
        simulate::record(self.form(&plan.setup), plan, out)
    }

    /// Runs it on real tasks.
    #[cfg(feature = "network")]
    pub fn run_on_network(
        &self,
        plan: &Plan,
        world: RealWorld,
        record: bool,
    ) -> Result<Outcome, Error> {
        network::run(self.form(&plan.setup), plan, world, record)
    }

    /// Runs one member in this operating system process.
    #[cfg(feature = "network")]
    pub fn member(&self, plan: &Plan, member: MemberPlan<'_>) -> Result<(), Error> {
        network::member::member(self.form(&plan.setup), plan, member)
    }

    /// Explores it.
    pub fn check(
        &self,
        plan: &Plan,
        check: &CheckPlan,
        watch: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<Checked, Error> {
        checking::check(self.form(&plan.setup), plan, check, watch)
    }

    /// Repeats a recorded run and compares it: see `verify`.
    pub fn replay(&self, plan: &Plan, run: &Run) -> Result<Replayed, Difference> {
        verify::verify(self.form(&plan.setup), plan, run)
    }

    /// Reduces a recorded violation to the steps that cause it.
    pub fn shrink(&self, plan: &Plan, run: &Run) -> Result<Shrunk, Error> {
        kit::shrink(self.form(&plan.setup), plan, run)
    }
}

/// An error of the setup, with the option that causes it.
fn lacking(error: &SetupError, scenario: &Scenario) -> Error {
    let said = error.to_string();
    let names = |word: &&String| {
        let name = word.split('=').next().unwrap_or_default();
        said.strip_prefix(name).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
    };
    Error::Usage(match scenario.set.iter().find(names) {
        Some(word) => format!("--set {word}: {said}"),
        None => said,
    })
}

/// The given options that have no effect for the problem, with the reasons.
fn idle(problem: &ProblemSheet, scenario: &Scenario) -> Vec<(&'static str, &'static str)> {
    let nobody_asks = !problem.asks;
    let asking = [
        ("initiators", scenario.initiators.is_some()),
        ("entries", scenario.entries.is_some()),
        ("requests", scenario.requests.is_some()),
        ("script", scenario.script.is_some()),
        ("load", scenario.load.is_some()),
        ("think", scenario.think.is_some()),
        ("skew", scenario.skew.is_some()),
        ("app-messages", scenario.app_messages.is_some()),
    ];
    let asking = asking.into_iter().filter(|(_, given)| *given && nobody_asks);
    let mut idle: Vec<_> =
        asking.map(|(option, _)| (option, "clients of this problem make no requests")).collect();
    if scenario.hold.is_some() && !problem.holds {
        idle.push(("hold", "clients of this problem hold nothing"));
    }
    if !problem.takes_turns {
        let measuring =
            [("warm-up", scenario.warm_up.is_some()), ("sample", scenario.sample.is_some())];
        let measuring = measuring.into_iter().filter(|(_, given)| *given);
        idle.extend(
            measuring.map(|(option, _)| (option, "only runs of locks have a steady state")),
        );
    }
    let paced = [("think", scenario.think.is_some()), ("load", scenario.load.is_some())];
    if scenario.script.is_some() && !nobody_asks {
        let paced = paced.into_iter().filter(|(_, given)| *given);
        idle.extend(paced.map(|(option, _)| (option, "--script sets the times of requests")));
    } else if scenario.load.is_some() && scenario.think.is_some() && !nobody_asks {
        idle.push(("load", "--think sets the pauses of clients"));
    }
    idle
}

/// " (did you mean …?)" where something is near enough.
pub fn did_you_mean<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> String {
    let near = known
        .map(|k| (strsim::damerau_levenshtein(word, k), k))
        .filter(|(distance, k)| *distance <= 2.max(k.len() / 3) || k.starts_with(word))
        .min();
    near.map_or(String::new(), |(_, k)| format!(" (did you mean `{k}`?)"))
}

/// The command that repeats a run.
fn command(entry: &Entry, verb: &str, plan: &Plan) -> String {
    format!("{} {}", plan.program, arguments(entry, verb, plan))
}

/// The same without the program.
fn arguments(entry: &Entry, verb: &str, plan: &Plan) -> String {
    format!("{verb} {} {}", entry.sheet.name, plan.scenario.to_args())
}

/// A number that changes when the data sheet does.
fn sheet_hash(sheet: &DataSheet) -> String {
    // Costs hold functions, whose addresses differ from build to build.
    let costs: Vec<_> = sheet.costs.iter().map(|c| (c.metric, c.formula, c.when)).collect();
    let sheet = DataSheet { costs: &[], ..*sheet };
    let hash =
        format!("{sheet:?}{costs:?}").bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    format!("{hash:016x}")
}

/// The header of a recording of `plan`.
fn header(entry: &Entry, plan: &Plan, world: &str) -> Header {
    Header {
        world: world.into(),
        command: command(entry, "run", plan),
        scenario: serde_json::to_value(&plan.scenario).unwrap_or_default(),
        ..header_of_setup(entry, &plan.setup, plan.config.seed)
    }
}

/// The header of a recording of `setup`, without the scenario that led to it.
fn header_of_setup(entry: &Entry, setup: &Setup, seed: u64) -> Header {
    let mut header = Header::new(entry.name(), setup.group.members().iter().map(|p| p.0).collect());
    header.sheet = sheet_hash(&entry.sheet);
    header.topology = setup.topology.name.clone();
    header.seed = seed;
    header.mistake = setup.mistake.map(str::to_owned);
    header.chosen =
        setup.chosen.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    header
}
