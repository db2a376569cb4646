//! The settings of an agent. Flags override environment variables, these override the file, and the file
//! overrides the defaults.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use clap::Args;
use clap::builder::{BoolishValueParser, PossibleValuesParser, TypedValueParser};
use konklave::LockAlgorithm;
use serde::{Deserialize, Deserializer};

use crate::args::seconds;
use crate::failure::Failure;

/// The settings of an agent. Each has a flag, an environment variable and a key of the same name.
#[derive(Args, Clone, PartialEq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Settings {
    /// The name shown for this agent; it need not be unique (default: its address)
    #[arg(long, env = "KONKLAVE_NAME", value_name = "NAME")]
    pub name: Option<String>,
    /// The name of the group; agents of other groups are ignored (default: konklave)
    #[arg(long, env = "KONKLAVE_CLUSTER", value_name = "NAME")]
    pub cluster: Option<String>,
    /// The folder that stores this agent's identity and the highest token (default: for root
    /// /var/lib/konklave, else ~/.local/state/konklave)
    #[arg(long, env = "KONKLAVE_DATA_DIR", value_name = "FOLDER")]
    pub data_dir: Option<PathBuf>,
    /// The address to listen on for other agents (default: 127.0.0.1:7400)
    #[arg(long, env = "KONKLAVE_LISTEN", value_name = "ADDRESS", help_heading = "Group")]
    pub listen: Option<String>,
    /// The address at which other agents reach this one, if it differs from --listen
    #[arg(long, env = "KONKLAVE_ADVERTISE", value_name = "ADDRESS", help_heading = "Group")]
    pub advertise: Option<String>,
    /// The addresses of all founders, this agent included; a DNS name may stand for several
    #[arg(
        long,
        env = "KONKLAVE_PEERS",
        value_name = "LIST",
        value_delimiter = ',',
        help_heading = "Group"
    )]
    pub peers: Option<Vec<String>>,
    /// A file with the addresses of all founders, one per line
    #[arg(long, env = "KONKLAVE_PEERS_FILE", value_name = "FILE", help_heading = "Group")]
    pub peers_file: Option<PathBuf>,
    /// Find the founders by IP multicast; optionally a multicast group and port of your own
    #[arg(
        long, env = "KONKLAVE_BEACON", value_name = "ADDRESS", help_heading = "Group",
        num_args = 0..=1, require_equals = true, default_missing_value = "239.255.74.0:7401"
    )]
    pub beacon: Option<SocketAddr>,
    /// Connect the agents over a NATS server instead of ports of their own: nats://host:port/prefix
    #[arg(long, env = "KONKLAVE_NATS", value_name = "URL", help_heading = "Group")]
    pub nats: Option<String>,
    /// A file with credentials for the NATS server (.creds)
    #[arg(long, env = "KONKLAVE_NATS_CREDENTIALS", value_name = "FILE", help_heading = "Group")]
    pub nats_credentials: Option<PathBuf>,
    /// The number of founders, if no list of addresses gives it. Until the group exists, start fewer than
    /// 2 × --founders agents
    #[arg(long, env = "KONKLAVE_FOUNDERS", value_name = "N", help_heading = "Group")]
    pub founders: Option<usize>,
    /// Found a group of one that others join: for the very first start, or when a majority is lost for good
    #[arg(
        long, env = "KONKLAVE_FOUND_ALONE", help_heading = "Group", value_parser = BoolishValueParser::new(),
        num_args = 0..=1, require_equals = true, default_missing_value = "true"
    )]
    pub found_alone: Option<bool>,
    /// A file with the key that all agents share, 16 bytes at least
    #[arg(long, env = "KONKLAVE_KEY_FILE", value_name = "FILE", help_heading = "Protection")]
    pub key_file: Option<PathBuf>,
    /// A file with a second key that is accepted, too, while the key is changed
    #[arg(
        long,
        env = "KONKLAVE_SECOND_KEY_FILE",
        value_name = "FILE",
        help_heading = "Protection"
    )]
    pub second_key_file: Option<PathBuf>,
    /// The certificate of this agent (PEM), for mutual TLS
    #[arg(
        long,
        env = "KONKLAVE_TLS_CERTIFICATE",
        value_name = "FILE",
        help_heading = "Protection"
    )]
    pub tls_certificate: Option<PathBuf>,
    /// The private key of the certificate (PEM)
    #[arg(long, env = "KONKLAVE_TLS_KEY", value_name = "FILE", help_heading = "Protection")]
    pub tls_key: Option<PathBuf>,
    /// The certificate of the authority that signed the agents' certificates (PEM)
    #[arg(long, env = "KONKLAVE_TLS_AUTHORITY", value_name = "FILE", help_heading = "Protection")]
    pub tls_authority: Option<PathBuf>,
    /// Identities of agents to shut out (`members` shows identities); the same list on all agents
    #[arg(
        long,
        env = "KONKLAVE_DENY",
        value_name = "LIST",
        value_delimiter = ',',
        help_heading = "Protection"
    )]
    pub deny: Option<Vec<String>>,
    /// Allow a reachable address without key or TLS: any host that reaches it can join the group
    #[arg(
        long, env = "KONKLAVE_INSECURE", help_heading = "Protection", value_parser = BoolishValueParser::new(),
        num_args = 0..=1, require_equals = true, default_missing_value = "true"
    )]
    pub insecure: Option<bool>,
    /// The socket for clients (default: for root /run/konklave/agent.sock, else
    /// $XDG_RUNTIME_DIR/konklave/agent.sock)
    #[arg(long, env = "KONKLAVE_SOCKET", value_name = "PATH", help_heading = "Clients")]
    pub socket: Option<PathBuf>,
    /// Users, by name or number, who may hold locks, lead, and send, besides the agent's user and root
    #[arg(
        long,
        env = "KONKLAVE_ALLOW_USERS",
        value_name = "LIST",
        value_delimiter = ',',
        help_heading = "Clients"
    )]
    pub allow_users: Option<Vec<String>>,
    /// Groups of users, by name or number, whose members may hold locks, lead, and send
    #[arg(
        long,
        env = "KONKLAVE_ALLOW_GROUPS",
        value_name = "LIST",
        value_delimiter = ',',
        help_heading = "Clients"
    )]
    pub allow_groups: Option<Vec<String>>,
    /// Users, by name or number, who may also take locks from others (revoke, step-down)
    #[arg(
        long,
        env = "KONKLAVE_OPERATE_USERS",
        value_name = "LIST",
        value_delimiter = ',',
        help_heading = "Clients"
    )]
    pub operate_users: Option<Vec<String>>,
    /// Groups of users, by name or number, whose members may also take locks from others
    #[arg(
        long,
        env = "KONKLAVE_OPERATE_GROUPS",
        value_name = "LIST",
        value_delimiter = ',',
        help_heading = "Clients"
    )]
    pub operate_groups: Option<Vec<String>>,
    /// Users, by name or number, who may only look (status, who, why, watch, record, doctor)
    #[arg(
        long,
        env = "KONKLAVE_OBSERVE_USERS",
        value_name = "LIST",
        value_delimiter = ',',
        help_heading = "Clients"
    )]
    pub observe_users: Option<Vec<String>>,
    /// Groups of users, by name or number, whose members may only look
    #[arg(
        long,
        env = "KONKLAVE_OBSERVE_GROUPS",
        value_name = "LIST",
        value_delimiter = ',',
        help_heading = "Clients"
    )]
    pub observe_groups: Option<Vec<String>>,
    /// The address to serve /metrics (Prometheus), /healthz and /ready on, over HTTP
    #[arg(long, env = "KONKLAVE_METRICS", value_name = "ADDRESS", help_heading = "Clients")]
    pub metrics: Option<SocketAddr>,
    /// The algorithm that serves exclusive locks, the same for all agents of a group (default: table)
    #[arg(long, env = "KONKLAVE_MUTEX", value_name = "ALGORITHM", value_parser = mutexes(), help_heading = "Group")]
    pub mutex: Option<LockAlgorithm>,
    /// The times to start from: steady survives stalls of 3 s, fast fails over in 1 to 2 s (default: steady)
    #[arg(long, env = "KONKLAVE_PROFILE", value_name = "PROFILE", help_heading = "Times")]
    pub profile: Option<Profile>,
    /// How often agents send a heartbeat (default: 0.14)
    #[arg(long, env = "KONKLAVE_HEARTBEAT", value_name = "SECONDS", help_heading = "Times")]
    pub heartbeat: Option<Span>,
    /// How long an agent may be silent before the group excludes it (default: 5; fast: 1.4)
    #[arg(long, env = "KONKLAVE_SILENCE", value_name = "SECONDS", help_heading = "Times")]
    pub silence: Option<Span>,
    /// How long a lock stays safe without a majority; after an exclusion, others wait this long (default: 8; fast: 1)
    #[arg(long, env = "KONKLAVE_LEASE", value_name = "SECONDS", help_heading = "Times")]
    pub lease: Option<Span>,
    /// How long the agent waits for commands to end before it leaves (default: 10)
    #[arg(long, env = "KONKLAVE_DRAIN", value_name = "SECONDS", help_heading = "Times")]
    pub drain: Option<Span>,
    /// The level of the log: error, warn, info, debug, trace (default: info)
    #[arg(long, env = "KONKLAVE_LOG", value_name = "LEVEL", help_heading = "Log")]
    pub log: Option<Level>,
    /// Write each line of the log as a JSON object
    #[arg(
        long, env = "KONKLAVE_LOG_JSON", help_heading = "Log", value_parser = BoolishValueParser::new(),
        num_args = 0..=1, require_equals = true, default_missing_value = "true"
    )]
    pub log_json: Option<bool>,
}

