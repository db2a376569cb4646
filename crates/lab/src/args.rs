//! The command line: the commands and their options.

mod checking;
mod creating;
mod headings;
mod measuring;
mod options;
mod showing;

pub(crate) use checking::*;
pub(crate) use creating::*;
pub(crate) use headings::{command_line, lacking, lacking_command};
pub(crate) use measuring::*;
pub(crate) use options::with_owners;
pub(crate) use showing::*;

use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use konklave_catalog::Scenario;

use crate::output::Format;

const ABOUT: &str = "Elect a leader, take a lock, speak as a group — and see why it works.";

const AFTER_HELP: &str = "\
Examples:
  konklave run ricart-agrawala -n 4 --entries 2    run an algorithm and measure its messages
  konklave check ricart-agrawala -n 3              explore every run of three processes
  konklave lock reports -- ./make-reports          run a command under a lock of the group
`konklave COMMAND --help` shows the options of a command; `konklave help exit-codes` all exit codes.";

#[derive(Parser, Debug)]
#[command(name = "konklave", version, about = ABOUT, after_help = AFTER_HELP, max_term_width = 100)]
#[command(propagate_version = true, disable_help_subcommand = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// List all algorithms, or show the data sheet of one
    List(ListArgs),
    /// Run an algorithm once, judge the run and measure it
    Run(Box<RunArgs>),
    /// Explore every possible run of a small group and judge each
    Check(Box<CheckArgs>),
    /// Compare measured messages and delays with the formulas of the data sheets
    Costs(CostsArgs),
    /// Compare group communication with theory: losses, orders, view changes
    Anchors(AnchorsArgs),
    /// Compute which property each algorithm keeps under which fault
    Guarantees(GuaranteesArgs),
    /// Compare algorithms under the same workload, network and faults
    Compare(Box<CompareArgs>),
    /// Run all combinations of parameters; print statistics and growth laws
    Sweep(Box<SweepArgs>),
    /// Measure the figures of the literature again and report deviations
    Reproduce(ReproduceArgs),
    /// Crash a process or lose a message; count the clients still served
    Tolerance(ToleranceArgs),
    /// Repeat a recorded run and compare it step by step
    Replay(ReplayArgs),
    /// Reduce a recorded violation to the steps that cause it
    Shrink(ShrinkArgs),
    /// Draw a recorded run as a space–time diagram
    Draw(DrawArgs),
    /// Convert a recorded run: picture, player, sequence diagram, log, table
    Export(ExportArgs),
    /// Draw the runs of two to four algorithms on one time axis
    Race(Box<RaceArgs>),
    /// The agent and its clients.
    #[cfg(feature = "agent")]
    #[command(flatten)]
    Agent(konklave_agent::Command),
    /// Open the workbench in a browser: run, inspect, disturb and compare
    #[cfg(feature = "ui")]
    Ui(UiArgs),
    /// Create a crate for your own algorithm, ready to run and check
    New(NewArgs),
    /// Elect leaders in a ring of threads, as the project report does
    Ring(RingArgs),
    /// Show a tour of ten seconds
    Demo(DemoArgs),
    /// Run one of the members that `demo` starts
    #[cfg(feature = "agent")]
    #[command(hide = true)]
    DemoMember(DemoMemberArgs),
    /// Explain a command, faults, topologies, delays, properties or exit codes
    Help(HelpArgs),
    /// Run one member of a group whose members are operating system processes
    #[command(hide = true)]
    Member(Box<MemberArgs>),
    /// Explore every interleaving of threads at the report's buffer
    #[command(hide = true)]
    Buffer(BufferArgs),
    /// Print the completion script for a shell
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
  konklave list maekawa -n 91 --set quorums=plane
  konklave list --format json")]
