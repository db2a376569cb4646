//! `agent`: runs a member of the group on this machine, and serves its clients.

mod discovery;
mod group;
mod http;
mod log;
mod notify;
mod reload;
mod secrets;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use konklave::{Builder, Node, Timings};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use self::discovery::Beacon;
use self::group::{Certificates, GroupService};
use crate::args::DaemonArgs;
use crate::client::default_socket;
use crate::config::{Settings, Span};
use crate::failure::Failure;
use crate::server::{AccessPolicy, ClientListener, Counts, SharedAccessPolicy, Users};
use crate::service::Service;

/// How long the agent waits for commands to end before it leaves the group.
pub(crate) const DRAIN: Duration = Duration::from_secs(10);

/// Runs an agent until a signal ends it.
pub(crate) fn run(args: &DaemonArgs) -> Result<u8, Failure> {
    let settings = read(args)?;
    let log = log::start(&settings);
    crate::descriptors::raise();
    // One thread: passing a message between threads costs latency, and each thread costs memory.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::system("cannot start the runtime"))?;
    let code = runtime.block_on(serve(args, settings, log));
    // Tasks that still run get a moment, then they are dropped.
    runtime.shutdown_timeout(Duration::from_millis(200));
    code
}

/// Reads the settings: flags and environment variables override the file.
fn read(args: &DaemonArgs) -> Result<Settings, Failure> {
    let mut settings = args.settings.clone();
    if let Some(file) = &args.config {
        settings = settings.or(Settings::read(file)?);
    }
    settings.check()?;
    refuse_password_in_arguments(&args.settings, std::env::var("KONKLAVE_NATS").ok().as_deref())?;
    let others = settings.peers.is_some() || settings.beacon.is_some() || settings.nats.is_some();
    if args.dev && others {
        return Err(Failure::Usage(
            "--dev runs a group of its own in one process: leave out --peers, --beacon and --nats"
                .into(),
        ));
    }
    Ok(settings)
}

/// Refuses `--nats` with a password: every user of the machine can read a command line. `variable` is the
/// value of `KONKLAVE_NATS`.
fn refuse_password_in_arguments(given: &Settings, variable: Option<&str>) -> Result<(), Failure> {
    let given = given.nats.as_deref().filter(|given| given.contains('@'));
    if given.is_none() || given == variable {
        return Ok(());
    }
    Err(Failure::Usage(
        "--nats has a user or a password, and every user of this machine can read a command line\n  \
         put it into the file:   nats = 'nats://USER:PASSWORD@HOST:4222'   (--config FILE, mode 600)\n  \
         or the environment:     KONKLAVE_NATS\n  \
         or use credentials:     --nats-credentials FILE"
            .into(),
    ))
}

async fn serve(args: &DaemonArgs, settings: Settings, log: log::Log) -> Result<u8, Failure> {
    let mut signals = TerminationSignals::listen()?;
    // Registered before anything else, because an unhandled SIGHUP ends the process.
    let hangups = signal(SignalKind::hangup()).map_err(Failure::system("cannot handle SIGHUP"))?;
    let mut restarts =
        signal(SignalKind::user_defined2()).map_err(Failure::system("cannot handle SIGUSR2"))?;
    let counts = Arc::new(Counts::default());
    let policy = SharedAccessPolicy::new(policy(&settings)?);
    let socket = settings.socket.clone().unwrap_or_else(default_socket);
    // Before it joins the group: an agent without socket or port fails here, and costs the group no view.
    let listener = ClientListener::bind(&socket, policy.clone(), Arc::clone(&counts))?;
    let page = match settings.metrics {
        Some(address) => Some(http::bind(address).await?),
        None => None,
    };
    if let Some(obstacle) = policy.obstacle() {
        tracing::warn!("{obstacle}");
    }
    let nodes = tokio::select! {
        nodes = async { if args.dev { dev(&settings).await } else { member(&settings).await } } => nodes?,
        code = signals.next() => return Ok(code),
    };
    let protected = settings.key_file.is_some() || settings.tls_key.is_some();
    let founders = if args.dev { Vec::new() } else { seeds(&settings)? };
    let mut secrets = if args.dev { Vec::new() } else { secrets::files(&settings) };
    if settings.nats.as_ref().is_some_and(|servers| servers.contains('@')) {
        // The file has a password, unless the environment has it.
        secrets.extend(args.config.clone());
    }
    let lease = timings(&settings).lease;
    let group =
        GroupService::new(nodes, counts, policy.clone(), protected, secrets, founders, lease);
    let group = Arc::new(group);
    group.use_certificates(if args.dev { None } else { certificates(&protection(&settings)?) });
    let page = page.map(|page| tokio::spawn(http::serve(page, Arc::clone(&group))));
    let (close, closing) = watch::channel(false);
    let service: Arc<dyn Service> = group.clone();
    let mut serving = tokio::spawn(listener.serve(service, closing));
    tracing::info!(socket = %socket.display(), node = group.node(), "ready for clients");
    notify::notify("READY=1");
    tokio::spawn(notify::watchdog());
    let reload = reload::reload(args, hangups, &policy, &log, &group);
    let code = tokio::select! {
        code = signals.next() => code,
        _ = restarts.recv() => {
            // As after a crash, the clients go on and come back to the new process, which takes their locks over.
            tracing::info!("restarting in place after SIGUSR2");
            group.kill();
            return Err(restart());
        }
        never = reload => match never {},
    };
    tracing::info!(signal = code - 128, "leaving the group after a signal");
    notify::notify("STOPPING=1");
    let _ = close.send(true);
    let drain = settings.drain.map_or(DRAIN, |Span(drain)| drain);
    let drained = tokio::select! {
        drained = tokio::time::timeout(drain, &mut serving) => drained.is_ok(),
        // A second signal skips the rest of the drain time.
        _ = signals.next() => false,
    };
    if let Some(page) = page {
        page.abort();
    }
    Ok(leave(&group, drained, &mut signals, code).await)
}

