//! `agent`: a member of a group on this machine, and the door for its clients.

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
use self::group::Group;
use crate::args::DaemonArgs;
use crate::client::default_socket;
use crate::config::{Settings, Span};
use crate::failure::Failure;
use crate::server::{Counts, Door, Doorman, SharedDoorman};
use crate::service::Service;

/// How long commands may take to end when the agent leaves.
pub(crate) const DRAIN: Duration = Duration::from_secs(10);

/// Runs an agent until a signal ends it.
pub(crate) fn run(args: &DaemonArgs) -> Result<u8, Failure> {
    let settings = read(args)?;
    let log = log::start(&settings);
    // One thread reads, decides and writes: a message that changes hands between threads takes longer,
    // and every thread more has memory of its own.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Failure::system("cannot start"))?;
    let code = runtime.block_on(serve(args, settings, log));
    // Whatever still runs has had its time.
    runtime.shutdown_timeout(Duration::from_millis(200));
    code
}

/// Flags and environment, then the file.
fn read(args: &DaemonArgs) -> Result<Settings, Failure> {
    let mut settings = args.settings.clone();
    if let Some(file) = &args.config {
        settings = settings.or(Settings::read(file)?);
    }
    settings.check()?;
    let others = settings.peers.is_some() || settings.beacon.is_some() || settings.nats.is_some();
    if args.dev && others {
        return Err(Failure::Usage("--dev is a group of its own: it has no peers".into()));
    }
    Ok(settings)
}

async fn serve(args: &DaemonArgs, settings: Settings, log: log::Log) -> Result<u8, Failure> {
    let mut end = Ends::listen()?;
    // From the start: before someone listens, this signal would end us.
    let hangups =
        signal(SignalKind::hangup()).map_err(Failure::system("cannot listen to signals"))?;
    let counts = Arc::new(Counts::default());
    let doorman = SharedDoorman::new(doorman(&settings)?);
    let socket = settings.socket.clone().unwrap_or_else(default_socket);
    // Whoever cannot have the socket, or a port, should not take part in a group.
    let door = Door::bind(&socket, doorman.clone(), Arc::clone(&counts))?;
    let page = match settings.metrics {
        Some(address) => Some(http::bind(address).await?),
        None => None,
    };
    if let Some(obstacle) = doorman.obstacle() {
        tracing::warn!("{obstacle}");
    }
    let nodes = tokio::select! {
        nodes = async { if args.dev { dev(&settings).await } else { member(&settings).await } } => nodes?,
        code = end.next() => return Ok(code),
    };
    let protected = settings.key_file.is_some() || settings.tls_key.is_some();
    let founders = if args.dev { Vec::new() } else { seeds(&settings)? };
    let secrets = if args.dev { Vec::new() } else { secrets::files(&settings) };
    let group = Arc::new(Group::new(nodes, counts, doorman.clone(), protected, secrets, founders));
    let page = page.map(|page| tokio::spawn(http::serve(page, Arc::clone(&group))));
    let (close, closing) = watch::channel(false);
    let service: Arc<dyn Service> = group.clone();
    let mut serving = tokio::spawn(door.serve(service, closing));
    tracing::info!(socket = %socket.display(), node = group.node(), "open for clients");
    notify::notify("READY=1");
    let reload = reload::reload(args, hangups, &doorman, &log, &group);
    let code = tokio::select! {
        code = end.next() => code,
        never = reload => match never {},
    };
    tracing::info!(signal = code - 128, "leaving");
    notify::notify("STOPPING=1");
    let _ = close.send(true);
    let drain = settings.drain.map_or(DRAIN, |Span(drain)| drain);
    let drained = tokio::select! {
        drained = tokio::time::timeout(drain, &mut serving) => drained.is_ok(),
        // A second signal means now.
        _ = end.next() => false,
    };
    if let Some(page) = page {
        page.abort();
    }
    if !drained {
        // Whose command still runs is told by the end of the connection, and has the lease to stop it:
        // the others must wait for that long, as after a crash.
        tracing::warn!("commands still run: this agent ends as if it were killed");
        group.kill();
        return Ok(code);
    }
    tokio::select! {
        () = group.leave() => Ok(0),
        code = end.next() => {
            group.kill();
            Ok(code)
        }
    }
}

