//! The command line of everything that has to do with an agent.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use crate::client::default_socket;
use crate::config::Settings;

/// The commands of this crate.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Be a member of a group on this machine, and serve its clients
    Agent(Box<DaemonArgs>),
    /// Run a command while a lock is ours
    Lock(LockArgs),
    /// Run a command while we lead
    Elect(ElectArgs),
    /// What the agent and its group do: members, locks, elections, who holds and who waits
    Status(StatusArgs),
    /// Who has a lock, a semaphore or an election, and who waits for it
    Who(WhoArgs),
    /// Explain why a lock is not free: holder, suspicion, majority, place in the queue, circle
    Why(WhyArgs),
    /// Name the members of the group
    Members(MembersArgs),
    /// Follow what changes
    Watch(WatchArgs),
    /// Take a lock from whoever has it
    Revoke(RevokeArgs),
    /// Make a leader step down, so that the next one leads
    StepDown(StepDownArgs),
    /// Send messages to a group: everyone sees all messages in the same order
    Send(SendArgs),
    /// Receive the messages of a group
    Recv(RecvArgs),
    /// Fetch what the flight recorders of agents remember, and merge it
    Record(RecordArgs),
    /// Replace a file by stdin, unless a later holder of the lock was here
    Fence(FenceArgs),
    /// Look whether everything is as it should be
    Doctor(DoctorArgs),
}

/// How JSON is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// One object, indented.
    Object,
    /// One object a line.
    Lines,
}

impl Form {
    /// How these words of a command line ask for JSON, whatever else is wrong with them: one of our commands,
    /// and the flag or the variable.
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
        (asked == Some("json")).then_some(form)
    }
}

impl Command {
    /// How the output is written, if it is JSON.
    pub(crate) fn form(&self) -> Option<Form> {
        let (format, form) = match self {
            Self::Status(args) if !args.metrics => (args.format, Form::Object),
            Self::Who(args) => (args.format, Form::Object),
            Self::Why(args) => (args.format, Form::Object),
            Self::Members(args) => (args.format, Form::Object),
            Self::Revoke(args) => (args.format, Form::Object),
            Self::StepDown(args) => (args.format, Form::Object),
            Self::Doctor(args) => (args.format, Form::Object),
            Self::Watch(args) => (args.format, Form::Lines),
            Self::Recv(args) => (args.format, Form::Lines),
            _ => return None,
        };
        (format == Format::Json).then_some(form)
    }
}

/// `agent`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  konklave agent --dev                                   three members in one process, to try things out
  konklave agent --listen 10.0.0.1:7400 --peers 10.0.0.1:7400,10.0.0.2:7400,10.0.0.3:7400 --key-file key
  konklave agent --listen 0.0.0.0:7400 --advertise $POD_IP:7400 --peers konklave:7400 --founders 3 --key-file key
  konklave agent --listen 10.0.0.1:7400 --beacon --founders 3 --key-file key
  konklave agent --nats nats://broker:4222/team --founders 3 --key-file key    over subjects of NATS
  konklave agent --config /etc/konklave/agent.toml       each flag is a key of the file
Signals: TERM, INT leave in order, the second time at once · HUP reads the file again
Exit codes: 0 left in order · 66 a file cannot be read · 69 no group, or a port, the socket or the data
  directory is in use: another agent runs here · 71 the system refused
  73 the data directory cannot be written · 78 wrong configuration")]
pub struct DaemonArgs {
    /// Form a group of three in this process, on loopback, that forgets everything
    #[arg(long)]
    pub dev: bool,
    /// Read what is not given here from a file (TOML)
    #[arg(long, env = "KONKLAVE_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// All the rest.
    #[command(flatten)]
    pub settings: Settings,
}

/// The form of the output.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object.
    Json,
}

/// Where the agent is.
#[derive(Args, Clone, Debug)]
pub struct AgentArgs {
    /// The agent's socket
    #[arg(long, env = "KONKLAVE_SOCKET", value_name = "PATH", default_value_os_t = default_socket())]
    pub socket: PathBuf,
}

/// How `lock` and `elect` run a command.
#[derive(Args, Clone, Debug)]
pub struct RunArgs {
    /// Fail at once if it is not free
    #[arg(short = 'n', long, visible_aliases = ["nb", "try"], conflicts_with = "timeout")]
    pub nonblock: bool,
    /// Fail if it is not ours after so many seconds (also 500ms, 2m)
    #[arg(short = 'w', long, visible_alias = "wait", value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// The exit code if it is not obtained
    #[arg(short = 'E', long, value_name = "CODE", default_value_t = crate::failure::NOT_OBTAINED)]
    pub conflict_exit_code: u8,
    /// Pass one string to the shell ($SHELL, or /bin/sh)
    #[arg(short = 'c', long = "command", value_name = "STRING", conflicts_with = "words")]
    pub shell: Option<OsString>,
    /// How long the session lives if this process is stopped: 0.2 s to 10 min
    #[arg(long, env = "KONKLAVE_TTL", value_name = "SECONDS", value_parser = seconds, default_value = "5")]
    pub ttl: Duration,
    /// How long the command has to end by itself when the lock is lost
    #[arg(long, env = "KONKLAVE_GRACE", value_name = "SECONDS", value_parser = seconds, default_value = "2")]
    pub grace: Duration,
    /// What `status` shows of this command, instead of its name
    #[arg(long, value_name = "TEXT")]
    pub label: Option<String>,
    /// Say what happens, on stderr
    #[arg(short = 'v', long)]
    pub verbose: bool,
    /// Where the agent is.
    #[command(flatten)]
    pub agent: AgentArgs,
    /// The command and its arguments; without one, the token is printed and held until a signal
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub words: Vec<OsString>,
}

