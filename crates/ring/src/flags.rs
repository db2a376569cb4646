//! The options of `konklave ring`.

use std::path::PathBuf;

use clap::Args;
use konklave_process::MAX_ID;

/// The options of the program as given on the command line: nothing is filled in or checked yet.
#[derive(Args, Clone, PartialEq, Eq, Debug, Default)]
// Otherwise the line above would replace the description of the command that flattens this in.
#[command(about = None, long_about = None)]
pub struct Flags {
    /// Number of workers in the ring; may come from the config file instead
    #[arg(value_name = "SIZE", allow_negative_numbers = true)]
    pub size: Option<u64>,

    /// Read settings from FILE
    ///
    /// TOML, one `key = value` a line. The keys are the long names of the options here, and
    /// `size`; flags are true or false. The command line goes before the file.
    #[arg(short, long, env = "KONKLAVE_RING_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,

    /// Stop after N elections; 0 runs until interrupted [default: 0]
    #[arg(
        short,
        long,
        env = "KONKLAVE_RING_NUMBER_OF_ELECTIONS",
        value_name = "N",
        allow_negative_numbers = true
    )]
    pub number_of_elections: Option<u64>,

    /// Pause between the end of an election and the next one, in ms [default: 5000]
    #[arg(long, env = "KONKLAVE_RING_SLEEP", value_name = "MS", allow_negative_numbers = true)]
    pub sleep: Option<u64>,

    /// Pause of every worker after each task, in ms [default: 500]
    #[arg(
        long,
        env = "KONKLAVE_RING_WORKER_SLEEP",
        value_name = "MS",
        allow_negative_numbers = true
    )]
    pub worker_sleep: Option<u64>,

    /// Time after which a worker regards a silent neighbour as failed, in ms
    /// [default: 2000, or four times --worker-sleep if that is more]
    #[arg(
        long,
        env = "KONKLAVE_RING_SEND_TIMEOUT",
        value_name = "MS",
        allow_negative_numbers = true
    )]
    pub send_timeout: Option<u64>,

    /// Seed of the ids and of the initiators; without it every run differs
    #[arg(long, env = "KONKLAVE_RING_SEED", value_name = "SEED", allow_negative_numbers = true)]
    pub seed: Option<u64>,

    /// The workers' ids in ring order, such as 17,4,99 [default: random]
    #[arg(
        long,
        env = "KONKLAVE_RING_IDS",
        value_name = "LIST",
        value_delimiter = ',',
        value_parser = id,
        allow_negative_numbers = true
    )]
    pub ids: Option<Vec<u32>>,

    /// The worker that starts every election [default: a random live one each time]
    #[arg(long, env = "KONKLAVE_RING_INITIATOR", value_name = "ID", value_parser = id, allow_negative_numbers = true)]
    pub initiator: Option<u32>,

    /// Let a worker fail: ID@start (at once), ID@message:K (after handling K messages) or
    /// ID@elected (after it has won and announced itself); repeatable
    #[arg(long, env = "KONKLAVE_RING_FAIL", value_name = "ID@EVENT")]
    pub fail: Vec<String>,

    /// Print no result lines
    #[arg(long, env = "KONKLAVE_RING_QUIET")]
    pub quiet: bool,

    /// Print results as JSON: one object per line for each election, and a summary
    #[arg(long, env = "KONKLAVE_RING_JSON")]
    pub json: bool,

    /// Log to the console (stderr), from INFO on
    #[arg(long, env = "KONKLAVE_RING_LOG", help_heading = "Logging")]
    pub log: bool,

    /// Log to FILE instead of the console; an existing file is appended to
    #[arg(long, env = "KONKLAVE_RING_LOG_FILE", value_name = "FILE", help_heading = "Logging")]
    pub log_file: Option<PathBuf>,

    /// Log to the console even if there is a log file
    #[arg(long, env = "KONKLAVE_RING_LOG_CONSOLE", help_heading = "Logging")]
    pub log_console: bool,

    /// Write dates into the log file
    #[arg(long, env = "KONKLAVE_RING_LOG_DATE", help_heading = "Logging")]
    pub log_date: bool,

    /// Lowest level that is logged: 0 TRACE, 1 DEBUG, 2 INFO, 3 WARN, 4 ERROR, 5 CRITICAL, by number or
    /// name [default: INFO]
    #[arg(
        long,
        env = "KONKLAVE_RING_LOG_LEVEL",
        value_name = "LEVEL",
        allow_negative_numbers = true,
        help_heading = "Logging"
    )]
    pub log_level: Option<String>,

    /// Do not log the configuration (at DEBUG)
    #[arg(long, env = "KONKLAVE_RING_NO_CONFIG_LOG", help_heading = "Logging")]
    pub no_config_log: bool,

    /// Elect by another algorithm for rings; without --simulate or --tcp its nodes are tasks without
    /// pauses
    #[arg(
        long,
        env = "KONKLAVE_RING_ALGORITHM",
        value_name = "NAME",
        help_heading = "Algorithm and world"
    )]
    pub algorithm: Option<String>,

    /// Run the elections in the simulator: a hop takes --worker-sleep, pauses take no time
    #[arg(long, env = "KONKLAVE_RING_SIMULATE", help_heading = "Algorithm and world")]
    pub simulate: bool,

    /// Run the elections on TCP sockets; --worker-sleep is the unit of timeouts
    #[arg(
        long,
        env = "KONKLAVE_RING_TCP",
        help_heading = "Algorithm and world",
        conflicts_with = "simulate"
    )]
    pub tcp: bool,
}

/// Parses one id; the options check its size later, together with the other ids.
fn id(word: &str) -> Result<u32, String> {
    word.trim().parse().map_err(|_| format!("ids are numbers from 0 to {MAX_ID}"))
}
