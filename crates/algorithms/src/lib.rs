//! The algorithms: each is one file, one pure state machine, with its data sheet beside it.
//!
//! A *problem* file ([`mutex`], [`election`], [`group`], [`multicast`], [`detector`]) owns the requests,
//! the indications, the clients, the properties and the measures. The files in the folder beside it
//! solve the problem. No algorithm knows in which world it runs.

pub mod detector;
pub mod election;
mod erased;
pub mod group;
pub mod multicast;
pub mod mutex;
pub mod problem;
mod process_sets;
mod sample;
mod setup;
mod sheet;
mod shown;

pub use erased::{AnyAlgorithm, AnySummary, Simulated, Simulation, erased};
pub use problem::ProblemSheet;
pub use process_sets::ProcessSets;
pub use sample::{Sample, Spread};
pub use setup::{Chosen, Measuring, Setup, SetupError, Shared};
pub use sheet::{
    Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Mistake, Switch, Winner,
};

use std::collections::BTreeMap;

use konklave_process::{Application, Data, Inspect, Meter, Monitor, ProcessId};
use serde::Serialize;

/// A process of the catalog: it has a data sheet and can be built for a place in a topology.
pub trait Algorithm: Inspect {
    /// The problem it solves.
    type Problem: Problem<Self>;

    /// Its data sheet.
    const SHEET: DataSheet;

    /// Whether its runs never end by themselves.
    const ENDLESS: bool = false;

    /// The run that its source tells of, which `run` makes unless options say otherwise.
    const USUAL_RUN: UsualRun = UsualRun::AllStart;

    /// Whether it makes no progress unless a majority of the processes, or of its last view, is up.
    const NEEDS_MAJORITY: bool = false;

    /// Whether with this setup it goes on after all requests are served, for example with heartbeats.
    fn goes_on(_setup: &Setup) -> bool {
        Self::ENDLESS
    }

    /// Whether one signal makes all initiators start, so that none of them may stay out.
    fn start_together(_setup: &Setup) -> bool {
        false
    }

    /// The process `me` of the group that `setup` describes.
    fn new(me: ProcessId, setup: &Setup) -> Self;

    /// The data sheet of the variant that `setup` chose, which may differ in winner, assumptions and
    /// guarantees.
    fn sheet(_setup: &Setup) -> DataSheet {
        Self::SHEET
    }

    /// The longest delay of a message, in T, that its timeouts allow for. With a longer one, it may take
    /// a slow process for crashed. None without timeouts.
    fn longest_delay(_setup: &Setup) -> Option<f64> {
        None
    }

    /// The sizes and loads of its quorums and further process sets with this setup, by name; the quorums
    /// come first. Empty for an algorithm without quorums.
    fn quorums(_setup: &Setup) -> Vec<(&'static str, mutex::coterie::Figures)> {
        Vec::new()
    }

    /// The set of processes that each process has at the start, for example its quorum. Empty if it has none.
    fn process_sets(_setup: &Setup) -> Vec<ProcessSets> {
        Vec::new()
    }

    /// Refuses a setup that this algorithm cannot run with, beyond the checks of the data sheet.
    fn check_setup(_setup: &Setup) -> Result<(), SetupError> {
        Ok(())
    }

    /// A remark on runs with this workload, which the figures of a single run may hide. Most need none.
    fn remark(_setup: &Setup, _workload: &Workload) -> Option<&'static str> {
        None
    }
}

/// The run that the source of an algorithm tells of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UsualRun {
    /// All clients make their requests.
    AllStart,
    /// The process with the highest id is down, and the one with the lowest notices it and starts.
    HighestDown,
}

/// The common parts of all algorithms of one problem: clients, judges and measures.
pub trait Problem<P: Algorithm>: 'static {
    /// The clients.
    type Application: Application<P> + Send + Sync + 'static;
    /// The judges of the properties.
    type Monitor: Monitor<P, Tag: Data> + Send + Sync + 'static;
    /// The meter.
    type Meter: Meter<P> + Send + 'static;
    /// The measures of a run, for people and machines.
    type Summary: Serialize + std::fmt::Debug + 'static;

    /// Its data sheet, for commands and tables.
    const SHEET: ProblemSheet;

    /// Whether runs never end by themselves: a cut-off run counts as complete.
    const ENDLESS: bool = false;

    /// The clients that `workload` describes.
    fn application(workload: &Workload, setup: &Setup) -> Self::Application;

    /// The clients of a script, which sets the time of each request. No earlier event makes one of these
    /// requests superfluous.
    fn scripted(workload: &Workload, setup: &Setup) -> Self::Application {
        Self::application(workload, setup)
    }

    /// The judges of the properties of `P` that `watch` names.
    fn monitor(watch: &Watch, setup: &Setup) -> Self::Monitor;

    /// A fresh meter.
    fn meter(setup: &Setup) -> Self::Meter;

    /// The kind of pause before `request`.
    fn pause(request: &P::Request) -> Pause;

    /// The measures of a whole run, with times in units of `unit` ticks.
    fn summary(meter: &Self::Meter, monitor: &Self::Monitor, unit: f64) -> Self::Summary;

    /// How often each process was served, for cost formulas; empty if that has no meaning.
    fn served(_meter: &Self::Meter) -> Vec<(ProcessId, u64)> {
        Vec::new()
    }

    /// The measure under `metric`, in messages or in units of T; none if it was not measured.
    fn measured(_meter: &Self::Meter, _metric: Metric, _unit: f64) -> Option<f64> {
        None
    }
}

/// The requests that clients make. The host decides when they make them.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Workload {
    /// The processes that start an election, acquire the lock, or multicast.
    pub initiators: Vec<ProcessId>,
    /// The number of requests of each process, in node order.
    pub requests: Vec<u32>,
}

/// The kinds of pauses between requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pause {
    /// Before the first request, and between two requests.
    Think,
    /// While a client holds the lock, or leads.
    Hold,
}

/// The properties that are judged. A property that is not judged costs the checker no states.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Watch {
    /// Happened-before order: judged if the sheet claims it or the user asks for it, else counted.
    pub order: Order,
    /// Fence numbers grow from entry to entry.
    pub fence: bool,
    /// No request is overtaken more often than this.
    pub bypass: Option<u32>,
    /// No request is overtaken more often than this by processes that knew of it when they asked.
    pub overtaking: Option<u32>,
    /// No detector suspects the same process wrongly more often than this.
    pub slips: Option<u32>,
    /// No leader is deposed by a message of another process.
    pub stability: bool,
    /// The numbers of the properties that are named with one, by their words.
    pub numbers: BTreeMap<&'static str, u32>,
}

/// How happened-before order is treated.
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

impl Watch {
    /// Judges every property that `sheet` claims, and counts all others that can be counted: what a
    /// simulator watches.
    pub fn all(sheet: &DataSheet) -> Self {
        Self {
            order: if sheet.claims_order(false) { Order::Judge } else { Order::Count },
            fence: sheet.fence.is_some(),
            bypass: None,
            overtaking: None,
            slips: None,
            stability: false,
            numbers: BTreeMap::new(),
        }
    }

    /// The number that the user gave for the property `word`: 3 for `--property word:3`.
    pub fn number(&self, word: &str) -> Option<u32> {
        self.numbers.get(word).copied()
    }
}