/// Leaves the group, in order if all commands have ended; the exit code.
async fn leave(
    group: &GroupService,
    drained: bool,
    signals: &mut TerminationSignals,
    code: u8,
) -> u8 {
    if !drained {
        // A command still runs. Leaving in order would free its lock at once. So the agent crashes instead:
        // the wrapper sees the connection end and stops the command, and the others wait for the lease.
        tracing::warn!(
            "commands still run under locks: this agent ends as if killed, and their locks stay taken for \
             the lease"
        );
        group.kill();
        return code;
    }
    tokio::select! {
        () = group.leave() => 0,
        code = signals.next() => {
            group.kill();
            code
        }
    }
}

/// Becomes the program file that is there now, with the same arguments: the process keeps its number. Returns only
/// if that fails.
fn restart() -> Failure {
    use std::os::unix::process::CommandExt;
    let mut words = std::env::args_os();
    let program = words.next().unwrap_or_else(|| "konklave".into());
    let why = std::process::Command::new(&program).args(words).exec();
    Failure::System { what: format!("cannot restart {}", program.display()), why }
}

/// The signals that end the agent.
struct TerminationSignals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

impl TerminationSignals {
    fn listen() -> Result<Self, Failure> {
        let listen = || {
            let terminate = signal(SignalKind::terminate())?;
            Ok(Self { terminate, interrupt: signal(SignalKind::interrupt())? })
        };
        listen().map_err(Failure::system("cannot handle signals"))
    }

    /// Waits for a signal, and returns its exit code.
    async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.terminate.recv() => 143,
            _ = self.interrupt.recv() => 130,
        }
    }
}

fn policy(settings: &Settings) -> Result<AccessPolicy, Failure> {
    let user = |name: &str| match name.parse() {
        Ok(number) => Some(number),
        Err(_) => Some(nix::unistd::User::from_name(name).ok()??.uid.as_raw()),
    };
    let group = |name: &str| match name.parse() {
        Ok(number) => Some(number),
        Err(_) => Some(nix::unistd::Group::from_name(name).ok()??.gid.as_raw()),
    };
    let listed = |role: &str, users: &Option<Vec<String>>, groups: &Option<Vec<String>>| {
        let unknown = |what: &str, name: &str| {
            Failure::Config(format!("{role}-{what}s: this machine has no {what} `{name}`"))
        };
        let user = |name: &String| user(name).ok_or_else(|| unknown("user", name));
        let group = |name: &String| group(name).ok_or_else(|| unknown("group", name));
        Ok::<_, Failure>(Users {
            users: users.iter().flatten().map(user).collect::<Result<_, _>>()?,
            groups: groups.iter().flatten().map(group).collect::<Result<_, _>>()?,
        })
    };
    Ok(AccessPolicy {
        observe: listed("observe", &settings.observe_users, &settings.observe_groups)?,
        hold: listed("allow", &settings.allow_users, &settings.allow_groups)?,
        operate: listed("operate", &settings.operate_users, &settings.operate_groups)?,
    })
}

