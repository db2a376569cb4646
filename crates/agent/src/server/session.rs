//! One client's session: what it holds lives as long as the connection does.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::Counts;
use super::claims::Claims;
use crate::clock::Moment;
use crate::protocol::{
    Answer, Call, Event, FrameError, Frames, MAX_FRAME, Reply, Request, Trouble, VERSION,
    check_name, encode, legible, millis,
};
use crate::service::{Problem, Service, Target, Wish};

/// A client that says nothing for so long after it came is sent away.
const FIRST_WORD: Duration = Duration::from_secs(5);
/// A client that does not read for so long is dead to us.
const DEAF: Duration = Duration::from_secs(5);
/// The shortest and the longest time to live of a session.
const TTL: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(600));
/// How often a sign of life is due at least: also the validity of a member's own lease is passed on so.
const PULSE: Duration = Duration::from_millis(250);
/// What a client may leave unread before it waits for its own answers.
const OUTBOX: usize = 256;
/// How long a stranger may take to say what it is answered by, and how much it may say.
const STRANGER: (Duration, usize) = (Duration::from_secs(1), 1 << 16);
/// The longest answer, for people.
const MIB: usize = MAX_FRAME >> 20;
/// The longest label.
const LABEL: usize = 200;

/// A session.
pub(super) struct Session {
    service: Arc<dyn Service>,
    counts: Arc<Counts>,
    closing: watch::Receiver<bool>,
    number: u64,
    label: String,
    within: Option<String>,
    ttl: Duration,
    /// When the session ends unless the client says that it lives. Told to everything that is held.
    expires: watch::Sender<Moment>,
    /// Whether it did so, in words.
    expired: Option<String>,
}

/// Counts a session as long as it lives, however it ends.
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

/// Why a session ended; in words, for the log.
type Ending = String;

impl Session {
    pub(super) fn new(
        service: Arc<dyn Service>,
        counts: Arc<Counts>,
        closing: watch::Receiver<bool>,
    ) -> Self {
        let (expires, _) = watch::channel(Moment::now());
        let number = counts.opened.fetch_add(1, Ordering::Relaxed);
        let (label, within) = (String::new(), None);
        Self { service, counts, closing, number, label, within, ttl: TTL.1, expires, expired: None }
    }

    /// Serves the client until it is gone, and gives back what it held.
    pub(super) async fn run(mut self, stream: UnixStream) {
        let _counted = Counted::new(&self.counts);
        let (reader, writer) = stream.into_split();
        let (outbox, letters) = mpsc::channel(OUTBOX);
        let mut writing = tokio::spawn(write(writer, letters));
        let mut reading = Reading { reader, frames: Frames::default(), limit: usize::MAX };
        let mut claims = Claims::new(outbox.clone(), Arc::clone(&self.counts));
        let mut tasks = JoinSet::new();
        let (ending, writes) = tokio::select! {
            ending = self.converse(&mut reading, &mut claims, &mut tasks, &outbox) => (ending, true),
            _ = &mut writing => ("the client does not read".to_owned(), false),
        };
        tracing::debug!(client = %self.label, %ending, "session over");
        tasks.shutdown().await;
        claims.give_back(self.expired.as_deref()).await;
        self.service.over(self.number);
        drop(outbox);
        if writes {
            let _ = tokio::time::timeout(DEAF, writing).await;
        }
    }

    async fn converse(
        &mut self,
        reading: &mut Reading,
        claims: &mut Claims,
        tasks: &mut JoinSet<()>,
        outbox: &mpsc::Sender<Reply>,
    ) -> Ending {
        match tokio::time::timeout(FIRST_WORD, self.greet(reading, outbox)).await {
            Ok(Ok(())) => {}
            Ok(Err(ending)) => return ending,
            Err(_) => return "the client says nothing".into(),
        }
        let mut closing = self.closing.clone();
        let mut told = false;
        loop {
            let expires = *self.expires.borrow();
            // Only who holds something has to live: a reader of status may take its time.
            let mortal = !claims.is_empty();
            tokio::select! {
                word = reading.next() => match word {
                    Ok(Word::Call(call)) => self.serve(call, claims, tasks, outbox).await,
                    Ok(Word::Nonsense { id, why, last }) => {
                        let _ = outbox.send(reply(id, failed((Trouble::Usage, why)))).await;
                        if last {
                            return "not understood".into();
                        }
                    }
                    Err(ending) => return ending,
                },
                () = nap(expires), if mortal => if expires.passed() && *self.expires.borrow() == expires {
                    self.counts.expired.fetch_add(1, Ordering::Relaxed);
                    let why = format!("its client showed no sign of life for {:?}", self.ttl);
                    self.expired = Some(why.clone());
                    return why;
                },
                () = super::closed(&mut closing), if !told => {
                    told = true;
                    if claims.is_empty() || outbox.try_send(Reply::Event(Event::Leaving)).is_err() {
                        return "the agent leaves".into();
                    }
                }
                Some(_) = tasks.join_next() => {}
            }
            if told && claims.is_empty() {
                return "the agent leaves".into();
            }
        }
    }

