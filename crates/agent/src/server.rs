//! The agent's socket: checks which users may connect, and runs a session for each client.

mod access;
mod claims;
mod rejected;
mod session;

use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::access::SocketPlace;
use self::rejected::RejectedClients;
use crate::client::default_folder;
use crate::descriptors;
use crate::failure::Failure;
use crate::newcomers::Newcomers;
use crate::service::Service;
use konklave::RateLimiter;

pub use self::access::{AccessPolicy, Admitted, Role, SharedAccessPolicy, Users};

/// The pause after a failed `accept`.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The most clients that have not sent `hello`.
const NEWCOMERS: usize = 256;

/// How often the log reports failures of `accept`.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Counters over all sessions.
#[derive(Debug, Default)]
pub struct Counts {
    /// Open sessions.
    pub sessions: AtomicUsize,
    /// Sessions opened since the start.
    pub opened: AtomicU64,
    /// Sessions that expired without a keep-alive.
    pub expired: AtomicU64,
    /// Requests that were granted.
    pub granted: AtomicU64,
    /// Requests that were refused.
    pub refused: AtomicU64,
    /// Grants that were lost.
    pub lost: AtomicU64,
    /// Clients that were sent away, because they may not use the agent, or were too many.
    pub rejected: AtomicU64,
}

/// Tests whether a process listens at `path`, without waiting.
fn probe(path: &Path) -> io::Result<()> {
    let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.connect(&socket2::SockAddr::unix(path)?)
}

/// Locks `folder` against other agents that start; `None` if another agent has it for more than a second.
fn lock_folder(folder: &Path) -> Option<Flock<fs::File>> {
    let mut file = fs::File::open(folder).ok()?;
    for _ in 0..100 {
        file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Some(lock),
            Err((file, Errno::EWOULDBLOCK)) => file,
            Err(_) => return None,
        };
        std::thread::sleep(Duration::from_millis(10));
    }
    None
}

/// The agent's socket, bound.
#[derive(Debug)]
pub struct ClientListener {
    listener: UnixListener,
    path: PathBuf,
    /// Device and inode of the socket, until it is removed.
    file: Option<(u64, u64)>,
    policy: SharedAccessPolicy,
    counts: Arc<Counts>,
}

impl ClientListener {
    /// Binds the socket at `path`. A missing folder is created.
    pub fn bind(
        path: &Path,
        policy: SharedAccessPolicy,
        counts: Arc<Counts>,
    ) -> Result<Self, Failure> {
        let fail = || Failure::system(format!("cannot listen at {}", path.display()));
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let missing = folder.filter(|folder| !folder.exists());
        if let Some(folder) = missing {
            let mode = if policy.ask(AccessPolicy::open) { 0o711 } else { 0o700 };
            fs::DirBuilder::new().recursive(true).mode(mode).create(folder).map_err(fail())?;
        }
        if let Some(folder) = folder {
            trusted(folder)?;
        }
        // If two agents start at once, both could find a stale socket, and the second would remove the new
        // socket of the first. So one at a time looks and binds.
        let _lock = lock_folder(folder.unwrap_or(Path::new(".")));
        match fs::symlink_metadata(path) {
            Ok(old) if old.file_type().is_socket() => {
                // The socket may be stale, from an agent that was killed.
                let who = match probe(path) {
                    Ok(()) => "agent listens",
                    // Its queue of connections is full: the agent may be stopped, but it exists.
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => "agent listens",
                    Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => "",
                    Err(_) => "program has a socket of another type",
                };
                if !who.is_empty() {
                    let what = format!("another {who} at {}", path.display());
                    return Err(Failure::in_use(what, "choose another path with --socket PATH"));
                }
                fs::remove_file(path).map_err(fail())?;
            }
            Ok(_) => {
                return Err(Failure::Config(format!(
                    "{} exists and is not a socket: choose another path with --socket PATH",
                    path.display()
                )));
            }
            Err(_) => {}
        }
        // Where the folder could not be locked, another agent may have bound the path meanwhile.
        let what = format!("cannot listen at {}", path.display());
        let taken = Failure::bind(what, "choose another path with --socket PATH");
        let listener = UnixListener::bind(path).map_err(taken)?;
        let facts = fs::symlink_metadata(path).map_err(fail())?;
        let file = Some((facts.dev(), facts.ino()));
        // The permissions of the folder are ours to change if an agent created it, now or before.
        let own = |folder: &&Path| {
            missing == Some(*folder) || **folder == default_folder() || is_private(folder)
        };
        let folder = folder.filter(own).map(Path::to_owned);
        let door = Self { listener, path: path.to_owned(), file, policy, counts };
        let place = SocketPlace { socket: path.to_owned(), folder };
        door.policy.add_socket(place).map_err(fail())?;
        Ok(door)
    }

