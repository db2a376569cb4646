//! The command line of the agent and its client commands.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use crate::client::default_socket;
use crate::config::Settings;

/// The commands of this crate.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Run the agent of this machine: a member of the group that serves local clients
    Agent(Box<DaemonArgs>),
    /// Run a command while holding a lock or a slot of a semaphore
    Lock(LockArgs),
    /// Run a command while leading an election
    Elect(ElectArgs),
    /// Show the agent's group: members, locks, elections, holders and waiters
    Status(StatusArgs),
    /// Show the holders and waiters of a lock, a semaphore or an election
    Who(WhoArgs),
    /// Explain why a lock is not free: holder, suspected nodes, majority, queue, deadlock
    Why(WhyArgs),
    /// List the members of the group
    Members(MembersArgs),
    /// Print changes of locks, elections and members as they happen
    Watch(WatchArgs),
    /// Take a lock or a semaphore's slots from the current holders
    Revoke(RevokeArgs),
    /// Make the leader of an election step down, so that the next candidate leads
    StepDown(StepDownArgs),
    /// Send messages to a group; all its receivers get them in the same order
    Send(SendArgs),
    /// Print the messages of a group as they arrive
    Recv(RecvArgs),
    /// Fetch the recent events of one or more agents, merged in order of time
    Record(RecordArgs),
    /// Replace a file with stdin, unless a later holder of the lock has written it
    Fence(FenceArgs),
    /// Check this machine, the agent and its group, and name what is wrong
    Doctor(DoctorArgs),
    /// Make a shared key, or certificates, for the agents of a group
    Keys(KeysArgs),
}

/// How a command lays out its JSON output.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum JsonLayout {
    /// One object, indented.
    Object,
    /// One object per line.
    Lines,
}

impl JsonLayout {
    /// The JSON layout that an invalid command line asks for, so that its error can be JSON, too. `variable`
    /// is the value of `KONKLAVE_FORMAT`.
    pub(crate) fn asked_for(words: &[OsString], variable: Option<&OsStr>) -> Option<Self> {
        let form = match words.first()?.to_str()? {
            "status" | "who" | "why" | "members" | "revoke" | "step-down" | "doctor" => {
                Self::Object
            }
            "watch" | "recv" => Self::Lines,
            _ => return None,
        };
        let flags: Vec<&str> =
            words.iter().map_while(|w| w.to_str().filter(|w| *w != "--")).collect();
        let apart = flags.iter().rposition(|w| *w == "--format").and_then(|i| flags.get(i + 1));
        let joined = flags.iter().rev().find_map(|w| w.strip_prefix("--format="));
        let asked = apart.copied().or(joined).or(variable.and_then(OsStr::to_str));
        match asked {
            Some("json") => Some(form),
            Some("jsonl") => Some(Self::Lines),
            _ => None,
        }
    }
}

impl Command {
    /// The layout of the output, if it is JSON.
    pub(crate) fn json_layout(&self) -> Option<JsonLayout> {
        let (format, form) = match self {
            Self::Status(args) if !args.metrics => (args.format, JsonLayout::Object),
            Self::Who(args) => (args.format, JsonLayout::Object),
            Self::Why(args) => (args.format, JsonLayout::Object),
            Self::Members(args) => (args.format, JsonLayout::Object),
            Self::Revoke(args) => (args.format, JsonLayout::Object),
            Self::StepDown(args) => (args.format, JsonLayout::Object),
            Self::Doctor(args) => (args.format, JsonLayout::Object),
            Self::Watch(args) => (args.format, JsonLayout::Lines),
            Self::Recv(args) => (args.format, JsonLayout::Lines),
            _ => return None,
        };
        match format {
            Format::Text => None,
            Format::Json => Some(form),
            Format::Jsonl => Some(JsonLayout::Lines),
        }
    }
}

/// `agent`.
#[derive(Args, Clone, Debug)]
#[command(
    override_usage = "konklave agent [OPTIONS]",
    after_help = "\
Examples:
  konklave agent --dev                   three members in one process, to try things out
  konklave agent --config agent.toml     settings from a file; every flag is a key of it
  konklave agent --listen 10.0.0.1:7400 --peers a:7400,b:7400,c:7400 --key-file key
  konklave agent --listen 0.0.0.0:7400 --advertise $POD_IP:7400 --peers konklave:7400 \\
      --founders 3 --key-file key        one DNS name for all founders
  konklave agent --listen 10.0.0.1:7400 --beacon --founders 3 --key-file key
  konklave agent --nats nats://broker:4222/team --founders 3 --key-file key
