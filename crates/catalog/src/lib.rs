//! Where names meet types: the only crate that knows all algorithms and all worlds.
//!
//! An [`Entry`] is an algorithm without its type: what it is (its data sheet) and what can be done
//! with it (simulate, check, replay). To add an algorithm is to add one line to [`CATALOG`].

mod checking;
mod costs;
mod error;
mod files;
pub mod guarantees;
mod kit;
mod member;
mod plan;
mod report;
mod scenario;
mod serve;
mod simulate;
pub mod tolerance;
mod verify;

pub use checking::{CheckPlan, Checked, Extreme, PROPERTIES, is_about_another};
pub use costs::{CostRow, LockCosts, Range};
pub use error::Error;
pub use files::{open_input, read_text};
pub use kit::Shrunk;
pub use konklave_algorithms::Assumption;
pub use konklave_check::{
    Checkpoints, Clock, Options as CheckOptions, Progress, Swarm, Timing, Victim,
};
pub use konklave_net::Transport;
pub use member::{MemberPlan, Told};
pub use plan::Plan;
pub use report::{
    BoundReport, CheckReport, Messages, RunReport, SymmetryReport, Verdict, ViolationReport,
};
pub use scenario::{Load, Scenario};
pub use serve::RealWorld;
pub use simulate::Outcome;

use std::io::{self, Write};

use konklave_algorithms::detector::{heartbeat::Heartbeat, phi_accrual::PhiAccrual};
use konklave_algorithms::election::{
    adoption::Adoption, bully::Bully, bully_1982::Bully1982, chang_roberts,
    chang_roberts::ChangRoberts, dolev_klawe_rodeh::DolevKlaweRodeh, extinction::Extinction,
    firewire::FireWire, franklin::Franklin, hirschberg_sinclair::HirschbergSinclair,
    invitation::Invitation, itai_rodeh::ItaiRodeh, quorum::Quorum, ring_list::RingList,
    tree_wave::TreeWave, virtual_tree::VirtualTree, virtual_tree_wave::VirtualTreeWave,
};
use konklave_algorithms::group::{
    leader::Leader, lifted::Lifted, lock_table::LockTable, virtual_synchrony::VirtualSynchrony,
};
use konklave_algorithms::multicast::{
    ack::Ack, best_effort::BestEffort, causal::Causal, fifo::Fifo, isis::Isis,
    lamport_order::LamportOrder, nack::Nack, sequencer::Sequencer, srm::Srm,
    token_order::TokenOrder,
};
use konklave_algorithms::mutex::{
    cao_singhal::CaoSinghal, carvalho_roucairol::CarvalhoRoucairol, central::Central,
    lamport::Lamport, maekawa::Maekawa, naimi_trehel::NaimiTrehel, neilsen_mizuno::NeilsenMizuno,
    raymond::Raymond, ricart_agrawala::RicartAgrawala,
    ricart_agrawala_acknowledged::RicartAgrawalaAcknowledged,
    ricart_agrawala_token::RicartAgrawalaToken, sanders::Sanders, singhal::Singhal,
    suzuki_kasami::SuzukiKasami, token_ring::TokenRing, voting::Voting,
};
use konklave_algorithms::{Algorithm, DataSheet, Problem, Setup, SetupError, Workload};
use konklave_net::NetProcess;
use konklave_trace::{Difference, Header, Replayed, Run};

