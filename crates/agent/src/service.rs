//! The interface between the agent's socket and its group, so that each side is tested without the other.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use konklave::Token;
use tokio::sync::mpsc;

use crate::clock::Moment;
use crate::protocol::{
    ClaimKind, Event, Explanation, FailureKind, Finding, Payload, Refusal, Status,
};

/// A boxed future.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A client's request for a lock, a slot or leadership.
#[derive(Clone, Debug)]
pub struct AcquireRequest {
    /// The name of the lock, the semaphore or the election.
    pub name: String,
    /// Whether it is exclusive, shared, a slot or leadership.
    pub claim: ClaimKind,
    /// How long to wait. Zero fails at once if it is not free; `None` waits for ever.
    pub wait: Option<Duration>,
    /// The text that `status` shows for the client.
    pub label: String,
    /// The unique number of the client's session.
    pub session: u64,
    /// The token of the lock under which the client runs, if any.
    pub within: Option<String>,
    /// The lease of the grant, if not that of the group.
    pub lease: Option<Duration>,
    /// Go on with a grant that the client holds, instead of a new one.
    pub resume: Option<Resumed>,
}

/// A grant that its client holds, although the agent has lost it: by a restart, or because the group excluded it.
#[derive(Clone, Debug)]
pub struct Resumed {
    /// Its token.
    pub token: String,
    /// The last deadline that the client knows.
    pub until: Moment,
}

/// Why a grant is lost.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lost {
    /// The reason, for people.
    pub why: String,
    /// Whether the grant is still nobody else's, so that it may be resumed before its deadline.
    pub resumable: bool,
}

/// The kind of grant to revoke.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// A lock.
    Lock,
    /// The slots of a semaphore.
    Slots,
    /// Leadership.
    Election,
}

/// Why a request is not granted.
#[derive(Debug)]
pub enum Denied {
    /// It is taken, or the wait timed out.
    Refused(Refusal, String),
    /// The request is invalid, or the group cannot decide.
    Failed(FailureKind, String),
}

/// Why a request failed: the kind, and a message for people.
pub type Problem = (FailureKind, String);

/// The requests that an agent serves.
pub trait Service: Send + Sync + 'static {
    /// The node's name.
    fn node(&self) -> String;

    /// The lease of the group.
    fn lease(&self) -> Duration;

    /// Obtains a lock, a slot or leadership. Dropping the future cancels the request.
    fn acquire(&self, wish: AcquireRequest) -> BoxFuture<'_, Result<Box<dyn HeldClaim>, Denied>>;

    /// Ends a session. No later request has its number.
    fn over(&self, session: u64);

    /// The group, and the locks and elections whose names start with `prefix`.
    fn status(&self, prefix: &str, limit: usize) -> BoxFuture<'_, Result<Status, Problem>>;

    /// Why a name is not free.
    fn why(&self, name: &str) -> BoxFuture<'_, Result<Explanation, Problem>>;

    /// Takes all grants of a name from their holders, or only the grant with `token`.
    fn revoke(
        &self,
        name: &str,
        target: Target,
        token: Option<Token>,
    ) -> BoxFuture<'_, Result<(), Problem>>;

    /// Sends each change to `events` until the receiver is dropped.
    fn watch(&self, events: mpsc::Sender<Event>) -> BoxFuture<'_, Result<(), Problem>>;

    /// Sends a message to a group. Completes when the position of the message in the order is fixed.
    fn send(&self, group: &str, payload: Payload) -> BoxFuture<'_, Result<(), Problem>>;

    /// Sends the messages and views of a group to `events` until the receiver is dropped.
    fn receive(
        &self,
        group: &str,
        events: mpsc::Sender<Event>,
    ) -> BoxFuture<'_, Result<(), Problem>>;

    /// The contents of the flight recorder.
    fn record(&self) -> BoxFuture<'_, Result<String, Problem>>;

    /// Checks the agent and its group.
    fn examine(&self) -> BoxFuture<'_, Vec<Finding>>;

    /// The metrics in the Prometheus text format.
    fn metrics(&self) -> String;
}

/// A granted lock, slot or leadership. Dropping it releases it in the background.
pub trait HeldClaim: Send {
    /// The fencing token.
    fn token(&self) -> String;

    /// The deadline until which it is safe, as of now. Renewals move it.
    fn until(&self) -> Moment;

    /// Waits until it is lost, and returns the reason.
    fn lost(&mut self) -> BoxFuture<'_, Lost>;

    /// Releases it as lost, because its client sent no keep-alive in time.
    fn forfeit(self: Box<Self>, why: String) -> BoxFuture<'static, ()>;

    /// Releases it.
    fn release(self: Box<Self>) -> BoxFuture<'static, Result<(), Problem>>;
}