/// The signals that end us.
struct Ends {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

impl Ends {
    fn listen() -> Result<Self, Failure> {
        let listen = || {
            let terminate = signal(SignalKind::terminate())?;
            Ok(Self { terminate, interrupt: signal(SignalKind::interrupt())? })
        };
        listen().map_err(Failure::system("cannot listen to signals"))
    }

    /// Waits for one; the exit code that tells it.
    async fn next(&mut self) -> u8 {
        tokio::select! {
            _ = self.terminate.recv() => 143,
            _ = self.interrupt.recv() => 130,
        }
    }
}

fn doorman(settings: &Settings) -> Result<Doorman, Failure> {
    let unknown = |what: &str, name: &str| Failure::Config(format!("there is no {what} `{name}`"));
    let user = |name: &String| match name.parse() {
        Ok(number) => Ok(number),
        Err(_) => match nix::unistd::User::from_name(name) {
            Ok(Some(user)) => Ok(user.uid.as_raw()),
            Ok(None) | Err(_) => Err(unknown("user", name)),
        },
    };
    let group = |name: &String| match name.parse() {
        Ok(number) => Ok(number),
        Err(_) => match nix::unistd::Group::from_name(name) {
            Ok(Some(group)) => Ok(group.gid.as_raw()),
            Ok(None) | Err(_) => Err(unknown("group", name)),
        },
    };
    Ok(Doorman {
        users: settings.allow_users.iter().flatten().map(user).collect::<Result<_, _>>()?,
        groups: settings.allow_groups.iter().flatten().map(group).collect::<Result<_, _>>()?,
    })
}

fn refused(error: konklave::Error) -> Failure {
    match error {
        konklave::Error::Config(why) => Failure::Config(why),
        // What was half written, or by another version, or not by us: the disk works.
        konklave::Error::Store(file, why)
            if matches!(why.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof) =>
        {
            Failure::Config(format!(
                "{}: {why}\n  \
                 restore it from a backup of this agent, if there is one\n  \
                 or remove it: the agent then comes as a new member, and needs a group that runs",
                file.display()
            ))
        }
        konklave::Error::Store(lock, why) if why.kind() == io::ErrorKind::AddrInUse => {
            let folder = lock.parent().unwrap_or(&lock);
            Failure::in_use(
                format!("another agent uses the data directory {}", folder.display()),
                "--data-dir FOLDER names another, which is made if it is not there",
            )
        }
        // What the system says of the address that we listen at.
        konklave::Error::Io(why) => match why.kind() {
            io::ErrorKind::AddrInUse => {
                Failure::in_use(why, "--listen ADDRESS names another port (0: any that is free)")
            }
            io::ErrorKind::AddrNotAvailable | io::ErrorKind::PermissionDenied => {
                Failure::Config(why.to_string())
            }
            _ => Failure::Unavailable(why.to_string()),
        },
        // It is another's, or a file, or on a disk that nobody may write to.
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
                "the data directory cannot be used: {}: {why}\n  \
                 --data-dir FOLDER names another, which is made if it is not there",
                place.display()
            ))
        }
        other => Failure::Unavailable(other.to_string()),
    }
}

