//! Options of `check`, `guarantees` and `shrink`.

use std::path::PathBuf;

use clap::{ArgAction, Args};

use crate::output::Format;

/// Default limits of a search: states, and MiB of memory.
pub(crate) const MAX_STATES: u64 = 20_000_000;
pub(crate) const MAX_MEMORY: u64 = 8192;

/// Which processes may crash.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub(crate) enum Activity {
    /// Any process that is up
    #[default]
    Anyone,
    /// An idle client's process that has no work for others, no token and no office
    Idle,
    /// A waiting client's process
    Waiting,
    /// The process of a client whose request is granted
    Holder,
    /// An idle client's process that has work for others, or a message on its way to it
    Arbiter,
    /// The process that every message goes from or to
    Coordinator,
    /// An idle client's process that has the token
    IdleTokenHolder,
}

/// Forms in which a witness can be printed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum Emit {
    /// Rust test that repeats the witness
    Test,
}

/// Measures that a search can maximise or minimise.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum Measure {
    /// Messages
    Messages,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  konklave check ricart-agrawala -n 3 --requests 2,1,1
  konklave check ricart-agrawala -n 3 --requests 2,1,1 --mistake request-clock --property order
  konklave check chang-roberts -n 3 --crash 1 --mistake no-hop-limit --property livelock
  konklave check central -n 3 --loss 1 --svg witness.svg
  konklave check quorum -n 3 --synchronous --clock --time-limit 12 --property unique
Exit codes: 0 every run explored, no violation · 1 violated · 2 undecided: a limit was reached, or a property was not judged")]
#[command(allow_negative_numbers = true)]
pub(crate) struct CheckArgs {
    /// Algorithm: problem/name, or the name alone
    pub(crate) algorithm: String,

