//! Data sheets of problems: what commands and tables need to know of one, as data.

use std::fmt;

use serde::Serialize;

/// The measures of a run, each by its name.
pub type Measures<'a> = &'a dyn Fn(&str) -> Option<f64>;

/// The data sheet of a problem.
#[derive(Clone, Copy, Debug)]
pub struct ProblemSheet {
    /// Its name: the first half of an algorithm's full name.
    pub name: &'static str,
    /// The properties that its judges know, besides [those of every problem](Property::COMMON).
    pub properties: &'static [Property],
    /// The properties that `guarantees` has a row for, by their words; without any there is no such table.
    pub guarantees: &'static [&'static str],
    /// The violations that no crash and no loss may cause: without them `tolerance` calls an algorithm safe.
    pub safety: &'static [&'static str],
    /// The violations of its own that a judge can only see at the end of a run: after them the property is broken for good.
    pub at_end: &'static [&'static str],
    /// Whether clients ask for something.
    pub asks: bool,
    /// Whether a client that is served keeps what it has for a while (`--hold`).
    pub holds: bool,
    /// Whether clients wait for their turn, so that `tolerance` can say who is harmed by a fault.
    pub takes_turns: bool,
    /// Whether formulas are about one request of each client at most, made at one moment.
    pub one_shot: bool,
    /// Whether all algorithms do the same work, so that `compare` can say which is best.
    pub rivals: bool,
    /// The standard workloads of `costs`.
    pub workloads: &'static [Case],
    /// The standard workloads of `compare`; what the user gave takes precedence.
    pub contests: &'static [Case],
    /// What `compare` compares.
    pub columns: &'static [Column],
    /// Whether nothing is missing in the end that every survivor should have, by the measures of the run.
    pub is_complete: fn(measure: Measures<'_>, survivors: usize) -> bool,
}

impl ProblemSheet {
    /// A sheet to begin with: clients ask, all algorithms do the same work, messages and time are compared.
    pub const BLANK: Self = Self {
        name: "",
        properties: &[],
        guarantees: &["deadlock", "livelock", "quiescence"],
        safety: &[],
        at_end: &[],
        asks: true,
        holds: false,
        takes_turns: false,
        one_shot: false,
        rivals: true,
        workloads: &[
            Case { name: "one asks, once", last_asks: Some(1), ..Case::BLANK },
            Case { name: "one asks, ten times", last_asks: Some(10), ..Case::BLANK },
            Case { name: "all ask, once", entries: Some(1), ..Case::BLANK },
        ],
        contests: &[],
        columns: Column::COMMON,
        is_complete: |_, _| true,
    };

    /// Whether a violation is seen at the end of a run only.
    pub fn is_seen_at_end(&self, violation: &str) -> bool {
        ["deadlock", "quiescence"].contains(&violation) || self.at_end.contains(&violation)
    }

    /// All properties that can be judged, by their words.
    pub fn all_properties(&self) -> impl Iterator<Item = &'static Property> + use<> {
        self.properties.iter().chain(Property::COMMON)
    }
}

impl PartialEq for ProblemSheet {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for ProblemSheet {}

impl fmt::Display for ProblemSheet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name)
    }
}

/// Something that is judged, under its word of the command line (`--property`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Property {
    /// The word.
    pub word: &'static str,
    /// The violations that break it.
    pub broken_by: &'static [&'static str],
    /// What it says.
    pub meaning: &'static str,
}