/// `lock`. As of flock, the last of two flags counts.
#[derive(Args, Clone, Debug)]
#[command(
    args_override_self = true,
    after_help = "\
Examples:
  konklave lock reports -- ./make-reports --all
  konklave lock -n nightly -- backup.sh          not if it runs elsewhere: exit code 75
  konklave lock -w 30 -E 0 cache -- warm-up      wait half a minute, and do not mind
  konklave lock -s data -- ./read                with other readers
  konklave lock --slots 3 gpu -- ./train         one of three
  konklave lock reports -c 'a && b'              through the shell
The command finds KONKLAVE_LOCK, KONKLAVE_TOKEN, KONKLAVE_DEADLINE, KONKLAVE_NODE and KONKLAVE_SOCKET.
Exit codes:
  the command's own, 128+n if signal n ended it · 75 not obtained (-E) · 76 lost while it ran
  126 not executable · 127 not found · 69 no agent · 77 not allowed"
)]
pub struct LockArgs {
    /// Share the lock with other readers
    #[arg(short = 's', long, overrides_with = "exclusive", conflicts_with = "slots")]
    pub shared: bool,
    /// Have the lock alone (as it is anyway)
    #[arg(short = 'x', visible_short_alias = 'e', long, overrides_with = "shared")]
    pub exclusive: bool,
    /// Have one of so many slots: a semaphore
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=65_535), conflicts_with = "exclusive")]
    pub slots: Option<u32>,
    /// The name of the lock
    pub name: String,
    /// How the command is run.
    #[command(flatten)]
    pub run: RunArgs,
}

/// `elect`.
#[derive(Args, Clone, Debug)]
#[command(
    args_override_self = true,
    after_help = "\
Examples:
  konklave elect scheduler -- ./scheduler        waits as a standby, runs as the leader
  konklave elect --again scheduler -- ./scheduler    and stands by again when it lost
The command finds KONKLAVE_ELECTION, KONKLAVE_TOKEN, KONKLAVE_DEADLINE, KONKLAVE_NODE and KONKLAVE_SOCKET.
Exit codes: as of `lock`."
)]
pub struct ElectArgs {
    /// Go before candidates with a lower one
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    pub priority: i32,
    /// Campaign again when leadership is lost or the agent is gone, for ever
    #[arg(long)]
    pub again: bool,
    /// The name of the election
    pub name: String,
    /// How the command is run.
    #[command(flatten)]
    pub run: RunArgs,
}

/// `status`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  konklave status
  konklave status backup/ --format json
  konklave status --metrics")]
pub struct StatusArgs {
    /// Only names that start so
    pub prefix: Option<String>,
    /// At most so many names
    #[arg(long, default_value_t = 100, value_name = "N")]
    pub limit: usize,
    /// Print the metrics instead, as Prometheus reads them
    #[arg(long)]
    pub metrics: bool,
    /// The form of the output
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub format: Format,
    /// Where the agent is.
    #[command(flatten)]
    pub agent: AgentArgs,
}

/// `who`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  konklave who reports
  konklave who --election scheduler --format json")]
pub struct WhoArgs {
    /// The name; all that have it are told
    pub name: String,
    /// Only the election of that name
    #[arg(long)]
    pub election: bool,
    /// The form of the output
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub format: Format,
    /// Where the agent is.
    #[command(flatten)]
    pub agent: AgentArgs,
}

/// `why`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  konklave why reports
  konklave why reports --format json")]
pub struct WhyArgs {
    /// The name of the lock
    pub name: String,
    /// The form of the output
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub format: Format,
    /// Where the agent is.
    #[command(flatten)]
    pub agent: AgentArgs,
}

/// `members`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  konklave members")]
pub struct MembersArgs {
    /// The form of the output
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub format: Format,
    /// Where the agent is.
    #[command(flatten)]
    pub agent: AgentArgs,
}

/// `watch`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  konklave watch
  konklave watch --format json | jq .")]
pub struct WatchArgs {
    /// The form of the output; JSON is one object a line
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub format: Format,
    /// Where the agent is.
    #[command(flatten)]
    pub agent: AgentArgs,
}

/// `revoke`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  konklave revoke reports --dry-run
  konklave revoke reports
  konklave revoke --slots gpu                    all slots of a semaphore
  konklave revoke --slots gpu --token 1.3.42     one of them
