//! A run as data: who did what, when, and why.
//!
//! Every world (simulator, checker, network) records the same [`Run`], and every tool reads it
//! without knowing the algorithm: messages, requests and states are plain JSON. `book/en/reference/run-format.md`
//! describes the file.
//!
//! * [`Recorder`] writes a run down while it happens, to memory or to a file;
//! * [`compact`] does so in a tenth of the bytes, while the simulation goes on;
//! * [`Reader`] and [`Run::read`] read it again, with the line of whatever is wrong;
//! * [`replay`](replay()) feeds it to fresh processes and compares what they do, [`Audit`] asks whether
//!   the world could have done so, [`Comparison`] holds it against the run that happens again;
//! * [`text`] tells it as a story, [`diagram`] lays it out in space and time, [`svg`] draws that;
//! * [`export`] turns it into what other tools read;
//! * [`causality`] says what could have caused what.

mod audit;
mod axis;
pub mod causality;
pub mod compact;
pub mod diagram;
mod difference;
pub mod export;
mod filter;
mod labels;
pub mod messages;
mod read;
mod record;
mod replay;
mod spans;
pub mod svg;
pub mod text;

pub use audit::Audit;
pub use difference::{Comparison, Difference, Place};
pub use filter::{Extent, Filter, View, known_node};
pub use read::{ReadError, Reader, Salvaged};
pub use record::{Recorder, Sink, Writer};
pub use replay::{ReplayError, Replayed, Replayer, replay};

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// The version of the format. A reader refuses every other one.
pub const VERSION: u32 = 1;

/// A run: what it was, what happened, how it ended.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    /// What was run.
    pub header: Header,
    /// What happened, in order.
    pub entries: Vec<Entry>,
    /// How it ended; none where the recording was cut off.
    pub footer: Option<Footer>,
}

/// What was run. The first line of the file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Header {
    /// The version of the format.
    pub konklave: u32,
    /// Its full name: `mutex/ricart-agrawala`.
    pub algorithm: String,
    /// The hash of its data sheet.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sheet: String,
    /// The ids of the members, in node order.
    pub nodes: Vec<u32>,
    /// The name of the topology.
    #[serde(default)]
    pub topology: String,
    /// Its edges between ids, where its name does not tell them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edges: Option<Vec<(u32, u32)>>,
    /// Where all chance came from.
    #[serde(default)]
    pub seed: u64,
    /// Where it ran: `sim`, `check`, `threads`, `tcp` …
    #[serde(default)]
    pub world: String,
    /// How many ticks of `at` make one unit of `time`.
    #[serde(default = "one")]
    pub unit: f64,
    /// What people call that unit: `T`, `s` or `steps`.
    #[serde(default)]
    pub time: String,
    /// The mistake that was made on purpose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mistake: Option<String>,
    /// What was chosen among the algorithm's variants.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub chosen: BTreeMap<String, String>,
    /// The command that repeats the run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// All else about the world, free in form.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub scenario: Value,
}

fn one() -> f64 {
    1.0
}

impl Header {
    /// The header of a run of `algorithm` by these ids, in the simulator's units, with the rest
    /// left open.
    pub fn new(algorithm: impl Into<String>, nodes: Vec<u32>) -> Self {
        Self {
            konklave: VERSION,
            algorithm: algorithm.into(),
            sheet: String::new(),
            nodes,
            topology: String::new(),
            edges: None,
            seed: 0,
            world: "sim".into(),
            unit: 1000.0,
            time: "T".into(),
            mistake: None,
            chosen: BTreeMap::new(),
            command: String::new(),
            scenario: Value::Null,
        }
    }

    /// The problem that the algorithm solves: the first half of its name.
    pub fn problem(&self) -> &str {
        self.algorithm.split('/').next().unwrap_or("")
    }

    /// What people call a node: `p0`, unless the scenario has `names`, as that of a recording of real
    /// agents does.
    pub fn name_of(&self, node: u32) -> String {
        let name = self.scenario.get("names").and_then(|names| names.get(node.to_string()));
        name.and_then(Value::as_str).map_or_else(|| format!("p{node}"), str::to_owned)
    }

    /// The time `at`, in the header's unit.
    pub fn time_of(&self, at: u64) -> f64 {
        if self.unit > 0.0 { at as f64 / self.unit } else { at as f64 }
    }
}

/// Something that happened.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Entry {
    /// A process made a step.
    Step(Step),
    /// Something happened to the world.
    Incident(Incident),
}

impl Entry {
    /// When it happened.
    pub fn at(&self) -> u64 {
        match self {
            Self::Step(step) => step.at,
            Self::Incident(incident) => incident.at,
        }
    }

