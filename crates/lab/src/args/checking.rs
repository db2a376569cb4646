//! What the checker is told.

use std::path::PathBuf;

use clap::{ArgAction, Args};

use crate::output::Format;

/// Where a search gives up unless told otherwise: states, and MiB of memory.
pub(crate) const MAX_STATES: u64 = 20_000_000;
pub(crate) const MAX_MEMORY: u64 = 8192;

/// Who may crash.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub(crate) enum Who {
    /// Whoever is up
    #[default]
    Anyone,
    /// Whose client wants nothing, and who is at rest
    Idle,
    /// Whose client waits
    Waiting,
    /// Whose client has been granted what it asked for
    Holder,
    /// Whose client wants nothing, but who has work for others in hand
    Arbiter,
}

/// What a witness can be printed as.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub(crate) enum Emit {
    /// A Rust test that plays it, to be pasted
    Test,
}

/// What a run may cost most of, or least.
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
Exit codes: 0 exhausted, all is well · 1 violated · 2 a bound was reached first, or not all could be judged")]
#[command(allow_negative_numbers = true)]
pub(crate) struct CheckArgs {
    /// The algorithm: problem/name, or the name alone
    pub(crate) algorithm: String,

    /// How many nodes
    #[arg(short = 'n', long, env = "KONKLAVE_NODES", value_name = "N", help_heading = "Group")]
    pub(crate) nodes: Option<usize>,
    /// Who is linked with whom: ring, path, star, tree, grid:3x4, complete, …, or a file
    #[arg(long, env = "KONKLAVE_TOPOLOGY", value_name = "KIND|FILE", help_heading = "Group")]
    pub(crate) topology: Option<String>,
    /// The ids in node order: asc, desc, random, a list, or every: all arrangements, one after the other
    #[arg(long, env = "KONKLAVE_IDS", value_name = "LIST", help_heading = "Group")]
    pub(crate) ids: Option<String>,
    /// Who asks (starts an election, takes the lock, sends): all, or a list of ids
    #[arg(long, env = "KONKLAVE_INITIATORS", value_name = "WHO", help_heading = "Group")]
    pub(crate) initiators: Option<String>,
    /// Who is down from the start: a list of ids
    #[arg(long, env = "KONKLAVE_DOWN", value_name = "LIST", help_heading = "Group")]
    pub(crate) down: Option<String>,
    /// Choose among an algorithm's variants; may be given several times
    #[arg(
        long = "set",
        value_name = "NAME=VALUE",
        help_heading = "Group",
        env = "KONKLAVE_SET",
        value_delimiter = '\n'
    )]
    pub(crate) set: Vec<String>,
    /// Make a known mistake of the sources (see `list ALGORITHM`)
    #[arg(long, env = "KONKLAVE_MISTAKE", value_name = "NAME", help_heading = "Group")]
    pub(crate) mistake: Option<String>,

    /// How often each node may ask
    #[arg(long, env = "KONKLAVE_ENTRIES", value_name = "K", help_heading = "Budgets")]
    pub(crate) entries: Option<u32>,
    /// How often each node may ask, one by one in node order: 2,1,0
    #[arg(long, env = "KONKLAVE_REQUESTS", value_name = "LIST", help_heading = "Budgets")]
    pub(crate) requests: Option<String>,
    /// How many nodes may crash
    #[arg(
        long,
        env = "KONKLAVE_CHECK_CRASH",
        value_name = "K",
        default_value_t = 0,
        help_heading = "Budgets"
    )]
    pub(crate) crash: u8,
    /// Who may crash, by what they are doing at that moment
    #[arg(long, value_enum, value_name = "WHO", default_value_t, help_heading = "Budgets")]
    pub(crate) victim: Who,
    /// How many crashed nodes may come up again
    #[arg(
        long,
        env = "KONKLAVE_CHECK_RESTART",
        value_name = "K",
        default_value_t = 0,
        help_heading = "Budgets"
    )]
    pub(crate) restart: u8,
    /// How many messages may be lost
    #[arg(
        long,
        env = "KONKLAVE_CHECK_LOSS",
        value_name = "K",
        default_value_t = 0,
        help_heading = "Budgets"
    )]
    pub(crate) loss: u8,
    /// How many messages may be doubled
    #[arg(
        long,
        env = "KONKLAVE_CHECK_DUPLICATE",
        value_name = "K",
        default_value_t = 0,
        help_heading = "Budgets"
    )]
    pub(crate) duplicate: u8,
    /// How many channels may be cut, each in one direction, for ever
    #[arg(long, value_name = "K", default_value_t = 0, help_heading = "Budgets")]
    pub(crate) cut: u8,
    /// How many links may break, both ways, for ever; both ends come to suspect each other
    #[arg(long = "break", value_name = "K", default_value_t = 0, help_heading = "Budgets")]
    pub(crate) breaks: u8,
    /// How many messages the application may send past the algorithm
    #[arg(long, env = "KONKLAVE_CHECK_APP_MESSAGES", value_name = "K", num_args = 0..=1, default_missing_value = "1",
          default_value_t = 0, help_heading = "Budgets")]
    pub(crate) app_messages: u8,

    /// Messages of one channel may overtake each other
    #[arg(long = "no-fifo", action = ArgAction::SetTrue, help_heading = "World", env = "KONKLAVE_NO_FIFO")]
    pub(crate) no_fifo: bool,
    /// Messages of one channel keep their order (the default)
    #[arg(long, env = "KONKLAVE_FIFO", action = ArgAction::SetTrue, overrides_with = "no_fifo", help_heading = "World")]
    pub(crate) fifo: bool,
    /// Timers fire only when nothing is on its way: the synchronous model
    #[arg(long, env = "KONKLAVE_SYNCHRONOUS", help_heading = "World")]
    pub(crate) synchronous: bool,
    /// In the synchronous model, so many timers may fire too early all the same; with --clock, so many
    /// steps of time may pass with messages on their way
    #[arg(long, value_name = "K", num_args = 0..=1, default_missing_value = "1",
          default_value_t = 0, requires = "synchronous", help_heading = "Budgets")]
    pub(crate) early: u8,
    /// Timers run out when their time is up, and time passes in steps of so many T (1 if none is
    /// said); messages take any time, or with --synchronous none but for --early steps
    #[arg(long, value_name = "STEP", num_args = 0..=1, default_missing_value = "1",
          help_heading = "World")]
    pub(crate) clock: Option<f64>,
    /// With --clock: look at no more than so much time, in T
    #[arg(long, value_name = "T", requires = "clock", help_heading = "World")]
    pub(crate) time_limit: Option<f64>,
    /// By the time limit, what must hold in the end must hold, and nobody may wait, if nothing is on its way
    #[arg(long, requires = "time_limit", help_heading = "World")]
    pub(crate) settled: bool,
    /// Nobody learns of a crash
    #[arg(long, env = "KONKLAVE_NO_DETECTOR", help_heading = "World")]
    pub(crate) no_detector: bool,
    /// What was saved does not survive a crash
    #[arg(long, env = "KONKLAVE_AMNESIA", help_heading = "World")]
    pub(crate) amnesia: bool,

    /// Judge only this property (see `help properties`); may be given several times
    #[arg(
        long = "property",
        value_name = "NAME",
        help_heading = "Search",
        env = "KONKLAVE_PROPERTIES"
    )]
    pub(crate) properties: Vec<String>,
    /// Find the fewest and the most messages of all runs
    #[arg(long, env = "KONKLAVE_COUNT_MESSAGES", help_heading = "Search")]
    pub(crate) count_messages: bool,
    /// Find a run that costs the most
    #[arg(long, value_enum, value_name = "WHAT", help_heading = "Search")]
    pub(crate) maximise: Option<Measure>,
    /// Find a run that costs the least
    #[arg(
        long,
        value_enum,
        value_name = "WHAT",
        help_heading = "Search",
        conflicts_with = "maximise"
    )]
    pub(crate) minimise: Option<Measure>,
    /// How many threads search; 0: one for each core
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Search")]
    pub(crate) threads: usize,
    /// Let one order of commuting deliveries stand for all where that is sound: fewer states, the same
    /// verdict, but a witness need not be a shortest one
    #[arg(long, help_heading = "Search")]
    pub(crate) reduce: bool,
    /// Let one state stand for all that differ only in which process is which, among processes that
    /// are found to be interchangeable: fewer states, the same verdict
    #[arg(long, help_heading = "Search", conflicts_with = "shard")]
    pub(crate) symmetry: bool,
    /// Keep only 64 bits of each state: less memory, and a state may be missed
    #[arg(long, help_heading = "Search")]
    pub(crate) compact: bool,
    /// Try random runs in place of all: the I-th of N shares of them
    #[arg(long, value_name = "I/N", help_heading = "Search")]
    pub(crate) shard: Option<String>,
    /// How many random runs this share has
    #[arg(long, value_name = "K", default_value_t = 10_000, help_heading = "Search")]
    pub(crate) runs: u64,
    /// Give up beyond this many states
    #[arg(
        long,
        env = "KONKLAVE_MAX_STATES",
        value_name = "N",
        default_value_t = MAX_STATES,
        help_heading = "Search"
    )]
    pub(crate) max_states: u64,
    /// Give up beyond this depth
    #[arg(long, env = "KONKLAVE_MAX_DEPTH", value_name = "STEPS", help_heading = "Search")]
    pub(crate) max_depth: Option<u32>,
    /// Give up beyond about this much memory, in MB
    #[arg(
        long,
        env = "KONKLAVE_MAX_MEMORY",
        value_name = "MB",
        default_value_t = MAX_MEMORY,
        help_heading = "Search"
    )]
    pub(crate) max_memory: u64,
    /// Write down how far the search has come: when it gives up, and from time to time before that
    #[arg(long, value_name = "FILE", help_heading = "Search", conflicts_with_all = ["compact", "reduce", "shard"])]
    pub(crate) checkpoint: Option<PathBuf>,
    /// Go on from a checkpoint of the same search; limits may be others
    #[arg(long, value_name = "FILE", help_heading = "Search", conflicts_with_all = ["compact", "reduce", "shard"])]
    pub(crate) resume: Option<PathBuf>,
    /// For random topologies and ids, and for random runs
    #[arg(long, env = "KONKLAVE_SEED", value_name = "SEED", help_heading = "Search")]
    pub(crate) seed: Option<u64>,

    /// Tell states of the witness, too
    #[arg(long, env = "KONKLAVE_STATES", help_heading = "Output")]
    pub(crate) states: bool,
    /// Tell the witness in raw values, as they are recorded, instead of sentences
    #[arg(long, help_heading = "Output")]
    pub(crate) debug: bool,
    /// Record the witness to a file that `replay` and `draw` read
    #[arg(long, env = "KONKLAVE_RECORD", value_name = "FILE", help_heading = "Output")]
    pub(crate) record: Option<PathBuf>,
    /// Print the witness as something else, in place of the report
    #[arg(long, value_enum, value_name = "WHAT", help_heading = "Output")]
    pub(crate) emit: Option<Emit>,
    /// Draw the witness as a space–time diagram
    #[arg(long, env = "KONKLAVE_SVG", value_name = "FILE", help_heading = "Output")]
    pub(crate) svg: Option<PathBuf>,
    /// The form of the output
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t, help_heading = "Output")]
    pub(crate) format: Format,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  konklave guarantees mutex
  konklave guarantees token-ring --max-states 1000000
  konklave guarantees mutex/central --witnesses runs
  konklave guarantees --markdown --cache docs/guarantees.json > docs/guarantees.md")]
