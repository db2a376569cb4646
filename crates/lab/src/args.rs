//! The command line. What is told to the checker, what is measured and what is shown have files of their
//! own.

mod checking;
mod creating;
mod measuring;
mod showing;

pub(crate) use checking::*;
pub(crate) use creating::*;
pub(crate) use measuring::*;
pub(crate) use showing::*;

use std::net::{IpAddr, Ipv4Addr, SocketAddrV4};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use konklave_catalog::Scenario;

use crate::output::Format;

const ABOUT: &str = "Elect a leader, take a lock, speak as a group — and see why it works.";

const AFTER_HELP: &str = "\
Examples:
  konklave demo                                      a tour of ten seconds
  konklave list                                      every algorithm with its data sheet
  konklave run ricart-agrawala -n 4 --entries 2      run it, see what it costs
  konklave ui                                        the same in the browser, faults by click
  konklave check tree-wave -n 4 --topology path --initiators 0,3 --mistake leaf-rule
                                                     find the shortest run that breaks it
  konklave agent --dev                               a group of three, to try what follows
  konklave lock reports -- ./make-reports            one at a time in the whole group
Exit codes:
  0 fine · 1 a property is violated · 2 undecided, a bound was reached · 64 wrong use
  65 bad data in a file · 66 unreadable file · 69 unavailable · 70 our bug · 71 the system refused
  73 cannot create · 74 output error · 75 lock not obtained · 76 lock lost · 77 not allowed
  78 wrong configuration";

#[derive(Parser, Debug)]
#[command(name = "konklave", version, about = ABOUT, after_help = AFTER_HELP, max_term_width = 100)]
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
    /// Leave out of a recorded run that breaks something all that is not needed for that
    Shrink(ShrinkArgs),
    /// Draw a recorded run as a space–time diagram
    Draw(DrawArgs),
    /// Turn a recorded run into a picture, a player, a sequence diagram, a log or a table
    Export(ExportArgs),
    /// Run two to four algorithms in the same world and draw them one above the other
    Race(Box<RaceArgs>),
    /// The agent and its clients.
    #[cfg(feature = "agent")]
    #[command(flatten)]
    Agent(konklave_agent::Command),
    /// Open the workbench in the browser: run, watch, break and compare
    #[cfg(feature = "ui")]
    Ui(UiArgs),
    /// Write a crate for an algorithm of your own, ready to run and to check
    New(NewArgs),
    /// The project report's program: a ring of workers elects a leader, again and again
    Ring(RingArgs),
    /// A tour of ten seconds
    Demo(DemoArgs),
    /// Be one of the members that `demo` starts
    #[cfg(feature = "agent")]
    #[command(hide = true)]
    DemoMember(DemoMemberArgs),
    /// Explain the syntax of faults, topologies, delays, properties
    Help(HelpArgs),
    /// Be one member of a group whose members are operating system processes
    #[command(hide = true)]
    Member(Box<MemberArgs>),
    /// Go through every order in which threads can meet at the report's buffer
    #[command(hide = true)]
    Buffer(BufferArgs),
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
  konklave list maekawa -n 91 --set quorums=plane
  konklave list --format json")]
pub(crate) struct ListArgs {
    /// A problem (mutex, election, …) or an algorithm
    pub(crate) what: Option<String>,
    /// How many nodes: how large quorums are depends on it
    #[arg(short = 'n', long, value_name = "N", requires = "what")]
    pub(crate) nodes: Option<usize>,
    /// The variant whose quorums to show; may be given several times
    #[arg(long = "set", value_name = "NAME=VALUE", requires = "what")]
    pub(crate) set: Vec<String>,
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

    /// How long T is in the real worlds [default: 5]
    #[arg(long, env = "KONKLAVE_UNIT", value_name = "MS", help_heading = "Run")]
    pub(crate) unit: Option<f64>,

    /// Tell the run step by step (small runs are told anyway)
    #[arg(long, help_heading = "Output")]
    pub(crate) story: bool,

    /// Tell states, too
    #[arg(long, help_heading = "Output")]
    pub(crate) states: bool,

    /// Tell the run step by step in raw values, as they are recorded, instead of sentences
    #[arg(long, help_heading = "Output")]
    pub(crate) debug: bool,

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
    /// The socket of an agent to look at (Live); may be given several times [default: this
    /// machine's, if it runs]
    #[arg(long, env = "KONKLAVE_SOCKET", value_name = "SOCKET", value_delimiter = ',')]
    pub(crate) agent: Vec<PathBuf>,
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

    /// At which address of this machine it listens
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    pub(crate) listen: Ipv4Addr,

    /// Where all are reached by one datagram; without it there are connections
    #[arg(long, value_name = "IP:PORT")]
    pub(crate) multicast: Option<SocketAddrV4>,
}

#[derive(Args, Debug)]
pub(crate) struct BufferArgs {
    /// Which code
    #[arg(value_enum)]
    pub(crate) code: BufferCode,
    /// Let so many workers hold an election over such buffers, in time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) workers: Option<u32>,
    /// How many of them start it, all at once
    #[arg(long, value_name = "K", default_value_t = 1, requires = "workers")]
    pub(crate) initiators: u32,
    /// How long one waits until its message is taken, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 2000, requires = "workers")]
    pub(crate) timeout: u32,
    /// How long a worker sleeps after each task, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 500, requires = "workers")]
    pub(crate) worker_sleep: u32,
    /// The form of the output
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
    /// Real tasks, datagrams on this machine between them: what is lost is lost
    Udp,
    /// The same, by IP multicast: what one says to many is one datagram
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
    /// Draw the run of the second act
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
}

#[cfg(feature = "agent")]
#[derive(Args, Debug)]
pub(crate) struct DemoMemberArgs {
    /// Where all members listen
    #[arg(long, value_name = "LIST", value_delimiter = ',', required = true)]
    pub(crate) seeds: Vec<String>,
    /// Which of them this one is, from 0
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
    /// About what: a topic, or a command
    pub(crate) topic: Option<String>,
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