Signals:
  TERM, INT  end the commands under locks, then leave the group; the second time, end at once
  HUP        read the configuration, key and certificate files again
  USR2       restart in place, with the program file that is there now; commands keep their locks
Exit codes:
  0 left the group · 66 a file cannot be read · 69 no group, or another agent uses the port,
  the socket or the data directory · 71 system error · 73 the data directory cannot be written
  78 invalid configuration"
)]
pub struct DaemonArgs {
    /// Run a group of three members in this process, on loopback; nothing is stored
    #[arg(long)]
    pub dev: bool,
    /// A TOML file with settings; flags and environment variables override it
    #[arg(long, env = "KONKLAVE_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// The settings, also keys of the file.
    #[command(flatten)]
    pub settings: Settings,
}

/// The format of the output.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Format {
    /// Text for people
    #[default]
    Text,
    /// JSON for programs
    Json,
    /// JSON, one object per line
    Jsonl,
}

/// The agent that a client command talks to.
#[derive(Args, Clone, Debug)]
pub struct AgentArgs {
    /// The socket of the agent
    #[arg(long, env = "KONKLAVE_SOCKET", value_name = "PATH", default_value_os_t = default_socket())]
    pub socket: PathBuf,
}

/// How `lock` and `elect` run a command.
#[derive(Args, Clone, Debug)]
pub struct RunArgs {
    /// Do not wait: fail at once if it is not free
    #[arg(short = 'n', long, visible_aliases = ["nb", "try"], conflicts_with = "timeout")]
    pub nonblock: bool,
    /// Wait at most this long, then fail (seconds, or with a unit: 500ms, 2m)
    #[arg(short = 'w', long, visible_alias = "wait", value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// The exit code if the lock is not obtained
    #[arg(short = 'E', long, value_name = "CODE", default_value_t = crate::failure::NOT_OBTAINED)]
    pub conflict_exit_code: u8,
    /// Run this string with the shell ($SHELL, or /bin/sh)
    #[arg(short = 'c', long = "command", value_name = "STRING", conflicts_with = "words")]
    pub shell: Option<OsString>,
    /// How long this lock survives stalls, restarts of the agent and cuts, and how long others wait for it
    /// after a crash (default: the agent's --lease)
    #[arg(long, env = "KONKLAVE_LOCK_LEASE", value_name = "SECONDS", value_parser = seconds)]
    pub lease: Option<Duration>,
    /// How long the lock is kept if this process is stopped: 0.2 s to 10 min (default: the lease, 5 s at least)
    #[arg(long, env = "KONKLAVE_TTL", value_name = "SECONDS", value_parser = seconds)]
    pub ttl: Option<Duration>,
    /// Time between SIGTERM and SIGKILL for the command when the lock is lost
    #[arg(long, env = "KONKLAVE_GRACE", value_name = "SECONDS", value_parser = seconds, default_value = "2")]
    pub grace: Duration,
    /// The text that `status` shows for this command (default: the program's name)
    #[arg(long, value_name = "TEXT")]
    pub label: Option<String>,
    /// Report each step on stderr
    #[arg(short = 'v', long)]
    pub verbose: bool,
    /// The agent to talk to.
    #[command(flatten)]
    pub agent: AgentArgs,
    /// The command and its arguments; without one, print the token and hold the lock until a signal
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub words: Vec<OsString>,
}

/// `lock`. As with flock(1), a later flag overrides an earlier one.
#[derive(Args, Clone, Debug)]
#[command(
    args_override_self = true,
    override_usage = "konklave lock [OPTIONS] <NAME> [--] [COMMAND]...",
    after_help = "\
Examples:
  konklave lock reports -- ./make-reports --all
  konklave lock -n nightly -- backup.sh          exit with 75 at once if it runs elsewhere
  konklave lock -w 30 -E 0 cache -- warm-up      wait 30 s at most; exit with 0 in any case
  konklave lock -s data -- ./read                share the lock with other readers
  konklave lock --slots 3 gpu -- ./train         at most three at a time
  konklave lock reports -c 'a && b'              run a string with the shell
  konklave lock --lease 60 import -- ./import    keep the lock over stalls of half a minute
Variables set for the command:
  KONKLAVE_LOCK, KONKLAVE_TOKEN, KONKLAVE_DEADLINE, KONKLAVE_NODE, KONKLAVE_SOCKET
