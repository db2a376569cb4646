//! The node: what a program has in its hands.

use std::net::SocketAddr;
use std::ops::Deref;
use std::sync::Arc;

use konklave_process::ProcessId;
use tokio::sync::{broadcast, oneshot};

use crate::builder::Builder;
use crate::error::Error;
use crate::lock::{check_name, shortened};
use crate::net::Security;
#[cfg(feature = "tls")]
use crate::net::tls::Tls;
use crate::session::Session;
use crate::shared::Shared;
use crate::status::{Event, Status, Why};
use crate::table::{Key, Space};
use crate::token::Token;
use crate::{Campaign, NodeId, Observer};

/// A member of a group. Cheap to clone; the node stops when the last clone, and the last guard, is gone.
///
/// Everything a [`Session`] can do a node can do, too, in a session of its own.
#[derive(Clone)]
pub struct Node {
    session: Session,
    address: Option<SocketAddr>,
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Node({} {})", self.id(), self.name())
    }
}

impl Deref for Node {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

impl Node {
    /// Sets one up.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn new(shared: Arc<Shared>, address: Option<SocketAddr>) -> Self {
        Self { session: Session::first(shared), address }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        self.session.shared()
    }

    /// The last messages that it sent to others and received from them, the oldest first: a look back
    /// at an incident.
    pub fn messages(&self) -> Vec<crate::RecordedMessage> {
        self.shared().look(|core| core.flight.all(|id| core.name_of(ProcessId(id))))
    }

    /// Its id in the group.
    pub fn id(&self) -> NodeId {
        self.shared().id.0
    }

    /// What people call it.
    pub fn name(&self) -> &str {
        &self.shared().name
    }

    /// Where it listens, if it does.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// A session of its own, for a client or a part of the program: what it holds ends with it.
    /// Of its label, others see 255 bytes at most.
    pub fn session(&self, label: impl Into<Arc<str>>) -> Session {
        self.session.open(shortened(label))
    }

    /// Returns when the node is a member of a group with a majority.
    pub async fn ready(&self) -> Result<(), Error> {
        loop {
            let changed = self.shared().changed.notified();
            let (member, left) = self.shared().look(|core| (core.is_member(), core.has_left()));
            match (member, left) {
                (_, true) => return Err(Error::Left),
                (true, false) => return Ok(()),
                (false, false) => changed.await,
            }
        }
    }

    /// Why there is no group yet, in words; nothing when there is one.
    pub fn what_is_missing(&self) -> Option<String> {
        let missing = self.shared().look(|core| core.what_is_missing());
        Some(missing).filter(|what| !what.is_empty()).map(|missing| self.and_network(missing))
    }

    /// Whether there is no group yet though everyone answers whom [`seeds`](crate::Builder::seeds)
    /// named, and this node is none of them: then the lists of the founders are not the same.
    pub fn is_unlisted(&self) -> bool {
        self.shared().look(|core| core.is_unlisted())
    }

    /// Without a network it is no wonder.
    fn and_network(&self, missing: String) -> String {
        match self.shared().troubles().1 {
            Some(trouble) => format!("{trouble} ({missing})"),
            None => missing,
        }
    }

    /// Everything this node knows, to be shown or serialised.
    pub fn status(&self) -> Status {
        let now = self.shared().clock.now();
        let mut status = self.shared().look(|core| core.status(now));
        (status.trouble, status.network) = self.shared().troubles();
        status.missing = status.missing.map(|missing| self.and_network(missing));
        status
    }

    /// Why a lock is not ours yet: who holds it, since when, who waits before us, and whether they
    /// wait for each other.
    pub fn why(&self, lock: &str) -> Why {
        let now = self.shared().clock.now();
        self.shared().look(|core| core.why(lock, now))
    }

    /// What happens from now on.
    pub fn events(&self) -> Events {
        Events(self.shared().look(|core| core.events()))
    }

    /// Who leads under `name`, now and whenever that changes.
    pub fn observe(&self, name: &str) -> Result<Observer, Error> {
        Observer::new(self.shared(), name)
    }

