//! The command line.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};
use konklave_catalog::Scenario;

use crate::output::{Format, TableFormat};

const AFTER_HELP: &str = "\
Examples:
  konklave demo                                      a tour of ten seconds
  konklave list                                      every algorithm with its data sheet
  konklave run ricart-agrawala -n 4 --entries 2      run it, see what it costs
  konklave ui                                        the same in the browser, faults by click
  konklave check tree-wave -n 4 --topology path --initiators 0,3 --mistake leaf-rule
                                                     find the shortest run that breaks it
Exit codes:
  0 fine · 1 a property is violated · 2 undecided, a bound was reached · 64 wrong use
  65 bad data in a file · 66 unreadable file · 69 unavailable · 70 our bug · 73 cannot create
  74 output error";

/// Elect a leader, take a lock, speak as a group — and see why it works.
#[derive(Parser, Debug)]
#[command(name = "konklave", version, about, after_help = AFTER_HELP, max_term_width = 100)]
#[command(propagate_version = true, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Name every algorithm, or show the data sheet of one
    List(ListArgs),
    /// Run an algorithm and judge and measure the run
    Run(Box<RunArgs>),
    /// Explore every run of a small group and judge them all
    Check(Box<CheckArgs>),
    /// Measure what algorithms cost over n, against their formulas
    Costs(CostsArgs),
    /// Measure group communication against theory: losses, orders, view changes, locks
    Anchors(AnchorsArgs),
    /// Compute what every algorithm keeps under which fault
    Guarantees(GuaranteesArgs),
    /// Run algorithms side by side: same workload, same network, same faults
    Compare(Box<CompareArgs>),
    /// Run every combination of parameters, with statistics and the law they follow
    Sweep(Box<SweepArgs>),
    /// Measure every number of the sources again, and say which are right
    Reproduce(ReproduceArgs),
    /// Crash someone, or lose a message: who still gets the lock?
    Tolerance(ToleranceArgs),
    /// Run a recorded run again and compare it step by step
    Replay(ReplayArgs),
    /// Draw a recorded run as a space–time diagram
    Draw(DrawArgs),
    /// Turn a recorded run into a picture, a player, a sequence diagram, a log or a table
    Export(ExportArgs),
    /// Run two to four algorithms in the same world and draw them one above the other
    Race(Box<RaceArgs>),
    /// Open the workbench in the browser: run, watch, break and compare
    Ui(UiArgs),
    /// The project report's program: a ring of workers elects a leader, again and again
    Ring(RingArgs),
    /// A tour of ten seconds
    Demo(DemoArgs),
    /// Explain the syntax of faults, topologies, delays, properties
    Help(HelpArgs),
    /// Be one member of a group whose members are operating system processes
    #[command(hide = true)]
    Member(Box<MemberArgs>),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Print the manual page
    Man(ManArgs),
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  konklave list
  konklave list mutex
  konklave list election/tree-wave
  konklave list --format json")]
pub(crate) struct ListArgs {
    /// A problem (mutex, election, …) or an algorithm
    pub(crate) what: Option<String>,
    /// The form of the output
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  konklave run chang-roberts -n 8 --ids random --initiators all
  konklave run mutex/central -n 5 --entries 10 --hold 2 --delay uniform:0.5..1.5 --seed 7
  konklave run suzuki-kasami -n 3 --fault lose:/Token --story
  konklave run ricart-agrawala -n 3 --svg run.svg --record run.run
  konklave run --scenario lossy.toml --format json")]
#[command(allow_negative_numbers = true)]
pub(crate) struct RunArgs {
    /// The algorithm: problem/name, or the name alone
    pub(crate) algorithm: Option<String>,

    #[command(flatten)]
    pub(crate) scenario: Scenario,

    /// Read what is not given here from a scenario file (TOML)
    #[arg(long = "scenario", env = "KONKLAVE_SCENARIO", value_name = "FILE", help_heading = "Run")]
    pub(crate) file: Option<PathBuf>,

    /// Where it runs: simulated, on threads, or on TCP, UDP or multicast sockets
    #[arg(long, env = "KONKLAVE_WORLD", value_enum, default_value_t, help_heading = "Run")]
    pub(crate) world: World,