/// Three members in this process, for trying things out: nothing is kept, nothing is reachable.
async fn dev(settings: &Settings) -> Result<Vec<Node>, Failure> {
    let unheeded = settings.beyond_one_process();
    if !unheeded.is_empty() {
        tracing::warn!(
            "--dev is a group of its own, in memory: {} not heeded",
            unheeded.join(", ")
        );
    }
    let mutex = settings.mutex.unwrap_or_default();
    let builder = || timed(Node::builder(), settings).lock_algorithm(mutex);
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
    state
        .map(|state| state.join("konklave"))
        .ok_or_else(|| Failure::Config("no place to remember who we are: --data-dir FOLDER".into()))
}

/// One member, with the others wherever they are.
async fn member(settings: &Settings) -> Result<Vec<Node>, Failure> {
    let folder = match &settings.data_dir {
        Some(folder) => folder.clone(),
        None => default_data_dir()?,
    };
    let mut builder = timed(Node::builder(), settings).data_dir(folder).listen(settings.listen());
    builder = builder.lock_algorithm(settings.mutex.unwrap_or_default()).holders_outlive();
    if let Some(name) = &settings.name {
        builder = builder.name(name);
    }
    let cluster = settings.cluster.clone().unwrap_or_else(|| "konklave".into());
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
    // Clients are served before there is a group: they can ask why there is none.
    let node = builder.start().await.map_err(refused)?;
    if let Some(group) = settings.beacon {
        let bound = node.address().map(|address| address.to_string());
        let bound = bound.unwrap_or_else(|| settings.listen());
        let address = settings.advertise.clone().unwrap_or_else(|| bound.clone());
        let beacon = Beacon::start(group, &cluster, &address, &bound)?;
        tokio::spawn(beacon.run(node.clone()));
    }
    tokio::spawn(discovery::look_up(seeds));
    if let Some(missing) = node.what_is_missing() {
        tracing::info!(missing = group::advised(&missing), "looking for the others");
    }
    Ok(vec![node])
}

/// The addresses of the founders, from the list or the file.
fn seeds(settings: &Settings) -> Result<Vec<String>, Failure> {
    let mut seeds = settings.peers.clone().unwrap_or_default();
    if let Some(file) = &settings.peers_file {
        seeds.extend(discovery::read_file(file)?);
    }
    Ok(seeds)
}

/// How long a lock that nobody uses stays at the agent that used it last. Short: meanwhile the others
/// cannot tell that nobody uses it, and `who` should be right.
const KEEP: Duration = Duration::from_millis(50);

fn timed(builder: Builder, settings: &Settings) -> Builder {
    let mut timings = Timings { keep: KEEP, ..Timings::default() };
    for (wish, time) in [
        (settings.heartbeat, &mut timings.heartbeat),
        (settings.silence, &mut timings.silence),
        (settings.lease, &mut timings.lease),
    ] {
        if let Some(Span(wish)) = wish {
            *time = wish;
        }
    }
    builder.timings(timings)
}

enum Protection {
    Key(Vec<u8>),
    #[cfg(feature = "tls")]
    Tls(konklave::Tls),
}

/// The key or the certificates, as the files say now.
fn protection(settings: &Settings) -> Result<Option<Protection>, Failure> {
    let read = |file: &PathBuf| std::fs::read(file).map_err(Failure::unreadable(file));
    for exposed in secrets::files(settings).iter().filter_map(|file| secrets::exposed(file)) {
        tracing::warn!("{exposed}");
    }
    if let Some(file) = &settings.key_file {
        return Ok(Some(Protection::Key(read(file)?)));
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

fn protect(builder: Builder, settings: &Settings) -> Result<Builder, Failure> {
    match protection(settings)? {
        Some(Protection::Key(key)) => Ok(builder.pre_shared_key(key)),
        #[cfg(feature = "tls")]
        Some(Protection::Tls(tls)) => Ok(builder.tls(tls)),
        None if settings.insecure == Some(true) => {
            let place = settings.nats.as_ref().map_or_else(|| settings.listen(), |_| "NATS".into());
            tracing::warn!("no protection: whoever reaches {place} is a member");
            Ok(builder.insecure())
        }
        None => Ok(builder),
    }
}
