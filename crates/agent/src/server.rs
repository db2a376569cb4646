//! The agent's socket: who may speak, and a session for each who does.

mod claims;
mod session;
mod strangers;

use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::unistd::{Gid, User, getgrouplist};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use self::strangers::Strangers;
use crate::client::default_folder;
use crate::failure::Failure;
use crate::seldom::Seldom;
use crate::service::Service;

/// How long nobody is let in where that fails.
const BREATH: Duration = Duration::from_millis(50);

/// Who may speak to the agent, besides its own user and root.
#[derive(Clone, Debug, Default)]
pub struct Doorman {
    /// Users, by number.
    pub users: Vec<u32>,
    /// Groups, by number.
    pub groups: Vec<u32>,
}

impl Doorman {
    fn admits(&self, user: u32, group: u32) -> bool {
        user == 0
            || user == nix::unistd::geteuid().as_raw()
            || self.users.contains(&user)
            || self.groups.contains(&group)
            || !self.groups.is_empty() && groups_of(user).any(|g| self.groups.contains(&g))
    }

    /// Whether others than the agent's own user may come in.
    fn open(&self) -> bool {
        !(self.users.is_empty() && self.groups.is_empty())
    }
}

/// All groups of a user, besides the one a process of it runs under.
fn groups_of(user: u32) -> impl Iterator<Item = u32> {
    let user = User::from_uid(user.into()).ok().flatten();
    let groups = user.and_then(|user| {
        let name = CString::new(user.name).ok()?;
        getgrouplist(&name, user.gid).ok()
    });
    groups.into_iter().flatten().map(Gid::as_raw)
}

/// A doorman that can be told something new, and then marks the doors it stands at.
#[derive(Clone, Debug, Default)]
pub struct SharedDoorman(Arc<RwLock<(Doorman, Vec<Place>)>>);

/// A socket, and its folder if that is for nothing else.
#[derive(Clone, Debug)]
struct Place {
    socket: PathBuf,
    folder: Option<PathBuf>,
}

impl Place {
    /// Who is asked at the door must reach it. The credentials of each client are looked at; the modes
    /// only say it earlier.
    fn mark(&self, open: bool) -> io::Result<()> {
        let (socket, folder) = if open { (0o666, 0o711) } else { (0o600, 0o700) };
        fs::set_permissions(&self.socket, fs::Permissions::from_mode(socket))?;
        match &self.folder {
            Some(path) => fs::set_permissions(path, fs::Permissions::from_mode(folder)),
            None => Ok(()),
        }
    }

    /// The folder on the way to the socket that nobody but its owner may pass, if there is one.
    fn obstacle(&self) -> Option<String> {
        let way = fs::canonicalize(&self.socket).unwrap_or_else(|_| self.socket.clone());
        let shut =
            |folder: &&Path| fs::metadata(folder).is_ok_and(|facts| facts.mode() & 0o011 == 0);
        let folder = way.ancestors().skip(1).find(shut)?.display();
        Some(format!(
            "{folder}: nobody but its owner can pass, so that those of allow-users and allow-groups do \
             not reach the socket; chmod 711 {folder}"
        ))
    }
}

impl SharedDoorman {
    /// One who knows what `doorman` knows.
    #[must_use]
    pub fn new(doorman: Doorman) -> Self {
        Self(Arc::new(RwLock::new((doorman, Vec::new()))))
    }

    /// Those who come from now on are judged by this. An error says that the socket's mode is not what
    /// it should be.
    pub fn replace(&self, doorman: Doorman) -> io::Result<()> {
        let mut shared = self.0.write().unwrap_or_else(PoisonError::into_inner);
        shared.0 = doorman;
        let open = shared.0.open();
        shared.1.iter().try_for_each(|place| place.mark(open))
    }

    /// Stands at a door, too.
    fn stand_at(&self, place: Place) -> io::Result<()> {
        let mut shared = self.0.write().unwrap_or_else(PoisonError::into_inner);
        place.mark(shared.0.open())?;
        shared.1.push(place);
        Ok(())
    }