The holder's command is asked to end, killed after its grace (or before the agent's lease is over,
if that is sooner), and exits with 76; then the next one is
served. A holder whose machine does not answer is stopped by its own deadline.")]
pub struct RevokeArgs {
    /// The name of the lock
    pub name: String,
    /// It is a semaphore: take its slots
    #[arg(long)]
    pub slots: bool,
    /// Only what was granted with this token (`who` shows it)
    #[arg(long, value_name = "TOKEN")]
    pub token: Option<konklave::Token>,
    /// Only say from whom it would be taken
    #[arg(long)]
    pub dry_run: bool,
    /// The form of the output
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub format: Format,
    /// Where the agent is.
    #[command(flatten)]
    pub agent: AgentArgs,
}

/// `step-down`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  konklave step-down scheduler --dry-run
  konklave step-down scheduler")]
pub struct StepDownArgs {
    /// The name of the election
    pub name: String,
    /// Only say who would step down
    #[arg(long)]
    pub dry_run: bool,
    /// The form of the output
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub format: Format,
    /// Where the agent is.
    #[command(flatten)]
    pub agent: AgentArgs,
}

/// `send`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  konklave send chat hello everyone
  tail -f log | konklave send log")]
pub struct SendArgs {
    /// The name of the group
    pub group: String,
    /// The message; without one, each line of stdin is a message
    pub words: Vec<String>,
    /// Where the agent is.
    #[command(flatten)]
    pub agent: AgentArgs,
}

/// `recv`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  konklave recv chat --views
  konklave recv chat --count 10 --format json")]
pub struct RecvArgs {
    /// The name of the group
    pub group: String,
    /// End after so many messages
    #[arg(long, value_name = "N")]
    pub count: Option<u64>,
    /// Also tell who is in the group
    #[arg(long)]
    pub views: bool,
    /// The form of the output; JSON is one object a line
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub format: Format,
    /// Where the agent is.
    #[command(flatten)]
    pub agent: AgentArgs,
}

/// `record`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  konklave record -o incident.jsonl
  konklave record --merge from-b.jsonl --merge from-c.jsonl
  konklave record --also /run/konklave/b.sock -o incident.run
What reads a `.run` (`draw`, `replay`, `export`), the whole program has (cargo build --release -p konklave-cli),
not that of the agent and its clients alone (konklave-agent).")]
pub struct RecordArgs {
    /// Another agent's socket, whose recording is merged in
    #[arg(long, value_name = "PATH")]
    pub also: Vec<PathBuf>,
    /// A recording fetched elsewhere, to be merged in
    #[arg(long, value_name = "FILE")]
    pub merge: Vec<PathBuf>,
    /// Write it there, not to stdout; as a `.run` for `draw` and `export` if the name ends so
    #[arg(short = 'o', long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// In a `.run`, only this lock or election
    #[arg(long, value_name = "NAME")]
    pub only: Option<String>,
    /// Where the agent is.
    #[command(flatten)]
    pub agent: AgentArgs,
}

/// `fence`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  konklave lock reports -c './make-reports | konklave fence reports.csv'
The highest token lies beside the file, in FILE.fence. All who write must write so.
Exit codes: 0 written, whole · 65 FILE.fence holds no token · 73 cannot write · 76 refused: a later holder was here")]
pub struct FenceArgs {
    /// The file
    pub file: PathBuf,
    /// The fencing token of the lock
    #[arg(long, env = "KONKLAVE_TOKEN", value_name = "TOKEN")]
    pub token: konklave::Token,
}

/// `doctor`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "\
Examples:
  konklave doctor
  konklave doctor --format json
Exit codes: 0 all is well · 1 something is not")]
pub struct DoctorArgs {
    /// The form of the output
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub format: Format,
    /// Where the agent is.
    #[command(flatten)]
    pub agent: AgentArgs,
}

/// A duration: seconds, or with a unit.
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
        _ => return Err(format!("`{unit}` is no unit of time: ms, s, m, h, d")),
    };
    let number: f64 = number.trim().parse().map_err(|_| format!("`{number}` is no number"))?;
    Duration::try_from_secs_f64(number * factor).map_err(|_| format!("{text} is no duration"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_seconds_unless_they_say_otherwise() {
        assert_eq!(seconds("1.5"), Ok(Duration::from_millis(1500)));
        assert_eq!(seconds("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(seconds("2m"), Ok(Duration::from_secs(120)));
        assert_eq!(seconds("0"), Ok(Duration::ZERO));
        for wrong in ["", "x", "-1", "1y", "NaN", "1e400", "inf"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn who_asks_for_json_in_a_wrong_way_is_understood_that_far() {
        let asked = |line: &str, variable: Option<&str>| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            Form::asked_for(&words, variable.map(OsStr::new))
        };
        let (object, lines) = (Some(Form::Object), Some(Form::Lines));
        assert_eq!(asked("who --format json", None), object);
        assert_eq!(asked("status --nonsense --format=json", None), object);
        assert_eq!(asked("watch --nonsense", Some("json")), lines);
        assert_eq!(asked("who a --format text", Some("json")), None);
        assert_eq!(asked("who a b -- --format json", None), None);
        assert_eq!(asked("lock a --format json", None), None);
    }
}