/// Every algorithm, by problem.
pub static CATALOG: &[Entry] = &[
    entry::<Adoption>(),
    entry::<Bully>(),
    entry::<Bully1982>(),
    entry::<ChangRoberts>().hardened(form::<chang_roberts::hardened::Hardened>()),
    entry::<DolevKlaweRodeh>(),
    entry::<Extinction>(),
    entry::<FireWire>(),
    entry::<Franklin>(),
    entry::<HirschbergSinclair>(),
    entry::<Invitation>(),
    entry::<ItaiRodeh>(),
    entry::<Quorum>(),
    entry::<RingList>(),
    entry::<TreeWave>(),
    entry::<VirtualTree>(),
    entry::<VirtualTreeWave>(),
    entry::<Leader>(),
    entry::<Lifted>(),
    entry::<LockTable>(),
    entry::<VirtualSynchrony>(),
    entry::<Ack>(),
    entry::<BestEffort>(),
    entry::<Causal>(),
    entry::<Fifo>(),
    entry::<Isis>(),
    entry::<LamportOrder>(),
    entry::<Nack>(),
    entry::<Sequencer>(),
    entry::<Srm>(),
    entry::<TokenOrder>(),
    entry::<CaoSinghal>(),
    entry::<CarvalhoRoucairol>(),
    entry::<Central>(),
    entry::<Lamport>(),
    entry::<Maekawa>(),
    entry::<NaimiTrehel>(),
    entry::<NeilsenMizuno>(),
    entry::<Raymond>(),
    entry::<RicartAgrawala>(),
    entry::<RicartAgrawalaAcknowledged>(),
    entry::<RicartAgrawalaToken>(),
    entry::<Sanders>(),
    entry::<Singhal>(),
    entry::<SuzukiKasami>(),
    entry::<TokenRing>(),
    entry::<Voting>(),
    entry::<Heartbeat>(),
    entry::<PhiAccrual>(),
];

/// An algorithm without its type.
#[derive(Debug)]
pub struct Entry {
    /// The problem it solves.
    pub problem: &'static str,
    /// Its data sheet.
    pub sheet: DataSheet,
    endless: bool,
    /// The data sheet of the variant that a setup chose.
    variant: fn(&Setup) -> DataSheet,
    /// What a setup lacks, beyond what the data sheet says.
    check_setup: fn(&Setup) -> Result<(), SetupError>,
    /// The longest delay that the timeouts of that variant allow for, in T.
    longest_delay: fn(&Setup) -> Option<f64>,
    /// How large the quorums of that variant are.
    quorums: fn(&Setup) -> Option<serde_json::Value>,
    simulate: fn(&Plan, bool) -> Result<Outcome, Error>,
    record: Record,
    serve: fn(&Plan, RealWorld, bool) -> Result<Outcome, Error>,
    member: fn(&Plan, MemberPlan<'_>) -> Result<(), Error>,
    check: Check,
    replay: fn(&Plan, &Run) -> Result<Replayed, Difference>,
    shrink: fn(&Plan, &Run) -> Result<Shrunk, Error>,
    /// The hardened form, where that is a process of its own: chosen by the switch `mode`.
    hardened: Option<&'static Self>,
}

type Record = fn(&Plan, &mut dyn Write) -> Result<io::Result<RunReport>, Error>;
type Check = fn(&Plan, &CheckPlan, &mut dyn FnMut(Progress) -> bool) -> Result<Checked, Error>;

const fn entry<P: Algorithm + NetProcess>() -> Entry {
    Entry {
        problem: <P::Problem as Problem<P>>::NAME,
        sheet: P::SHEET,
        endless: <P::Problem as Problem<P>>::ENDLESS || P::ENDLESS,
        variant: P::sheet,
        check_setup: P::check_setup,
        longest_delay: P::longest_delay,
        quorums: simulate::quorums::<P>,
        simulate: simulate::simulate::<P>,
        record: simulate::record::<P>,
        serve: serve::serve::<P>,
        member: member::member::<P>,
        check: checking::check::<P>,
        replay: verify::verify::<P>,
        shrink: kit::shrink::<P>,
        hardened: None,
    }
}

/// Another form of an algorithm.
const fn form<P: Algorithm + NetProcess>() -> &'static Entry {
    const { &entry::<P>() }
}

impl Entry {
    const fn hardened(mut self, form: &'static Self) -> Self {
        self.hardened = Some(form);
        self
    }

    /// The form that `setup` chose.
    fn form(&self, setup: &Setup) -> &Self {
        match self.hardened {
            Some(form) if setup.chosen(&self.sheet, "mode").is("hardened") => form,
            _ => self,
        }
    }

    /// Its full name.
    pub fn name(&self) -> String {
        format!("{}/{}", self.problem, self.sheet.name)
    }

