//! Elections: one leads, others stand ready, everyone can watch.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

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

    /// Who has more comes first when the next leader is chosen; nobody who leads is pushed aside.
    pub fn priority(self, priority: i32) -> Self {
        Self(self.0.priority(priority))
    }

    /// Gives up after so long.
    pub fn timeout(self, timeout: Duration) -> Self {
        Self(self.0.timeout(timeout))
    }

    /// What happens if we fall silent while we lead.
    pub fn handover(self, handover: Handover) -> Self {
        Self(self.0.handover(handover))
    }

    /// What the others see of us: 255 bytes at most.
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

/// We lead, or did: until it is lost, resigned or dropped.
#[derive(Debug)]
#[must_use = "who drops its leadership leads no more"]
pub struct Leadership(Guard);

impl Leadership {
    /// What it is called.
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// Higher than that of every leader before us: everything a leader commands should carry it.
    pub fn token(&self) -> Token {
        self.0.token()
    }

    /// For how long we surely lead.
    pub fn valid_for(&self) -> Duration {
        self.0.valid_for()
    }

    /// When that ends, see [`Guard::deadline`].
    pub fn deadline(&self) -> Duration {
        self.0.deadline()
    }

    /// How sure we may be.
    pub fn state(&self) -> State {
        self.0.state()
    }

    /// Returns when we lead no more.
    pub async fn lost(&self) {
        self.0.lost().await;
    }

    /// Why we lead no more, once it is told; see [`Guard::loss`].
    pub fn loss(&self) -> Option<Loss> {
        self.0.loss()
    }

    /// Something to wait for the loss with, where this itself cannot go.
    pub fn watch(&self) -> impl Future<Output = ()> + Send + Sync + 'static + use<> {
        self.0.watch()
    }

    /// Leads no more: the next candidate does.
    pub async fn resign(self) -> Result<(), Error> {
        self.0.release().await
    }
}

/// Who leads.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Leader {
    /// Which node.
    pub node: NodeId,
    /// What people call it.
    pub name: String,
    /// What it says of itself.
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

    /// The leader now, and then each change; `Some(None)`: nobody leads. None when the node is gone.
    pub async fn next(&mut self) -> Option<Option<Leader>> {
        self.0.recv().await
    }
}