    /// Number of nodes
    #[arg(short = 'n', long, env = "KONKLAVE_NODES", value_name = "N", help_heading = "Group")]
    pub(crate) nodes: Option<usize>,
    /// Links between nodes: ring, path, star, tree, grid:3x4, complete, …, or a file
    #[arg(long, env = "KONKLAVE_TOPOLOGY", value_name = "KIND|FILE", help_heading = "Group")]
    pub(crate) topology: Option<String>,
    /// Ids in node order: asc, desc, random, a list, or every (explores each arrangement in turn)
    #[arg(long, env = "KONKLAVE_IDS", value_name = "LIST", help_heading = "Group")]
    pub(crate) ids: Option<String>,
    /// Nodes that start an election, request the lock or send: all, or a list of ids
    #[arg(long, env = "KONKLAVE_INITIATORS", value_name = "IDS", help_heading = "Group")]
    pub(crate) initiators: Option<String>,
    /// Nodes that are down from the start: a list of ids
    #[arg(long, env = "KONKLAVE_DOWN", value_name = "LIST", help_heading = "Group")]
    pub(crate) down: Option<String>,
    /// Variant of the algorithm (see `list ALGORITHM`); repeatable
    #[arg(
        long = "set",
        value_name = "NAME=VALUE",
        help_heading = "Group",
        env = "KONKLAVE_SET",
        value_delimiter = '\n'
    )]
    pub(crate) set: Vec<String>,
    /// Run the algorithm with a known mistake from the literature (see `list ALGORITHM`)
    #[arg(long, env = "KONKLAVE_MISTAKE", value_name = "NAME", help_heading = "Group")]
    pub(crate) mistake: Option<String>,

    /// Requests that each node may make
    #[arg(long, env = "KONKLAVE_ENTRIES", value_name = "K", help_heading = "Budgets")]
    pub(crate) entries: Option<u32>,
    /// Requests that each node may make, as a list in node order: 2,1,0
    #[arg(long, env = "KONKLAVE_REQUESTS", value_name = "LIST", help_heading = "Budgets")]
    pub(crate) requests: Option<String>,
    /// Number of nodes that may crash
    #[arg(
        long,
        env = "KONKLAVE_CHECK_CRASH",
        value_name = "K",
        default_value_t = 0,
        help_heading = "Budgets"
    )]
    pub(crate) crash: u8,
    /// Nodes that may crash, by their role at that moment
    #[arg(long, value_enum, value_name = "ACTIVITY", default_value_t, help_heading = "Budgets")]
    pub(crate) victim: Activity,
    /// Number of crashed nodes that may restart
    #[arg(
        long,
        env = "KONKLAVE_CHECK_RESTART",
        value_name = "K",
        default_value_t = 0,
        help_heading = "Budgets"
    )]
    pub(crate) restart: u8,
    /// Number of messages that may be lost
    #[arg(
        long,
        env = "KONKLAVE_CHECK_LOSS",
        value_name = "K",
        default_value_t = 0,
        help_heading = "Budgets"
    )]
    pub(crate) loss: u8,
    /// Number of messages that may be delivered twice
    #[arg(
        long,
        env = "KONKLAVE_CHECK_DUPLICATE",
        value_name = "K",
        default_value_t = 0,
        help_heading = "Budgets"
    )]
    pub(crate) duplicate: u8,
    /// Number of channels that may be cut for ever, each in one direction
    #[arg(long, value_name = "K", default_value_t = 0, help_heading = "Budgets")]
    pub(crate) cut: u8,
    /// Number of links that may break for ever, in both directions; both ends suspect each other
    #[arg(long = "break", value_name = "K", default_value_t = 0, help_heading = "Budgets")]
    pub(crate) breaks: u8,
    /// Number of messages that the application may send beside those of the algorithm
    #[arg(long, env = "KONKLAVE_CHECK_APP_MESSAGES", value_name = "K", num_args = 0..=1, default_missing_value = "1",
          default_value_t = 0, help_heading = "Budgets")]
    pub(crate) app_messages: u8,

    /// Messages of one channel may overtake each other
    #[arg(long = "no-fifo", action = ArgAction::SetTrue, help_heading = "World", env = "KONKLAVE_NO_FIFO")]
    pub(crate) no_fifo: bool,
    /// Messages of one channel keep their order (the default)
    #[arg(long, env = "KONKLAVE_FIFO", action = ArgAction::SetTrue, overrides_with = "no_fifo", help_heading = "World")]
    pub(crate) fifo: bool,
    /// Synchronous model: timers fire only when no message is in flight
    #[arg(long, env = "KONKLAVE_SYNCHRONOUS", help_heading = "World")]
    pub(crate) synchronous: bool,
    /// Number of exceptions from --synchronous: timers that fire early or, with --clock, steps of time
    /// with messages in flight
    #[arg(long, value_name = "K", num_args = 0..=1, default_missing_value = "1",
          default_value_t = 0, requires = "synchronous", help_heading = "Budgets")]
    pub(crate) early: u8,
    /// Fire timers by a clock that advances in steps of STEP T [default step: 1]; messages take any
    /// time, or no time with --synchronous (exceptions: --early)
    #[arg(long, value_name = "STEP", num_args = 0..=1, default_missing_value = "1",
          help_heading = "World")]
    pub(crate) clock: Option<f64>,
    /// Explore only up to this time, in T
    #[arg(long, value_name = "T", requires = "clock", help_heading = "World")]
    pub(crate) time_limit: Option<f64>,
    /// Judge the time limit as the end of the run if no message is in flight: no client may wait then
    #[arg(long, requires = "time_limit", help_heading = "World")]
    pub(crate) settled: bool,
    /// Run without a failure detector: no process learns of a crash
    #[arg(long, env = "KONKLAVE_NO_DETECTOR", help_heading = "World")]
    pub(crate) no_detector: bool,
    /// Lose saved state in a crash
    #[arg(long, env = "KONKLAVE_AMNESIA", help_heading = "World")]
    pub(crate) amnesia: bool,

    /// Property to judge (see `help properties`); repeatable [default: all]
    #[arg(
        long = "property",
        value_name = "NAME",
        help_heading = "Search",
        env = "KONKLAVE_PROPERTIES"
    )]
    pub(crate) properties: Vec<String>,
    /// Compute the fewest and the most messages of all runs
    #[arg(long, env = "KONKLAVE_COUNT_MESSAGES", help_heading = "Search")]
    pub(crate) count_messages: bool,
    /// Find a run with the highest cost
    #[arg(long, value_enum, value_name = "MEASURE", help_heading = "Search")]
    pub(crate) maximise: Option<Measure>,
    /// Find a run with the lowest cost
    #[arg(
        long,
        value_enum,
        value_name = "MEASURE",
        help_heading = "Search",
        conflicts_with = "maximise"
    )]
    pub(crate) minimise: Option<Measure>,
    /// Threads of the search; 0: one for each core
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Search")]
    pub(crate) threads: usize,
    /// Explore one order of commuting deliveries where that is sound: fewer states, the same verdict,
    /// but the witness may not be a shortest one
    #[arg(long, help_heading = "Search")]
    pub(crate) reduce: bool,
    /// Explore one of several states that differ only by a permutation of interchangeable processes:
    /// fewer states, the same verdict
    #[arg(long, help_heading = "Search", conflicts_with = "shard")]
    pub(crate) symmetry: bool,
    /// Store only a 64-bit hash of each state: less memory, but the search may miss a state
    #[arg(long, help_heading = "Search")]
    pub(crate) compact: bool,
    /// Try random runs instead of all runs: the I-th of N shares
    #[arg(long, value_name = "I/N", help_heading = "Search")]
    pub(crate) shard: Option<String>,
    /// Number of random runs in this share
    #[arg(long, value_name = "K", default_value_t = 10_000, help_heading = "Search")]
    pub(crate) runs: u64,
    /// Stop after this many states
    #[arg(
        long,
        env = "KONKLAVE_MAX_STATES",
        value_name = "N",
        default_value_t = MAX_STATES,
        help_heading = "Search"
    )]
    pub(crate) max_states: u64,
    /// Stop at this depth
    #[arg(long, env = "KONKLAVE_MAX_DEPTH", value_name = "STEPS", help_heading = "Search")]
    pub(crate) max_depth: Option<u32>,
    /// Stop at about this much memory, in MB
    #[arg(
        long,
        env = "KONKLAVE_MAX_MEMORY",
        value_name = "MB",
        default_value_t = MAX_MEMORY,
        help_heading = "Search"
    )]
    pub(crate) max_memory: u64,
    /// Save the search when it stops, and regularly before that
    #[arg(long, value_name = "FILE", help_heading = "Search", conflicts_with_all = ["compact", "reduce", "shard"])]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Continue from a checkpoint of the same search; limits may differ
    #[arg(long, value_name = "FILE", help_heading = "Search", conflicts_with_all = ["compact", "reduce", "shard"])]
    pub(crate) resume: Option<PathBuf>,
    /// Seed of random topologies, ids and runs
    #[arg(long, env = "KONKLAVE_SEED", value_name = "SEED", help_heading = "Search")]
    pub(crate) seed: Option<u64>,

    /// Print the states of the witness, too
    #[arg(long, env = "KONKLAVE_STATES", help_heading = "Output")]
    pub(crate) states: bool,
    /// Print the witness in raw values, as they are recorded, instead of sentences
    #[arg(long, help_heading = "Output")]
    pub(crate) debug: bool,
    /// Record the witness to a file that `replay` and `draw` read
    #[arg(long, env = "KONKLAVE_RECORD", value_name = "FILE", help_heading = "Output")]
    pub(crate) record: Option<PathBuf>,
    /// Print the witness in this form instead of the report
    #[arg(long, value_enum, value_name = "FORM", help_heading = "Output")]
    pub(crate) emit: Option<Emit>,
    /// Draw the witness as a space–time diagram (SVG, or PNG by the name)
    #[arg(long, env = "KONKLAVE_SVG", value_name = "FILE", help_heading = "Output")]
    pub(crate) svg: Option<PathBuf>,
    /// Output format
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t, help_heading = "Output")]
    pub(crate) format: Format,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  konklave guarantees mutex
  konklave guarantees token-ring --max-states 1000000
  konklave guarantees mutex/central --witnesses runs
  konklave guarantees --markdown --cache book/guarantees.json > book/en/learn/guarantees.md")]