    /// How long T is in the real worlds
    #[arg(
        long,
        env = "KONKLAVE_UNIT",
        value_name = "MS",
        default_value_t = 5.0,
        help_heading = "Run"
    )]
    pub(crate) unit: f64,

    /// Tell the run step by step (small runs are told anyway)
    #[arg(long, help_heading = "Output")]
    pub(crate) story: bool,

    /// Tell states, too
    #[arg(long, help_heading = "Output")]
    pub(crate) states: bool,

    /// Record the run to a file that `replay`, `draw` and `export` read; .runz is compact
    #[arg(long, env = "KONKLAVE_RECORD", value_name = "FILE", help_heading = "Output")]
    pub(crate) record: Option<PathBuf>,

    /// Draw the run as a space–time diagram
    #[arg(long, env = "KONKLAVE_SVG", value_name = "FILE", help_heading = "Output")]
    pub(crate) svg: Option<PathBuf>,

    /// The form of the output
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t, help_heading = "Output")]
    pub(crate) format: Format,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  konklave ui
  konklave ui --no-open --port 8000
The address that is printed holds a token: whoever knows it can use the workbench, nobody else.")]
pub(crate) struct UiArgs {
    /// Only print the address, open no browser
    #[arg(long, env = "KONKLAVE_NO_OPEN")]
    pub(crate) no_open: bool,
    /// The port; 0 takes a free one
    #[arg(long, env = "KONKLAVE_PORT", value_name = "PORT", default_value_t = 0)]
    pub(crate) port: u16,
    /// Where to listen; anything but loopback can be reached by others, without encryption
    #[arg(long, env = "KONKLAVE_LISTEN", value_name = "IP", default_value = "127.0.0.1")]
    pub(crate) listen: IpAddr,
}

#[derive(Args, Debug)]
pub(crate) struct MemberArgs {
    /// The algorithm: problem/name, or the name alone
    pub(crate) algorithm: String,

    #[command(flatten)]
    pub(crate) scenario: Scenario,

    /// Which member
    #[arg(long, value_name = "ID")]
    pub(crate) me: u32,

    /// How long T is
    #[arg(long, value_name = "MS", default_value_t = 5.0)]
    pub(crate) unit: f64,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum World {
    /// Virtual time
    #[default]
    Sim,
    /// Real tasks, channels between them
    Threads,
    /// Real tasks, TCP sockets on this machine between them
    Tcp,
    /// Real tasks, datagrams on this machine between them: what is lost is lost
    Udp,
    /// The same, by IP multicast: what one says to many is one datagram
    Multicast,
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
Exit codes: 0 exhausted, all is well · 1 violated · 2 a bound was reached first")]
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
    /// The ids in node order: asc, desc, random, or a list
    #[arg(long, env = "KONKLAVE_IDS", value_name = "LIST", help_heading = "Group")]
    pub(crate) ids: Option<String>,
    /// Who starts: all, or a list of ids
    #[arg(long, env = "KONKLAVE_INITIATORS", value_name = "WHO", help_heading = "Group")]
    pub(crate) initiators: Option<String>,
    /// Who is down from the start: a list of ids
    #[arg(long, env = "KONKLAVE_DOWN", value_name = "LIST", help_heading = "Group")]
    pub(crate) down: Option<String>,
    /// Choose among an algorithm's variants
    #[arg(long = "set", value_name = "NAME=VALUE", help_heading = "Group", env = "KONKLAVE_SET")]
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
    /// In the synchronous model, so many timers may fire too early all the same
    #[arg(long, value_name = "K", num_args = 0..=1, default_missing_value = "1",
          default_value_t = 0, requires = "synchronous", help_heading = "Budgets")]
    pub(crate) early: u8,
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
        default_value_t = 20_000_000,
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
        default_value_t = 8192,
        help_heading = "Search"
    )]
    pub(crate) max_memory: u64,
    /// For random topologies and ids, and for random runs
    #[arg(long, env = "KONKLAVE_SEED", value_name = "SEED", help_heading = "Search")]
    pub(crate) seed: Option<u64>,

    /// Tell states of the witness, too
    #[arg(long, env = "KONKLAVE_STATES", help_heading = "Output")]
    pub(crate) states: bool,
    /// Record the witness to a file that `replay` and `draw` read
    #[arg(long, env = "KONKLAVE_RECORD", value_name = "FILE", help_heading = "Output")]
    pub(crate) record: Option<PathBuf>,
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
  konklave costs
  konklave costs mutex --nodes 3,10,100
  konklave costs chang-roberts --format csv
  konklave costs mutex --table --nodes 9          messages, delays, response times of all locks
  konklave costs sanders --matrix --nodes 4       who follows whom how quickly
