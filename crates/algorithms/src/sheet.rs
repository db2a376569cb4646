//! Data sheets: the assumptions, costs and guarantees of an algorithm as data. The command `list`, the
//! monitors, the measurement against bounds and the checks of the input use them.

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
    /// Author, venue, year; and the place in the sources.
    pub source: &'static str,
    /// The assumptions under which its guarantees hold.
    pub assumes: &'static [Assumption],
    /// The topologies it runs on, the default first.
    pub topologies: &'static [Shape],
    /// The process that wins (elections only).
    pub winner: Option<Winner>,
    /// Its costs.
    pub costs: &'static [Cost],
    /// Its guarantees.
    pub guarantees: &'static [Guarantee],
    /// The content of its fencing token, if it has one.
    pub fence: Option<&'static str>,
    /// Known mistakes of its sources, each a switch that the checker must catch.
    pub mistakes: &'static [Mistake],
    /// Its switches (`--set name=value`); the first value is the default.
    pub switches: &'static [Switch],
}

impl DataSheet {
    /// Whether it guarantees happened-before order; with `restarts`, also after restarts.
    pub fn claims_order(&self, restarts: bool) -> bool {
        self.guarantees.contains(&Guarantee::HappenedBefore)
            || !restarts && self.guarantees.contains(&Guarantee::HappenedBeforeUntilRestart)
    }

    /// An empty sheet.
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

/// An assumption of an algorithm about its world.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Assumption {
    /// No message is lost.
    Reliable,
    /// No message is lost on a link that is plugged in.
    ReliableLinks,
    /// No message arrives twice.
    NoDuplicates,
    /// Messages of one channel keep their order.
    Fifo,
    /// No process crashes.
    NoCrash,
    /// A crashed process stays down.
    NoRestart,
    /// The failure detector reports every crash and every broken link, and nothing else.
    AccurateDetector,
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
            Self::ReliableLinks => "no message is lost on a link that is plugged in",
            Self::NoDuplicates => "no message arrives twice",
            Self::Fifo => "messages of one channel keep their order",
            Self::NoCrash => "no process crashes",
            Self::NoRestart => "crashed processes stay down",
            Self::AccurateDetector => "the failure detector is right",
            Self::Synchronous => "delays and reactions have known bounds",
            Self::BoundedDelays => "delays have a bound",
            Self::SteadyClocks => "clocks run at nearly the same rate",
            Self::KnownMembership => "each process knows all processes",
            Self::UniqueIds => "ids are unique",
            Self::StableStorage => "saved state survives a crash",
        }
    }

    /// The possible harm if the assumption does not hold.
    pub fn consequence(self) -> &'static str {
        match self {
            Self::Reliable | Self::ReliableLinks => "a lost message may block it for ever",
            Self::NoDuplicates => "a duplicate may be taken for a second message",
            Self::Fifo => "a message that overtakes another may break its guarantees",
            Self::NoCrash => "a crashed process may block the others for ever",
            Self::NoRestart => {
                "a restarted process may break its guarantees or never take part again"
            }
            Self::AccurateDetector => "a live process may be left out, or a crashed one waited for",
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
            Self::ReliableLinks => "reliable links",
            Self::NoDuplicates => "no duplicates",
            Self::Fifo => "FIFO channels",
            Self::NoCrash => "no crashes",
            Self::NoRestart => "no restarts",
            Self::AccurateDetector => "an accurate failure detector",
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
    /// The highest id of the initiators.
    MaxInitiator,
    /// Any process, but only one.
    Any,
}

impl fmt::Display for Winner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::MaxAll => "highest id of all",
            Self::MaxInitiator => "highest id among the initiators",
            Self::Any => "any process, but only one",
        })
    }
}

/// A guarantee of an algorithm, while its assumptions hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Guarantee {
    /// At most one process is in the critical section.
    MutualExclusion,
    /// If a process waits, some process enters.
    DeadlockFree,
    /// Every waiting process enters.
    StarvationFree,
    /// Requests are served in happened-before order.
    HappenedBefore,
    /// Requests are served in happened-before order until a process restarts. A restarted process may
    /// request before it has a timestamp, and a third process may know of that request by then.
    HappenedBeforeUntilRestart,
    /// At most one leader at any moment.
    UniqueLeader,
    /// At most one leader at any moment until the topology changes, and then one in each part in the end.
    UniqueWhileUnchanged,
    /// At most one leader in each epoch.
    UniquePerEpoch,
    /// A process that leads again does so in a higher epoch.
    GrowingEpochs,
    /// In the end all processes name the same leader, or have delivered the same messages.
    Agreement,
    /// In the end no process follows a crashed leader.
    LiveLeader,
    /// Every run ends.
    Termination,
    /// A run ends with probability 1.
    TerminationWithProbabilityOne,
    /// Parents never form a cycle.
    AcyclicParents,
    /// In the end the parents form a tree, and the leader is its root.
    SpanningTree,
    /// Every crashed process is suspected in the end.
    Completeness,
    /// In the end no live process is suspected.
    EventualAccuracy,
    /// All members agree on the views.
    ViewAgreement,
    /// Members that go from one view to the next together have delivered the same messages before.
    VirtualSynchrony,
    /// All members deliver messages in the same order.
    TotalOrder,
    /// If any member delivers a message, even a crashed one, all members that go on deliver it.
    UniformAgreement,
    /// A member that goes to the next view has delivered its own messages.
    SelfDelivery,
    /// If a process that stays up multicasts a message, all processes that stay up deliver it.
    Validity,
    /// No message is delivered twice, and none that was not multicast.
    Integrity,
    /// The messages of one sender are delivered in the order in which it sent them.
    FifoOrder,
    /// No message is delivered before its causes.
    CausalOrder,
    /// A message is delivered only once a majority holds it, so that it survives crashes of a minority.
    UniformDelivery,
    /// A message is delivered only once every member holds it.
    SafeDelivery,
    /// A guarantee of another problem, in words.
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
            Self::HappenedBeforeUntilRestart => "happened-before order until a process restarts",
            Self::UniqueLeader => "one leader at a time",
            Self::UniqueWhileUnchanged => "one leader at a time until the topology changes",
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
    /// The mistake in one sentence.
    pub what: &'static str,
    /// The property that breaks.
    pub breaks: &'static str,
    /// The arguments of `check` that catch it. Empty if no check does, because only timing shows the
    /// mistake: see [`Mistake::shown_by`].
    pub caught_by: &'static str,
}

