//! Data sheets: what an algorithm is, assumes, costs and promises — as data, used by `list`, by
//! the monitors, by the bound meter and by the checks of the input.

use std::fmt;

use konklave_process::ProcessId;
use konklave_process::topology::Shape;
use serde::Serialize;

use crate::Setup;

/// The data sheet of an algorithm.
#[derive(Clone, Copy, Debug)]
pub struct DataSheet {
    /// Its name on the command line, without the problem.
    pub name: &'static str,
    /// Its name in prose.
    pub title: &'static str,
    /// The idea in one or two sentences.
    pub idea: &'static str,
    /// Author, venue, year; and where in the sources it stands.
    pub source: &'static str,
    /// What must hold for its promises to hold.
    pub assumes: &'static [Assumption],
    /// The topologies it runs on, the default first.
    pub topologies: &'static [Shape],
    /// Who wins (elections only).
    pub winner: Option<Winner>,
    /// What it costs.
    pub costs: &'static [Cost],
    /// What it promises.
    pub guarantees: &'static [Guarantee],
    /// What its fence number is, where it has one.
    pub fence: Option<&'static str>,
    /// Known mistakes of its sources, each a switch that the checker must catch.
    pub mistakes: &'static [Mistake],
    /// What can be chosen with `--set name=value`; the first value is the default.
    pub switches: &'static [Switch],
}

impl DataSheet {
    /// Whether it promises happened-before order, also where someone `restarts`.
    pub fn claims_order(&self, restarts: bool) -> bool {
        self.guarantees.contains(&Guarantee::HappenedBefore)
            || !restarts && self.guarantees.contains(&Guarantee::HappenedBeforeUntilRestart)
    }

    /// A sheet to begin with: whatever is not said of an algorithm.
    pub const BLANK: Self = Self {
        name: "",
        title: "",
        idea: "",
        source: "",
        assumes: &[],
        topologies: &[],
        winner: None,
        costs: &[],
        guarantees: &[],
        fence: None,
        mistakes: &[],
        switches: &[],
    };
}

/// What an algorithm assumes of its world.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Assumption {
    /// No message is lost.
    Reliable,
    /// No message arrives twice.
    NoDuplicates,
    /// Messages of one channel keep their order.
    Fifo,
    /// No process crashes.
    NoCrash,
    /// A crashed process stays down.
    NoRestart,
    /// Delays and reactions have known bounds, so that a timeout proves a crash.
    Synchronous,
    /// Delays have a bound that no process knows: a detector with growing timeouts reaches it.
    BoundedDelays,
    /// No clock stops, and the rates of clocks differ by less than a tenth.
    SteadyClocks,
    /// Each process knows all processes.
    KnownMembership,
    /// No two processes share an id.
    UniqueIds,
    /// Saved state survives a crash.
    StableStorage,
}

impl Assumption {
    /// The assumption as a clause, for "… assumes that …".
    pub fn clause(self) -> &'static str {
        match self {
            Self::Reliable => "no message is lost",
            Self::NoDuplicates => "no message arrives twice",
            Self::Fifo => "messages of one channel keep their order",
            Self::NoCrash => "no process crashes",
            Self::NoRestart => "crashed processes stay down",
            Self::Synchronous => "delays and reactions have known bounds",
            Self::BoundedDelays => "delays have a bound",
            Self::SteadyClocks => "clocks run at nearly the same rate",
            Self::KnownMembership => "each process knows all processes",
            Self::UniqueIds => "ids are unique",
            Self::StableStorage => "saved state survives a crash",
        }
    }

    /// What may follow if the assumption does not hold.
    pub fn consequence(self) -> &'static str {
        match self {
            Self::Reliable => "a lost message may block it for ever",
            Self::NoDuplicates => "a duplicate may be taken for a second message",
            Self::Fifo => "a message that overtakes another may break its guarantees",
            Self::NoCrash => "a crashed process may block the others for ever",
            Self::NoRestart => {
                "a restarted process may break its guarantees or never take part again"
            }
            Self::Synchronous => "a slow process may be suspected of a crash",
            Self::BoundedDelays => "live processes may be suspected again and again",
            Self::SteadyClocks => "two leaders may act at the same time",
            Self::KnownMembership | Self::UniqueIds => "none of its guarantees hold",
            Self::StableStorage => "a restarted process may break its promises",
        }
    }
}

impl fmt::Display for Assumption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Reliable => "reliable channels",
            Self::NoDuplicates => "no duplicates",
            Self::Fifo => "FIFO channels",
            Self::NoCrash => "no crashes",
            Self::NoRestart => "no restarts",
            Self::Synchronous => "known time bounds",
            Self::BoundedDelays => "bounded delays",
            Self::SteadyClocks => "steady clocks",
            Self::KnownMembership => "known membership",
            Self::UniqueIds => "unique ids",
            Self::StableStorage => "stable storage",
        })
    }
}