pub(crate) struct ListArgs {
    /// Problem (mutex, election, …) or algorithm
    #[arg(value_name = "PROBLEM|ALGORITHM")]
    pub(crate) what: Option<String>,
    /// Number of nodes; the size of quorums depends on it
    #[arg(short = 'n', long, value_name = "N", requires = "what")]
    pub(crate) nodes: Option<usize>,
    /// Variant whose quorums are shown; repeatable
    #[arg(long = "set", value_name = "NAME=VALUE", requires = "what")]
    pub(crate) set: Vec<String>,
    /// Output format
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  konklave run chang-roberts -n 8 --ids random --initiators all
  konklave run mutex/central -n 5 --entries 10 --hold 2 --delay uniform:0.5..1.5 --seed 7
  konklave run suzuki-kasami -n 3 --fault lose:/Token --story
  konklave run raymond -n 8 --entries 50 --think arrivals:60 --warm-up 10
  konklave run central -n 8 --entries 20 --skew 1.2 --service 0.3 --bandwidth 50
  konklave run ricart-agrawala -n 3 --svg run.svg --record run.run
  konklave run --scenario lossy.toml --format json")]
#[command(allow_negative_numbers = true)]
pub(crate) struct RunArgs {
    /// Algorithm: problem/name, or the name alone
    pub(crate) algorithm: Option<String>,

    #[command(flatten)]
    pub(crate) scenario: Scenario,

    /// Scenario file (TOML) with values for options that are not given
    #[arg(long = "scenario", env = "KONKLAVE_SCENARIO", value_name = "FILE", help_heading = "Run")]
    pub(crate) file: Option<PathBuf>,

    /// World of the run: simulation, threads, or TCP, UDP or multicast sockets
    #[arg(long, env = "KONKLAVE_WORLD", value_enum, default_value_t, help_heading = "Run")]
    pub(crate) world: World,

    /// Length of T in ms; only in real worlds (not sim) [default: 5]
    #[arg(long, env = "KONKLAVE_UNIT", value_name = "MS", help_heading = "Run")]
    pub(crate) unit: Option<f64>,

    /// Print the run step by step (default for small runs)
    #[arg(long, help_heading = "Output")]
    pub(crate) story: bool,

    /// Print the states of processes, too
    #[arg(long, help_heading = "Output")]
    pub(crate) states: bool,

    /// Print the run step by step in raw values, as they are recorded, instead of sentences
    #[arg(long, help_heading = "Output")]
    pub(crate) debug: bool,

    /// Record the run to a file that `replay`, `draw` and `export` read; .runz is compact
    #[arg(long, env = "KONKLAVE_RECORD", value_name = "FILE", help_heading = "Output")]
    pub(crate) record: Option<PathBuf>,

    /// Draw the run as a space–time diagram (SVG, or PNG by the name)
    #[arg(long, env = "KONKLAVE_SVG", value_name = "FILE", help_heading = "Output")]
    pub(crate) svg: Option<PathBuf>,

    /// Output format
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t, help_heading = "Output")]
    pub(crate) format: Format,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  konklave ui
  konklave ui --no-open --port 8000
The printed address contains an access token. Share it only with people who may use this workbench.")]
pub(crate) struct UiArgs {
    /// Print the address without opening a browser
    #[arg(long, env = "KONKLAVE_NO_OPEN")]
    pub(crate) no_open: bool,
    /// Port; 0 chooses a free one
    #[arg(long, env = "KONKLAVE_PORT", value_name = "PORT", default_value_t = 0)]
    pub(crate) port: u16,
    /// Address to listen on; other machines reach any address but loopback, without encryption
    #[arg(long, env = "KONKLAVE_LISTEN", value_name = "IP", default_value = "127.0.0.1")]
    pub(crate) listen: IpAddr,
    /// Socket of an agent for the page Live; repeatable [default: the socket of this machine's
    /// agent, if one runs]
    #[arg(long, env = "KONKLAVE_SOCKET", value_name = "SOCKET", value_delimiter = ',')]
    pub(crate) agent: Vec<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct MemberArgs {
    /// Algorithm: problem/name, or the name alone
    pub(crate) algorithm: String,

    #[command(flatten)]
    pub(crate) scenario: Scenario,

    /// Id of this member
    #[arg(long, value_name = "ID")]
    pub(crate) me: u32,

    /// Length of T in ms
    #[arg(long, value_name = "MS", default_value_t = 5.0)]
    pub(crate) unit: f64,

    /// Address of this machine to listen on
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    pub(crate) listen: Ipv4Addr,

    /// Multicast address of the group; without it members connect over TCP
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) multicast: Option<SocketAddrV4>,
}

