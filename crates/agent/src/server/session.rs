//! The session of a client: its claims end when its connection does.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::Counts;
use super::access::Admitted;
use super::claims::Claims;
use crate::clock::Moment;
use crate::newcomers::Newcomer;
use crate::protocol::{
    Answer, Call, ClaimKind, Event, FailureKind, FrameError, Frames, MAX_FRAME, Reply, Request,
    VERSION, check_name, encode, legible, millis,
};
use crate::service::{AcquireRequest, Problem, Resumed, Service, Target};

/// How long a client may take to send `hello`.
const HELLO_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a client may read nothing. Then its session ends.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// The shortest and the longest time to live of a session.
const TTL: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(600));
/// The shortest time to live of a session whose client does not ask for one.
const DEFAULT_TTL: Duration = Duration::from_secs(5);
/// A session without keep-alives ends when the agent has looked for one so many times in vain, at most this long
/// after the other: if the whole machine was stopped, the keep-alives of its clients come a moment later.
const GLANCES: (u32, Duration) = (4, Duration::from_millis(250));
/// The longest interval of keep-alives. Their answers carry the deadlines, which the short lease of the member
/// moves all the time.
const KEEP_ALIVE: Duration = Duration::from_millis(250);
/// How many replies may be queued for a client. Then its requests wait.
const OUTBOX: usize = 256;
/// How long a rejected client may take to send its first request, and how many bytes it may send.
const REJECTED: (Duration, usize) = (Duration::from_secs(1), 1 << 16);
/// The longest answer in MiB, for messages.
const MIB: usize = MAX_FRAME >> 20;
/// The longest label, in characters.
const MAX_LABEL: usize = 200;

/// The session of one client.
pub(super) struct ClientSession {
    service: Arc<dyn Service>,
    counts: Arc<Counts>,
    closing: watch::Receiver<bool>,
    admitted: Admitted,
    number: u64,
    label: String,
    within: Option<String>,
    ttl: Duration,
    /// When the session expires without a further keep-alive. All claims watch it.
    expires: watch::Sender<Moment>,
    /// Why the session expired, if it did.
    expired: Option<String>,
}

/// Counts a session until it is dropped.
struct Counted(Arc<Counts>);

impl Counted {
    fn new(counts: &Arc<Counts>) -> Self {
        counts.sessions.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(counts))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.sessions.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Why a session ended.
struct Ending {
    /// The reason, for the log.
    why: String,
    /// Whether the client has ended it: then it holds nothing any more.
    by_client: bool,
}

impl From<&str> for Ending {
    fn from(why: &str) -> Self {
        Self::from(why.to_owned())
    }
}

/// The agent ends the session.
impl From<String> for Ending {
    fn from(why: String) -> Self {
        Self { why, by_client: false }
    }
}

impl ClientSession {
    pub(super) fn new(
        service: Arc<dyn Service>,
        counts: Arc<Counts>,
        closing: watch::Receiver<bool>,
        admitted: Admitted,
    ) -> Self {
        let (expires, _) = watch::channel(Moment::now());
        let number = counts.opened.fetch_add(1, Ordering::Relaxed);
        let (label, within) = (String::new(), None);
        let (ttl, expired) = (TTL.1, None);
        Self { service, counts, closing, admitted, number, label, within, ttl, expires, expired }
    }

    /// Serves the client until its connection ends, then releases its claims.
    pub(super) async fn run(mut self, stream: UnixStream, newcomer: Newcomer) {
        let _counted = Counted::new(&self.counts);
        let (reader, writer) = stream.into_split();
        let (outbox, replies) = mpsc::channel(OUTBOX);
        let mut writing = tokio::spawn(write(writer, replies));
        let mut reading = CallReader { reader, frames: Frames::default(), limit: usize::MAX };
        let mut claims = Claims::new(outbox.clone(), Arc::clone(&self.counts));
        let mut tasks = JoinSet::new();
        let (ending, writes) = tokio::select! {
            ending = self.converse(&mut reading, &mut claims, &mut tasks, &outbox, newcomer) => {
                (ending, true)
            }
            _ = &mut writing => ("the client does not read".into(), false),
        };
        tracing::debug!(client = %self.label, ending = %ending.why, "session ended");
        tasks.shutdown().await;
        self.await_deadlines(&ending, &claims).await;
        claims.give_back(self.expired.as_deref()).await;
        self.service.over(self.number);
        drop(outbox);
        if writes {
            let _ = tokio::time::timeout(WRITE_TIMEOUT, writing).await;
        }
    }