    /// How large its quorums are in the group of `scenario`, and how they share the work, without a
    /// run: as reports of runs tell it. None where there are none.
    pub fn quorums(&self, scenario: Scenario) -> Result<Option<serde_json::Value>, Error> {
        let plan = self.plan(scenario)?;
        let Some(mut quorums) = (self.form(&plan.setup).quorums)(&plan.setup) else {
            return Ok(None);
        };
        quorums["nodes"] = plan.setup.group.len().into();
        Ok(Some(quorums))
    }

    /// The plan for `scenario`, every wish checked.
    pub fn plan(&self, scenario: Scenario) -> Result<Plan, Error> {
        let mut plan = Plan::new(&self.sheet, scenario, self.endless)?;
        let form = self.form(&plan.setup);
        (form.check_setup)(&plan.setup).map_err(|e| lacking(&e, &plan.scenario))?;
        plan.idle = idle(self.problem, &plan.scenario);
        let (variant, longest) = ((form.variant)(&plan.setup), (form.longest_delay)(&plan.setup));
        Ok(plan.judged_by(&variant, longest))
    }

    /// Runs it in the simulator.
    pub fn simulate(&self, plan: &Plan, record: bool) -> Result<Outcome, Error> {
        (self.form(&plan.setup).simulate)(plan, record)
    }

    /// Runs it in the simulator and writes the run down in the compact form while it goes on. What
    /// goes wrong with `out` is told apart from what is wrong with the plan.
    pub fn record(&self, plan: &Plan, out: &mut dyn Write) -> Result<io::Result<RunReport>, Error> {
        (self.form(&plan.setup).record)(plan, out)
    }

    /// Runs it on real tasks.
    pub fn serve(&self, plan: &Plan, world: RealWorld, record: bool) -> Result<Outcome, Error> {
        (self.form(&plan.setup).serve)(plan, world, record)
    }

    /// Is one member of it, in this operating system process.
    pub fn member(&self, plan: &Plan, member: MemberPlan<'_>) -> Result<(), Error> {
        (self.form(&plan.setup).member)(plan, member)
    }

    /// Explores it.
    pub fn check(
        &self,
        plan: &Plan,
        check: &CheckPlan,
        watch: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<Checked, Error> {
        (self.form(&plan.setup).check)(plan, check, watch)
    }

    /// Runs a recorded run again, and compares all of it that can be known: see `verify`.
    pub fn replay(&self, plan: &Plan, run: &Run) -> Result<Replayed, Difference> {
        (self.form(&plan.setup).replay)(plan, run)
    }

    /// Leaves out of a recorded run that breaks something all that is not needed for that.
    pub fn shrink(&self, plan: &Plan, run: &Run) -> Result<Shrunk, Error> {
        (self.form(&plan.setup).shrink)(plan, run)
    }
}

/// The clients that `plan` has, asking as often as `workload` says.
fn clients<P: Algorithm>(
    plan: &Plan,
    workload: &Workload,
) -> <P::Problem as Problem<P>>::Application {
    match plan.config.script.is_empty() {
        true => P::Problem::application(workload, &plan.setup),
        false => P::Problem::scripted(workload, &plan.setup),
    }
}

/// What a setup lacks, under the option that says so.
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

/// Options that say nothing about a problem, and why.
fn idle(problem: &str, scenario: &Scenario) -> Vec<(&'static str, &'static str)> {
    let nobody_asks = problem == "detector";
    let asking = [
        ("initiators", scenario.initiators.is_some()),
        ("entries", scenario.entries.is_some()),
        ("requests", scenario.requests.is_some()),
        ("script", scenario.script.is_some()),
        ("load", scenario.load.is_some()),
        ("think", scenario.think.is_some()),
        ("app-messages", scenario.app_messages.is_some()),
    ];
    let asking = asking.into_iter().filter(|(_, given)| *given && nobody_asks);
    let mut idle: Vec<_> =
        asking.map(|(option, _)| (option, "nobody asks a failure detector for anything")).collect();
    if scenario.hold.is_some() && matches!(problem, "detector" | "election" | "multicast") {
        idle.push(("hold", "nobody is inside of anything"));
    }
    let paced = [("think", scenario.think.is_some()), ("load", scenario.load.is_some())];
    if scenario.script.is_some() && !nobody_asks {
        let paced = paced.into_iter().filter(|(_, given)| *given);
        idle.extend(paced.map(|(option, _)| (option, "--script says when clients ask")));
    } else if scenario.load.is_some() && scenario.think.is_some() && !nobody_asks {
        idle.push(("load", "--think says how long clients pause"));
    }
    idle
}

/// The algorithm called `name`: `problem/name`, or the name alone; underscores will do.
pub fn find(name: &str) -> Result<&'static Entry, Error> {
    let wanted = name.trim().to_lowercase().replace('_', "-");
    let by_name = |e: &&Entry| e.sheet.name == wanted || e.name() == wanted;
    if let Some(entry) = CATALOG.iter().find(by_name) {
        return Ok(entry);
    }
    let names: Vec<String> =
        CATALOG.iter().flat_map(|e| [e.sheet.name.to_owned(), e.name()]).collect();
    let hint = did_you_mean(&wanted, names.iter().map(String::as_str));
    Err(Error::Usage(format!(
        "no algorithm is called `{name}`{hint}; `konklave list` names them all"
    )))
}