Exit codes:
  that of the command, 128+n if signal n ended it · 75 (-E) not obtained
  76 lost while the command ran · 69 no agent or no majority · 77 not allowed
  126 not executable · 127 command not found"
)]
pub struct LockArgs {
    /// Share the lock with other readers
    #[arg(short = 's', long, overrides_with = "exclusive", conflicts_with = "slots")]
    pub shared: bool,
    /// Hold the lock exclusively (the default)
    #[arg(short = 'x', visible_short_alias = 'e', long, overrides_with = "shared")]
    pub exclusive: bool,
    /// Hold one of N slots: NAME is a semaphore
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_535), conflicts_with = "exclusive")]
    pub slots: Option<u32>,
    /// The name of the lock
    pub name: String,
    /// How to run the command.
    #[command(flatten)]
    pub run: RunArgs,
}

/// `elect`.
#[derive(Args, Clone, Debug)]
#[command(
    args_override_self = true,
    override_usage = "konklave elect [OPTIONS] <NAME> [--] [COMMAND]...",
    after_help = "\
Examples:
  konklave elect scheduler -- ./scheduler            wait until elected, then run the command
  konklave elect --again scheduler -- ./scheduler    stand again after leadership is lost
Variables set for the command:
  KONKLAVE_ELECTION, KONKLAVE_TOKEN, KONKLAVE_DEADLINE, KONKLAVE_NODE, KONKLAVE_SOCKET
Exit codes: the same as those of `lock`."
)]
pub struct ElectArgs {
    /// Priority of this candidate; a higher one is elected first
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    pub priority: i32,
    /// Stand again whenever leadership or the agent is lost
    #[arg(long)]
    pub again: bool,
    /// The name of the election
    pub name: String,
    /// How to run the command.
    #[command(flatten)]
    pub run: RunArgs,
}

/// `status`.
#[derive(Args, Clone, Debug)]
#[command(
    override_usage = "konklave status [OPTIONS] [PREFIX]",
    after_help = "\
Examples:
  konklave status
  konklave status backup/ --format json
  konklave status --metrics"
)]
pub struct StatusArgs {
    /// Show only names that start with this
    pub prefix: Option<String>,
    /// Show at most this many names
    #[arg(long, default_value_t = 100, value_name = "N")]
    pub limit: usize,
    /// Print metrics in the Prometheus text format instead
    #[arg(long)]
    pub metrics: bool,
    /// The format of the output
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub format: Format,
    /// The agent to talk to.
    #[command(flatten)]
    pub agent: AgentArgs,
}

/// `who`.
#[derive(Args, Clone, Debug)]
#[command(
    override_usage = "konklave who [OPTIONS] <NAME>",
    after_help = "\
Examples:
  konklave who reports
  konklave who --election scheduler --format json"
)]
pub struct WhoArgs {
    /// The name; locks, semaphores and elections of this name are all shown
    pub name: String,
    /// Show only the election of this name
    #[arg(long)]
    pub election: bool,
    /// The format of the output
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub format: Format,
    /// The agent to talk to.
    #[command(flatten)]
    pub agent: AgentArgs,
}

/// `why`.
#[derive(Args, Clone, Debug)]
#[command(
    override_usage = "konklave why [OPTIONS] <NAME>",
    after_help = "\
Examples:
  konklave why reports
  konklave why reports --format json"
)]
pub struct WhyArgs {
    /// The name of the lock
    pub name: String,
    /// The format of the output
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub format: Format,
    /// The agent to talk to.
    #[command(flatten)]
    pub agent: AgentArgs,
}

/// `members`.
#[derive(Args, Clone, Debug)]
#[command(
    override_usage = "konklave members [OPTIONS]",
    after_help = "\
Examples:
  konklave members"
)]
pub struct MembersArgs {
    /// The format of the output
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub format: Format,
    /// The agent to talk to.
    #[command(flatten)]
    pub agent: AgentArgs,
}

/// `watch`.
#[derive(Args, Clone, Debug)]
#[command(
    override_usage = "konklave watch [OPTIONS]",
    after_help = "\
Examples:
  konklave watch
  konklave watch --format json | jq ."
)]
pub struct WatchArgs {
    /// The format of the output; JSON is one object per line
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub format: Format,
    /// The agent to talk to.
    #[command(flatten)]
    pub agent: AgentArgs,
}

/// `revoke`.
#[derive(Args, Clone, Debug)]
#[command(
    override_usage = "konklave revoke [OPTIONS] <NAME>",
    after_help = "\
Examples:
  konklave revoke reports --dry-run
  konklave revoke reports
  konklave revoke --slots gpu                    all slots of a semaphore
  konklave revoke --slots gpu --token 1.3.42     one slot