    /// If the agent has ended the session, its client may still rely on the deadlines that it knows. So nobody
    /// else may get its grants before the session would have expired.
    async fn await_deadlines(&mut self, ending: &Ending, claims: &Claims) {
        if ending.by_client || claims.is_empty() {
            return;
        }
        let expires = *self.expires.borrow();
        while !expires.passed() {
            nap(expires).await;
        }
        self.expired.get_or_insert_with(|| ending.why.clone());
    }

    async fn converse(
        &mut self,
        reading: &mut CallReader,
        claims: &mut Claims,
        tasks: &mut JoinSet<()>,
        outbox: &mpsc::Sender<Reply>,
        newcomer: Newcomer,
    ) -> Ending {
        let shaken = tokio::time::timeout(HELLO_TIMEOUT, self.handshake(reading, outbox));
        tokio::select! {
            shaken = shaken => match shaken {
                Ok(Ok(())) => drop(newcomer),
                Ok(Err(ending)) => return ending,
                Err(_) => return "the client sent no hello in time".into(),
            },
            () = newcomer.evicted() => return "too many clients sent no hello".into(),
        }
        let mut closing = self.closing.clone();
        let mut leaving = false;
        let mut overdue = Overdue::default();
        loop {
            let expires = *self.expires.borrow();
            let look = overdue.next_look(expires, self.ttl);
            // A session without claims does not expire: readers of status send no keep-alives.
            let must_live = !claims.is_empty();
            tokio::select! {
                word = reading.next() => match word {
                    Ok(Incoming::Call(call)) => self.serve(call, claims, tasks, outbox).await,
                    Ok(Incoming::Malformed { id, why, last }) => {
                        let _ = outbox.send(reply(id, failed((FailureKind::Usage, why)))).await;
                        if last {
                            return "the client sent an invalid frame".into();
                        }
                    }
                    Err(ending) => return ending,
                },
                () = nap(look), if must_live => if overdue.is_over() && *self.expires.borrow() == expires {
                    self.counts.expired.fetch_add(1, Ordering::Relaxed);
                    let why = format!(
                        "its client sent no keep-alive for {} s (--ttl): was it stopped?",
                        self.ttl.as_secs_f64()
                    );
                    self.expired = Some(why.clone());
                    return why.into();
                },
                () = super::closed(&mut closing), if !leaving => {
                    leaving = true;
                    if claims.is_empty() || outbox.try_send(Reply::Event(Event::Leaving)).is_err() {
                        return "the agent is leaving the group".into();
                    }
                }
                Some(_) = tasks.join_next() => {}
            }
            if leaving && claims.is_empty() {
                return "the agent is leaving the group".into();
            }
        }
    }

    async fn handshake(
        &mut self,
        reading: &mut CallReader,
        outbox: &mpsc::Sender<Reply>,
    ) -> Result<(), Ending> {
        let Call { id, request } = match reading.next().await? {
            Incoming::Call(call) => call,
            Incoming::Malformed { id, why, .. } => {
                let _ = outbox.send(reply(id, failed((FailureKind::Usage, why)))).await;
                return Err("the client sent an invalid frame".into());
            }
        };
        let answer = match request {
            Request::Hello { protocol: VERSION, label, ttl, within } => {
                let default = || self.service.lease().max(DEFAULT_TTL);
                let ttl = ttl.map_or_else(default, Duration::from_millis);
                self.label = legible(&label).chars().take(MAX_LABEL).collect();
                self.within = within;
                self.ttl = ttl.clamp(TTL.0, TTL.1);
                self.keep_alive(Moment::now());
                Answer::Welcome {
                    protocol: VERSION,
                    node: self.service.node(),
                    ttl: millis(self.ttl),
                    keep_alive: millis((self.ttl / 3).min(KEEP_ALIVE)),
                }
            }
            Request::Hello { protocol, .. } => failed((
                FailureKind::Unavailable,
                format!(
                    "this agent speaks version {VERSION} of the protocol, the client version {protocol}: \
                     install the same version of both"
                ),
            )),
            _ => failed((FailureKind::Usage, "the first request must be `hello`".into())),
        };
        let welcome = matches!(answer, Answer::Welcome { .. });
        let _ = outbox.send(Reply::Answer { id, answer }).await;
        if welcome { Ok(()) } else { Err("the client sent no valid hello".into()) }
    }

