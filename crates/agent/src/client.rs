//! A connection to the agent: the client's session.

mod trust;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

use crate::clock::Moment;
use crate::failure::Failure;
use crate::program::program;
use crate::protocol::{
    Answer, Call, Event, FailureKind, FrameError, Frames, Reply, Request, VERSION, encode, millis,
};

/// How long a client waits for an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// The pause between attempts to connect while the queue of the socket is full.
const QUEUE_PAUSE: Duration = Duration::from_millis(20);

/// How long a client looks for the reason in the buffer of a connection that the agent has closed.
const REASON_TIMEOUT: Duration = Duration::from_millis(100);

/// A session with the agent. It ends when this is dropped, or the process dies.
#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    frames: Frames,
    next: u64,
    /// The agent's name.
    pub node: String,
    /// How long the session lives without a keep-alive.
    pub ttl: Duration,
    /// How often to send a keep-alive.
    pub keep_alive: Duration,
    /// Events that arrived while [`call`](Self::call) waited for an answer.
    pending: Vec<Event>,
}

impl Client {
    /// Connects to the agent at `socket`, as a client that status shows as `label`.
    pub async fn connect(socket: &Path, label: &str, ttl: Duration) -> Result<Self, Failure> {
        Self::connect_within(socket, label, Some(ttl), None).await
    }

    /// The same for a client that itself runs under a lock, granted with the token `within`. Without a `ttl`, the
    /// agent chooses one.
    pub async fn connect_within(
        socket: &Path,
        label: &str,
        ttl: Option<Duration>,
        within: Option<String>,
    ) -> Result<Self, Failure> {
        let stream = reach(socket).await.map_err(|why| no_agent(socket, &why))?;
        let listener =
            stream.peer_cred().map_err(Failure::system("cannot tell the agent's user"))?;
        trust::check(socket, listener.uid())?;
        let mut client = Self {
            stream,
            frames: Frames::default(),
            next: 0,
            node: String::new(),
            ttl: Duration::ZERO,
            keep_alive: Duration::ZERO,
            pending: Vec::new(),
        };
        let (label, ttl) = (label.to_owned(), ttl.map(millis));
        let hello = Request::Hello { protocol: VERSION, label, ttl, within };
        match client.call(hello).await? {
            Answer::Welcome { protocol: VERSION, node, ttl, keep_alive } => {
                client.node = node;
                client.ttl = Duration::from_millis(ttl);
                client.keep_alive = Duration::from_millis(keep_alive);
                Ok(client)
            }
            Answer::Welcome { protocol, .. } => Err(Failure::Unavailable(format!(
                "the agent speaks version {protocol} of the protocol, this command version {VERSION}\n  \
                 install the same version of both"
            ))),
            other => Err(unexpected(&other)),
        }
    }

    /// Sends a request and returns its number.
    pub async fn send(&mut self, request: Request) -> Result<u64, Failure> {
        self.next += 1;
        // A request too long for a frame is an error of the caller.
        let frame = encode(&Call { id: self.next, request })
            .map_err(|error| Failure::Usage(error.to_string()))?;
        if let Err(why) = self.stream.write_all(&frame).await {
            // The agent may have sent the reason before it closed the connection.
            let last = tokio::time::timeout(REASON_TIMEOUT, self.closing_reason()).await;
            return Err(last.ok().flatten().unwrap_or_else(|| gone(&why)));
        }
        Ok(self.next)
    }

    /// The next reply or event. Cancel-safe: no frame is lost if this is dropped early.
    pub async fn next(&mut self) -> Result<Reply, Failure> {
        if let Some(event) = (!self.pending.is_empty()).then(|| self.pending.remove(0)) {
            return Ok(Reply::Event(event));
        }
        self.read().await
    }

    /// The reason that the agent sent before it closed the connection, if any.
    async fn closing_reason(&mut self) -> Option<Failure> {
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
                // All our requests have a number, so this answer concerns the whole connection.
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

    /// Sends a request and waits for its answer. A failed answer becomes an error.
    pub async fn call(&mut self, request: Request) -> Result<Answer, Failure> {
        let number = self.send(request).await?;
        let answered = async {
            loop {
                match self.read().await? {
                    Reply::Answer { id, answer } if id == number => return accept(answer),
                    // The answer to an earlier request whose caller has stopped waiting.
                    Reply::Answer { .. } | Reply::Unaddressed(_) => {}
                    Reply::Event(event) => self.pending.push(event),
                }
            }
        };
        tokio::time::timeout(ANSWER_TIMEOUT, answered).await.unwrap_or_else(|_| {
            Err(Failure::Unavailable(format!(
                "the agent has not answered within {} s: it may hang",
                ANSWER_TIMEOUT.as_secs()
            )))
        })
    }

    /// Sends a keep-alive.
    pub async fn live(&mut self) -> Result<(), Failure> {
        self.send(Request::KeepAlive { at: Moment::now() }).await.map(drop)
    }

    /// A second handle of the connection. The session ends when both handles are closed.
    pub fn handle(&self) -> io::Result<OwnedFd> {
        self.stream.as_fd().try_clone_to_owned()
    }
}

/// Connects to a socket. Many clients may wait there already: then it waits, too.
async fn reach(socket: &Path) -> io::Result<UnixStream> {
    let start = Instant::now();
    loop {
        match UnixStream::connect(socket).await {
            Err(why)
                if why.kind() == io::ErrorKind::WouldBlock && start.elapsed() < ANSWER_TIMEOUT =>
            {
                tokio::time::sleep(QUEUE_PAUSE).await;
            }
            connected => return connected,
        }
    }
}

/// Turns a failed answer into an error.
pub fn accept(answer: Answer) -> Result<Answer, Failure> {
    match answer {
        Answer::Failed { kind, message } => Err(match kind {
            FailureKind::Usage => Failure::Usage(message),
            FailureKind::Forbidden => Failure::Forbidden(message),
            FailureKind::Unavailable | FailureKind::Unknown => Failure::Unavailable(message),
        }),
        other => Ok(other),
    }
}

fn unaddressed(answer: Answer) -> Failure {
    accept(answer).map_or_else(|failure| failure, |other| unexpected(&other))
}

/// The error for an answer of the wrong kind, which no agent should send.
#[must_use]
pub fn unexpected(answer: &Answer) -> Failure {
    let kind = serde_json::to_value(answer).ok();
    let kind = kind.as_ref().and_then(|value| value["answer"].as_str()).unwrap_or("unknown");
    Failure::Data(format!(
        "the agent sent an answer of the wrong kind (`{kind}`): are agent and command of the same version?"
    ))
}

fn misframed(error: FrameError) -> Failure {
    Failure::Data(error.to_string())
}

fn gone(why: &io::Error) -> Failure {
    Failure::Unavailable(format!("the connection to the agent broke: {why}"))
}

fn no_agent(socket: &Path, why: &io::Error) -> Failure {
    let (place, program) = (socket.display(), program());
    match why.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            Failure::Unavailable(format!(
                "no agent listens at {place}\n  \
                 start an agent:       {program} agent --dev\n  \
                 or name its socket:   --socket PATH, or KONKLAVE_SOCKET"
            ))
        }
        io::ErrorKind::PermissionDenied => Failure::Forbidden(format!(
            "no access to the socket {place}: {why}\n  \
             the agent's user can allow it: {program} agent --allow-users or --allow-groups"
        )),
        _ => Failure::Unavailable(format!("cannot reach the agent at {place}: {why}")),
    }
}

/// The default path of the agent's socket: in `/run/konklave` for root, else in the user's runtime folder.
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
