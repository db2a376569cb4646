//! Data sheets of problems: facts about a problem that commands and tables use.

use std::fmt;

use konklave_process::Condition;
use serde::Serialize;

use crate::{Order, Watch};

/// The measures of a run, each by its name.
pub type Measures<'a> = &'a dyn Fn(&str) -> Option<f64>;

/// The data sheet of a problem.
#[derive(Clone, Copy, Debug)]
pub struct ProblemSheet {
    /// Its name: the first half of an algorithm's full name.
    pub name: &'static str,
    /// The properties of this problem, besides [those of every problem](Property::COMMON).
    pub properties: &'static [Property],
    /// The properties in the table of the command `guarantees`, by their words; empty: no table.
    pub guarantees: &'static [&'static str],
    /// The violations that no crash and no loss may cause: without them `tolerance` calls an algorithm safe.
    pub safety: &'static [&'static str],
    /// The violations that a judge can only see at the end of a run: after them the property is broken for good.
    pub at_end: &'static [&'static str],
    /// The conditions of clients that diagrams show as bars.
    pub conditions: &'static [Condition],
    /// The measures of a run that `costs` shows.
    pub measures: CostMeasures,
    /// Whether clients make requests.
    pub asks: bool,
    /// Whether a served client keeps its grant for a while (`--hold`).
    pub holds: bool,
    /// Whether clients wait for their turn, so that `tolerance` can report which ones a fault harms.
    pub takes_turns: bool,
    /// Whether cost formulas assume at most one request of each client, all made at one moment.
    pub one_shot: bool,
    /// Whether all algorithms do the same work, so that `compare` can name the best.
    pub rivals: bool,
    /// The standard workloads of `costs`.
    pub workloads: &'static [Case],
    /// The standard workloads of `compare`. Options of the user take precedence.
    pub contests: &'static [Case],
    /// The columns of `compare`.
    pub columns: &'static [Column],
    /// Whether there is no leader because the topology has a loop, by the measures of the run.
    pub has_loop: fn(measure: Measures<'_>) -> bool,
    /// Whether every survivor has its full result in the end, by the measures of the run.
    pub is_complete: fn(measure: Measures<'_>, survivors: usize) -> bool,
}

impl ProblemSheet {
    /// A sheet of defaults: clients ask, all algorithms do the same work, messages and time are compared.
    pub const BLANK: Self = Self {
        name: "",
        properties: &[],
        guarantees: &["deadlock", "livelock", "quiescence"],
        safety: &[],
        at_end: &[],
        conditions: &[],
        measures: CostMeasures::NONE,
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
        has_loop: |_| false,
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

/// The names of measures in the summary of a run, for the columns of `costs`; empty where a problem has no such
/// measure. A measure is a number, or the parts `min`, `mean` and `max` of one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CostMeasures {
    /// How often clients were served.
    pub entries: &'static str,
    /// From request to service.
    pub wait: &'static str,
    /// From request to the end of the service.
    pub response: &'static str,
    /// From the end of a service to the next one, while a client waits.
    pub sync_delay: &'static str,
}

impl CostMeasures {
    /// None of them.
    pub const NONE: Self = Self { entries: "", wait: "", response: "", sync_delay: "" };
}

/// A property that is judged, under its word for the command line (`--property`).
#[derive(Clone, Copy, Debug)]
pub struct Property {
    /// The word.
    pub word: &'static str,
    /// The violations that break it.
    pub broken_by: &'static [&'static str],
    /// Its meaning in a few words.
    pub meaning: &'static str,
    /// Whether the word takes a number, as in `bypass:2`. Judges find it in [`Watch::number`].
    pub number: Number,
    /// The part that judges watch if the property is named, besides its number.
    pub watch: fn(&mut Watch, Option<u32>),
}

/// Whether the word of a property takes a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Number {
    /// It takes none.
    None,
    /// It may have one.
    Optional,
    /// It must have one.
    Required,
}

impl PartialEq for Property {
    fn eq(&self, other: &Self) -> bool {
        (self.word, self.broken_by, self.meaning) == (other.word, other.broken_by, other.meaning)
    }
}

impl Eq for Property {}

/// Judges the order of events, which is judged only if it is named or guaranteed.
fn judge_order(watch: &mut Watch, _number: Option<u32>) {
    watch.order = Order::Judge;
}