Exit codes: 0 every formula holds · 1 one does not")]
#[command(allow_negative_numbers = true)]
pub(crate) struct CostsArgs {
    /// A problem or an algorithm; default: everything
    pub(crate) what: Option<String>,
    /// How many nodes, one after the other
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,2,3,5,10,20")]
    pub(crate) nodes: Vec<usize>,
    /// For random ids and topologies
    #[arg(long, env = "KONKLAVE_SEED", value_name = "SEED", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Compare locks: messages, delays and response times, one row for each lock and size
    #[arg(long, conflicts_with = "matrix")]
    pub(crate) table: bool,
    /// For locks: how long it takes from the exit of each to the entry of each other
    #[arg(long)]
    pub(crate) matrix: bool,
    /// The form of the output; Markdown with --table or --matrix
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub(crate) format: TableFormat,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  konklave anchors                                every figure of the theory, measured
  konklave anchors --format json                  with the command that repeats each
  konklave anchors --format markdown              as in docs/group.md
Exit codes: 0 every figure holds · 1 one does not")]
pub(crate) struct AnchorsArgs {
    /// For losses and timers
    #[arg(long, env = "KONKLAVE_SEED", value_name = "SEED", default_value_t = 1)]
    pub(crate) seed: u64,
    /// The form of the output
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub(crate) format: TableFormat,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  konklave tolerance                              all locks: crash each part, lose each kind
  konklave tolerance central                      and the runs that show it
  konklave tolerance raymond --nodes 15 --format json
  konklave tolerance --format markdown            as in docs/tolerance.md")]
pub(crate) struct ToleranceArgs {
    /// A lock; default: all of them
    pub(crate) what: Option<String>,
    /// How many nodes
    #[arg(short = 'n', long, env = "KONKLAVE_NODES", value_name = "N", default_value_t = 7)]
    pub(crate) nodes: usize,
    /// The form of the output
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub(crate) format: TableFormat,
}

#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  konklave sweep --algorithms ricart-agrawala,suzuki-kasami --nodes 3,5,10,20 --seeds 30
  konklave sweep study.toml -o results.jsonl --plot messages.svg
  konklave sweep study.toml -o results.jsonl --resume
  konklave sweep study.toml -o part-1.jsonl --shard 1/4
  konklave sweep merge part-*.jsonl -o results.jsonl
Exit codes: 0 every run was ok · 1 one was not · 130 interrupted; what is done is kept"
)]
#[command(allow_negative_numbers = true)]
pub(crate) struct SweepArgs {
    #[command(subcommand)]
    pub(crate) command: Option<SweepCommand>,
    /// A study (TOML): algorithms, nodes, seeds, base, vary
    pub(crate) file: Option<PathBuf>,
    /// The algorithms
    #[arg(long, env = "KONKLAVE_SWEEP_ALGORITHMS", value_name = "LIST", value_delimiter = ',')]
    pub(crate) algorithms: Vec<String>,
    /// How many nodes, one after the other
    #[arg(long, env = "KONKLAVE_SWEEP_NODES", value_name = "LIST", value_delimiter = ',')]
    pub(crate) nodes: Vec<usize>,
    /// How many seeds for each combination
    #[arg(long, env = "KONKLAVE_SWEEP_SEEDS", value_name = "K")]
    pub(crate) seeds: Option<u64>,
    /// A key of a scenario and its values: delay=constant,exponential; may be given several times
    #[arg(long, value_name = "KEY=LIST")]
    pub(crate) vary: Vec<String>,
    /// A key of a scenario that all runs share: entries=5; may be given several times
    #[arg(long = "with", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Leave out combinations that cannot be run
    #[arg(long)]
    pub(crate) skip_impossible: bool,
    /// Where the results go, a line for each run
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Go on with the results that are there
    #[arg(long, requires = "output")]
    pub(crate) resume: bool,
    /// Replace the results that are there
    #[arg(long, conflicts_with = "resume")]
    pub(crate) overwrite: bool,
    /// Only this part of the runs: i/n; Slurm's and Kubernetes' array variables are read, too
    #[arg(long, env = "KONKLAVE_SHARD", value_name = "I/N")]
    pub(crate) shard: Option<String>,
    /// How many threads; default: all cores
    #[arg(short, long, env = "KONKLAVE_JOBS", value_name = "N")]
    pub(crate) jobs: Option<usize>,
    /// The measure to tell and to plot
    #[arg(long, env = "KONKLAVE_MEASURE", value_name = "NAME", default_value = "messages")]
    pub(crate) measure: String,
    /// Write all runs as a table for other programs: FILE.csv or FILE.parquet
    #[arg(long, value_name = "FILE")]
    pub(crate) table: Option<PathBuf>,
    /// Draw the measure over n, with error bars: FILE.svg or FILE.png
    #[arg(long, value_name = "FILE")]
    pub(crate) plot: Option<PathBuf>,
    /// The form of the output
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  konklave compare mutex
  konklave compare mutex raymond naimi-trehel suzuki-kasami -n 15 --loads high --svg tokens.svg
  konklave compare election chang-roberts franklin hirschberg-sinclair -n 64 --html rings.html
  konklave compare mutex --format markdown --no-faults")]
#[command(allow_negative_numbers = true)]
pub(crate) struct CompareArgs {
    /// The problem: mutex, election, …
    pub(crate) problem: String,
    /// Who takes part; default: all that solve the problem
    pub(crate) algorithms: Vec<String>,

