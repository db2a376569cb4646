//! Elections: one candidate leads, others stand by, and everyone can observe the leader.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use crate::lock::{Guard, Handover, LockRequest, State, check_name};
use crate::shared::Shared;
use crate::status::Loss;
use crate::table::{Key, LockMode, Space};
use crate::{Error, NodeId, Session, Token};

/// A candidature. Await it to lead.
#[derive(Clone, Debug)]
#[must_use = "a candidature stands when it is awaited"]
pub struct Campaign(LockRequest);

impl Campaign {
    pub(crate) fn new(session: Session, name: &str) -> Self {
        Self(LockRequest::new(session, Space::Campaign, name, LockMode::Exclusive))
    }

    /// The next leader is the waiting candidate with the highest priority. A present leader is not replaced.
    pub fn priority(self, priority: i32) -> Self {
        Self(self.0.priority(priority))
    }

    /// Gives up after this time.
    pub fn timeout(self, timeout: Duration) -> Self {
        Self(self.0.timeout(timeout))
    }

    /// Sets the behaviour if this node falls silent while it leads.
    pub fn handover(self, handover: Handover) -> Self {
        Self(self.0.handover(handover))
    }

    /// How long the leadership is valid without an answer of a majority; see [`LockRequest::lease`].
    pub fn lease(self, lease: Duration) -> Self {
        Self(self.0.lease(lease))
    }

    /// Goes on with the leadership of this token; see [`LockRequest::resume`].
    pub fn resume(self, token: Token) -> Self {
        Self(self.0.resume(token))
    }

    /// A label that other nodes show, cut off after 255 bytes.
    pub fn label(self, label: impl Into<Arc<str>>) -> Self {
        Self(self.0.label(label))
    }
}

impl IntoFuture for Campaign {
    type Output = Result<Leadership, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.0.acquire().await.map(Leadership) })
    }
}

/// The leadership of this session, until it is lost, resigned or dropped.
#[derive(Debug)]
#[must_use = "a leadership that is dropped ends"]
pub struct Leadership(Guard);

impl Leadership {
    /// The name of the campaign.
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// The fencing token, higher than that of every earlier leader. Every command of a leader should carry
    /// it.
    pub fn token(&self) -> Token {
        self.0.token()
    }

    /// How long the leadership is certain.
    pub fn valid_for(&self) -> Duration {
        self.0.valid_for()
    }

    /// The end of that time, see [`Guard::deadline`].
    pub fn deadline(&self) -> Duration {
        self.0.deadline()
    }

    /// How certain the leadership is.
    pub fn state(&self) -> State {
        self.0.state()
    }

    /// Returns when the leadership is lost.
    pub async fn lost(&self) {
        self.0.lost().await;
    }

    /// Why the leadership is lost, once that is known; see [`Guard::loss`].
    pub fn loss(&self) -> Option<Loss> {
        self.0.loss()
    }

    /// A future that completes when the leadership is lost, independent of this value.
    pub fn watch(&self) -> impl Future<Output = ()> + Send + Sync + 'static + use<> {
        self.0.watch()
    }

    /// Gives up the leadership: the next candidate leads.
    pub async fn resign(self) -> Result<(), Error> {
        self.0.release().await
    }
}

/// A leader.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Leader {
    /// Its node.
    pub node: NodeId,
    /// Its node's name.
    pub name: String,
    /// Its label.
    pub label: String,
    /// Its token.
    pub token: Token,
}

/// A stream of leaders.
#[derive(Debug)]
pub struct Observer(mpsc::UnboundedReceiver<Option<Leader>>);

impl Observer {
    pub(crate) fn new(shared: &Arc<Shared>, name: &str) -> Result<Self, Error> {
        let key = Key { space: Space::Campaign, name: check_name(name)? };
        let (to, leaders) = mpsc::unbounded_channel();
        shared.with(|core, _| core.observe(key, to));
        Ok(Self(leaders))
    }

    /// The present leader first, then each change. `Some(None)`: nobody leads. `None`: the node has ended.
    pub async fn next(&mut self) -> Option<Option<Leader>> {
        self.0.recv().await
    }
}

impl Stream for Observer {
    type Item = Option<Leader>;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(task)
    }
}