pub(crate) struct GuaranteesArgs {
    /// A problem or an algorithm; default: everything
    pub(crate) what: Option<String>,
    /// How many nodes; one or two more where an algorithm cannot do with so few, and fewer where so
    /// many cannot be decided
    #[arg(short = 'n', long, value_name = "N", default_value_t = 3)]
    pub(crate) nodes: usize,
    /// Give up a search beyond this many states
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    pub(crate) max_states: u64,
    /// Write a run for every `no` into this folder
    #[arg(long, value_name = "DIR")]
    pub(crate) witnesses: Option<PathBuf>,
    /// Take rows from this file whose data sheet and bounds have not changed, and put new ones in
    #[arg(long, value_name = "FILE")]
    pub(crate) cache: Option<PathBuf>,
    /// Print the page of the docs
    #[arg(long)]
    pub(crate) markdown: bool,
    /// The form of the output
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  konklave run ricart-agrawala -n 5 --mistake no-tie-break --record run.run
  konklave shrink run.run
  konklave shrink run.run --record least.run
Exit codes: 0 a smallest run was found · 65 not a run, or nothing breaks in it")]
pub(crate) struct ShrinkArgs {
    /// The recorded run
    pub(crate) file: PathBuf,
    /// Tell the run in raw values, as they are recorded, instead of sentences
    #[arg(long)]
    pub(crate) debug: bool,
    /// Record what is left to a file that `replay` and `draw` read
    #[arg(long, env = "KONKLAVE_RECORD", value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// The form of the output
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub(crate) format: Format,
}