/// Which process an election must elect.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Winner {
    /// The highest id of all live processes.
    MaxAll,
    /// The highest id of those that started.
    MaxInitiator,
    /// Anyone, but only one.
    Any,
}

impl fmt::Display for Winner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MaxAll => "highest id of all",
            Self::MaxInitiator => "highest id among the initiators",
            Self::Any => "anyone, but only one",
        })
    }
}

/// What an algorithm promises while its assumptions hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guarantee {
    /// At most one process is inside.
    MutualExclusion,
    /// Someone who wants gets.
    DeadlockFree,
    /// Everyone who wants gets.
    StarvationFree,
    /// Who asked first, in the sense of happened-before, gets first.
    HappenedBefore,
    /// The same, unless someone comes up again after a crash: it may wish for something before it can
    /// say when, and a third process may know of the wish by then.
    HappenedBeforeUntilRestart,
    /// At most one leader at any moment.
    UniqueLeader,
    /// At most one leader in each epoch.
    UniquePerEpoch,
    /// A process that comes into office again does so in a higher epoch.
    GrowingEpochs,
    /// In the end all name the same leader, or have delivered the same messages.
    Agreement,
    /// In the end nobody takes a dead process for the leader.
    LiveLeader,
    /// It ends.
    Termination,
    /// It ends with probability one.
    TerminationWithProbabilityOne,
    /// Parents never form a cycle.
    AcyclicParents,
    /// In the end the parents form a tree, and the leader is its root.
    SpanningTree,
    /// Every crashed process is suspected in the end.
    Completeness,
    /// In the end no live process is suspected.
    EventualAccuracy,
    /// All agree on the views.
    ViewAgreement,
    /// Who goes from one view to the next together has delivered the same before.
    VirtualSynchrony,
    /// All deliver in the same order.
    TotalOrder,
    /// What anyone delivers, even one who is gone, all who go on deliver.
    UniformAgreement,
    /// Who goes on has delivered what it sent.
    SelfDelivery,
    /// What one that stays up multicasts is delivered by all that stay up.
    Validity,
    /// Nothing is delivered twice, and nothing that nobody multicast.
    Integrity,
    /// The messages of one sender are delivered in the order in which it sent them.
    FifoOrder,
    /// Nothing is delivered before what led to it.
    CausalOrder,
    /// Nobody delivers what a majority does not hold: no crash of a minority can undo it.
    UniformDelivery,
    /// Nobody delivers what not everyone holds.
    SafeDelivery,
    /// A promise of another problem, in words.
    #[serde(untagged)]
    Other(&'static str),
}

impl fmt::Display for Guarantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MutualExclusion => "mutual exclusion",
            Self::DeadlockFree => "no deadlock",
            Self::StarvationFree => "no starvation",
            Self::HappenedBefore => "happened-before order",
            Self::HappenedBeforeUntilRestart => "happened-before order until someone restarts",
            Self::UniqueLeader => "one leader at a time",
            Self::UniquePerEpoch => "one leader per epoch",
            Self::GrowingEpochs => "growing epochs",
            Self::Agreement => "agreement",
            Self::LiveLeader => "a live leader",
            Self::Termination => "termination",
            Self::TerminationWithProbabilityOne => "termination with probability 1",
            Self::AcyclicParents => "acyclic parents",
            Self::SpanningTree => "spanning tree",
            Self::Completeness => "completeness",
            Self::EventualAccuracy => "eventual accuracy",
            Self::ViewAgreement => "view agreement",
            Self::VirtualSynchrony => "virtual synchrony",
            Self::TotalOrder => "total order",
            Self::UniformAgreement => "uniform agreement",
            Self::SelfDelivery => "self-delivery",
            Self::Validity => "validity",
            Self::Integrity => "integrity",
            Self::FifoOrder => "FIFO order",
            Self::CausalOrder => "causal order",
            Self::UniformDelivery => "uniform delivery",
            Self::SafeDelivery => "safe delivery",
            Self::Other(name) => name,
        })
    }
}

/// A mistake of a source, kept as a switch: the checker must catch it.
#[derive(Clone, Copy, Debug)]
pub struct Mistake {
    /// Its name on the command line.
    pub name: &'static str,
    /// What is done wrong, and by whom.
    pub what: &'static str,
    /// The property that breaks.
    pub breaks: &'static str,
    /// The arguments of `check` that catch it; empty where it takes time to matter, which the checker
    /// does not know: see [`Mistake::shown_by`].
    pub caught_by: &'static str,
}

