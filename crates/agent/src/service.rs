//! What the agent's clients are served with: a small door between the socket and the group, so that
//! either side can be tested without the other.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use konklave::Token;
use tokio::sync::mpsc;

use crate::clock::Moment;
use crate::protocol::{Claim, Event, Explanation, Finding, Payload, Refusal, Status, Trouble};

/// A value to come.
pub type Promise<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Wish {
    /// The name.
    pub name: String,
    /// What of it.
    pub claim: Claim,
    /// How long to wait; zero does not, nothing waits for ever.
    pub wait: Option<Duration>,
    /// What status shows.
    pub label: String,
    /// The session that asks: no two have the same number.
    pub session: u64,
    /// The token under which its client runs, if it does.
    pub within: Option<String>,
}

/// What is taken away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// A lock.
    Lock,
    /// The slots of a semaphore.
    Slots,
    /// Leadership.
    Election,
}

/// Why a wish is not granted.
#[derive(Debug)]
pub enum Denied {
    /// Someone else has it.
    Refused(Refusal, String),
    /// It could not be done.
    Failed(Trouble, String),
}

/// Why something was not done.
pub type Problem = (Trouble, String);

/// What an agent does for its clients.
pub trait Service: Send + Sync + 'static {
    /// The node's name.
    fn node(&self) -> String;

    /// Obtains what is wished; dropped before it is done, the wish is taken back.
    fn acquire(&self, wish: Wish) -> Promise<'_, Result<Box<dyn Hold>, Denied>>;

    /// A session is over: nothing more is asked with this number.
    fn over(&self, session: u64);

    /// All about the group.
    fn status(&self, prefix: &str, limit: usize) -> Promise<'_, Result<Status, Problem>>;

    /// Why a name is not free.
    fn why(&self, name: &str) -> Promise<'_, Result<Explanation, Problem>>;

    /// Takes a name from whoever has it; with a token, only that grant.
    fn revoke(
        &self,
        name: &str,
        target: Target,
        token: Option<Token>,
    ) -> Promise<'_, Result<(), Problem>>;

    /// Tells of changes until the receiver is gone.
    fn watch(&self, events: mpsc::Sender<Event>) -> Promise<'_, Result<(), Problem>>;

    /// Sends a message to a group, and is done when it has its place in the order.
    fn send(&self, group: &str, payload: Payload) -> Promise<'_, Result<(), Problem>>;

    /// Tells what a group says until the receiver is gone.
    fn receive(&self, group: &str, events: mpsc::Sender<Event>)
    -> Promise<'_, Result<(), Problem>>;

    /// What the flight recorder remembers.
    fn record(&self) -> Promise<'_, Result<String, Problem>>;

    /// Looks at itself.
    fn examine(&self) -> Promise<'_, Vec<Finding>>;

    /// The metrics, as Prometheus reads them.
    fn metrics(&self) -> String;
}

/// Something that was granted. Dropped, it is given back in the background.
pub trait Hold: Send {
    /// The fencing token.
    fn token(&self) -> String;

    /// Until when it is safe, as far as is known now.
    fn until(&self) -> Moment;

    /// Waits until it is lost, and says why.
    fn lost(&mut self) -> Promise<'_, String>;

    /// Its client has shown no sign of life for too long: it is lost, and given back.
    fn forfeit(self: Box<Self>, why: String) -> Promise<'static, ()>;

    /// Gives it back.
    fn release(self: Box<Self>) -> Promise<'static, Result<(), Problem>>;
}