/// " (did you mean …?)" where something is near enough.
pub fn did_you_mean<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> String {
    let near = known
        .map(|k| (strsim::damerau_levenshtein(word, k), k))
        .filter(|(distance, k)| *distance <= 2.max(k.len() / 3) || k.starts_with(word))
        .min();
    near.map_or(String::new(), |(_, k)| format!(" (did you mean `{k}`?)"))
}

fn full_name<P: Algorithm>() -> String {
    format!("{}/{}", <P::Problem as Problem<P>>::NAME, P::SHEET.name)
}

/// What repeats a run.
fn command<P: Algorithm>(verb: &str, plan: &Plan) -> String {
    format!("konklave {verb} {} {}", P::SHEET.name, plan.scenario.to_args())
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
fn header<P: Algorithm>(plan: &Plan, world: &str) -> Header {
    let setup = &plan.setup;
    let mut header =
        Header::new(full_name::<P>(), setup.group.members().iter().map(|p| p.0).collect());
    header.sheet = sheet_hash(&P::SHEET);
    header.topology = setup.topology.name.clone();
    header.seed = plan.config.seed;
    header.world = world.into();
    header.mistake = setup.mistake.map(str::to_owned);
    header.chosen =
        setup.chosen.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    header.command = command::<P>("run", plan);
    header.scenario = serde_json::to_value(&plan.scenario).unwrap_or_default();
    header
}

/// The plan that a recorded run was made from.
pub fn plan_of(run: &Run) -> Result<(&'static Entry, Plan), Error> {
    let entry = find(&run.header.algorithm)?;
    let scenario: Scenario = match &run.header.scenario {
        serde_json::Value::Null => Scenario {
            nodes: Some(run.header.nodes.len()),
            topology: Some(run.header.topology.clone()).filter(|t| !t.is_empty()),
            mistake: run.header.mistake.clone(),
            seed: Some(run.header.seed),
            ..Scenario::default()
        },
        value => serde_json::from_value(value.clone())
            .map_err(|e| Error::Data(format!("the run's scenario cannot be read: {e}")))?,
    };
    // A scenario that names an algorithm names this one.
    let algorithm = scenario.algorithm.as_ref().map(|_| entry.name());
    let mut plan = entry.plan(Scenario { algorithm, ..scenario })?;
    if matches!(run.header.world.as_str(), "threads" | "tcp" | "udp" | "multicast")
        && run.header.unit >= 1.0
    {
        plan.setup.unit = std::time::Duration::from_nanos(run.header.unit as u64);
    }
    let ids: Vec<u32> = plan.setup.group.members().iter().map(|p| p.0).collect();
    if ids != run.header.nodes {
        return Err(Error::Data(format!(
            "the run's nodes {:?} are not those of its scenario {ids:?}",
            run.header.nodes
        )));
    }
    Ok((entry, plan))
}