/// Something to choose when an algorithm is built.
#[derive(Clone, Copy, Debug)]
pub struct Switch {
    /// Its name.
    pub name: &'static str,
    /// Its values, the default first; one value like `<number>` stands for any such value, with
    /// the default before it.
    pub values: &'static [&'static str],
    /// What it does.
    pub what: &'static str,
}

impl Switch {
    /// The highest number that can be chosen: beyond it nothing that is counted makes sense, and
    /// multiples of it still fit where they are computed. Ids are no higher.
    pub const LARGEST: u32 = konklave_process::MAX_ID;

    /// Whether `value` is one of its values. What an algorithm can do with it, `check_setup` says.
    pub fn accepts(&self, value: &str) -> bool {
        let number = || value.parse::<u32>().is_ok_and(|number| number <= Self::LARGEST);
        self.values.contains(&value) && !value.starts_with('<')
            || self.values.contains(&"<number>") && number()
            || self.values.contains(&"<text>") && !value.is_empty()
    }
}

/// What is measured against a formula.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// All messages sent.
    Messages,
    /// Messages divided by entries into the critical section.
    MessagesPerEntry,
    /// From one exit to the next entry, when someone waits: the longest, in T.
    SyncDelay,
    /// From request to entry when nobody else wants: the longest, in T.
    EntryDelay,
    /// From the first start to the last process informed, in T.
    Time,
    /// From a multicast to its last delivery: the longest, in T.
    Delivery,
    /// A measure of another problem, by its name: [`Problem::measured`](crate::Problem::measured) knows it.
    #[serde(untagged)]
    Other(&'static str),
}

/// What an algorithm costs under one metric.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// What is counted.
    pub metric: Metric,
    /// As the book writes it.
    pub formula: &'static str,
    /// In which runs it applies, in words.
    pub when: &'static str,
    /// Its value; none in runs it does not apply to.
    pub bound: fn(&Facts<'_>) -> Option<Bound>,
}

/// The value of a formula.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Bound {
    /// No more and no less.
    Exactly(f64),
    /// No more.
    AtMost(f64),
    /// No less and no more.
    Between(f64, f64),
}

impl Bound {
    /// Whether `measured` keeps to it, up to rounding.
    pub fn holds(self, measured: f64) -> bool {
        let slack = 1e-6 * measured.abs().max(1.0);
        let (low, high) = match self {
            Self::Exactly(x) => (x, x),
            Self::AtMost(high) => (f64::NEG_INFINITY, high),
            Self::Between(low, high) => (low, high),
        };
        low - slack <= measured && measured <= high + slack
    }

    /// The lower limit, where there is one.
    pub fn least(self) -> Option<f64> {
        match self {
            Self::Exactly(x) | Self::Between(x, _) => Some(x),
            Self::AtMost(_) => None,
        }
    }

    /// The upper limit.
    pub fn limit(self) -> f64 {
        match self {
            Self::Exactly(x) | Self::AtMost(x) | Self::Between(_, x) => x,
        }
    }
}

/// What is known of a run when formulas are evaluated.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Group and topology.
    pub setup: &'a Setup,
    /// Who was told to start, all before anything was received.
    pub initiators: &'a [ProcessId],
    /// How often each process was served.
    pub served: &'a [(ProcessId, u64)],
    /// The longest delay of a message in T, where there is one.
    pub delay_max: Option<f64>,
    /// Whether nothing happened that the algorithm rules out.
    pub assumptions_hold: bool,
    /// Whether requests never meet: nobody asks before all that was said of the last is heard.
    pub uncontended: bool,
    /// Whether all who start do so in the first moment of the run.
    pub at_once: bool,
    /// How long the run took, in T: what never ends of itself costs more the longer one looks.
    pub elapsed: f64,
    /// Whether the world does nothing to messages and processes at all.
    pub undisturbed: bool,
    /// Whether every message takes as long as every other.
    pub steady: bool,
    /// The least time that anyone stays inside, in T (locks only).
    pub hold: f64,
}

impl Facts<'_> {
    /// The number of nodes.
    pub fn n(&self) -> f64 {
        self.setup.group.len() as f64
    }

    /// The number of undirected edges.
    pub fn m(&self) -> f64 {
        self.setup.topology.edges() as f64
    }

    /// The number of initiators.
    pub fn k(&self) -> f64 {
        self.initiators.len() as f64
    }

    /// The number of entries.
    pub fn entries(&self) -> f64 {
        self.served.iter().map(|(_, times)| *times as f64).sum()
    }

    /// The number of entries by others than `p`.
    pub fn entries_but(&self, p: ProcessId) -> f64 {
        // Not a sum of floats: that of none is -0.
        self.served.iter().filter(|(q, _)| *q != p).map(|(_, times)| *times).sum::<u64>() as f64
    }
}