    #[command(flatten)]
    pub(crate) scenario: Scenario,

    /// With how many seeds each runs
    #[arg(long, env = "KONKLAVE_SEEDS", value_name = "K", default_value_t = 10)]
    pub(crate) seeds: u64,
    /// Under which loads locks are compared
    #[arg(long, env = "KONKLAVE_LOADS", value_enum, default_value_t)]
    pub(crate) loads: Loads,
    /// Do not try which faults they outlive
    #[arg(long)]
    pub(crate) no_faults: bool,
    /// Draw bars, and messages – delay – fault tolerance as triangles: FILE.svg or FILE.png
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Write picture and table as one page
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// The form of the output
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub(crate) format: TableFormat,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  konklave reproduce
  konklave reproduce maekawa
  konklave reproduce --output figures
  konklave reproduce --format markdown")]
pub(crate) struct ReproduceArgs {
    /// Only claims of this chapter or name
    pub(crate) what: Option<String>,
    /// Record and draw every run and every witness into this folder
    #[arg(short, long, value_name = "FOLDER")]
    pub(crate) output: Option<PathBuf>,
    /// The form of the output
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub(crate) format: TableFormat,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Loads {
    /// Requests hardly ever meet
    Low,
    /// Everyone asks again at once
    High,
    /// One after the other
    #[default]
    Both,
}

#[derive(Subcommand, Debug)]
pub(crate) enum SweepCommand {
    /// Put the results of shards together
    Merge(MergeArgs),
}

#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  konklave sweep merge part-1.jsonl part-2.jsonl -o results.jsonl"
)]
pub(crate) struct MergeArgs {
    /// The results of all shards
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Where they go; `-` is stdout
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  konklave guarantees mutex
  konklave guarantees token-ring --max-states 1000000
  konklave guarantees --markdown --cache guarantees.json > docs/guarantees.md")]
pub(crate) struct GuaranteesArgs {
    /// A problem or an algorithm; default: everything
    pub(crate) what: Option<String>,
    /// How many nodes; one or two more where an algorithm cannot do with so few
    #[arg(short = 'n', long, value_name = "N", default_value_t = 3)]
    pub(crate) nodes: usize,
    /// Give up a search beyond this many states
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pub(crate) max_states: u64,
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
  konklave replay run.run
  konklave replay witness.run --story --states
  konklave replay run.run --format json
Exit codes: 0 the same, step by step · 1 different · 65 not a run")]
pub(crate) struct ReplayArgs {
    /// The recorded run
    pub(crate) file: PathBuf,
    /// Tell the run step by step
    #[arg(long)]
    pub(crate) story: bool,
    /// Tell states, too
    #[arg(long)]
    pub(crate) states: bool,
    /// Only what concerns these nodes
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) only: Option<Vec<u32>>,
    /// The form of the output
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  konklave draw run.run                     writes run.svg
  konklave draw run.run -o - > picture.svg
  konklave draw run.run --only 0,2
  konklave draw run.run --window 2..8.5 --only-kinds Request,Reply --lanes 2,0")]
pub(crate) struct DrawArgs {
    /// The recorded run
    pub(crate) file: PathBuf,
    /// Where the picture goes; `-` is stdout; default: beside the run, ending in .svg
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) shown: ShownArgs,
}

/// What of a run is shown, and how.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "What is shown")]
pub(crate) struct ShownArgs {
    /// Only these nodes, and the messages between them
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) only: Option<Vec<u32>>,
    /// Only these kinds of messages
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) only_kinds: Option<Vec<String>>,
    /// Only this time, in the run's unit; either end may be left open
    #[arg(long, value_name = "FROM..TO")]
    pub(crate) window: Option<String>,
    /// These lanes first, in this order
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) lanes: Vec<u32>,
    /// Press diagrams together to be no wider than this many points, as far as one can still see
    #[arg(long, value_name = "POINTS", default_value_t = 4500.0)]
    pub(crate) width: f64,
    /// Label at most this many arrows; beyond, colours tell
    #[arg(long, value_name = "N", default_value_t = 150)]
    pub(crate) labels: usize,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  konklave export run.run --to html                 writes run.html: open it, step with ← and →
  konklave export run.run --to png --only 0,1,2
  konklave export witness.run -o figure.tex         the ending tells the form
  konklave export run.run --to mermaid -o - >> notes.md
  konklave export run.run --to parquet && duckdb -c \"select event, count(*) from 'run.parquet' group by 1\"")]