impl Property {
    const fn new(
        word: &'static str,
        broken_by: &'static [&'static str],
        meaning: &'static str,
    ) -> Self {
        Self { word, broken_by, meaning }
    }

    /// Fences and epochs: locks and elections.
    pub const FENCE: Self = Self::new(
        "fence",
        &["growing fences", "growing epochs"],
        "fence numbers and epochs only grow",
    );
    /// Locks of any kind.
    pub const EXCLUSION: Self =
        Self::new("exclusion", &["mutual exclusion"], "at most one is inside");
    /// Leaders of any kind.
    pub const UNIQUE: Self = Self::new(
        "unique",
        &["one leader at a time", "one leader per epoch"],
        "one leader, now or per epoch",
    );
    /// Elections, groups, multicasts.
    pub const AGREEMENT: Self = Self::new(
        "agreement",
        &["agreement"],
        "in the end all name the same leader, or have the same messages",
    );
    /// Leaders of any kind.
    pub const STABILITY: Self = Self::new(
        "stability",
        &["stability"],
        "no leader is deposed by what another says (asked for by name)",
    );
    /// Leaders of any kind.
    pub const ALIVE: Self =
        Self::new("alive", &["live leader"], "in the end nobody follows a dead process");
    /// Leaders of any kind.
    pub const TERMINATION: Self =
        Self::new("termination", &["termination"], "in the end all know who leads");
    /// Groups and multicasts.
    pub const TOTAL: Self =
        Self::new("total", &["total order"], "all deliver the messages in one order");
    /// Groups and multicasts.
    pub const UNIFORM: Self = Self::new(
        "uniform",
        &["uniform agreement", "total order", "uniform delivery"],
        "all deliver the same in the same order, and nothing that a majority does not hold",
    );
    /// Groups and multicasts.
    pub const INTEGRITY: Self = Self::new(
        "integrity",
        &["no duplication", "no creation"],
        "no message is delivered twice, and none that nobody sent",
    );
    /// Failure detectors, and multicasts that give peers up.
    pub const ACCURACY: Self = Self::new(
        "accuracy",
        &["accuracy"],
        "no live process is given up; accuracy:K, not more than K times",
    );

    /// What every world judges, whatever the problem.
    pub const COMMON: &'static [Self] = &[
        Self::new(
            "expected",
            &["expected inputs", "usage"],
            "no process receives an input that its assumptions rule out",
        ),
        Self::new("bound", &["bound"], "no run has more than K messages (bound:K)"),
        Self::new("deadlock", &["deadlock"], "nobody waits for ever"),
        Self::new("quiescence", &["quiescence"], "in the end every process is at rest"),
        Self::new("livelock", &["livelock"], "no run goes round for ever"),
        Self::new("starvation", &["starvation"], "nobody waits for ever while others go on fairly"),
    ];
}

/// A standard workload, on top of what the user gave.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Case {
    /// Its name in tables.
    pub name: &'static str,
    /// Who starts (`--initiators`).
    pub initiators: Option<&'static str>,
    /// How ids are arranged (`--ids`), unless the user says.
    pub ids: Option<&'static str>,
    /// How often every client asks (`--entries`).
    pub entries: Option<u32>,
    /// How often the last client asks, and nobody else (`--requests`).
    pub last_asks: Option<u32>,
    /// How soon clients ask again (`--load`).
    pub load: Option<Load>,
    /// Messages past the algorithm for each request, unless the user says (`--app-messages`).
    pub app_messages: Option<u32>,
    /// When the last process crashes, unless the user gave faults or ids.
    pub last_crashes: Option<u32>,
}

impl Case {
    /// A case to begin with: nothing of its own.
    pub const BLANK: Self = Self {
        name: "",
        initiators: None,
        ids: None,
        entries: None,
        last_asks: None,
        load: None,
        app_messages: None,
        last_crashes: None,
    };
}

/// How soon clients ask again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Load {
    /// Requests hardly ever meet.
    Low,
    /// Everyone asks again at once.
    High,
}

/// Something that `compare` compares.
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
    /// What was measured and counted: hand-overs, multicasts.
    pub of: &'static str,
    /// The measure of the report it comes from.
    #[serde(skip)]
    pub measure: &'static str,
    /// The measure under low load, where that is another.
    #[serde(skip)]
    pub measure_low: Option<&'static str>,
    /// Its formula.
    #[serde(skip)]
    pub bound: Bounded,
    /// Whether it is the delay in the triangle of messages, delay and tolerance.
    #[serde(skip)]
    pub is_delay: bool,
}

impl Column {
    /// A column to begin with.
    pub const BLANK: Self = Self {
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

    /// A measure that follows from others: messages divided by what [`Bounded::PerEach`] counts.
    pub const MESSAGES_PER_EACH: &'static str = "messages_per_each";
    /// A measure that follows from others: messages divided by the time of the run.
    pub const MESSAGES_PER_TIME: &'static str = "messages_per_time";

    /// What every run has.
    pub const COMMON: &'static [Self] = &[
        Self {
            name: "messages",
            measure: "messages",
            bound: Bounded::By("messages"),
            ..Self::BLANK
        },
        Self {
            name: "time",
            unit: "T",
            means: "until nothing was left to do",
            measure: "time",
            is_delay: true,
            ..Self::BLANK
        },
    ];

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
pub enum Bounded {
    /// There is none.
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