    /// Extends the session by a keep-alive that was sent at `at`. A moment in the future counts as now.
    fn keep_alive(&self, at: Moment) {
        let expires = at.min(Moment::now()).after(self.ttl);
        self.expires.send_if_modified(|old| {
            let later = expires > *old;
            *old = expires.max(*old);
            later
        });
    }

    /// A request of this client that waits for ever.
    fn request(&self, name: String, claim: ClaimKind, lease: Option<u64>) -> AcquireRequest {
        AcquireRequest {
            name,
            claim,
            wait: None,
            label: self.label.clone(),
            session: self.number,
            within: self.within.clone(),
            lease: lease.map(Duration::from_millis),
            resume: None,
        }
    }

    /// Starts the claim of call `id`; returns an answer only if the request is invalid.
    fn ask(&self, id: u64, request: AcquireRequest, claims: &mut Claims) -> Option<Answer> {
        if let Err(why) = check_name(&request.name) {
            return Some(failed((FailureKind::Usage, why)));
        }
        claims.ask(id, request, Arc::clone(&self.service), self.expires.subscribe());
        None
    }

    async fn serve(
        &mut self,
        call: Call,
        claims: &mut Claims,
        tasks: &mut JoinSet<()>,
        outbox: &mpsc::Sender<Reply>,
    ) {
        let Call { id, request } = call;
        if let Some(why) = self.admitted.objection(&request) {
            let answer = failed((FailureKind::Forbidden, why));
            let _ = outbox.send(Reply::Answer { id, answer }).await;
            return;
        }
        let service = Arc::clone(&self.service);
        let post = outbox.clone();
        // Requests that need no waiting are answered here, in order. The others get a task of their own.
        let now = match request {
            Request::Hello { .. } => Some(failed((
                FailureKind::Usage,
                "`hello` is allowed once, as the first request".into(),
            ))),
            Request::KeepAlive { at } => {
                self.keep_alive(at);
                let expires = *self.expires.borrow();
                Some(Answer::Alive { until: claims.until(expires).await })
            }
            Request::Acquire { name, claim, wait, lease } => {
                let request = AcquireRequest {
                    wait: wait.map(Duration::from_millis),
                    ..self.request(name, claim, lease)
                };
                self.ask(id, request, claims)
            }
            Request::Resume { name, claim, token, until, lease } => {
                let resume = Some(Resumed { token, until });
                let request = AcquireRequest { resume, ..self.request(name, claim, lease) };
                self.ask(id, request, claims)
            }
            Request::Release { claim } => {
                claims.release(claim, id);
                None
            }
            Request::Metrics => Some(Answer::Text { text: service.metrics() }),
            other => {
                tasks.spawn(async move {
                    let answer = perform(other, service, post.clone()).await;
                    let _ = post.send(Reply::Answer { id, answer }).await;
                });
                None
            }
        };
        if let Some(answer) = now {
            let _ = outbox.send(Reply::Answer { id, answer }).await;
        }
    }
}

/// Performs a request that may wait for the group.
async fn perform(request: Request, service: Arc<dyn Service>, post: mpsc::Sender<Reply>) -> Answer {
    let done = |result: Result<(), Problem>| result.map_or_else(failed, |()| Answer::Done);
    match request {
        Request::Status { prefix, limit } => match service.status(&prefix, limit).await {
            Ok(status) => Answer::Status(Box::new(status)),
            Err(problem) => failed(problem),
        },
        Request::Why { name } => match service.why(&name).await {
            Ok(explanation) => Answer::Why(Box::new(explanation)),
            Err(problem) => failed(problem),
        },
        Request::Revoke { name, election, slots, token } => {
            let target = match (election, slots) {
                (true, _) => Target::Election,
                (false, true) => Target::Slots,
                (false, false) => Target::Lock,
            };
            match token.map(|token| token.parse()).transpose() {
                Ok(token) => done(service.revoke(&name, target, token).await),
                Err(_) => failed((
                    FailureKind::Usage,
                    "the token is invalid: `who` shows tokens, such as 1.3.42".into(),
                )),
            }
        }
        Request::Watch => done(service.watch(relay(post)).await),
        Request::Send { group, payload } => match check_name(&group) {
            Err(why) => failed((FailureKind::Usage, why)),
            Ok(()) => done(service.send(&group, payload).await),
        },
        Request::Receive { group } => match check_name(&group) {
            Err(why) => failed((FailureKind::Usage, why)),
            Ok(()) => done(service.receive(&group, relay(post)).await),
        },
        Request::Record => match service.record().await {
            Ok(text) => Answer::Text { text },
            Err(problem) => failed(problem),
        },
        Request::Examine => Answer::Findings { findings: service.examine().await },
        Request::Hello { .. }
        | Request::Acquire { .. }
        | Request::Resume { .. }
        | Request::Release { .. }
        | Request::KeepAlive { .. }
        | Request::Metrics => {
            failed((FailureKind::Usage, "this request is not allowed here".into()))
        }
    }
}

/// Forwards events of the service as replies, until the service has no more, or the client is gone.
fn relay(post: mpsc::Sender<Reply>) -> mpsc::Sender<Event> {
    let (sender, mut events) = mpsc::channel(OUTBOX);
    tokio::spawn(async move {
        loop {
            tokio::select! {
                event = events.recv() => {
                    let Some(event) = event else { return };
                    if post.send(Reply::Event(event)).await.is_err() {
                        return;
                    }
                }
                () = post.closed() => return,
            }
        }
    });
    sender
}

pub(super) fn failed((kind, message): Problem) -> Answer {
    Answer::Failed { kind, message }
}

/// Sleeps until `moment`, but at most half a second: timers do not count the time a machine sleeps.
pub(super) async fn nap(moment: Moment) {
    tokio::time::sleep(moment.left().min(Duration::from_millis(500))).await;
}

/// The reply to a call. Without an `id`, because it could not be read, the reply has none either.
fn reply(id: Option<u64>, answer: Answer) -> Reply {
    match id {
        Some(id) => Reply::Answer { id, answer },
        None => Reply::Unaddressed(answer),
    }
}

/// Answers the first request of a rejected client with the reason. Closing the connection at once would make
/// the client's write fail, and it might never read the reason.
pub(super) async fn reject(stream: UnixStream, problem: Problem) {
    let (reader, mut writer) = stream.into_split();
    let mut reading = CallReader { reader, frames: Frames::default(), limit: REJECTED.1 };
    let id = match tokio::time::timeout(REJECTED.0, reading.next()).await {
        Ok(Ok(Incoming::Call(call))) => Some(call.id),
        Ok(Ok(Incoming::Malformed { id, .. })) => id,
        Ok(Err(_)) => return,
        Err(_) => None,
    };
    if let Ok(frame) = encode(&reply(id, failed(problem))) {
        let _ = tokio::time::timeout(REJECTED.0, writer.write_all(&frame)).await;
    }
}

/// The same without waiting for the first request.
pub(super) fn reject_at_once(stream: &UnixStream, problem: Problem) {
    if let Ok(frame) = encode(&reply(None, failed(problem))) {
        let _ = stream.try_write(&frame);
    }
}

fn closed_by_client(why: String) -> Ending {
    Ending { why, by_client: true }
}

/// The looks for a keep-alive that is overdue.
#[derive(Default)]
struct Overdue {
    /// The end of the session without one.
    expires: Option<Moment>,
    /// How many looks were in vain, and when the next one is due.
    looks: u32,
    next: Option<Moment>,
}

impl Overdue {
    /// When to look next, for a session that ends at `expires`.
    fn next_look(&mut self, expires: Moment, ttl: Duration) -> Moment {
        if self.expires != Some(expires) {
            *self = Self { expires: Some(expires), looks: 0, next: None };
        }
        if !expires.passed() {
            return expires;
        }
        let pause = (ttl / 16).min(GLANCES.1);
        *self.next.get_or_insert_with(|| Moment::now().after(pause))
    }

