//! Scenarios: all parameters of a run, from the command line or from a file.

use clap::{ArgAction, Args};
use konklave_algorithms::problem::{self, Case};
use serde::{Deserialize, Serialize};

use crate::Error;

/// The parameters of a run. Each is an option of the command line, and a key of the same name in a
/// scenario file (TOML).
#[derive(Args, Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
#[command(next_help_heading = "Group")]
pub struct Scenario {
    /// The algorithm, in scenario files
    #[arg(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<String>,

    /// Number of nodes
    #[arg(short = 'n', long, env = "KONKLAVE_NODES", value_name = "N")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<usize>,

    /// Links between nodes: ring, path, star, tree, grid:3x4, complete, …, or a file
    #[arg(long, env = "KONKLAVE_TOPOLOGY", value_name = "KIND|FILE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology: Option<String>,

    /// Ids in node order: asc, desc, random, or a list
    #[arg(long, env = "KONKLAVE_IDS", value_name = "LIST")]
    #[serde(default, deserialize_with = "words", skip_serializing_if = "Option::is_none")]
    pub ids: Option<String>,

    /// Nodes that start an election, request the lock or send: all, a list of ids, or a number of
    /// random nodes (3x)
    #[arg(long, env = "KONKLAVE_INITIATORS", value_name = "IDS")]
    #[serde(default, deserialize_with = "words", skip_serializing_if = "Option::is_none")]
    pub initiators: Option<String>,

    /// Nodes that are down from the start: a list of ids
    #[arg(long, env = "KONKLAVE_DOWN", value_name = "LIST")]
    #[serde(default, deserialize_with = "words", skip_serializing_if = "Option::is_none")]
    pub down: Option<String>,

    /// Variant of the algorithm (see `list ALGORITHM`); repeatable
    #[arg(long = "set", env = "KONKLAVE_SET", value_delimiter = '\n', value_name = "NAME=VALUE")]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub set: Vec<String>,

    /// Run the algorithm with a known mistake from the literature (see `list ALGORITHM`)
    #[arg(long, env = "KONKLAVE_MISTAKE", value_name = "NAME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mistake: Option<String>,

    /// Requests of each node
    #[arg(long, env = "KONKLAVE_ENTRIES", value_name = "K", help_heading = "Workload")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entries: Option<u32>,

    /// Requests of each node, as a list in node order: 2,1,0
    #[arg(long, env = "KONKLAVE_REQUESTS", value_name = "LIST", help_heading = "Workload")]
    #[serde(default, deserialize_with = "words", skip_serializing_if = "Option::is_none")]
    pub requests: Option<String>,

    /// Times of all requests: NODE@TIME, in T, as in 0@0,2@3.5,2@9, or a file with lines `time node`
    #[arg(long, env = "KONKLAVE_SCRIPT", value_name = "LIST|FILE", help_heading = "Workload")]
    #[serde(default, deserialize_with = "words", skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,

    /// Load: high (each client asks again at once) or low (requests hardly ever overlap)
    #[arg(long, env = "KONKLAVE_LOAD", value_name = "LOAD", help_heading = "Workload")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<Load>,

    /// Pause before a request, in T: 5, uniform:0..9, exponential:5, pareto:5,1.5; open load: arrivals:5,
    /// bursts:5,4 (four at a time)
    #[arg(long, env = "KONKLAVE_THINK", value_name = "PAUSE", help_heading = "Workload")]
    #[serde(default, deserialize_with = "words", skip_serializing_if = "Option::is_none")]
    pub think: Option<String>,

    /// Time inside the critical section, in T
    #[arg(long, env = "KONKLAVE_HOLD", value_name = "PAUSE", help_heading = "Workload")]
    #[serde(default, deserialize_with = "words", skip_serializing_if = "Option::is_none")]
    pub hold: Option<String>,

    /// Zipf exponent: the k-th node asks k^S times as seldom as the first, with as many requests in all
    #[arg(long, env = "KONKLAVE_SKEW", value_name = "S", help_heading = "Workload")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skew: Option<f64>,