    /// Takes a lock from whoever holds it: with `token`, only if it is that grant. The holder is
    /// told; whether it listens is another matter, so the resource should check tokens.
    pub async fn revoke(&self, lock: &str, token: Option<Token>) -> Result<(), Error> {
        self.take_away(Space::Lock, lock, token).await
    }

    /// Takes permits of a semaphore from whoever holds them: with `token`, only that one. The holders
    /// are told, as with [`revoke`](Self::revoke).
    pub async fn revoke_permits(&self, semaphore: &str, token: Option<Token>) -> Result<(), Error> {
        self.take_away(Space::Semaphore, semaphore, token).await
    }

    /// Has whoever leads under `name` lead no more: the next candidate does.
    pub async fn step_down(&self, name: &str) -> Result<(), Error> {
        self.take_away(Space::Campaign, name, None).await
    }

    async fn take_away(&self, space: Space, name: &str, token: Option<Token>) -> Result<(), Error> {
        let key = Key { space, name: check_name(name)? };
        let (reply, answer) = oneshot::channel();
        self.shared().with(|core, _| core.revoke(key, token, reply));
        answer.await.map_err(|_| Error::Left)?
    }

    /// Calls these addresses, too, now and for ever: for members that come later, or moved.
    pub fn call<S: Into<String>>(&self, addresses: impl IntoIterator<Item = S>) {
        if let Some(carrier) = self.shared().carrier() {
            carrier.dial(self.shared(), addresses.into_iter().map(Into::into).collect());
        }
    }

    /// From now on new connections need this key. Those that stand go on: change it at all members
    /// one after the other, and nobody notices.
    pub fn change_key(&self, key: impl Into<Vec<u8>>) -> Result<(), Error> {
        self.change(Security::Key(key.into().into()))
    }

    /// From now on new connections use these certificates: before the old ones expire.
    ///
    /// Needs feature `tls`.
    #[cfg(feature = "tls")]
    pub fn change_tls(&self, tls: Tls) -> Result<(), Error> {
        self.change(Security::Tls(tls))
    }

    fn change(&self, security: Security) -> Result<(), Error> {
        security.check()?;
        if let Some(carrier) = self.shared().carrier() {
            carrier.set_security(security);
        }
        Ok(())
    }

    /// Founds a group of one in a new generation, for the others to join: an operator's last resort,
    /// when a majority is lost for good. If it is not, there are two groups; tokens of this one are
    /// higher.
    pub fn found_alone(&self) {
        self.shared().with(|core, _| core.found_alone());
    }

    /// Ends the node as a crash would: nothing is released in order, and its connections close.
    pub fn kill(&self) {
        self.shared().crash();
    }

    /// Leaves in order: what is held here is free at once, and nobody waits for us. What is still waited
    /// for here ends with [`Error::Left`]. Returns when the others know, or after a lease where nobody answers;
    /// then the port is closed and the data directory is free.
    pub async fn leave(&self) -> Result<(), Error> {
        self.shared().with(|core, now| core.leave(now));
        loop {
            let changed = self.shared().changed.notified();
            if self.shared().look(|core| core.has_left()) {
                break;
            }
            changed.await;
        }
        if let Some(carrier) = self.shared().stop() {
            carrier.closed().await;
        }
        Ok(())
    }
}

/// A stream of what happens.
#[derive(Debug)]
pub struct Events(broadcast::Receiver<Event>);

impl Events {
    /// The next event; none when the node is gone. Who reads too slowly misses some, and is told how many.
    pub async fn next(&mut self) -> Option<Event> {
        match self.0.recv().await {
            Ok(event) => Some(event),
            Err(broadcast::error::RecvError::Lagged(missed)) => Some(Event::Missed { missed }),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

impl Node {
    /// Stands for election under `name`: [`Session::campaign`] in the session of the node.
    pub fn campaign(&self, name: &str) -> Campaign {
        self.session.campaign(name)
    }
}