macro_rules! first {
    ($a:ident, $b:ident, $($field:ident),*) => {
        Settings { $($field: $a.$field.or($b.$field)),* }
    };
}

impl Settings {
    /// These settings; `other` supplies the missing ones.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        first!(
            self,
            other,
            name,
            cluster,
            data_dir,
            listen,
            advertise,
            peers,
            peers_file,
            beacon,
            nats,
            nats_credentials,
            founders,
            found_alone,
            key_file,
            second_key_file,
            tls_certificate,
            tls_key,
            tls_authority,
            deny,
            insecure,
            socket,
            allow_users,
            allow_groups,
            operate_users,
            operate_groups,
            observe_users,
            observe_groups,
            metrics,
            mutex,
            profile,
            heartbeat,
            silence,
            lease,
            drain,
            log,
            log_json
        )
    }

    /// Reads the settings of a file.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(path).map_err(|why| match why.kind() {
            std::io::ErrorKind::InvalidData => {
                Failure::Config(format!("{}: {why}", path.display()))
            }
            _ => Failure::unreadable(path)(why),
        })?;
        toml::from_str(&text).map_err(|error| {
            Failure::Config(format!("{}: {}", path.display(), error.to_string().trim_end()))
        })
    }

    /// Checks the settings, alone and together.
    pub fn check(&self) -> Result<(), Failure> {
        let lacking = self.lacking(cfg!(feature = "nats"), cfg!(feature = "tls"));
        if let Some((option, feature)) = lacking {
            return Err(Failure::Config(format!(
                "{option} has no effect in this build, which lacks the feature `{feature}`\n  \
                 build it without --no-default-features, or with --features {feature}"
            )));
        }
        self.check_protection()?;
        self.check_group()
    }

    /// Checks key, TLS, and whether a reachable address has one of them.
    fn check_protection(&self) -> Result<(), Failure> {
        let tls = [&self.tls_certificate, &self.tls_key, &self.tls_authority];
        let some_tls = tls.iter().any(|file| file.is_some());
        if some_tls && !tls.iter().all(|file| file.is_some()) {
            return wrong("TLS needs all three of tls-certificate, tls-key and tls-authority");
        }
        if some_tls && self.key_file.is_some() {
            return wrong("key-file and tls-* exclude each other: choose a key or TLS");
        }
        if self.second_key_file.is_some() && self.key_file.is_none() {
            return wrong("second-key-file needs key-file, the key that this agent prefers");
        }
        let protected = some_tls || self.key_file.is_some();
        let insecure = self.insecure == Some(true);
        if protected && insecure {
            return wrong("insecure contradicts key-file and tls-*: leave out one of them");
        }
        let listen = self.listen();
        check_address(&listen, true).map_err(Failure::Config)?;
        if !protected && !insecure && self.nats.is_none() && !is_loopback(&listen) {
            return Err(Failure::Config(format!(
                "other machines can reach {listen}, which has no protection\n  \
                 create a key:      konklave keys shared key   (copy it to every machine)\n  \
                 and use it:        --key-file key\n  \
                 or mutual TLS:     --tls-certificate, --tls-key, --tls-authority\n  \
                 or no protection:  --insecure"
            )));
        }
        Ok(())
    }

    /// Checks the addresses of the group and the ways to find its founders.
    fn check_group(&self) -> Result<(), Failure> {
        for address in self.peers.iter().flatten().chain(&self.advertise) {
            check_address(address, false).map_err(Failure::Config)?;
        }
        if self.peers.as_ref().is_some_and(Vec::is_empty) {
            return wrong("peers is empty: name all founders, this agent included");
        }
        let ways = [self.peers.is_some(), self.peers_file.is_some(), self.beacon.is_some()];
        if ways.iter().filter(|way| **way).count() > 1 {
            return wrong("peers, peers-file and beacon exclude each other: choose one");
        }
        if self.nats.is_some()
            && (ways.contains(&true) || self.listen.is_some() || self.advertise.is_some())
        {
            return wrong(
                "nats excludes listen, advertise, peers, peers-file and beacon: leave these out",
            );
        }
        if self.nats_credentials.is_some() && self.nats.is_none() {
            return wrong(
                "nats-credentials needs nats, the address of the server (nats = 'nats://host:4222')",
            );
        }
        if self.beacon.is_some_and(|group| !group.ip().is_multicast()) {
            return wrong("beacon needs a multicast address, such as 239.255.74.0:7401");
        }
        if self.beacon.is_some() && self.founders.is_none() && self.found_alone != Some(true) {
            return wrong(
                "beacon needs founders, the number of agents that found the group (founders = 3)",
            );
        }
        if self.founders == Some(0) {
            return wrong("founders must be 1 or more");
        }
        Ok(())
    }

    /// The first option that needs a cargo feature which this build lacks, and that feature.
    fn lacking(&self, nats: bool, tls: bool) -> Option<(&'static str, &'static str)> {
        [
            ("nats", self.nats.is_some(), "nats", nats),
            ("nats-credentials", self.nats_credentials.is_some(), "nats", nats),
            ("tls-certificate", self.tls_certificate.is_some(), "tls", tls),
            ("tls-key", self.tls_key.is_some(), "tls", tls),
            ("tls-authority", self.tls_authority.is_some(), "tls", tls),
        ]
        .into_iter()
        .find_map(|(option, given, feature, built)| (given && !built).then_some((option, feature)))
    }

    /// The flags that have no effect with `--dev`.
    pub(crate) fn beyond_one_process(&self) -> Vec<&'static str> {
        [
            ("--name", self.name.is_some()),
            ("--cluster", self.cluster.is_some()),
            ("--data-dir", self.data_dir.is_some()),
            ("--listen", self.listen.is_some()),
            ("--advertise", self.advertise.is_some()),
            ("--peers-file", self.peers_file.is_some()),
            ("--founders", self.founders.is_some()),
            ("--found-alone", self.found_alone.is_some()),
            ("--key-file", self.key_file.is_some()),
            ("--deny", self.deny.is_some()),
            ("--tls-*", self.tls_key.is_some()),
        ]
        .into_iter()
        .filter_map(|(flag, said)| said.then_some(flag))
        .collect()
    }

    /// The address to listen on.
    #[must_use]
    pub fn listen(&self) -> String {
        self.listen.clone().unwrap_or_else(|| "127.0.0.1:7400".into())
    }
}

