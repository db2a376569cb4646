//! What is compared, problem by problem.

use serde::Serialize;

/// Something that is compared.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// In which unit.
    pub unit: &'static str,
    /// Which way is better.
    pub better: Better,
    /// What it says about an algorithm, where its name does not.
    pub means: &'static str,
    /// What a formula says of it: at most, or at least.
    pub limit: &'static str,
    /// What it was measured of, and counted: hand-overs, multicasts.
    pub of: &'static str,
    /// The measure of the report it comes from.
    #[serde(skip)]
    pub(super) measure: &'static str,
    /// The measure under low load, where that is another.
    #[serde(skip)]
    pub(super) measure_low: Option<&'static str>,
    /// What it is bounded by.
    #[serde(skip)]
    pub(super) bound: Bounded,
    /// Whether it is the delay of the triangle.
    #[serde(skip)]
    pub(super) is_delay: bool,
}

impl Column {
    /// What is shown where nothing was measured.
    pub fn without_any(&self) -> String {
        match self.of.strip_suffix('s') {
            Some(one) => format!("—(no {one})"),
            None => "–".into(),
        }
    }
}

/// Which way is better.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// Less is better.
    Less,
    /// More is better.
    More,
}

/// Where the formula for a column comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Bounded {
    /// Nobody says.
    Not,
    /// A metric of the data sheet.
    By(&'static str),
    /// That of all messages, or of those for each: what is served is counted by this measure.
    PerEach(&'static str),
    /// From request to exit: by the delays of the data sheet.
    Response,
    /// By the delay from one to the next.
    Throughput,
}

const PLAIN: Column = Column {
    name: "",
    unit: "",
    better: Better::Less,
    means: "",
    limit: "at most",
    of: "",
    measure: "",
    measure_low: None,
    bound: Bounded::Not,
    is_delay: false,
};

/// Messages divided by what they were for.
pub(super) const MESSAGES_PER_EACH: &str = "messages_per_each";
/// Messages divided by the time of the run.
pub(super) const MESSAGES_PER_TIME: &str = "messages_per_time";

const LOCK: &[Column] = &[
    Column {
        name: "messages",
        unit: "per entry",
        measure: MESSAGES_PER_EACH,
        bound: Bounded::PerEach("entries"),
        ..PLAIN
    },
    Column {
        name: "sync delay",
        unit: "T",
        means: "from an exit to the next entry, when someone waits at the exit; so often there was such \
                a hand-over in all runs",
        of: "hand-overs",
        measure: "sync_delay.mean",
        bound: Bounded::By("sync_delay"),
        is_delay: true,
        ..PLAIN
    },
    Column {
        name: "response",
        unit: "T",
        means: "from request to exit; under low load of requests that met no other, as in the books",
        measure: "response.mean",
        measure_low: Some("lone_response.mean"),
        bound: Bounded::Response,
        ..PLAIN
    },
    Column {
        name: "throughput",
        unit: "entries/T",
        better: Better::More,
        limit: "at least",
        measure: "throughput",
        bound: Bounded::Throughput,
        ..PLAIN
    },
    Column {
        name: "bypass",
        unit: "entries",
        means: "fairness: the most entries between a request and its own",
        measure: "max_bypass",
        ..PLAIN
    },
    Column {
        name: "inversions",
        unit: "entries",
        means: "order: entries before one that was asked for earlier, causally",
        measure: "order_inversions",
        ..PLAIN
    },
];

const ELECTION: &[Column] = &[
    Column {
        name: "messages",
        means: "all that were sent: who keeps its office by messages sends them until the run is cut off",
        measure: "messages",
        bound: Bounded::By("messages"),
        ..PLAIN
    },
    Column {
        name: "one leads after",
        unit: "T",
        means: "from the first start until one leads and nobody else, for good",
        measure: "time_to_leader",
        ..PLAIN
    },
    Column {
        name: "all know after",
        unit: "T",
        means: "from the first start until the last process knows who leads",
        measure: "time_to_all",
        bound: Bounded::By("time"),
        is_delay: true,
        ..PLAIN
    },
];

const MULTICAST: &[Column] = &[
    Column {
        name: "messages",
        unit: "per multicast",
        means: "all that were sent, heartbeats and session messages, too, until nothing was left to say",
        measure: MESSAGES_PER_EACH,
        bound: Bounded::PerEach("sent"),
        ..PLAIN
    },
    Column {
        name: "delivery",
        unit: "T",
        means: "from a multicast to its last delivery, where all delivered it",
        of: "multicasts",
        measure: "last_latency.mean",
        bound: Bounded::By("delivery"),
        is_delay: true,
        ..PLAIN
    },
    Column {
        name: "missing",
        unit: "deliveries",
        means: "deliveries that never came, at members that were up all the time",
        measure: "undelivered",
        ..PLAIN
    },
];

const GROUP: &[Column] = &[
    Column { name: "messages", measure: "messages", bound: Bounded::By("messages"), ..PLAIN },
    Column {
        name: "delivery",
        unit: "T",
        means: "from sending to delivery",
        measure: "latency_mean",
        bound: Bounded::By("entry_delay"),
        ..PLAIN
    },
    Column {
        name: "hand-over",
        unit: "T",
        means: "from letting a lock go to the next grant, when someone waits",
        measure: "hand_over_mean",
        bound: Bounded::By("sync_delay"),
        ..PLAIN
    },
    Column {
        name: "view change",
        unit: "T",
        means: "from the first member that stops to the last that goes on in the next view",
        measure: "change_max",
        bound: Bounded::By("time"),
        ..PLAIN
    },
];

const DETECTOR: &[Column] = &[
    Column { name: "messages", unit: "per T", measure: MESSAGES_PER_TIME, ..PLAIN },
    Column {
        name: "detection",
        unit: "T",
        means: "from a crash to the suspicion of each of the others",
        measure: "detection_mean",
        is_delay: true,
        ..PLAIN
    },
    Column {
        name: "false alarms",
        unit: "suspicions",
        means: "suspicions of processes that were up",
        measure: "false_suspicions",
        ..PLAIN
    },
];

const OTHER: &[Column] = &[
    Column { name: "messages", measure: "messages", bound: Bounded::By("messages"), ..PLAIN },
    Column {
        name: "time",
        unit: "T",
        means: "until nothing was left to do",
        measure: "time",
        is_delay: true,
        ..PLAIN
    },
];

/// The columns of a problem.
pub(super) fn of(problem: &str) -> &'static [Column] {
    match problem {
        "mutex" => LOCK,
        "election" => ELECTION,
        "multicast" => MULTICAST,
        "group" => GROUP,
        "detector" => DETECTOR,
        _ => OTHER,
    }
}

/// Whether all that solve a problem do the same work, so that one can be better than another: the
/// services of a group do not.
pub(super) fn are_rivals(problem: &str) -> bool {
    problem != "group"
}