    async fn greet(
        &mut self,
        reading: &mut Reading,
        outbox: &mpsc::Sender<Reply>,
    ) -> Result<(), Ending> {
        let Call { id, request } = match reading.next().await? {
            Word::Call(call) => call,
            Word::Nonsense { id, why, .. } => {
                let _ = outbox.send(reply(id, failed((Trouble::Usage, why)))).await;
                return Err("not understood".into());
            }
        };
        let answer = match request {
            Request::Hello { protocol: VERSION, label, ttl, within } => {
                self.label = legible(&label).chars().take(LABEL).collect();
                self.within = within;
                self.ttl = Duration::from_millis(ttl).clamp(TTL.0, TTL.1);
                self.live(Moment::now());
                Answer::Welcome {
                    protocol: VERSION,
                    node: self.service.node(),
                    ttl: millis(self.ttl),
                    keep_alive: millis((self.ttl / 3).min(PULSE)),
                }
            }
            Request::Hello { protocol, .. } => failed((
                Trouble::Unavailable,
                format!("this agent speaks version {VERSION} of the protocol, not {protocol}"),
            )),
            _ => failed((Trouble::Usage, "the first word is hello".into())),
        };
        let welcome = matches!(answer, Answer::Welcome { .. });
        let _ = outbox.send(Reply::Answer { id, answer }).await;
        if welcome { Ok(()) } else { Err("not understood".into()) }
    }

    /// The client said at moment `at` that it lives. A moment of the future does not count.
    fn live(&self, at: Moment) {
        let expires = at.min(Moment::now()).after(self.ttl);
        self.expires.send_if_modified(|old| {
            let later = expires > *old;
            *old = expires.max(*old);
            later
        });
    }

    async fn serve(
        &mut self,
        call: Call,
        claims: &mut Claims,
        tasks: &mut JoinSet<()>,
        outbox: &mpsc::Sender<Reply>,
    ) {
        let Call { id, request } = call;
        let service = Arc::clone(&self.service);
        let post = outbox.clone();
        // Whoever waits for nothing is answered in order; the rest by tasks of their own.
        let now = match request {
            Request::Hello { .. } => Some(failed((Trouble::Usage, "we have met".into()))),
            Request::KeepAlive { at } => {
                self.live(at);
                let expires = *self.expires.borrow();
                Some(Answer::Alive { until: claims.until(expires).await })
            }
            Request::Acquire { name, claim, wait } => match check_name(&name) {
                Err(why) => Some(failed((Trouble::Usage, why))),
                Ok(()) => {
                    let wait = wait.map(Duration::from_millis);
                    let (label, within) = (self.label.clone(), self.within.clone());
                    let wish = Wish { name, claim, wait, label, session: self.number, within };
                    claims.ask(id, wish, service, self.expires.subscribe());
                    None
                }
            },
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

/// Requests that the group has to answer.
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
                Err(_) => failed((Trouble::Usage, "that is no token".into())),
            }
        }
        Request::Watch => done(service.watch(relay(post)).await),
        Request::Send { group, payload } => match check_name(&group) {
            Err(why) => failed((Trouble::Usage, why)),
            Ok(()) => done(service.send(&group, payload).await),
        },
        Request::Receive { group } => match check_name(&group) {
            Err(why) => failed((Trouble::Usage, why)),
            Ok(()) => done(service.receive(&group, relay(post)).await),
        },
        Request::Record => match service.record().await {
            Ok(text) => Answer::Text { text },
            Err(problem) => failed(problem),
        },
        Request::Examine => Answer::Findings { findings: service.examine().await },
        Request::Hello { .. }
        | Request::Acquire { .. }
        | Request::Release { .. }
        | Request::KeepAlive { .. }
        | Request::Metrics => failed((Trouble::Usage, "not now".into())),
    }
}

/// Events of the service, as replies. Ends when the service has no more, or the client is gone.
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

/// Sleeps until `moment`, or a while: timers stand still while a machine sleeps.
pub(super) async fn nap(moment: Moment) {
    tokio::time::sleep(moment.left().min(Duration::from_millis(500))).await;
}

