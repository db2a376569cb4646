//! A connection to the agent: the client's session.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::clock::Moment;
use crate::failure::Failure;
use crate::protocol::{
    Answer, Call, Event, FrameError, Frames, Reply, Request, Trouble, VERSION, encode, millis,
};

/// An agent that does not answer for so long will not.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long to look for the last words of one who closed the connection: they are there, or not.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// A session with the agent. It ends when this is dropped, or the process dies.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    frames: Frames,
    next: u64,
    /// The agent's name.
    pub node: String,
    /// How long the session lives without a sign of life.
    pub ttl: Duration,
    /// How often to give one.
    pub keep_alive: Duration,
    /// Events that came while an answer was awaited.
    pending: Vec<Event>,
}

impl Client {
    /// Connects to the agent at `socket`, as a client that status shows as `label`.
    pub async fn connect(socket: &Path, label: &str, ttl: Duration) -> Result<Self, Failure> {
        Self::connect_within(socket, label, ttl, None).await
    }

    /// The same for a client that itself runs under a lock, with this token.
    pub async fn connect_within(
        socket: &Path,
        label: &str,
        ttl: Duration,
        within: Option<String>,
    ) -> Result<Self, Failure> {
        let stream = UnixStream::connect(socket).await.map_err(|why| no_agent(socket, &why))?;
        let mut client = Self {
            stream,
            frames: Frames::default(),
            next: 0,
            node: String::new(),
            ttl,
            keep_alive: ttl / 3,
            pending: Vec::new(),
        };
        let (label, ttl) = (label.to_owned(), millis(ttl));
        let hello = Request::Hello { protocol: VERSION, label, ttl, within };
        match client.call(hello).await? {
            Answer::Welcome { protocol: VERSION, node, ttl, keep_alive } => {
                client.node = node;
                client.ttl = Duration::from_millis(ttl);
                client.keep_alive = Duration::from_millis(keep_alive);
                Ok(client)
            }
            Answer::Welcome { protocol, .. } => Err(Failure::Unavailable(format!(
                "the agent speaks version {protocol} of the protocol, this command {VERSION}"
            ))),
            other => Err(unexpected(&other)),
        }
    }

    /// Sends a request and gives its number.
    pub async fn send(&mut self, request: Request) -> Result<u64, Failure> {
        self.next += 1;
        // What we ask is our own wrong if it is too long.
        let frame = encode(&Call { id: self.next, request })
            .map_err(|error| Failure::Usage(error.to_string()))?;
        if let Err(why) = self.stream.write_all(&frame).await {
            // Whoever closes the door on us may have said why.
            let last = tokio::time::timeout(LAST_WORDS, self.last_words()).await;
            return Err(last.ok().flatten().unwrap_or_else(|| gone(&why)));
        }
        Ok(self.next)
    }

    /// What the agent says next. Nothing is lost when this is dropped before it is done.
    pub async fn next(&mut self) -> Result<Reply, Failure> {
        if let Some(event) = (!self.pending.is_empty()).then(|| self.pending.remove(0)) {
            return Ok(Reply::Event(event));
        }
        self.read().await
    }

    /// What an agent that closed the connection said of it, if it did.
    async fn last_words(&mut self) -> Option<Failure> {
        loop {
            match self.read().await {
                Ok(_) => {}
                Err(Failure::Forbidden(why)) => return Some(Failure::Forbidden(why)),
                Err(Failure::Usage(why)) => return Some(Failure::Usage(why)),
                Err(_) => return None,
            }
        }
    }

    async fn read(&mut self) -> Result<Reply, Failure> {
        loop {
            match self.frames.take().map_err(misframed)? {
                // We number what we ask: this one speaks of the whole connection.
                Some(Reply::Unaddressed(answer)) => return Err(unaddressed(answer)),
                Some(reply) => return Ok(reply),
                None => {}
            }
            let read = self.stream.read_buf(self.frames.buffer()).await;
            if read.map_err(|why| gone(&why))? == 0 {
                return Err(Failure::Unavailable("the agent closed the connection".into()));
            }
        }
    }

    /// Sends a request and waits for its answer; a failure the agent reports is ours.
    pub async fn call(&mut self, request: Request) -> Result<Answer, Failure> {
        let number = self.send(request).await?;
        let answered = async {
            loop {
                match self.read().await? {
                    Reply::Answer { id, answer } if id == number => return accept(answer),
                    // The answer to an earlier call that nobody awaits any more.
                    Reply::Answer { .. } | Reply::Unaddressed(_) => {}
                    Reply::Event(event) => self.pending.push(event),
                }
            }
        };
        tokio::time::timeout(PATIENCE, answered).await.unwrap_or_else(|_| {
            Err(Failure::Unavailable(format!(
                "the agent has not answered for {} s",
                PATIENCE.as_secs()
            )))
        })
    }

    /// Gives a sign of life.
    pub async fn live(&mut self) -> Result<(), Failure> {
        self.send(Request::KeepAlive { at: Moment::now() }).await.map(drop)
    }

    /// A second handle of the connection: the session lives as long as either does.
    pub fn handle(&self) -> io::Result<OwnedFd> {
        self.stream.as_fd().try_clone_to_owned()
    }
}

/// An answer, or the failure it is.
pub fn accept(answer: Answer) -> Result<Answer, Failure> {
    match answer {
        Answer::Failed { kind, message } => Err(match kind {
            Trouble::Usage => Failure::Usage(message),
            Trouble::Forbidden => Failure::Forbidden(message),
            Trouble::Unavailable | Trouble::Unknown => Failure::Unavailable(message),
        }),
        other => Ok(other),
    }
}

fn unaddressed(answer: Answer) -> Failure {
    accept(answer).map_or_else(|failure| failure, |other| unexpected(&other))
}

/// What no agent should answer.
#[must_use]
pub fn unexpected(answer: &Answer) -> Failure {
    Failure::Data(format!("the agent gave an answer that does not fit: {answer:?}"))
}

fn misframed(error: FrameError) -> Failure {
    Failure::Data(error.to_string())
}

fn gone(why: &io::Error) -> Failure {
    Failure::Unavailable(format!("the agent is gone: {why}"))
}

fn no_agent(socket: &Path, why: &io::Error) -> Failure {
    let place = socket.display();
    match why.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            Failure::Unavailable(format!(
                "no agent listens at {place}\n  \
                 start one:         konklave agent --dev\n  \
                 or say where it is: --socket PATH, or KONKLAVE_SOCKET"
            ))
        }
        io::ErrorKind::PermissionDenied => Failure::Forbidden(format!(
            "the agent at {place} belongs to someone else: {why} (--allow-users, --allow-groups of the agent)"
        )),
        _ => Failure::Unavailable(format!("cannot reach the agent at {place}: {why}")),
    }
}

/// Where the agent's socket is unless told otherwise: the system's, if it is there and we are its user,
/// and else the user's own.
#[must_use]
pub fn default_socket() -> PathBuf {
    default_folder().join("agent.sock")
}

/// The folder of the default socket.
#[must_use]
pub fn default_folder() -> PathBuf {
    if nix::unistd::geteuid().is_root() {
        return "/run/konklave".into();
    }
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(folder) if !folder.is_empty() => PathBuf::from(folder).join("konklave"),
        _ => std::env::temp_dir().join(format!("konklave-{}", nix::unistd::geteuid())),
    }
}
