//! The algorithms: each one file, one pure state machine, with its data sheet on top.
//!
//! A *problem* file ([`mutex`], [`election`], [`multicast`], [`detector`]) owns the requests, the indications, the
//! clients, the properties and the measures; the files in the folder beside it solve the problem.
//! Nothing here knows which world it runs in.

pub mod detector;
pub mod election;
mod erased;
pub mod group;
pub mod multicast;
pub mod mutex;
pub mod problem;
mod sample;
mod setup;
mod sheet;
mod shown;

pub use erased::{AnyAlgorithm, AnySummary, Simulated, Simulation, erased};
pub use problem::ProblemSheet;
pub use sample::{Sample, Spread};
pub use setup::{Chosen, Setup, SetupError, Shared};
pub use sheet::{
    Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Mistake, Switch, Winner,
};

use konklave_process::{Application, Data, Inspect, Meter, Monitor, ProcessId};
use serde::Serialize;

/// A process of the catalog: it has a data sheet and can be built for a place in a topology.
pub trait Algorithm: Inspect {
    /// The problem it solves.
    type Problem: Problem<Self>;

    /// What it is, assumes, costs and promises.
    const SHEET: DataSheet;

    /// Whether its runs have no end of their own, because it watches for ever.
    const ENDLESS: bool = false;

    /// Whether with this setup it goes on when everyone is served: members watch each other as long
    /// as there is a group.
    fn goes_on(_setup: &Setup) -> bool {
        Self::ENDLESS
    }

    /// The process `me` of the group that `setup` describes.
    fn new(me: ProcessId, setup: &Setup) -> Self;

    /// The data sheet as it holds for what `setup` chose: a variant may elect another winner, assume
    /// less or promise more.
    fn sheet(_setup: &Setup) -> DataSheet {
        Self::SHEET
    }

    /// The longest delay of a message, in T, that its timeouts allow for: with a longer one, a slow
    /// process may be taken for dead. None where it does not judge by time.
    fn longest_delay(_setup: &Setup) -> Option<f64> {
        None
    }

    /// How large the sets of processes are that each needs with this setup, and how they share the
    /// work, by what the sets are called; the first are the quorums. Empty where there are none.
    fn quorums(_setup: &Setup) -> Vec<(&'static str, mutex::coterie::Figures)> {
        Vec::new()
    }

    /// What `setup` lacks for this algorithm, beyond what the data sheet says.
    fn check_setup(_setup: &Setup) -> Result<(), SetupError> {
        Ok(())
    }
}

/// What all algorithms of one problem share: clients, judges and measures.
pub trait Problem<P: Algorithm>: 'static {
    /// Who asks.
    type Application: Application<P> + Send + Sync + 'static;
    /// Who judges.
    type Monitor: Monitor<P, Tag: Data> + Send + Sync + 'static;
    /// Who measures.
    type Meter: Meter<P> + Send + 'static;
    /// What is measured, for people and machines.
    type Summary: Serialize + std::fmt::Debug + 'static;

    /// What commands and tables need to know of it.
    const SHEET: ProblemSheet;

    /// Whether runs have no end of their own: they are cut off, and that is all right.
    const ENDLESS: bool = false;

    /// The clients that `workload` describes.
    fn application(workload: &Workload, setup: &Setup) -> Self::Application;

    /// The clients of a script, which says when each asks: nothing that happens before makes one of
    /// these requests superfluous.
    fn scripted(workload: &Workload, setup: &Setup) -> Self::Application {
        Self::application(workload, setup)
    }

    /// The judges of the properties of `P` that `watch` names.
    fn monitor(watch: &Watch, setup: &Setup) -> Self::Monitor;

    /// A fresh meter.
    fn meter(setup: &Setup) -> Self::Meter;

    /// Which pause of the workload goes before `request`.
    fn pause(request: &P::Request) -> Pause;

    /// The measures of a whole run, with times in units of `unit` ticks.
    fn summary(meter: &Self::Meter, monitor: &Self::Monitor, unit: f64) -> Self::Summary;

    /// How often each process was served, for cost formulas; none where that has no meaning.
    fn served(_meter: &Self::Meter) -> Vec<(ProcessId, u64)> {
        Vec::new()
    }

    /// What was measured under `metric`, in messages or in units of T; none where nothing was.
    fn measured(_meter: &Self::Meter, _metric: Metric, _unit: f64) -> Option<f64> {
        None
    }
}

/// Whose requests a workload makes, and how many. When it makes them is up to the host.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Workload {
    /// Who starts an election, takes the lock, or sends.
    pub initiators: Vec<ProcessId>,
    /// How often each process, in node order, asks.
    pub requests: Vec<u32>,
}

/// The kinds of pauses between requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pause {
    /// Before the first wish, and between one wish and the next.
    Think,
    /// While inside, or in office.
    Hold,
}

/// Which properties are judged. What is not judged costs the checker no states.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Watch {
    /// Happened-before order: judged if claimed or asked for, else only counted.
    pub order: Order,
    /// Fence numbers grow from entry to entry.
    pub fence: bool,
    /// Nobody is overtaken more often than this.
    pub bypass: Option<u32>,
    /// Nobody is overtaken more often than this by those who knew of its request when they asked.
    pub overtaking: Option<u32>,
    /// No detector suspects the same process wrongly more often than this.
    pub slips: Option<u32>,
    /// No leader in office is deposed by what another says.
    pub stability: bool,
}

/// What to do about happened-before order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Order {
    /// Nothing.
    #[default]
    Ignore,
    /// Count inversions.
    Count,
    /// An inversion is a violation.
    Judge,
}

/// Implements `Default` to mean "as the data sheet says": what a simulator watches.
impl Watch {
    /// Everything that `sheet` claims is judged, everything else that can be counted is counted.
    pub fn all(sheet: &DataSheet) -> Self {
        Self {
            order: if sheet.claims_order(false) { Order::Judge } else { Order::Count },
            fence: sheet.fence.is_some(),
            bypass: None,
            overtaking: None,
            slips: None,
            stability: false,
        }
    }
}
