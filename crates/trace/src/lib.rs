//! A run as data: each step of each process, with its time, its input and its effects.
//!
//! Every world (simulator, checker, network) records the same [`Run`], and every tool reads it
//! without knowing the algorithm: messages, requests and states are plain JSON. `book/en/reference/run-format.md`
//! describes the file.
//!
//! * [`Recorder`] writes a run down while it happens, to memory or to a file;
//! * [`compact`] writes the same run in a tenth of the bytes, while the simulation goes on;
//! * [`Reader`] and [`Run::read`] read it again; their errors name the line;
//! * [`replay`](replay()) feeds it to fresh processes and compares their effects, [`Audit`] checks that
//!   the world could have acted so, [`Comparison`] compares it with a second run from the same seed;
//! * [`text`] prints it as a story, [`diagram`] lays it out in space and time, [`svg`] draws the layout;
//! * [`export`] converts it into the formats of other tools;
//! * [`causality`] has the happened-before order of its steps.

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
mod why;

pub use audit::Audit;
pub use difference::{Comparison, Difference, Place};
pub use filter::{Extent, Filter, View, known_node};
pub use read::{ReadError, Reader, Salvaged};
pub use record::{Recorder, Sink, Writer};
pub use replay::{ReplayError, Replayed, Replayer, replay};
pub use why::why;

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// The version of the format. A reader refuses every other one.
pub const VERSION: u32 = 1;

/// A run: its header, its entries in order, its verdict.
#[derive(Clone, PartialEq, Debug)]
pub struct Run {
    /// The algorithm, the group and the world.
    pub header: Header,
    /// The steps and incidents, in order.
    pub entries: Vec<Entry>,
    /// The verdict; none if the recording was cut off.
    pub footer: Option<Footer>,
}

/// The algorithm, the group and the world of a run. The first line of the file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Header {
    /// The version of the format.
    pub konklave: u32,
    /// The full name of the algorithm: `mutex/ricart-agrawala`.
    pub algorithm: String,
    /// The hash of its data sheet.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sheet: String,
    /// The ids of the members, in node order.
    pub nodes: Vec<u32>,
    /// The name of the topology.
    #[serde(default)]
    pub topology: String,
    /// The edges of the topology between ids, if its name does not determine them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edges: Option<Vec<(u32, u32)>>,
    /// The seed of all random choices.
    #[serde(default)]
    pub seed: u64,
    /// The world of the run: `sim`, `check`, `threads`, `tcp` …
    #[serde(default)]
    pub world: String,
    /// The number of ticks of `at` in one unit of `time`.
    #[serde(default = "one")]
    pub unit: f64,
    /// The name of that unit: `T`, `s` or `steps`.
    #[serde(default)]
    pub time: String,
    /// The deliberate mistake in the algorithm, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mistake: Option<String>,
    /// The chosen variants of the algorithm.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub chosen: BTreeMap<String, String>,
    /// The command that repeats the run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// All other settings of the world, in free form.
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

    /// The name of a node: `p0`, unless the scenario has `names`. The recording of real agents has names.
    pub fn name_of(&self, node: u32) -> String {
        let name = self.scenario.get("names").and_then(|names| names.get(node.to_string()));
        name.and_then(Value::as_str).map_or_else(|| format!("p{node}"), str::to_owned)
    }

    /// The time `at`, in the header's unit.
    pub fn time_of(&self, at: u64) -> f64 {
        if self.unit > 0.0 { at as f64 / self.unit } else { at as f64 }
    }
}

/// One event of a run.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[serde(untagged)]
pub enum Entry {
    /// A process made a step.
    Step(Step),
    /// An incident outside the processes: a crash, a lost message, a cut link.
    Incident(Incident),
}

impl Entry {
    /// Its time, in ticks.
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
    /// Its time, in ticks.
    pub at: u64,
    /// The process.
    pub node: u32,
    /// The input that the process handled.
    #[serde(rename = "in")]
    pub input: InputRecord,
    /// The answers of `choose`, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub draws: Vec<u32>,
    /// The effects, in order.
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
    /// The process starts for the first time.
    Start,
    /// The process restarts after a crash.
    Recover {
        /// The record that it saved last, if it saved any.
        #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
        saved: Option<Value>,
    },
    /// A request of the application.
    Request(Value),
    /// A message arrives.
    Message {
        /// The sender.
        from: u32,
        /// The number of the message; 0 if it is unknown.
        #[serde(default)]
        id: u64,
        /// The message itself.
        body: Value,
    },
    /// A timer fires.
    Timer(Value),
    /// The failure detector suspects a peer.
    Suspect(u32),
    /// The failure detector trusts a peer again.
    Trust(u32),
    /// A message of the application arrives.
    Stamp {
        /// The sender.
        from: u32,
        /// The number of the message; 0 if it is unknown.
        #[serde(default)]
        id: u64,
        /// The logical time it carries.
        stamp: u64,
    },
}

impl InputRecord {
    /// The sender or the suspected process, if the input names another process.
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
    /// The process sends a message.
    Send {
        /// The receiver.
        to: u32,
        /// The number of the message: no other message of the run has it.
        id: u64,
        /// The message itself.
        body: Value,
    },
    /// The process sets a timer; a running timer of this name starts anew.
    SetTimer {
        /// The name of the timer.
        timer: Value,
        /// The nanoseconds until it fires.
        after_ns: u64,
    },
    /// The process cancels a timer.
    Cancel {
        /// The name of the timer.
        timer: Value,
    },
    /// The process indicates something to the application.
    Indicate(Value),
    /// The process saves a record to stable storage.
    Save(Value),
    /// The process met an input that its assumptions rule out.
    Unexpected(String),
}

/// An event outside the processes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Incident {
    /// Its time, in ticks.
    pub at: u64,
    /// Its kind.
    #[serde(flatten)]
    pub kind: IncidentKind,
}

/// The kinds of incidents.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IncidentKind {
    /// A message will not arrive.
    Lost(u64),
    /// A message will arrive twice.
    Duplicated(u64),
    /// A process crashes.
    Crash(u32),
    /// A process restarts; its next step is to recover.
    Restart {
        /// The process.
        node: u32,
        /// The part of its memory that survived.
        memory: Memory,
    },
    /// A process pauses.
    Pause(u32),
    /// A process resumes.
    Resume(u32),
    /// A link is cut or the network is partitioned, in words.
    Cut(String),
    /// A link is restored or a partition ends, in words.
    Heal(String),
    /// The application sends a message.
    AppMessage {
        /// The sender.
        from: u32,
        /// The receiver.
        to: u32,
        /// The number of the message: no other message of the run has it.
        id: u64,
    },
    /// A property is violated.
    Violation {
        /// The name of the property.
        property: String,
        /// The reason, in words.
        #[serde(default)]
        detail: String,
    },
}

/// The part of its memory that a restarted process keeps.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Memory {
    /// Only its saved record.
    #[default]
    Saved,
    /// Nothing.
    Nothing,
    /// Everything, as if it had only paused.
    Everything,
}

/// The verdict of a run. The last line of the file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Footer {
    /// The verdict: `ok`, `violated`, `stuck`, `unfinished` …
    #[serde(rename = "end")]
    pub verdict: String,
    /// Counts and measures, in free form.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub summary: Value,
}

/// Distinguishes a field that is null from a missing field.
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