/// A switch: a choice when an algorithm is built.
#[derive(Clone, Copy, Debug)]
pub struct Switch {
    /// Its name.
    pub name: &'static str,
    /// Its values, the default first. A value like `<number>` stands for any number.
    pub values: &'static [&'static str],
    /// Its effect.
    pub what: &'static str,
}

impl Switch {
    /// The highest number that a switch accepts: the highest process id. Multiples of it do not overflow.
    pub const LARGEST: u32 = konklave_process::MAX_ID;

    /// Whether `value` is one of its values. The algorithm may refuse it all the same (`check_setup`).
    pub fn accepts(&self, value: &str) -> bool {
        let number = || value.parse::<u32>().is_ok_and(|number| number <= Self::LARGEST);
        self.values.contains(&value) && !value.starts_with('<')
            || self.values.contains(&"<number>") && number()
            || self.values.contains(&"<text>") && !value.is_empty()
    }
}

/// A measure that has a formula.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// All messages sent.
    Messages,
    /// Messages divided by entries into the critical section.
    MessagesPerEntry,
    /// The longest time from an exit to the next entry while a process waits, in T.
    SyncDelay,
    /// The longest time from request to entry without other requests, in T.
    EntryDelay,
    /// The time from the first start until the last process is informed, in T.
    Time,
    /// The longest time from a multicast to its last delivery, in T.
    Delivery,
    /// A measure of another problem, by its name: [`Problem::measured`](crate::Problem::measured) knows it.
    #[serde(untagged)]
    Other(&'static str),
}

/// The cost of an algorithm under one metric.
#[derive(Clone, Copy, Debug)]
pub struct Cost {
    /// The metric.
    pub metric: Metric,
    /// The formula as the book writes it.
    pub formula: &'static str,
    /// The runs that it applies to, in words.
    pub when: &'static str,
    /// The value of the formula; none in runs that it does not apply to.
    pub bound: fn(&Facts<'_>) -> Option<Bound>,
}

/// The value of a formula.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Bound {
    /// Exactly this value.
    Exactly(f64),
    /// At most this value.
    AtMost(f64),
    /// At least the first value, and at most the second.
    Between(f64, f64),
}

impl Bound {
    /// Whether `measured` is within it, up to rounding.
    pub fn holds(self, measured: f64) -> bool {
        let slack = 1e-6 * measured.abs().max(1.0);
        let (low, high) = match self {
            Self::Exactly(x) => (x, x),
            Self::AtMost(high) => (f64::NEG_INFINITY, high),
            Self::Between(low, high) => (low, high),
        };
        low - slack <= measured && measured <= high + slack
    }

    /// The lower limit, if there is one.
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

/// The facts about a run that formulas use.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// Group and topology.
    pub setup: &'a Setup,
    /// The processes that started before any message arrived.
    pub initiators: &'a [ProcessId],
    /// How often each process was served.
    pub served: &'a [(ProcessId, u64)],
    /// The longest delay of a message in T, if delays have a limit.
    pub delay_max: Option<f64>,
    /// Whether all assumptions of the algorithm held.
    pub assumptions_hold: bool,
    /// Whether requests never meet: each is made after all messages of the last have arrived.
    pub uncontended: bool,
    /// Whether all initiators start in the first moment of the run.
    pub at_once: bool,
    /// The duration of the run, in T: the cost of an endless algorithm grows with it.
    pub elapsed: f64,
    /// Whether there were no faults at all.
    pub undisturbed: bool,
    /// Whether all messages have the same delay.
    pub steady: bool,
    /// The shortest time in the critical section, in T (locks only).
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
        // An integer sum: the empty sum of floats is −0.
        self.served.iter().filter(|(q, _)| *q != p).map(|(_, times)| *times).sum::<u64>() as f64
    }
}