/// The failure of a wrong setting.
fn wrong(what: &str) -> Result<(), Failure> {
    Err(Failure::Config(what.to_owned()))
}

/// Checks that `address` is `host:port`. Port 0, for any free port, is allowed only if `any`.
pub(crate) fn check_address(address: &str, any: bool) -> Result<(), String> {
    let (host, port) = address.rsplit_once(':').ok_or_else(|| {
        format!("`{address}` has no port: write host:port, such as 10.0.0.1:7400")
    })?;
    if host.is_empty() || host.contains(':') != (host.starts_with('[') && host.ends_with(']')) {
        return Err(format!("`{address}` is not an address: write host:port or [IPv6]:port"));
    }
    match port.parse::<u16>() {
        Ok(port) if any || port > 0 => Ok(()),
        Ok(_) => Err(format!("`{address}`: port 0 cannot be reached; name a port from 1 to 65535")),
        Err(_) => Err(format!("`{address}`: `{port}` is not a port from 1 to 65535")),
    }
}

/// Whether only this machine can reach the address.
fn is_loopback(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

/// A parser for the names of the algorithms.
fn mutexes() -> impl TypedValueParser<Value = LockAlgorithm> {
    PossibleValuesParser::new(LockAlgorithm::ALL.map(LockAlgorithm::name))
        .try_map(|name| name.parse::<LockAlgorithm>())
}

/// A duration setting: a number of seconds, or a number with a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span(pub Duration);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        seconds(text).map(Self)
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl serde::de::Visitor<'_> for Reader {
            type Value = Span;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number of seconds, or a text like \"500ms\"")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Span, E> {
                text.parse().map_err(E::custom)
            }

            fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Span, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Span, E> {
                self.visit_str(&number.to_string())
            }

            fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Span, E> {
                self.visit_str(&number.to_string())
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

/// A choice between stalls that are survived and a fast fail-over.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// For loaded machines and networks: stalls of 3 s end no command.
    #[default]
    Steady,
    /// For machines that do not stall: the next holder after 1 to 2 s.
    Fast,
}