/// An answer to the call with a number, or to one whose number cannot be read.
fn reply(id: Option<u64>, answer: Answer) -> Reply {
    match id {
        Some(id) => Reply::Answer { id, answer },
        None => Reply::Unaddressed(answer),
    }
}

/// Tells one who may not come in why, in answer to its first word: who asks reads, and whoever wrote to
/// a closed door would not.
pub(super) async fn turn_away(stream: UnixStream, why: String) {
    let (reader, mut writer) = stream.into_split();
    let mut reading = Reading { reader, frames: Frames::default(), limit: STRANGER.1 };
    let id = match tokio::time::timeout(STRANGER.0, reading.next()).await {
        Ok(Ok(Word::Call(call))) => Some(call.id),
        Ok(Ok(Word::Nonsense { id, .. })) => id,
        Ok(Err(_)) => return,
        Err(_) => None,
    };
    if let Ok(frame) = encode(&reply(id, failed((Trouble::Forbidden, why)))) {
        let _ = tokio::time::timeout(STRANGER.0, writer.write_all(&frame)).await;
    }
}

/// The same without waiting for a word.
pub(super) fn shut_out(stream: &UnixStream, why: String) {
    if let Ok(frame) = encode(&reply(None, failed((Trouble::Forbidden, why)))) {
        let _ = stream.try_write(&frame);
    }
}

/// What a client said.
enum Word {
    Call(Call),
    /// Something else; the last thing, if nobody knows where the next one begins.
    Nonsense {
        id: Option<u64>,
        why: String,
        last: bool,
    },
}

struct Reading {
    reader: OwnedReadHalf,
    frames: Frames,
    /// How much may come before a call is whole.
    limit: usize,
}

impl Reading {
    /// The next call. Nothing is lost when this is dropped before it is done.
    async fn next(&mut self) -> Result<Word, Ending> {
        loop {
            match self.frames.take() {
                Ok(Some(call)) => return Ok(Word::Call(call)),
                Err(error) => {
                    let why = error.to_string();
                    let (id, last) = match error {
                        FrameError::Malformed { id, .. } => (id, false),
                        FrameError::TooLong(_) => (None, true),
                    };
                    return Ok(Word::Nonsense { id, why, last });
                }
                Ok(None) if self.frames.buffer().len() > self.limit => {
                    return Ok(Word::Nonsense { id: None, why: "too much".into(), last: true });
                }
                Ok(None) => {}
            }
            match self.reader.read_buf(self.frames.buffer()).await {
                Ok(0) => return Err("the client closed the connection".into()),
                Ok(_) => {}
                Err(error) => return Err(error.to_string()),
            }
        }
    }
}

/// What is said in place of a reply that cannot be: whoever asked must not wait for ever.
fn unsaid(reply: Reply, error: &FrameError) -> Reply {
    let why = match (&reply, error) {
        (Reply::Answer { answer: Answer::Status(_), .. }, FrameError::TooLong(_)) => {
            format!(
                "the answer is longer than {MIB} MiB: ask for fewer names (--limit N, or a prefix)"
            )
        }
        (_, FrameError::TooLong(_)) => format!("the answer is longer than {MIB} MiB"),
        (_, FrameError::Malformed { why, .. }) => format!("the answer cannot be written: {why}"),
    };
    tracing::warn!("{why}");
    match reply {
        Reply::Answer { id, .. } => Reply::Answer { id, answer: failed((Trouble::Usage, why)) },
        // Nobody asked; and yet something is missing from here on.
        Reply::Event(_) | Reply::Unaddressed(_) => {
            Reply::Unaddressed(failed((Trouble::Unavailable, why)))
        }
    }
}

/// Writes what is to be written, several letters at a time, until there is no more to come.
async fn write(mut writer: OwnedWriteHalf, mut letters: mpsc::Receiver<Reply>) {
    let mut batch = Vec::new();
    while letters.recv_many(&mut batch, OUTBOX).await > 0 {
        let mut bytes = Vec::new();
        for reply in batch.drain(..) {
            match encode(&reply).or_else(|error| encode(&unsaid(reply, &error))) {
                Ok(frame) => bytes.extend(frame),
                Err(error) => tracing::error!(%error, "cannot answer"),
            }
        }
        match tokio::time::timeout(DEAF, writer.write_all(&bytes)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) | Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_answer_that_is_too_long_is_replaced_by_one_that_says_so() {
        let (ours, theirs) = UnixStream::pair().expect("a pair");
        let (outbox, letters) = mpsc::channel(OUTBOX);
        let writing = tokio::spawn(write(ours.into_split().1, letters));
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