    /// Why those who are let in cannot come to the door, if so.
    #[must_use]
    pub fn obstacle(&self) -> Option<String> {
        let shared = self.0.read().unwrap_or_else(PoisonError::into_inner);
        shared.1.iter().filter(|_| shared.0.open()).find_map(Place::obstacle)
    }

    fn ask<T>(&self, question: impl FnOnce(&Doorman) -> T) -> T {
        question(&self.0.read().unwrap_or_else(PoisonError::into_inner).0)
    }
}

/// What all sessions count together.
#[derive(Debug, Default)]
pub struct Counts {
    /// Sessions now.
    pub sessions: AtomicUsize,
    /// Sessions ever.
    pub opened: AtomicU64,
    /// Sessions that gave no sign of life in time.
    pub expired: AtomicU64,
    /// Claims that were granted.
    pub granted: AtomicU64,
    /// Claims that were refused.
    pub refused: AtomicU64,
    /// Claims that were lost while held.
    pub lost: AtomicU64,
    /// Strangers that were sent away.
    pub turned_away: AtomicU64,
}

/// Looks whether someone listens at `path`, without waiting.
fn call(path: &Path) -> io::Result<()> {
    let socket = socket2::Socket::new(socket2::Domain::UNIX, socket2::Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    socket.connect(&socket2::SockAddr::unix(path)?)
}

/// Has `folder` to ourselves, among agents that start: nothing where others have it for more than a second.
fn turn(folder: &Path) -> Option<Flock<fs::File>> {
    let mut file = fs::File::open(folder).ok()?;
    for _ in 0..100 {
        file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(turn) => return Some(turn),
            Err((file, Errno::EWOULDBLOCK)) => file,
            Err(_) => return None,
        };
        std::thread::sleep(Duration::from_millis(10));
    }
    None
}

/// The agent's socket, bound.
#[derive(Debug)]
pub struct Door {
    listener: UnixListener,
    path: PathBuf,
    /// Device and number of the file, as long as it is there.
    file: Option<(u64, u64)>,
    doorman: SharedDoorman,
    counts: Arc<Counts>,
}

impl Door {
    /// Binds the socket at `path`. Its folder is made for the agent's user alone, unless it is there.
    pub fn bind(path: &Path, doorman: SharedDoorman, counts: Arc<Counts>) -> Result<Self, Failure> {
        let fail = || Failure::system(format!("cannot listen at {}", path.display()));
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let missing = folder.filter(|folder| !folder.exists());
        if let Some(folder) = missing {
            let mode = if doorman.ask(Doorman::open) { 0o711 } else { 0o700 };
            fs::DirBuilder::new().recursive(true).mode(mode).create(folder).map_err(fail())?;
        }
        if let Some(folder) = folder {
            trusted(folder)?;
        }
        // Of two that start at once the second sees the socket of the first.
        let _turn = turn(folder.unwrap_or(Path::new(".")));
        match fs::symlink_metadata(path) {
            Ok(old) if old.file_type().is_socket() => {
                // Left over from an agent that was killed, or is someone there?
                let who = match call(path) {
                    Ok(()) => "agent listens",
                    // It has not taken those who called before: frozen, perhaps, but there.
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => "agent listens",
                    Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => "",
                    Err(_) => "program has a socket",
                };
                if !who.is_empty() {
                    let what = format!("another {who} at {}", path.display());
                    return Err(Failure::in_use(what, "--socket PATH names another place"));
                }
                fs::remove_file(path).map_err(fail())?;
            }
            Ok(_) => {
                return Err(Failure::Config(format!(
                    "{} is there and no socket: it is left alone",
                    path.display()
                )));
            }
            Err(_) => {}
        }
        // Another one may have come in between.
        let what = format!("cannot listen at {}", path.display());
        let taken = Failure::bind(what, "--socket PATH names another place");
        let listener = UnixListener::bind(path).map_err(taken)?;
        let facts = fs::symlink_metadata(path).map_err(fail())?;
        let file = Some((facts.dev(), facts.ino()));
        // One that we made, now or in an earlier life, or that is ours by custom, is for nothing else.
        let own = |folder: &&Path| {
            missing == Some(*folder) || **folder == default_folder() || is_private(folder)
        };
        let folder = folder.filter(own).map(Path::to_owned);
        let door = Self { listener, path: path.to_owned(), file, doorman, counts };
        let place = Place { socket: path.to_owned(), folder };
        door.doorman.stand_at(place).map_err(fail())?;
        Ok(door)
    }