    /// Removes the socket, unless another program has replaced it. While we listen, our inode is not reused.
    fn remove(&mut self) {
        let found = fs::symlink_metadata(&self.path).map(|facts| (facts.dev(), facts.ino()));
        if self.file.take().is_some_and(|ours| found.is_ok_and(|found| found == ours)) {
            let _ = fs::remove_file(&self.path);
        }
    }

    /// Serves clients until `closing` is true, and then until their grants are released.
    pub async fn serve(mut self, service: Arc<dyn Service>, mut closing: watch::Receiver<bool>) {
        let mut sessions = JoinSet::new();
        let mut rejected = RejectedClients::default();
        let most = descriptors::for_clients();
        let newcomers = Newcomers::new(NEWCOMERS.min(most / 2));
        let mut failures = RateLimiter::new(LOG_INTERVAL, 1);
        let over = closing.clone();
        loop {
            tokio::select! {
                () = closed(&mut closing) => break,
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => match self.admit(&stream) {
                        // New connections may be refused soon, so only established sessions count.
                        Ok(_) if running(&mut sessions) >= most + newcomers.count() => {
                            self.counts.rejected.fetch_add(1, Ordering::Relaxed);
                            rejected.too_many(stream, most);
                        }
                        Ok(role) => {
                            let session = session::ClientSession::new(
                                Arc::clone(&service), Arc::clone(&self.counts), over.clone(), role);
                            sessions.spawn(session.run(stream, newcomers.enter()));
                        }
                        Err(user) => rejected.reject(stream, user),
                    },
                    Err(error) => {
                        if let Some(times) = failures.count((), 1, Instant::now()) {
                            tracing::warn!(%error, times, "cannot accept a client; retrying");
                        }
                        // Usually all file descriptors are in use, and some will be closed soon.
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
                Some(_) = sessions.join_next() => {}
            }
        }
        self.remove();
        while sessions.join_next().await.is_some() {}
    }

    /// The rights of the client. The error is its user, if known.
    fn admit(&self, stream: &UnixStream) -> Result<Admitted, Option<u32>> {
        let peer = stream.peer_cred().ok();
        let role =
            peer.and_then(|peer| self.policy.ask(|policy| policy.role(peer.uid(), peer.gid())));
        let user = peer.map(|peer| peer.uid());
        role.zip(user).map(|(role, user)| Admitted { role, user }).ok_or_else(|| {
            self.counts.rejected.fetch_add(1, Ordering::Relaxed);
            user
        })
    }
}

/// Removes the socket, also after a failed start.
impl Drop for ClientListener {
    fn drop(&mut self) {
        self.remove();
    }
}

/// The number of sessions that have not ended.
fn running(sessions: &mut JoinSet<()>) -> usize {
    while sessions.try_join_next().is_some() {}
    sessions.len()
}

/// Waits until the agent closes, or the sender of `closing` is dropped.
async fn closed(closing: &mut watch::Receiver<bool>) {
    let _ = closing.wait_for(|closing| *closing).await;
}

/// Whether the agent's user owns a folder and only this user may enter it.
fn is_private(folder: &Path) -> bool {
    fs::metadata(folder).is_ok_and(|facts| {
        facts.uid() == nix::unistd::geteuid().as_raw() && facts.mode() & 0o777 == 0o700
    })
}

/// Refuses a folder in which another user could replace the agent's socket.
fn trusted(folder: &Path) -> Result<(), Failure> {
    let fail = |why: io::Error| Failure::System {
        what: format!("cannot read the permissions of {}", folder.display()),
        why,
    };
    let facts = fs::metadata(folder).map_err(fail)?;
    let own = facts.uid() == nix::unistd::geteuid().as_raw() || facts.uid() == 0;
    let (writable, sticky) = (facts.mode() & 0o022 != 0, facts.mode() & 0o1000 != 0);
    if own && (!writable || sticky) {
        return Ok(());
    }
    Err(Failure::Config(format!(
        "{place}: other users may write there and could replace the agent's socket\n  \
         remove their permission (chmod 700 {place}), or choose a folder of its own, created if missing: \
         --socket {place}/agent/agent.sock",
        place = folder.display()
    )))
}