The holder's command gets SIGTERM, and SIGKILL after its --grace, or before the lease of its
agent ends if that is sooner. Its `konklave lock` exits with 76. Then the next waiter gets the
lock. If the holder's machine does not answer, the command is stopped there by its deadline."
)]
pub struct RevokeArgs {
    /// The name of the lock
    pub name: String,
    /// NAME is a semaphore: take its slots
    #[arg(long)]
    pub slots: bool,
    /// Take only the grant with this token (`who` shows tokens)
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<konklave::Token>,
    /// Show the holders it would be taken from, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// The format of the output
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub format: Format,
    /// The agent to talk to.
    #[command(flatten)]
    pub agent: AgentArgs,
}

/// `step-down`.
#[derive(Args, Clone, Debug)]
#[command(
    override_usage = "konklave step-down [OPTIONS] <NAME>",
    after_help = "\
Examples:
  konklave step-down scheduler --dry-run
  konklave step-down scheduler"
)]
pub struct StepDownArgs {
    /// The name of the election
    pub name: String,
    /// Show the leader that would step down, and change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// The format of the output
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub format: Format,
    /// The agent to talk to.
    #[command(flatten)]
    pub agent: AgentArgs,
}

/// `send`.
#[derive(Args, Clone, Debug)]
#[command(
    override_usage = "konklave send [OPTIONS] <GROUP> [WORDS]...",
    after_help = "\
Examples:
  konklave send chat hello everyone
  tail -f log | konklave send log"
)]
pub struct SendArgs {
    /// The name of the group
    pub group: String,
    /// The message; without it, each line of stdin is a message
    pub words: Vec<String>,
    /// The agent to talk to.
    #[command(flatten)]
    pub agent: AgentArgs,
}

/// `recv`.
#[derive(Args, Clone, Debug)]
#[command(
    override_usage = "konklave recv [OPTIONS] <GROUP>",
    after_help = "\
Examples:
  konklave recv chat --views
  konklave recv chat --count 10 --format json"
)]
pub struct RecvArgs {
    /// The name of the group
    pub group: String,
    /// Exit after this many messages
    #[arg(long, value_name = "N")]
    pub count: Option<u64>,
    /// Also print the members whenever they change
    #[arg(long)]
    pub views: bool,
    /// The format of the output; JSON is one object per line
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub format: Format,
    /// The agent to talk to.
    #[command(flatten)]
    pub agent: AgentArgs,
}

/// `record`.
#[derive(Args, Clone, Debug)]
#[command(
    override_usage = "konklave record [OPTIONS]",
    after_help = "\
Examples:
  konklave record -o incident.jsonl
  konklave record --merge from-b.jsonl --merge from-c.jsonl
  konklave record --also /run/konklave/b.sock -o incident.run
A `.run` file is read by `draw`, `replay` and `export`. Only the full program has these
commands (cargo build --release -p konklave-cli), the smaller konklave-agent has not."
)]
pub struct RecordArgs {
    /// The socket of another agent whose recording to merge in
    #[arg(long, value_name = "PATH")]
    pub also: Vec<PathBuf>,
    /// A recording fetched earlier or elsewhere to merge in
    #[arg(long, value_name = "FILE")]
    pub merge: Vec<PathBuf>,
    /// Write to this file instead of stdout; a name that ends in .run selects the format of `draw` and `export`
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Include only this lock or election (.run only)
    #[arg(long, value_name = "NAME")]
    pub only: Option<String>,
    /// The agent to talk to.
    #[command(flatten)]
    pub agent: AgentArgs,
}

/// `fence`.
#[derive(Args, Clone, Debug)]
#[command(
    override_usage = "konklave fence [OPTIONS] <FILE>",
    after_help = "\
Examples:
  konklave lock reports -c './make-reports | konklave fence reports.csv'
FILE.fence stores the highest token that has written FILE. Every writer must use this command.
Exit codes:
  0 written completely · 65 FILE.fence contains no token · 73 cannot write
  76 refused: a holder with a higher token has written FILE"
)]
pub struct FenceArgs {
    /// The file to replace
    pub file: PathBuf,
    /// The fencing token of the lock (inside `lock`, taken from the environment)
    #[arg(long, env = "KONKLAVE_TOKEN", value_name = "TOKEN")]
    pub token: konklave::Token,
}