fn refused(error: konklave::Error) -> Failure {
    match error {
        konklave::Error::Config(why) => Failure::Config(why),
        // The file is incomplete, of another version or not an agent's. The disk itself works.
        konklave::Error::Store(file, why)
            if matches!(why.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) =>
        {
            Failure::Config(format!(
                "{}: {why}\n  \
                 restore the file from a backup of this agent\n  \
                 or remove it: the agent then joins as a new member, which needs a running group",
                file.display()
            ))
        }
        konklave::Error::Store(lock, why) if why.kind() == io::ErrorKind::AddrInUse => {
            let folder = lock.parent().unwrap_or(&lock);
            Failure::in_use(
                format!("another agent uses the data directory {}", folder.display()),
                "choose another folder with --data-dir FOLDER (created if missing)",
            )
        }
        // The error of opening the listen address.
        konklave::Error::Io(why) => match why.kind() {
            io::ErrorKind::AddrInUse => Failure::in_use(
                why,
                "choose another port with --listen ADDRESS (port 0: any free port)",
            ),
            io::ErrorKind::AddrNotAvailable | io::ErrorKind::PermissionDenied => {
                Failure::Config(why.to_string())
            }
            _ => Failure::Unavailable(why.to_string()),
        },
        // It belongs to another user, is a file, or is on a read-only disk.
        konklave::Error::Store(place, why)
            if matches!(
                why.kind(),
                io::ErrorKind::NotFound
                    | io::ErrorKind::AlreadyExists
                    | io::ErrorKind::NotADirectory
                    | io::ErrorKind::IsADirectory
                    | io::ErrorKind::PermissionDenied
                    | io::ErrorKind::ReadOnlyFilesystem
            ) =>
        {
            Failure::Unwritable(format!(
                "cannot use the data directory: {}: {why}\n  \
                 choose another folder with --data-dir FOLDER (created if missing)",
                place.display()
            ))
        }
        other => Failure::Unavailable(other.to_string()),
    }
}

/// Starts the three members of `--dev` in this process. They store nothing and listen on loopback only.
async fn dev(settings: &Settings) -> Result<Vec<Node>, Failure> {
    let unheeded = settings.beyond_one_process();
    if !unheeded.is_empty() {
        tracing::warn!(
            "no effect with --dev, which runs a group of its own in memory: {}",
            unheeded.join(", ")
        );
    }
    let mutex = settings.mutex.unwrap_or_default();
    let builder = || Node::builder().timings(timings(settings)).lock_algorithm(mutex);
    let first = builder().name("dev-1").found_alone().join().await.map_err(refused)?;
    let seed = first.address().map(|address| address.to_string()).unwrap_or_default();
    let mut nodes = vec![first];
    for name in ["dev-2", "dev-3"] {
        let node = builder().name(name).seeds([seed.clone()]).join().await;
        nodes.push(node.map_err(refused)?);
    }
    Ok(nodes)
}

fn default_data_dir() -> Result<PathBuf, Failure> {
    if nix::unistd::geteuid().is_root() {
        return Ok("/var/lib/konklave".into());
    }
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let state = set("XDG_STATE_HOME").map(PathBuf::from);
    let state = state.or_else(|| Some(PathBuf::from(set("HOME")?).join(".local/state")));
    state.map(|state| state.join("konklave")).ok_or_else(|| {
        let why = "no data directory: HOME is not set; choose a folder with --data-dir FOLDER";
        Failure::Config(why.into())
    })
}