#[derive(Args, Debug)]
pub(crate) struct BufferArgs {
    /// Implementation of the buffer
    #[arg(value_enum)]
    pub(crate) code: BufferCode,
    /// Also run a timed election of this many workers over such buffers
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) workers: Option<u32>,
    /// Number of workers that start the election at the same time
    #[arg(long, value_name = "K", default_value_t = 1, requires = "workers")]
    pub(crate) initiators: u32,
    /// Timeout of a writer whose message is not taken, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 2000, requires = "workers")]
    pub(crate) timeout: u32,
    /// Pause of a worker after each task, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 500, requires = "workers")]
    pub(crate) worker_sleep: u32,
    /// Output format
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BufferCode {
    /// As the report prints it
    Printed,
    /// As `konklave ring` has it
    Ticket,
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
    /// Real tasks, datagrams on this machine between them; lost datagrams are not sent again
    Udp,
    /// Real tasks, IP multicast between them: a message to many processes is one datagram
    Multicast,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  konklave ring 8 -n 3 --sleep 0 --worker-sleep 10 --log
  konklave ring 5 -n 2 --sleep 100 --worker-sleep 5 --json
  konklave ring --ids 17,4,99,23 --initiator 4 -n 1 --worker-sleep 0 --log-level DEBUG --log
  konklave ring --ids 4,1,3 -n 2 --sleep 0 --worker-sleep 5 --fail 3@message:2 --send-timeout 200
  konklave ring 1000 -n 3 --simulate --algorithm franklin
  konklave ring 5 -n 2 --sleep 0 --tcp
Exit codes: 0 fine · 1 two leaders, or an election that did not end · 64 wrong use · 65 bad config
file · 66 unreadable config file · 73 cannot write the log · 74 output or log cut short · 130 interrupted twice")]
pub(crate) struct RingArgs {
    #[command(flatten)]
    pub(crate) flags: konklave_ring::Flags,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  konklave demo\n  konklave demo --svg tour.svg")]
pub(crate) struct DemoArgs {
    /// Draw the run of the second part
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}

#[cfg(feature = "agent")]
#[derive(Args, Debug)]
pub(crate) struct DemoMemberArgs {
    /// Addresses of all members
    #[arg(long, value_name = "LIST", value_delimiter = ',', required = true)]
    pub(crate) seeds: Vec<String>,
    /// Index of this member in the list, from 0
    #[arg(long, value_name = "I")]
    pub(crate) index: usize,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  konklave help faults
  konklave help run
Topics: faults, topologies, delays, properties, scenarios, exit-codes; or the name of a command")]
pub(crate) struct HelpArgs {
    /// Topic or command
    pub(crate) topic: Option<String>,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Topic {
    /// Values of `--fault`
    Faults,
    /// Values of `--topology`
    Topologies,
    /// Values of `--delay`
    Delays,
    /// Values of `--property`
    Properties,
    /// Keys of a scenario file
    Scenarios,
    /// All exit codes
    ExitCodes,
}

#[derive(Args, Debug)]
#[command(
    after_help = "Examples:\n  konklave completions bash > /etc/bash_completion.d/konklave\n  konklave completions fish | source"
)]
pub(crate) struct CompletionsArgs {
    /// Shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  konklave man | man -l -\n  konklave man run | man -l -")]
pub(crate) struct ManArgs {
    /// Command [default: all of konklave]
    pub(crate) command: Option<String>,
}