impl Profile {
    /// Its times.
    #[must_use]
    pub fn timings(self) -> konklave::Timings {
        match self {
            Self::Steady => konklave::Timings::default(),
            Self::Fast => konklave::Timings::fast(),
        }
    }
}

/// The level of the log.
#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// Failures that need a restart or other help.
    Error,
    /// Problems that an operator should know.
    Warn,
    /// Views and steps of the agent.
    Info,
    /// Sessions and grants, too.
    Debug,
    /// Everything.
    Trace,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Settings, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn file_has_the_keys_of_the_flags() {
        let settings = parse(
            "name = 'a'\nlisten = '10.0.0.1:7400'\npeers = ['x:1', 'y:1']\nlease = '500ms'\n\
             silence = 2\nheartbeat = 0.05\nbeacon = '239.1.1.1:5'\nfound-alone = true\nlog = 'warn'",
        )
        .expect("all known");
        assert_eq!(settings.lease, Some(Span(Duration::from_millis(500))));
        assert_eq!(settings.silence, Some(Span(Duration::from_secs(2))));
        assert_eq!(settings.heartbeat, Some(Span(Duration::from_millis(50))));
        assert_eq!(settings.log, Some(Level::Warn));
        assert_eq!(settings.peers.map(|peers| peers.len()), Some(2));
    }

    #[test]
    fn every_algorithm_has_the_same_name_in_a_file_as_on_the_command_line() {
        for mutex in LockAlgorithm::ALL {
            let settings = parse(&format!("mutex = '{mutex}'")).expect("known");
            assert_eq!(settings.mutex, Some(mutex));
            let names = LockAlgorithm::ALL.map(LockAlgorithm::name);
            assert!(names.contains(&mutex.name()));
        }
        let error = parse("mutex = 'bakery'").expect_err("not one of ours");
        assert!(error.contains("line 1") && error.contains("naimi-trehel"), "{error}");
    }

    /// Name, help and variable of each flag.
    fn flags() -> Vec<(String, String, Option<String>)> {
        let command = Settings::augment_args(clap::Command::new("agent"));
        let args = command.get_arguments().map(|arg| {
            let flag = arg.get_long().unwrap_or_default().to_owned();
            let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
            (flag, help, arg.get_env().map(|name| name.to_string_lossy().into_owned()))
        });
        args.collect()
    }

    #[test]
    fn help_names_the_actual_defaults() {
        let timings = konklave::Timings::default();
        let fast = konklave::Timings::fast();
        let both = |time: Duration, fast: Duration| {
            format!("(default: {}; fast: {})", time.as_secs_f64(), fast.as_secs_f64())
        };
        assert_eq!(timings.heartbeat, fast.heartbeat);
        let seconds = |time: Duration| format!("(default: {})", time.as_secs_f64());
        let defaults = [
            ("heartbeat", seconds(timings.heartbeat)),
            ("silence", both(timings.silence, fast.silence)),
            ("lease", both(timings.lease, fast.lease)),
            ("drain", seconds(crate::daemon::DRAIN)),
            ("listen", format!("(default: {})", Settings::default().listen())),
            ("mutex", format!("(default: {})", LockAlgorithm::default())),
            ("data-dir", "/var/lib/konklave".into()),
            ("socket", "/run/konklave/agent.sock".into()),
        ];
        let flags = flags();
        for (name, default) in defaults {
            let (_, help, _) = flags.iter().find(|flag| flag.0 == name).expect("a flag");
            assert!(help.contains(&default), "{name}: {default}: {help}");
        }
    }

    #[test]
    fn every_key_has_a_variable() {
        for (flag, _, variable) in flags() {
            let name = format!("KONKLAVE_{}", flag.replace('-', "_").to_uppercase());
            assert_eq!(variable, Some(name));
        }
    }

    #[test]
    fn unknown_key_is_reported_with_its_line() {
        let error = parse("name = 'a'\nlissten = 'x'").expect_err("unknown");
        assert!(error.contains("line 2") && error.contains("lissten"), "{error}");
        let error = parse("lease = 'soon'").expect_err("no duration");
        assert!(error.contains("line 1"), "{error}");
    }

    #[test]
    fn flags_override_the_file() {
        let flags = Settings { name: Some("flag".into()), ..Settings::default() };
        let file = parse("name = 'file'\ncluster = 'c'").expect("known");
        let both = flags.or(file);
        assert_eq!((both.name.as_deref(), both.cluster.as_deref()), (Some("flag"), Some("c")));
    }

    #[test]
    fn address_without_port_is_refused_with_an_example() {
        let error = parse("listen = 'foo'").expect("known").check().expect_err("no port");
        assert!(error.to_string().contains("write host:port"), "{error}");
    }

    #[test]
    fn reachable_address_needs_protection() {
        let check = |text: &str| parse(text).expect("known").check().map_err(|e| e.to_string());
        for fine in [
            "",
            "listen = '127.0.0.1:1'",
            "listen = 'localhost:1'",
            "listen = '127.0.0.1:0'\npeers = ['[::1]:7400', 'a.example:1']",
            "listen = '[::1]:7'",
            "listen = '0.0.0.0:1'\ninsecure = true",
            "listen = '0.0.0.0:1'\nkey-file = 'k'",
            #[cfg(feature = "tls")]
            "listen = '[::]:1'\ntls-certificate = 'c'\ntls-key = 'k'\ntls-authority = 'a'",
            "beacon = '239.255.74.0:7401'\nfounders = 3",
            #[cfg(feature = "nats")]
            "nats = 'nats://localhost/prefix'\nfounders = 3",
        ] {
            assert_eq!(check(fine), Ok(()), "{fine}");
        }
        for wrong in [
            "listen = '0.0.0.0:1'",
            "listen = '[::]:1'",
            "listen = 'host.example:1'",
            "listen = '127.0.0.1.example:1'",
            "tls-key = 'k'",
            "key-file = 'k'\ninsecure = true",
            "second-key-file = 'k'",
            "beacon = '10.0.0.1:1'\nfounders = 3",
            "beacon = '239.255.74.0:7401'",
            "peers = ['a:1']\npeers-file = 'f'",
            "founders = 0",
            "peers = ['127.0.0.1']",
            "peers = ['']",
            "peers = []",
            "peers = ['a:1', 'b:x']",
            "peers = ['a:0']",
            "peers = [':7400']",
            "peers = ['::1:7400']",
            "advertise = 'a'",
            "listen = '127.0.0.1'",
            "nats = 'localhost'\npeers = ['a:1']",
            "nats = 'localhost'\nlisten = '127.0.0.1:1'",
            "nats-credentials = 'me.creds'",
        ] {
            assert!(check(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn option_that_needs_an_absent_feature_is_named_with_it() {
        let lacking = |text: &str, nats, tls| parse(text).expect("known").lacking(nats, tls);
        let over_nats = "nats = 'localhost'\nkey-file = 'k'";
        let with_tls = "tls-certificate = 'c'\ntls-key = 'k'\ntls-authority = 'a'";
        assert_eq!(lacking(over_nats, false, true), Some(("nats", "nats")));
        assert_eq!(lacking(with_tls, true, false), Some(("tls-certificate", "tls")));
        assert_eq!(lacking(over_nats, true, false), None);
        assert_eq!(lacking(with_tls, false, true), None);
        assert_eq!(lacking("key-file = 'k'", false, false), None);
    }
}