    /// Messages of the application with each request, beside those of the algorithm
    #[arg(long, env = "KONKLAVE_APP_MESSAGES", value_name = "K", num_args = 0..=1,
          default_missing_value = "1", help_heading = "Workload")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub app_messages: Option<u32>,

    /// Delay of messages, in T: constant, uniform:0.5..1.5, exponential, log-normal, hops, or a file
    #[arg(long, env = "KONKLAVE_DELAY", value_name = "MODEL", help_heading = "Network")]
    #[serde(default, deserialize_with = "words", skip_serializing_if = "Option::is_none")]
    pub delay: Option<String>,

    /// Messages of one channel keep their order (the default)
    #[arg(long, env = "KONKLAVE_FIFO", num_args = 0..=1, default_missing_value = "true",
          value_name = "BOOL", help_heading = "Network", overrides_with = "no_fifo")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fifo: Option<bool>,

    /// Messages of one channel may overtake each other
    #[arg(long = "no-fifo", action = ArgAction::SetTrue, help_heading = "Network")]
    #[serde(skip)]
    pub no_fifo: bool,

    /// Time that a node needs to handle a message, in T: messages wait at a busy node
    #[arg(long, env = "KONKLAVE_SERVICE", value_name = "PAUSE", help_heading = "Network")]
    #[serde(default, deserialize_with = "words", skip_serializing_if = "Option::is_none")]
    pub service: Option<String>,

    /// Bytes that a node sends in one T, one message after the other
    #[arg(long, env = "KONKLAVE_BANDWIDTH", value_name = "BYTES", help_heading = "Network")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bandwidth: Option<f64>,

    /// Probability that a message is lost
    #[arg(long, env = "KONKLAVE_LOSS", value_name = "P", help_heading = "Network")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<f64>,

    /// Probability that a message arrives twice
    #[arg(long, env = "KONKLAVE_DUPLICATE", value_name = "P", help_heading = "Network")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<f64>,

    /// Fault, e.g. crash:2@3.5 (see `help faults`); repeatable
    #[arg(
        long = "fault",
        env = "KONKLAVE_FAULTS",
        value_delimiter = '\n',
        value_name = "FAULT",
        help_heading = "Network"
    )]
    #[serde(default, rename = "faults", skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,

    /// Time after which all processes learn of a crash, in T; or `never`
    #[arg(long, env = "KONKLAVE_DETECT_AFTER", value_name = "T", help_heading = "Network")]
    #[serde(default, deserialize_with = "words", skip_serializing_if = "Option::is_none")]
    pub detect_after: Option<String>,

    /// Seed of all random choices
    #[arg(long, env = "KONKLAVE_SEED", value_name = "SEED", help_heading = "Run")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,

    /// Locks: measure only the steady state, without the first K entries of each node (on average) and
    /// without what comes after a node made its last
    #[arg(long, env = "KONKLAVE_WARM_UP", value_name = "K", help_heading = "Run")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<u32>,

    /// Locks: record entries and waiting clients every so many T (`series` in JSON)
    #[arg(long, env = "KONKLAVE_SAMPLE", value_name = "T", help_heading = "Run")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sample: Option<f64>,

    /// Cut the run off at this time, in T; without a limit it also ends when no client learns anything new for long
    #[arg(long, env = "KONKLAVE_TIME_LIMIT", value_name = "T", help_heading = "Run")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_limit: Option<f64>,

    /// Cut the run off after this many steps
    #[arg(long, env = "KONKLAVE_STEP_LIMIT", value_name = "STEPS", help_heading = "Run")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_limit: Option<u64>,
}

impl Scenario {
    /// Fills in what `case` asks for in a group of `n`; values that are given take precedence.
    pub fn with(self, case: &Case, n: usize) -> Self {
        let only_last = |times: u32| {
            let all = (0..n).map(|i| if i + 1 == n { times } else { 0 }.to_string());
            all.collect::<Vec<_>>().join(",")
        };
        let steady = case.steady && self.script.is_none();
        let plain = self.requests.is_none() && case.last_asks.is_none();
        let entries = self.entries.or(case.entries).or((steady && plain).then(|| enough(n)));
        let warm_up = self.warm_up.or(entries.filter(|_| steady).map(|k| k / WARM_UP));
        let crash =
            case.last_crashes.filter(|_| n > 1 && self.faults.is_empty() && self.ids.is_none());
        Self {
            initiators: self.initiators.or(case.initiators.map(str::to_owned)),
            faults: match crash {
                Some(time) => vec![format!("crash:{}@{time}", n - 1)],
                None => self.faults,
            },
            ids: self.ids.or(case.ids.map(str::to_owned)),
            entries,
            warm_up,
            requests: self.requests.or(case.last_asks.map(only_last)),
            load: self.load.or(case.load.map(Load::from)),
            app_messages: self.app_messages.or(case.app_messages),
            ..self
        }
    }
}

/// A fifth of the entries is warm-up.
const WARM_UP: u32 = 5;

/// So many entries of each of `n` nodes show the steady state: a thousand of all nodes, where that is not too few or
/// too many for each.
fn enough(n: usize) -> u32 {
    (1000 / n.max(1)).clamp(10, 100) as u32
}