    /// A look in vain, if one was due: whether it was the last.
    fn is_over(&mut self) -> bool {
        if self.next.is_none_or(|next| !next.passed()) {
            return false;
        }
        self.looks += 1;
        self.next = None;
        self.looks >= GLANCES.0
    }
}

/// A frame of a client, after it was read.
enum Incoming {
    Call(Call),
    /// An invalid frame. After a `last` one, the start of the next frame is unknown.
    Malformed {
        id: Option<u64>,
        why: String,
        last: bool,
    },
}

struct CallReader {
    reader: OwnedReadHalf,
    frames: Frames,
    /// How many bytes may arrive before a call is complete.
    limit: usize,
}

impl CallReader {
    /// The next call. Cancel-safe: no byte is lost if this is dropped early.
    async fn next(&mut self) -> Result<Incoming, Ending> {
        loop {
            match self.frames.take() {
                Ok(Some(call)) => return Ok(Incoming::Call(call)),
                Err(error) => {
                    let why = error.to_string();
                    let (id, last) = match error {
                        FrameError::Malformed { id, .. } => (id, false),
                        FrameError::TooLong(_) => (None, true),
                    };
                    return Ok(Incoming::Malformed { id, why, last });
                }
                Ok(None) if self.frames.buffer().len() > self.limit => {
                    return Ok(Incoming::Malformed {
                        id: None,
                        why: "the request is too long".into(),
                        last: true,
                    });
                }
                Ok(None) => {}
            }
            match self.reader.read_buf(self.frames.buffer()).await {
                Ok(0) => return Err(closed_by_client("the client closed the connection".into())),
                Ok(_) => {}
                Err(error) => return Err(closed_by_client(error.to_string())),
            }
        }
    }
}

/// The reply in place of one that cannot be sent, so that the client does not wait for ever.
fn replacement(reply: Reply, error: &FrameError) -> Reply {
    let why = match (&reply, error) {
        (Reply::Answer { answer: Answer::Status(_), .. }, FrameError::TooLong(_)) => {
            format!(
                "the answer is longer than {MIB} MiB: ask for fewer names (--limit N, or a prefix)"
            )
        }
        (_, FrameError::TooLong(_)) => format!("the answer is longer than {MIB} MiB"),
        (_, FrameError::Malformed { why, .. }) => {
            format!("the answer cannot be written as JSON: {why}")
        }
    };
    tracing::warn!("{why}");
    match reply {
        Reply::Answer { id, .. } => Reply::Answer { id, answer: failed((FailureKind::Usage, why)) },
        // An event has no call to answer, but the client must know that one is missing.
        Reply::Event(_) | Reply::Unaddressed(_) => {
            Reply::Unaddressed(failed((FailureKind::Unavailable, why)))
        }
    }
}

/// Writes replies in batches, until the channel closes or the client does not read.
async fn write(mut writer: OwnedWriteHalf, mut replies: mpsc::Receiver<Reply>) {
    let mut batch = Vec::new();
    while replies.recv_many(&mut batch, OUTBOX).await > 0 {
        let mut bytes = Vec::new();
        for reply in batch.drain(..) {
            match encode(&reply).or_else(|error| encode(&replacement(reply, &error))) {
                Ok(frame) => bytes.extend(frame),
                Err(error) => tracing::error!(%error, "cannot answer"),
            }
        }
        match tokio::time::timeout(WRITE_TIMEOUT, writer.write_all(&bytes)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn too_long_an_answer_is_replaced_by_an_error() {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let (outbox, replies) = mpsc::channel(OUTBOX);
        let writing = tokio::spawn(write(ours.into_split().1, replies));
        let long = Answer::Text { text: "x".repeat(MAX_FRAME) };
        for (id, answer) in [(7, long), (8, Answer::Done)] {
            outbox.send(Reply::Answer { id, answer }).await.expect("it is written");
        }
        drop(outbox);
        let (mut reader, mut frames) = (theirs.into_split().0, Frames::default());
        while reader.read_buf(frames.buffer()).await.expect("open") > 0 {}
        let Ok(Some(Reply::Answer { id: 7, answer: Answer::Failed { message, .. } })) =
            frames.take()
        else {
            panic!("unanswered");
        };
        assert_eq!(message, "the answer is longer than 4 MiB");
        let after = frames.take().expect("a frame");
        assert_eq!(after, Some(Reply::Answer { id: 8, answer: Answer::Done }));
        writing.await.expect("no panic");
    }
}