pub(crate) struct ExportArgs {
    /// The recorded run
    pub(crate) file: PathBuf,
    /// The form; default: what the ending of --output says
    #[arg(long, value_enum)]
    pub(crate) to: Option<Form>,
    /// Where it goes; `-` is stdout; default: beside the run
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Take a recording that was cut off as far as it goes, instead of refusing it
    #[arg(long)]
    pub(crate) partial: bool,
    /// PNG: so many points for one of the SVG
    #[arg(long, value_name = "K", default_value_t = 2.0)]
    pub(crate) scale: f32,
    #[command(flatten)]
    pub(crate) shown: ShownArgs,
}

/// What a run can be turned into.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// Space–time diagram
    Svg,
    /// The same as points
    Png,
    /// The same for LaTeX: a document that compiles
    Tikz,
    /// Sequence diagram for Markdown pages
    Mermaid,
    /// Sequence diagram for PlantUML
    Plantuml,
    /// Log with vector clocks
    Shiviz,
    /// Table of all that happened
    Csv,
    /// The same for DuckDB, Polars, pandas
    Parquet,
    /// Player: one file, offline, forwards and backwards
    Html,
    /// The recording as JSON lines
    Run,
    /// The recording in its compact form
    Runz,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  konklave race central ricart-agrawala suzuki-kasami -n 4 --entries 2 --svg race.svg
  konklave race ricart-agrawala suzuki-kasami -n 3 --fault crash:1@4 --html race.html
Exit codes: 0 all are fine · 1 one is violated or stuck · 2 one was cut off")]
#[command(allow_negative_numbers = true)]
pub(crate) struct RaceArgs {
    /// Two to four algorithms: problem/name, or the name alone
    #[arg(required = true, num_args = 2..=4, value_name = "ALGORITHM")]
    pub(crate) algorithms: Vec<String>,

    #[command(flatten)]
    pub(crate) scenario: Scenario,

    /// Read what is not given here from a scenario file (TOML)
    #[arg(long = "scenario", env = "KONKLAVE_SCENARIO", value_name = "FILE", help_heading = "Run")]
    pub(crate) file: Option<PathBuf>,

    /// Draw the diagrams one above the other, on one axis of time
    #[arg(long, env = "KONKLAVE_SVG", value_name = "FILE", help_heading = "Output")]
    pub(crate) svg: Option<PathBuf>,

    /// Write a player of all of them
    #[arg(long, env = "KONKLAVE_HTML", value_name = "FILE", help_heading = "Output")]
    pub(crate) html: Option<PathBuf>,

    /// The form of the output
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t, help_heading = "Output")]
    pub(crate) format: Format,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  konklave ring 8 -n 3 --sleep 0 --worker-sleep 10 --log
  konklave ring 5 -n 2 --sleep 100 --worker-sleep 5 --json
  konklave ring --ids 17,4,99,23 --initiator 4 -n 1 --worker-sleep 0 --log-level DEBUG --log
  konklave ring 6 -n 2 --sleep 0 --worker-sleep 5 --fail 3@message:2 --send-timeout 200
Exit codes: 0 fine · 1 two leaders, or an election that did not end · 64 wrong use · 65 bad config
file · 73 cannot write the log · 130 interrupted twice")]
pub(crate) struct RingArgs {
    #[command(flatten)]
    pub(crate) flags: konklave_ring::Flags,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  konklave demo\n  konklave demo --svg tour.svg")]
pub(crate) struct DemoArgs {
    /// Where the picture goes
    #[arg(long, value_name = "FILE", default_value = "konklave-demo.svg")]
    pub(crate) svg: PathBuf,
}

#[derive(Args, Debug)]
pub(crate) struct HelpArgs {
    /// About what
    #[arg(value_enum)]
    pub(crate) topic: Option<Topic>,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Topic {
    /// What `--fault` takes
    Faults,
    /// What `--topology` takes
    Topologies,
    /// What `--delay` takes
    Delays,
    /// What `--property` takes
    Properties,
    /// What a scenario file may say
    Scenarios,
    /// All exit codes
    ExitCodes,
}

#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  konklave completions bash > /etc/bash_completion.d/konklave\n  konklave completions fish | source"
)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  konklave man | man -l -\n  konklave man run | man -l -")]
pub(crate) struct ManArgs {
    /// A command; default: all of konklave
    pub(crate) command: Option<String>,
}
