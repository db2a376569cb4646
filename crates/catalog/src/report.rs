//! Reports of runs and checks: the schemas `konklave.run/1` and `konklave.check/1`.

use std::collections::BTreeMap;

use konklave_algorithms::Metric;
use serde::Serialize;
use serde_json::{Map, Value};

/// The report of a run.
#[derive(Clone, Debug, Serialize)]
pub struct RunReport {
    /// `konklave.run/1`.
    pub schema: &'static str,
    /// Full name of the algorithm.
    pub algorithm: String,
    /// How many nodes.
    pub nodes: usize,
    /// The name of the topology.
    pub topology: String,
    /// Where all chance came from.
    pub seed: u64,
    /// Where it ran.
    pub world: String,
    /// The mistake that was made on purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mistake: Option<String>,
    /// ok, loop, violated, stuck or unfinished.
    pub verdict: Verdict,
    /// Why it is unfinished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unfinished: Option<String>,
    /// The violations.
    pub violations: Vec<ViolationReport>,
    /// Assumptions that did not hold.
    pub broken_assumptions: Vec<String>,
    /// Faults that changed nothing, each with the reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub faults_without_effect: Vec<String>,
    /// The processes whose clients wait.
    pub waiting: Vec<u32>,
    /// How long it took, in T.
    pub time: f64,
    /// How many steps processes made.
    pub steps: u64,
    /// Messages.
    pub messages: Messages,
    /// Measured against formula.
    pub bounds: Vec<BoundReport>,
    /// The measures of the problem, under its name.
    #[serde(flatten)]
    pub problem: Map<String, Value>,
    /// The command that repeats this run.
    pub command: String,
}

/// How a run went.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Everything as it should be.
    Ok,
    /// A property broke.
    Violated,
    /// No further event is possible, but a client waits.
    Stuck,
    /// It was cut off before it ended.
    Unfinished,
    /// The topology has a loop, and the algorithm says so: there is no leader.
    Loop,
}

impl Verdict {
    /// The exit code that says so.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Ok | Self::Loop => 0,
            Self::Violated | Self::Stuck => 1,
            Self::Unfinished => 2,
        }
    }

    /// As in the schema.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Violated => "violated",
            Self::Stuck => "stuck",
            Self::Unfinished => "unfinished",
            Self::Loop => "loop",
        }
    }
}

/// A property that broke.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ViolationReport {
    /// Its name.
    pub property: String,
    /// When, in T.
    pub at: f64,
    /// The description of the violation.
    pub detail: String,
}

/// How many messages there were.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Messages {
    /// Handed to the network.
    pub sent: u64,
    /// Handed to a process.
    pub delivered: u64,
    /// Lost on the way, or at a crashed process.
    pub lost: u64,
    /// Doubled on the way.
    pub duplicated: u64,
    /// Bytes sent, if sending takes time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// Sent, by kind.
    pub by_kind: BTreeMap<String, u64>,
}

/// A measure against its formula.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct BoundReport {
    /// The metric.
    pub metric: Metric,
    /// As the book writes it.
    pub formula: String,
    /// In which runs it applies.
    pub when: String,
    /// Its value, or the most it can be; none where it does not apply.
    pub limit: Option<f64>,
    /// The least it can be, where there is such a limit as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least: Option<f64>,
    /// Whether the measure must be exactly that.
    pub exact: bool,
    /// The measured value, if there is one.
    pub measured: Option<f64>,
    /// Whether the measured value keeps the bound; none where the formula does not apply.
    pub holds: Option<bool>,
    /// Why it does not apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Which processes stood for each other in a check.
#[derive(Clone, Debug, Serialize)]
pub struct SymmetryReport {
    /// The number of permutations, with the identity.
    pub permutations: usize,
    /// The classes of interchangeable processes, by ids.
    pub interchangeable: Vec<Vec<u32>>,
    /// Why the first permutation was refuted, if one was.
    pub refuted: Option<String>,
}

impl BoundReport {
    /// The metric in words.
    pub fn name(&self) -> String {
        let metric = serde_json::to_value(self.metric).unwrap_or_default();
        metric.as_str().unwrap_or_default().replace('_', " ")
    }

    /// How the measure stands to the formula: a sign, the figure on its other side, and a word.
    /// None where the formula does not apply.
    pub fn standing(&self) -> Option<(&'static str, f64, &'static str)> {
        let (measured, limit) = (self.measured?, self.limit?);
        Some(match (self.holds?, self.least) {
            (true, _) => (if self.exact { "=" } else { "≤" }, limit, "holds"),
            (false, Some(least)) if measured < least => ("<", least, "not reached"),
            (false, _) => (">", limit, "exceeded"),
        })
    }
}

/// Arrangements of ids, one after the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct ArrangementsReport {
    /// The number of explored arrangements: all, or up to the first violation.
    pub explored: usize,
    /// The number of all arrangements.
    pub of: usize,
}

/// The report of a check.
#[derive(Clone, Debug, Serialize)]
pub struct CheckReport {
    /// `konklave.check/1`.
    pub schema: &'static str,
    /// Full name of the algorithm.
    pub algorithm: String,
    /// How many nodes.
    pub nodes: usize,
    /// The name of the topology.
    pub topology: String,
    /// The mistake that was made on purpose.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mistake: Option<String>,
    /// Whether channels keep their order.
    pub fifo: bool,
    /// The budgets: events besides those of the protocol.
    pub budgets: BTreeMap<&'static str, Value>,
    /// The judged properties.
    pub properties: Vec<String>,
    /// exhausted, violated or bounded.
    pub verdict: &'static str,
    /// Which bound ended the search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bound: Option<&'static str>,
    /// The violated property.
    pub property: Option<String>,
    /// The description of the violation.
    pub detail: Option<String>,
    /// The rule that failed and the step that decided, in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<String>,
    /// How many arrangements of ids were explored, where all were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrangements: Option<ArrangementsReport>,
    /// Different states reached.
    pub states: u64,
    /// Steps between them.
    pub transitions: u64,
    /// The depth of the state graph.
    pub depth: u32,
    /// The fewest and the most messages of a run that ends, where they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub messages: Option<(u32, u32)>,
    /// The duration in seconds.
    pub seconds: f64,
    /// Explored states per second.
    pub states_per_second: f64,
    /// The approximate peak memory of the states.
    pub peak_bytes: u64,
    /// Which reduction was used.
    pub reduction: &'static str,
    /// Which processes stood for each other, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub symmetry: Option<SymmetryReport>,
    /// How likely it is that a state was missed: 0 where states are compared whole.
    pub missed: f64,
    /// How many steps the witness has.
    pub witness_length: Option<usize>,
    /// For a run that never ends: from which of its steps on it repeats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub witness_loops_from: Option<usize>,
    /// The steps of a shortest run that breaks the property.
    pub witness: Vec<String>,
    /// The command that repeats this check.
    pub command: String,
}