    /// Removes the socket, unless another one has put its own there. As long as we listen, no other
    /// file has the number of ours.
    fn remove(&mut self) {
        let found = fs::symlink_metadata(&self.path).map(|facts| (facts.dev(), facts.ino()));
        if self.file.take().is_some_and(|ours| found.is_ok_and(|found| found == ours)) {
            let _ = fs::remove_file(&self.path);
        }
    }

    /// Serves clients until `closing` says so, and then until their claims are given back.
    pub async fn serve(mut self, service: Arc<dyn Service>, mut closing: watch::Receiver<bool>) {
        let mut sessions = JoinSet::new();
        let (mut strangers, mut failures) = (Strangers::default(), Seldom::default());
        let over = closing.clone();
        loop {
            tokio::select! {
                () = closed(&mut closing) => break,
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => match self.known(&stream) {
                        Ok(()) => {
                            let session = session::Session::new(
                                Arc::clone(&service), Arc::clone(&self.counts), over.clone());
                            sessions.spawn(session.run(stream));
                        }
                        Err(user) => strangers.turn_away(stream, user),
                    },
                    Err(error) => {
                        if let Some(times) = failures.count(1, Instant::now()) {
                            tracing::warn!(%error, times, "cannot accept a client");
                        }
                        // Out of descriptors: some will be closed.
                        tokio::time::sleep(BREATH).await;
                    }
                },
                Some(_) = sessions.join_next() => {}
            }
        }
        self.remove();
        while sessions.join_next().await.is_some() {}
    }

    /// Whether the one at the other end may come in; if not, which user it is, as far as that is known.
    fn known(&self, stream: &UnixStream) -> Result<(), Option<u32>> {
        let peer = stream.peer_cred().ok();
        let admitted = peer
            .is_some_and(|peer| self.doorman.ask(|doorman| doorman.admits(peer.uid(), peer.gid())));
        if admitted {
            return Ok(());
        }
        self.counts.turned_away.fetch_add(1, Ordering::Relaxed);
        Err(peer.map(|peer| peer.uid()))
    }
}

/// A start that fails leaves nothing behind.
impl Drop for Door {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Waits until it is time to close; also if nobody can say so any more.
async fn closed(closing: &mut watch::Receiver<bool>) {
    let _ = closing.wait_for(|closing| *closing).await;
}

/// Whether a folder is ours, and for nobody else: as we make them.
fn is_private(folder: &Path) -> bool {
    fs::metadata(folder).is_ok_and(|facts| {
        facts.uid() == nix::unistd::geteuid().as_raw() && facts.mode() & 0o777 == 0o700
    })
}

/// A folder in which a stranger could put another socket in place of ours is not for us.
fn trusted(folder: &Path) -> Result<(), Failure> {
    let fail = |why: io::Error| Failure::System {
        what: format!("cannot look at {}", folder.display()),
        why,
    };
    let facts = fs::metadata(folder).map_err(fail)?;
    let own = facts.uid() == nix::unistd::geteuid().as_raw() || facts.uid() == 0;
    let (writable, sticky) = (facts.mode() & 0o022 != 0, facts.mode() & 0o1000 != 0);
    if own && (!writable || sticky) {
        return Ok(());
    }
    Err(Failure::Config(format!(
        "{place}: others may write there; the agent's socket needs a folder of its own (chmod 700)\n  \
         one inside it is made for it: --socket {place}/agent/agent.sock",
        place = folder.display()
    )))
}
