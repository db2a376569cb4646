//! Options of the commands that measure.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use konklave_catalog::Scenario;

use crate::output::{Format, TableFormat};

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  konklave costs
  konklave costs mutex --nodes 3,10,100
  konklave costs chang-roberts --format csv
  konklave costs mutex --table --nodes 9          messages, delays, response times of all locks
  konklave costs sanders --matrix --nodes 4       time from each exit to each next entry
  konklave costs election --enumerate             rings: fewest, mean and most messages over all arrangements
A run that is too long is cut off; its row gives the number of steps. (The textbook's Bully needs
exponentially many messages if all nodes start.)
Exit codes: 0 every formula holds · 1 at least one formula does not hold")]
#[command(allow_negative_numbers = true)]
pub(crate) struct CostsArgs {
    /// Problem or algorithm [default: all]
    #[arg(value_name = "PROBLEM|ALGORITHM")]
    pub(crate) what: Option<String>,
    /// Numbers of nodes, measured one after the other
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,2,3,5,10,20")]
    pub(crate) nodes: Vec<usize>,
    /// Seed of random ids and topologies
    #[arg(long, env = "KONKLAVE_SEED", value_name = "SEED", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Compare locks: messages, delays and response times, one row for each lock and size
    #[arg(long, conflicts_with = "matrix")]
    pub(crate) table: bool,
    /// For locks: time from the exit of each node to the entry of each other node
    #[arg(long)]
    pub(crate) matrix: bool,
    /// Topology of the group, with --matrix
    #[arg(long, value_name = "SHAPE", requires = "matrix")]
    pub(crate) topology: Option<String>,
    /// Variant of the lock, with --matrix; repeatable
    #[arg(long, value_name = "NAME=VALUE", requires = "matrix")]
    pub(crate) set: Vec<String>,
    /// For elections on rings: all nodes start, every arrangement of up to 9 ids [default: 2 to 7]
    #[arg(long, conflicts_with_all = ["table", "matrix"])]
    pub(crate) enumerate: bool,
    /// Output format; markdown only with --table, --matrix or --enumerate
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub(crate) format: TableFormat,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  konklave anchors                                measure every figure of the theory
  konklave anchors --long                         ten times as many runs: errors a third as large
  konklave anchors --format json                  each with the command that repeats it
  konklave anchors --format markdown              as in book/en/learn/groups.md
Exit codes: 0 every figure holds · 1 at least one figure does not hold")]
pub(crate) struct AnchorsArgs {
    /// Seed of losses and timers
    #[arg(long, env = "KONKLAVE_SEED", value_name = "SEED", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Measure ten times as many runs
    #[arg(long)]
    pub(crate) long: bool,
    /// Output format
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub(crate) format: TableFormat,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  konklave tolerance                              all locks: crash each part, lose each kind
  konklave tolerance central                      one lock, and the runs that show it
  konklave tolerance maekawa --set quorums=tree   a variant
  konklave tolerance raymond --nodes 15 --format json
  konklave tolerance --format markdown            as in book/en/learn/tolerance.md")]
pub(crate) struct ToleranceArgs {
    /// Lock [default: all locks]
    #[arg(value_name = "LOCK")]
    pub(crate) what: Option<String>,
    /// Number of nodes
    #[arg(short = 'n', long, env = "KONKLAVE_NODES", value_name = "N", default_value_t = 7)]
    pub(crate) nodes: usize,
    /// Variant of the lock (see `list LOCK`); repeatable
    #[arg(long = "set", env = "KONKLAVE_SET", value_name = "NAME=VALUE", value_delimiter = '\n')]
    pub(crate) set: Vec<String>,
    /// Output format
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
  konklave sweep study.toml --plot messages.pdf --log x,y --facet delay --width 180
  konklave sweep --algorithms central,raymond --nodes 9 --with entries=100 --with warm-up=20 \
    --vary think=arrivals:50,arrivals:30,arrivals:20 --measure response.mean --plot load.tex --plot-x think
  konklave sweep --algorithms central,raymond --nodes 4,8,16 --with think=exponential:10*n --against central
  konklave sweep study.toml -o results.jsonl --resume
  konklave sweep study.toml -o part-1.jsonl --shard 1/4
  konklave sweep merge part-*.jsonl -o results.jsonl
Exit codes: 0 every run was ok · 1 at least one run was not · 130 interrupted; finished runs are kept"
)]
#[command(allow_negative_numbers = true)]
pub(crate) struct SweepArgs {
    #[command(subcommand)]
    pub(crate) command: Option<SweepCommand>,
    /// Study (TOML): algorithms, nodes, seeds, base, vary
    #[arg(value_name = "STUDY")]
    pub(crate) file: Option<PathBuf>,
    /// Algorithms
    #[arg(long, env = "KONKLAVE_SWEEP_ALGORITHMS", value_name = "LIST", value_delimiter = ',')]
    pub(crate) algorithms: Vec<String>,
    /// Numbers of nodes, measured one after the other
    #[arg(long, env = "KONKLAVE_SWEEP_NODES", value_name = "LIST", value_delimiter = ',')]
    pub(crate) nodes: Vec<usize>,
    /// Number of seeds for each combination
    #[arg(long, env = "KONKLAVE_SWEEP_SEEDS", value_name = "K")]
    pub(crate) seeds: Option<u64>,
    /// Key of a scenario and its values, which may be expressions of n: delay=constant,exponential; repeatable
    #[arg(long, value_name = "KEY=LIST")]
    pub(crate) vary: Vec<String>,
    /// Key of a scenario and its value for all runs: entries=5, think=exponential:10*n; repeatable
    #[arg(long = "with", value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Leave out combinations that cannot run
    #[arg(long)]
    pub(crate) skip_impossible: bool,
    /// File for the results, one line for each run
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Add the missing runs to existing results
    #[arg(long, requires = "output")]
    pub(crate) resume: bool,
    /// Replace existing results
    #[arg(long, conflicts_with = "resume")]
    pub(crate) overwrite: bool,
    /// Share of the runs: i/n [default: from the array variables of Slurm or Kubernetes, else all runs]
    #[arg(long, env = "KONKLAVE_SHARD", value_name = "I/N")]
    pub(crate) shard: Option<String>,
    /// Number of threads [default: one for each core]
    #[arg(short, long, env = "KONKLAVE_JOBS", value_name = "N")]
    pub(crate) jobs: Option<usize>,
    /// Measure to print and to plot
    #[arg(long, env = "KONKLAVE_MEASURE", value_name = "NAME", default_value = "messages")]
    pub(crate) measure: String,
    /// Write all runs as a table: FILE.csv or FILE.parquet
    #[arg(long, value_name = "FILE")]
    pub(crate) table: Option<PathBuf>,
    /// Compare every algorithm with this one in the measure, pair by pair (same seed, same clients), with a 95 %
    /// interval and a test of significance
    #[arg(long, env = "KONKLAVE_AGAINST", value_name = "ALGORITHM")]
    pub(crate) against: Option<String>,
    /// Draw the measure with its 95 % intervals: FILE.svg, FILE.pdf, FILE.png or FILE.tex (TikZ)
    #[arg(long, value_name = "FILE", help_heading = "Plot")]
    pub(crate) plot: Option<PathBuf>,
    /// Parameter or measure on the horizontal axis
    #[arg(long, value_name = "KEY", default_value = "nodes", help_heading = "Plot")]
    pub(crate) plot_x: String,
    /// Draw a panel for each value of this parameter, or of `algorithm`
    #[arg(long, value_name = "KEY", help_heading = "Plot")]
    pub(crate) facet: Option<String>,
    /// Logarithmic axes: x, y or x,y
    #[arg(long, value_name = "AXES", value_delimiter = ',', help_heading = "Plot")]
    pub(crate) log: Vec<PlotAxis>,
    /// Width of the plot in mm [default: 88, a column of a paper]
    #[arg(long, value_name = "MM", help_heading = "Plot")]
    pub(crate) width: Option<f64>,
    /// Output format
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  konklave compare mutex
  konklave compare mutex raymond naimi-trehel suzuki-kasami -n 15 --loads high --svg tokens.svg
  konklave compare election chang-roberts franklin hirschberg-sinclair -n 64 --html rings.html
  konklave compare mutex -n 9 --warm-up 0 --entries 1 --no-faults     each asks once, and all of it is measured
  konklave compare mutex central raymond --seeds 20 --against central --no-faults
  konklave compare mutex --format markdown --no-faults
Locks are compared in their steady state: each node asks often (1000 requests of all nodes together, 10 to 100 of
each), and the first fifth is left out, unless --entries and --warm-up say otherwise.
Exit codes: 0 every run was ok · 1 at least one run was not")]
#[command(allow_negative_numbers = true)]
pub(crate) struct CompareArgs {
    /// Problem: mutex, election, …
    pub(crate) problem: String,
    /// Algorithms to compare [default: all algorithms of the problem]
    pub(crate) algorithms: Vec<String>,