    /// The step, if it is one.
    pub fn step(&self) -> Option<&Step> {
        match self {
            Self::Step(step) => Some(step),
            Self::Incident(_) => None,
        }
    }
}

/// One step of one process.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Step {
    /// When, in ticks.
    pub at: u64,
    /// Who.
    pub node: u32,
    /// Why.
    #[serde(rename = "in")]
    pub input: InputRecord,
    /// What `choose` answered, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub draws: Vec<u32>,
    /// What it did, in order.
    #[serde(default, rename = "do", skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<EffectRecord>,
    /// The state after it, if it differs from the state after the process's last step.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub state: Option<Value>,
}

/// An [`Input`](konklave_process::Input) of any algorithm.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputRecord {
    /// It comes up for the first time.
    Start,
    /// It comes up after a crash.
    Recover {
        /// With what it had saved, if anything.
        #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
        saved: Option<Value>,
    },
    /// The application asks.
    Request(Value),
    /// A message arrives.
    Message {
        /// Who sent it.
        from: u32,
        /// Which one; 0 where that is not known.
        #[serde(default)]
        id: u64,
        /// What it says.
        body: Value,
    },
    /// A timer ran out.
    Timer(Value),
    /// The failure detector suspects a peer.
    Suspect(u32),
    /// The failure detector trusts a peer again.
    Trust(u32),
    /// A message of the application arrives.
    Stamp {
        /// Who sent it.
        from: u32,
        /// Which one; 0 where that is not known.
        #[serde(default)]
        id: u64,
        /// The logical time it carries.
        stamp: u64,
    },
}

impl InputRecord {
    /// The other process that it is about, if any.
    pub(crate) fn peer(&self) -> Option<u32> {
        match self {
            Self::Message { from, .. } | Self::Stamp { from, .. } => Some(*from),
            Self::Suspect(peer) | Self::Trust(peer) => Some(*peer),
            Self::Start | Self::Recover { .. } | Self::Request(_) | Self::Timer(_) => None,
        }
    }
}

/// An [`Effect`](konklave_process::Effect) of any algorithm.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectRecord {
    /// It sends a message.
    Send {
        /// To whom.
        to: u32,
        /// Which one: no other message of the run has this number.
        id: u64,
        /// What it says.
        body: Value,
    },
    /// It starts a timer, or starts it anew.
    SetTimer {
        /// Which.
        timer: Value,
        /// After how many nanoseconds it runs out.
        after_ns: u64,
    },
    /// It stops a timer.
    Cancel {
        /// Which.
        timer: Value,
    },
    /// It tells the application.
    Indicate(Value),
    /// It writes to stable storage.
    Save(Value),
    /// It met an input that its assumptions rule out.
    Unexpected(String),
}

/// Something that happens to the world rather than in a step.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Incident {
    /// When, in ticks.
    pub at: u64,
    /// What.
    #[serde(flatten)]
    pub kind: IncidentKind,
}

/// What can happen to the world.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IncidentKind {
    /// A message will not arrive.
    Lost(u64),
    /// A message will arrive twice.
    Duplicated(u64),
    /// A process stops.
    Crash(u32),
    /// A process comes up again; its next step is to recover.
    Restart {
        /// Who.
        node: u32,
        /// What it remembers.
        memory: Memory,
    },
    /// A process sleeps.
    Pause(u32),
    /// A process wakes.
    Resume(u32),
    /// Links or sides are cut off, in words.
    Cut(String),
    /// They are joined again, in words.
    Heal(String),
    /// A message of the application leaves.
    AppMessage {
        /// Who sends it.
        from: u32,
        /// To whom.
        to: u32,
        /// Which one: no other message of the run has this number.
        id: u64,
    },
    /// A property broke.
    Violation {
        /// Its name.
        property: String,
        /// What happened, in words.
        #[serde(default)]
        detail: String,
    },
}

/// What a restarted process remembers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Memory {
    /// Only what it saved.
    #[default]
    Saved,
    /// Nothing.
    Nothing,
    /// Everything, as if it had slept.
    Everything,
}

/// How a run ended. The last line of the file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Footer {
    /// The verdict: `ok`, `violated`, `stuck`, `unfinished` …
    #[serde(rename = "end")]
    pub verdict: String,
    /// Counts and measures, free in form.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub summary: Value,
}

/// Keeps "there, and null" apart from "not there".
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// The kind of a message, request or indication: the name of its variant.
pub fn kind_of(body: &Value) -> &str {
    match body {
        Value::String(word) => word,
        Value::Object(fields) if fields.len() == 1 => {
            fields.keys().next().expect("there is one key")
        }
        Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            "message"
        }
    }
}