pub(crate) struct GuaranteesArgs {
    /// Problem or algorithm [default: all]
    #[arg(value_name = "PROBLEM|ALGORITHM")]
    pub(crate) what: Option<String>,
    /// Number of nodes; larger where an algorithm needs more, smaller where the search would not end
    #[arg(short = 'n', long, value_name = "N", default_value_t = 3)]
    pub(crate) nodes: usize,
    /// Stop a search after this many states
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub(crate) max_states: u64,
    /// Folder for a recorded run of every `no`
    #[arg(long, value_name = "DIR")]
    pub(crate) witnesses: Option<PathBuf>,
    /// File of finished rows: reuse rows whose data sheet and bounds are unchanged, and save new ones
    #[arg(long, value_name = "FILE")]
    pub(crate) cache: Option<PathBuf>,
    /// Print the page for the documentation
    #[arg(long)]
    pub(crate) markdown: bool,
    /// Output format
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  konklave run ricart-agrawala -n 5 --mistake no-tie-break --record run.run
  konklave shrink run.run
  konklave shrink run.run --record least.run
Exit codes: 0 a smallest run was found · 65 the file is no run, or its run violates nothing")]
pub(crate) struct ShrinkArgs {
    /// Recorded run
    pub(crate) file: PathBuf,
    /// Print the run in raw values, as they are recorded, instead of sentences
    #[arg(long)]
    pub(crate) debug: bool,
    /// Record the reduced run to a file that `replay` and `draw` read
    #[arg(long, env = "KONKLAVE_RECORD", value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Output format
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub(crate) format: Format,
}