    #[command(flatten)]
    pub(crate) scenario: Scenario,

    /// Number of seeds for each algorithm
    #[arg(long, env = "KONKLAVE_SEEDS", value_name = "K", default_value_t = 10)]
    pub(crate) seeds: u64,
    /// Loads under which locks are compared
    #[arg(long, env = "KONKLAVE_LOADS", value_enum, default_value_t)]
    pub(crate) loads: Loads,
    /// Print the difference of every algorithm from this one, pair by pair (same seed, same clients), with its 95 %
    /// interval and a test of significance
    #[arg(long, env = "KONKLAVE_AGAINST", value_name = "ALGORITHM")]
    pub(crate) against: Option<String>,
    /// Skip the trials of fault tolerance
    #[arg(long)]
    pub(crate) no_faults: bool,
    /// Draw bars, and triangles of messages, delay and fault tolerance: FILE.svg or FILE.png
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Write picture and table as one HTML page
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Output format
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
    /// Name or chapter of the statements to measure [default: all]
    #[arg(value_name = "NAME|CHAPTER")]
    pub(crate) what: Option<String>,
    /// Folder for recordings and drawings of every run and witness
    #[arg(short, long, value_name = "FOLDER")]
    pub(crate) output: Option<PathBuf>,
    /// Output format
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub(crate) format: TableFormat,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Loads {
    /// Requests hardly ever overlap
    Low,
    /// Every client asks again at once
    High,
    /// Low load, then high load
    #[default]
    Both,
}

/// An axis of a plot.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PlotAxis {
    /// The horizontal axis
    X,
    /// The vertical axis
    Y,
}

#[derive(Subcommand, Debug)]
pub(crate) enum SweepCommand {
    /// Merge the results of shards
    Merge(MergeArgs),
}

#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  konklave sweep merge part-1.jsonl part-2.jsonl -o results.jsonl\n\
                  Exit codes: 0 merged · 64 the output exists already · 65 a shard is missing, cut off or altered"
)]
pub(crate) struct MergeArgs {
    /// Result files of all shards
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Merged file; `-` is stdout
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    pub(crate) overwrite: bool,
}