/// Starts the member of this agent.
async fn member(settings: &Settings) -> Result<Vec<Node>, Failure> {
    let folder = match &settings.data_dir {
        Some(folder) => folder.clone(),
        None => default_data_dir()?,
    };
    let mut builder = Node::builder().timings(timings(settings));
    builder = builder.data_dir(folder).listen(settings.listen());
    builder = builder.lock_algorithm(settings.mutex.unwrap_or_default()).holders_outlive();
    if let Some(name) = &settings.name {
        builder = builder.name(name);
    }
    let cluster = settings.cluster.clone().unwrap_or_else(|| "konklave".into());
    builder = builder.deny(settings.deny.iter().flatten().map(String::as_str));
    builder = protect(builder.cluster(&cluster), settings)?;
    // Without the feature, `Settings::check` has refused the option.
    #[cfg(feature = "nats")]
    if let Some(place) = &settings.nats {
        builder = builder.nats(place);
        if let Some(file) = &settings.nats_credentials {
            builder = builder.nats_credentials(file);
        }
    }
    if let Some(address) = &settings.advertise {
        builder = builder.advertise(address);
    }
    if let Some(founders) = settings.founders {
        builder = builder.founders(founders);
    }
    if settings.found_alone == Some(true) {
        builder = builder.found_alone();
    }
    let seeds = seeds(settings)?;
    builder = builder.seeds(seeds.clone());
    // Clients are served before the agent is in a group, so that `status`, `why` and `doctor` can tell what
    // is missing.
    let node = builder.start().await.map_err(refused)?;
    if let Some(group) = settings.beacon {
        let bound = node.address().map(|address| address.to_string());
        let bound = bound.unwrap_or_else(|| settings.listen());
        let address = settings.advertise.clone().unwrap_or_else(|| bound.clone());
        let beacon = Beacon::start(group, &cluster, &address, &bound)?;
        tokio::spawn(beacon.run(node.clone()));
    }
    tokio::spawn(discovery::look_up(seeds));
    if let Some(missing) = group::advised(&node.status()) {
        tracing::info!(missing, "looking for other agents");
    }
    Ok(vec![node])
}

/// The addresses of the founders, from `--peers` and `--peers-file`.
fn seeds(settings: &Settings) -> Result<Vec<String>, Failure> {
    let mut seeds = settings.peers.clone().unwrap_or_default();
    if let Some(file) = &settings.peers_file {
        seeds.extend(discovery::read_file(file)?);
    }
    Ok(seeds)
}

/// How long an agent caches a released lock for its own clients. Other agents show such a lock as held, so
/// the time is short.
const KEEP: Duration = Duration::from_millis(50);

/// The times of the profile, replaced by those that are set one by one.
fn timings(settings: &Settings) -> Timings {
    let mut timings = Timings { keep: KEEP, ..settings.profile.unwrap_or_default().timings() };
    for (setting, time) in [
        (settings.heartbeat, &mut timings.heartbeat),
        (settings.silence, &mut timings.silence),
        (settings.lease, &mut timings.lease),
    ] {
        if let Some(Span(setting)) = setting {
            *time = setting;
        }
    }
    timings
}

enum Protection {
    Keys(Vec<Vec<u8>>),
    #[cfg(feature = "tls")]
    Tls(konklave::Tls),
}

/// Reads the key or the certificates from their files.
fn protection(settings: &Settings) -> Result<Option<Protection>, Failure> {
    let read = |file: &PathBuf| std::fs::read(file).map_err(Failure::unreadable(file));
    if settings.key_file.is_some() {
        let files = settings.key_file.iter().chain(&settings.second_key_file);
        let keys = files.map(|file| read(file).map(crate::keys::trimmed));
        return Ok(Some(Protection::Keys(keys.collect::<Result<_, _>>()?)));
    }
    #[cfg(feature = "tls")]
    if let (Some(certificate), Some(key), Some(authority)) =
        (&settings.tls_certificate, &settings.tls_key, &settings.tls_authority)
    {
        let tls = konklave::Tls::from_pem(&read(authority)?, &read(certificate)?, &read(key)?);
        return Ok(Some(Protection::Tls(tls.map_err(refused)?)));
    }
    Ok(None)
}

/// The ends of the certificates, if there are some.
fn certificates(protection: &Option<Protection>) -> Option<Certificates> {
    match protection {
        #[cfg(feature = "tls")]
        Some(Protection::Tls(tls)) => Some(Certificates::new(tls.ends())),
        Some(Protection::Keys(_)) | None => None,
    }
}

fn warn_of_exposed_files(settings: &Settings) {
    for exposed in secrets::files(settings).iter().filter_map(|file| secrets::exposed(file)) {
        tracing::warn!("{exposed}");
    }
}

fn protect(builder: Builder, settings: &Settings) -> Result<Builder, Failure> {
    warn_of_exposed_files(settings);
    match protection(settings)? {
        Some(Protection::Keys(keys)) => Ok(builder.pre_shared_keys(keys)),
        #[cfg(feature = "tls")]
        Some(Protection::Tls(tls)) => Ok(builder.tls(tls)),
        None if settings.insecure == Some(true) => {
            let place = settings.nats.as_ref().map_or_else(|| settings.listen(), |_| "NATS".into());
            tracing::warn!(
                "no protection (--insecure): any host that reaches {place} can join the group"
            );
            Ok(builder.insecure())
        }
        None => Ok(builder),
    }
}