impl Property {
    /// A property that every run can break, with a word that takes no number.
    pub const fn new(
        word: &'static str,
        broken_by: &'static [&'static str],
        meaning: &'static str,
    ) -> Self {
        Self { word, broken_by, meaning, number: Number::None, watch: |_, _| {} }
    }

    /// The same, where judges watch the order of events only for its sake.
    pub const fn of_order(self) -> Self {
        Self { watch: judge_order, ..self }
    }

    /// The same with a word that takes a number; judges find it by [`Watch::number`].
    pub const fn with_number(self, number: Number) -> Self {
        Self { number, ..self }
    }

    /// The same, where judges watch for it only if it is named, or with a number.
    pub const fn watching(self, number: Number, watch: fn(&mut Watch, Option<u32>)) -> Self {
        Self { number, watch, ..self }
    }

    /// Fences and epochs: locks and elections.
    pub const FENCE: Self = Self::new(
        "fence",
        &["growing fences", "growing epochs"],
        "fence numbers and epochs only grow",
    )
    .watching(Number::None, |watch, _| watch.fence = true);
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
    )
    .of_order();
    /// Leaders of any kind.
    pub const STABILITY: Self = Self::new(
        "stability",
        &["stability"],
        "no leader is deposed by a message of another process (judged on request only)",
    )
    .watching(Number::None, |watch, _| watch.stability = true);
    /// Leaders of any kind.
    pub const ALIVE: Self =
        Self::new("alive", &["live leader"], "in the end no process follows a crashed leader");
    /// Leaders of any kind.
    pub const TERMINATION: Self =
        Self::new("termination", &["termination"], "in the end all know who leads");
    /// Groups and multicasts.
    pub const TOTAL: Self =
        Self::new("total", &["total order"], "all deliver the messages in one order").of_order();
    /// Groups and multicasts.
    pub const UNIFORM: Self = Self::new(
        "uniform",
        &["uniform agreement", "total order", "uniform delivery"],
        "all deliver the same messages in the same order, and only messages that a majority holds",
    )
    .of_order();
    /// Groups and multicasts.
    pub const INTEGRITY: Self = Self::new(
        "integrity",
        &["no duplication", "no creation"],
        "no message is delivered twice, and none that was never sent",
    );
    /// Failure detectors, and multicasts that give peers up.
    pub const ACCURACY: Self = Self::new(
        "accuracy",
        &["accuracy"],
        "no live process is given up; accuracy:K, not more than K times",
    )
    .watching(Number::Optional, |watch, slips| match slips {
        Some(_) => watch.slips = slips,
        None => watch.order = Order::Judge,
    });
    /// Every problem: the search counts the messages.
    pub const BOUND: Self =
        Self::new("bound", &["bound"], "no run has more than K messages (bound:K)")
            .with_number(Number::Required);

    /// The properties that every world judges for every problem.
    pub const COMMON: &'static [Self] = &[
        Self::new(
            "expected",
            &["expected inputs", "usage"],
            "no process receives an input that its assumptions rule out",
        ),
        Self::BOUND,
        Self::new("deadlock", &["deadlock"], "nobody waits for ever"),
        Self::new("quiescence", &["quiescence"], "in the end every process is at rest"),
        Self::new("livelock", &["livelock"], "no run goes round for ever"),
        Self::new("starvation", &["starvation"], "nobody waits for ever while others go on fairly"),
    ];
}

/// A standard workload. It adds to the user's options.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Case {
    /// Its name in tables.
    pub name: &'static str,
    /// The processes that start (`--initiators`).
    pub initiators: Option<&'static str>,
    /// How ids are arranged (`--ids`), unless the user sets it.
    pub ids: Option<&'static str>,
    /// How often every client asks (`--entries`).
    pub entries: Option<u32>,
    /// The number of requests of the last client, with no other client asking (`--requests`).
    pub last_asks: Option<u32>,
    /// How soon clients ask again (`--load`).
    pub load: Option<Load>,
    /// Whether the steady state is compared: many entries, with a warm-up that is left out.
    pub steady: bool,
    /// Application messages for each request, unless the user sets them (`--app-messages`).
    pub app_messages: Option<u32>,
    /// When the last process crashes, unless the user gave faults or ids.
    pub last_crashes: Option<u32>,
}

impl Case {
    /// A case without options of its own.
    pub const BLANK: Self = Self {
        name: "",
        initiators: None,
        ids: None,
        entries: None,
        last_asks: None,
        load: None,
        steady: false,
        app_messages: None,
        last_crashes: None,
    };
}

/// How soon clients ask again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Load {
    /// Requests hardly ever meet.
    Low,
    /// Every client asks again at once.
    High,
}

/// A column of `compare`.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Which way is better.
    pub better: Better,
    /// Its meaning, where the name is not enough.
    pub means: &'static str,
    /// The kind of its bound: at most, or at least.
    pub limit: &'static str,
    /// The events that it measures: hand-overs, multicasts.
    pub of: &'static str,
    /// The measure of the report it comes from.
    #[serde(skip)]
    pub measure: &'static str,
    /// The measure under low load, if it is another one.
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
    /// A column of defaults.
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

    /// A derived measure: messages divided by the count of [`Bounded::PerEach`].
    pub const MESSAGES_PER_EACH: &'static str = "messages_per_each";
    /// A derived measure: messages divided by the time of the run.
    pub const MESSAGES_PER_TIME: &'static str = "messages_per_time";

    /// The columns of every problem.
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

    /// The text of a cell without a measurement.
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
    /// The formula of all messages or of messages per service; this measure counts the services.
    PerEach(&'static str),
    /// From request to exit: from the delays on the data sheet.
    Response,
    /// From the delay between two entries.
    Throughput,
}