/// `doctor`.
#[derive(Args, Clone, Debug)]
#[command(
    override_usage = "konklave doctor [OPTIONS]",
    after_help = "\
Examples:
  konklave doctor
  konklave doctor --format json
Exit codes: 0 all checks pass · 1 a check fails"
)]
pub struct DoctorArgs {
    /// The format of the output
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub format: Format,
    /// The agent to talk to.
    #[command(flatten)]
    pub agent: AgentArgs,
}

/// `keys`.
#[derive(Args, Clone, Debug)]
#[command(
    override_usage = "konklave keys [OPTIONS] <COMMAND>",
    after_help = "\
Examples:
  konklave keys shared key                  one key for all agents: agent --key-file key
  konklave keys tls certificates a b c      an authority, and a certificate for each agent
  konklave keys tls --renew certificates a  a new certificate for agent a
Exit codes: 0 made · 64 a name is not allowed · 66 a file cannot be read
  73 a file exists already, or cannot be written"
)]
pub struct KeysArgs {
    /// The kind of keys to make.
    #[command(subcommand)]
    pub command: KeysCommand,
}

/// The kinds of keys.
#[derive(Subcommand, Clone, Debug)]
pub enum KeysCommand {
    /// Make a key that all agents of a group share
    Shared(SharedKeyArgs),
    /// Make certificates for mutual TLS, and first the authority that signs them
    #[cfg(feature = "tls")]
    Tls(TlsArgs),
}

/// `keys shared`.
#[derive(Args, Clone, Debug)]
pub struct SharedKeyArgs {
    /// The file to create
    pub file: PathBuf,
}

/// `keys tls`.
#[cfg(feature = "tls")]
#[derive(Args, Clone, Debug)]
pub struct TlsArgs {
    /// The folder of the authority and its certificates; created if missing
    pub folder: PathBuf,
    /// The names of the agents, such as a or db-1.example
    #[arg(required = true)]
    pub names: Vec<String>,
    /// How long the certificates are valid, in days
    #[arg(long, value_name = "DAYS", default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=3650))]
    pub days: u32,
    /// Replace the certificates and keys of agents that have some
    #[arg(long)]
    pub renew: bool,
}

/// Parses a duration: a number of seconds, or a number with a unit.
pub(crate) fn seconds(text: &str) -> Result<Duration, String> {
    let text = text.trim();
    let (number, unit) = match text.find(|c: char| c.is_ascii_alphabetic()) {
        Some(at) => text.split_at(at),
        None => (text, "s"),
    };
    let factor = match unit {
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return Err(format!("`{unit}` is not a unit of time; use ms, s, m, h or d")),
    };
    let number: f64 = number.trim().parse().map_err(|_| format!("`{number}` is not a number"))?;
    Duration::try_from_secs_f64(number * factor)
        .map_err(|_| format!("`{text}` is negative or too long for a duration"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn duration_without_unit_is_in_seconds() {
        assert_eq!(seconds("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(seconds("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(seconds("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(seconds("0"), Ok(Duration::ZERO));
        for wrong in ["", "x", "-1", "1y", "NaN", "1e400", "inf"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn usage_names_every_positional_argument() {
        let all = Command::augment_subcommands(clap::Command::new("konklave"));
        for command in all.get_subcommands() {
            let usage = command.clone().render_usage().to_string();
            assert!(
                usage.contains(&format!("konklave {} [OPTIONS]", command.get_name())),
                "{usage}"
            );
            for positional in command.get_positionals() {
                let name = positional.get_id().as_str().to_uppercase();
                let name =
                    if name == "WORDS" && usage.contains("COMMAND") { "COMMAND" } else { &name };
                assert!(usage.contains(name), "{name}: {usage}");
            }
        }
    }

    #[test]
    fn json_layout_is_found_in_an_invalid_command_line() {
        let asked = |line: &str, variable: Option<&str>| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            JsonLayout::asked_for(&words, variable.map(OsStr::new))
        };
        let (object, lines) = (Some(JsonLayout::Object), Some(JsonLayout::Lines));
        assert_eq!(asked("who --format json", None), object);
        assert_eq!(asked("status --nonsense --format=json", None), object);
        assert_eq!(asked("watch --nonsense", Some("json")), lines);
        assert_eq!(asked("who --format jsonl", None), lines);
        assert_eq!(asked("who a --format text", Some("json")), None);
        assert_eq!(asked("who a b -- --format json", None), None);
        assert_eq!(asked("lock a --format json", None), None);
    }
}