impl From<problem::Load> for Load {
    fn from(load: problem::Load) -> Self {
        match load {
            problem::Load::Low => Self::Low,
            problem::Load::High => Self::High,
        }
    }
}

/// How often clients ask.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// Requests hardly ever overlap.
    Low,
    /// Every client asks again at once.
    High,
}

/// Reads a text, a number or a list of them as a text.
fn words<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "expected a text, a number or a list of these")]
    enum Words {
        One(Word),
        List(Vec<Word>),
    }
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Word {
        Text(String),
        Whole(i64),
        Number(f64),
    }
    let said = |word| match word {
        Word::Text(text) => text,
        Word::Whole(number) => number.to_string(),
        Word::Number(number) => number.to_string(),
    };
    Ok(Option::<Words>::deserialize(from)?.map(|words| match words {
        Words::One(word) => said(word),
        Words::List(list) => list.into_iter().map(said).collect::<Vec<_>>().join(","),
    }))
}

/// Replaces the names of Rust types in an error of the deserialiser.
fn without_types(message: &str) -> String {
    let types = [
        ("expected usize", "expected a whole number from 0 on"),
        ("expected u64", "expected a whole number from 0 on"),
        ("expected u32", "expected a whole number from 0 to 4294967295"),
        ("expected f64", "expected a number"),
        ("unknown field", "unknown key"),
        ("unknown variant", "unknown word"),
    ];
    let plain = message.replace('\n', " ");
    types.iter().fold(plain, |said, (kind, words)| said.replace(kind, words))
}

impl Scenario {
    /// Reads a scenario file; `file` is its name for messages.
    pub fn parse(text: &str, file: &str) -> Result<Self, Error> {
        toml::from_str(text).map_err(|e| {
            let at = e.span().map_or(0, |span| span.start.min(text.len()));
            let line = text[..at].matches('\n').count() + 1;
            Error::Data(format!("{file}:{line}: {}", without_types(e.message())))
        })
    }

    /// `self`, with missing values taken from `other`.
    pub fn or(self, other: Self) -> Self {
        let set = if self.set.is_empty() { other.set } else { self.set };
        let faults = if self.faults.is_empty() { other.faults } else { self.faults };
        Self {
            algorithm: self.algorithm.or(other.algorithm),
            nodes: self.nodes.or(other.nodes),
            topology: self.topology.or(other.topology),
            ids: self.ids.or(other.ids),
            initiators: self.initiators.or(other.initiators),
            down: self.down.or(other.down),
            set,
            mistake: self.mistake.or(other.mistake),
            entries: self.entries.or(other.entries),
            requests: self.requests.or(other.requests),
            script: self.script.or(other.script),
            load: self.load.or(other.load),
            think: self.think.or(other.think),
            skew: self.skew.or(other.skew),
            hold: self.hold.or(other.hold),
            app_messages: self.app_messages.or(other.app_messages),
            delay: self.delay.or(other.delay),
            fifo: if self.no_fifo { Some(false) } else { self.fifo.or(other.fifo) },
            no_fifo: false,
            service: self.service.or(other.service),
            bandwidth: self.bandwidth.or(other.bandwidth),
            loss: self.loss.or(other.loss),
            duplicate: self.duplicate.or(other.duplicate),
            faults,
            detect_after: self.detect_after.or(other.detect_after),
            seed: self.seed.or(other.seed),
            warm_up: self.warm_up.or(other.warm_up),
            sample: self.sample.or(other.sample),
            time_limit: self.time_limit.or(other.time_limit),
            step_limit: self.step_limit.or(other.step_limit),
        }
    }

    /// The options of the command line for this scenario.
    pub fn to_args(&self) -> String {
        let json = serde_json::to_value(self).unwrap_or_default();
        let mut args = String::new();
        for (key, value) in json.as_object().into_iter().flatten() {
            let key = match key.as_str() {
                "algorithm" => continue,
                "nodes" => "-n".to_owned(),
                "faults" => "--fault".to_owned(),
                other => format!("--{other}"),
            };
            let values = match value {
                serde_json::Value::Array(values) => values.clone(),
                other => vec![other.clone()],
            };
            for value in values {
                let word = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let plain = |c: char| c.is_ascii_alphanumeric() || "-_.,:=/@#+".contains(c);
                if key == "--fifo" {
                    args += if word == "true" { " --fifo" } else { " --no-fifo" };
                } else if word.chars().all(plain) && !word.is_empty() {
                    args += &format!(" {key} {word}");
                } else {
                    args += &format!(" {key} '{}'", word.replace('\'', r"'\''"));
                }
            }
        }
        args.trim_start().to_owned()
    }
}
