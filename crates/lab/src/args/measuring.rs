//! What is measured, and how often.

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
  konklave costs sanders --matrix --nodes 4       who follows whom how quickly
  konklave costs election --enumerate             rings: fewest, mean, most over all arrangements
A run that is too long is cut off, and its row says after how many steps: the textbook's bully needs
exponentially many messages when all start.
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
    /// For elections on rings: every arrangement of the ids (up to 9; default: 2 to 7), all start
    #[arg(long, conflicts_with_all = ["table", "matrix"])]
    pub(crate) enumerate: bool,
    /// The form of the output; Markdown with --table, --matrix or --enumerate
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub(crate) format: TableFormat,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  konklave anchors                                every figure of the theory, measured
  konklave anchors --long                         ten times as many runs: errors a third as large
  konklave anchors --format json                  with the command that repeats each
  konklave anchors --format markdown              as in book/en/learn/groups.md
Exit codes: 0 every figure holds · 1 one does not")]
pub(crate) struct AnchorsArgs {
    /// For losses and timers
    #[arg(long, env = "KONKLAVE_SEED", value_name = "SEED", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Measure ten times as much
    #[arg(long)]
    pub(crate) long: bool,
    /// The form of the output
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub(crate) format: TableFormat,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  konklave tolerance                              all locks: crash each part, lose each kind
  konklave tolerance central                      and the runs that show it
  konklave tolerance maekawa --set quorums=tree   a variant
  konklave tolerance raymond --nodes 15 --format json
  konklave tolerance --format markdown            as in book/en/learn/tolerance.md")]
pub(crate) struct ToleranceArgs {
    /// A lock; default: all of them
    pub(crate) what: Option<String>,
    /// How many nodes
    #[arg(short = 'n', long, env = "KONKLAVE_NODES", value_name = "N", default_value_t = 7)]
    pub(crate) nodes: usize,
    /// Choose among the lock's variants; may be given several times
    #[arg(long = "set", env = "KONKLAVE_SET", value_name = "NAME=VALUE", value_delimiter = '\n')]
    pub(crate) set: Vec<String>,
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
    after_help = "Examples:\n  konklave sweep merge part-1.jsonl part-2.jsonl -o results.jsonl\n\
                  Exit codes: 0 put together · 64 the file is there already · 65 a shard is missing, cut or altered"
)]
pub(crate) struct MergeArgs {
    /// The results of all shards
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Where they go; `-` is stdout
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Replace a file that is there
    #[arg(long)]
    pub(crate) overwrite: bool,
}
