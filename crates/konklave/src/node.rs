//! The node, a member of a group.

use std::net::SocketAddr;
use std::sync::Arc;

use konklave_process::ProcessId;
use tokio::sync::oneshot;

use crate::builder::Builder;
use crate::error::Error;
use crate::lock::{check_name, shortened};
#[cfg(feature = "tls")]
use crate::net::tls::Tls;
use crate::net::{Security, SharedKeys};
use crate::session::Session;
use crate::shared::{Readiness, Shared};
use crate::status::{Status, Why};
use crate::streams::{Events, QuorumWatch};
use crate::table::{Key, Space};
use crate::token::Token;
use crate::{Barrier, Campaign, Group, LockAll, LockRequest, NodeId, Observer};

/// A member of a group. Clones are cheap; the node stops with its last clone and its last guard.
///
/// Requests made with its own methods belong to a session of the node, which lives as long as the node.
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

impl Node {
    /// A builder, to configure and start a node.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn new(shared: Arc<Shared>, address: Option<SocketAddr>) -> Self {
        Self { session: Session::first(shared), address }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        self.session.shared()
    }

    /// The last messages sent and received, oldest first: to look into an incident.
    pub fn messages(&self) -> Vec<crate::RecordedMessage> {
        self.shared().look(|core| core.flight.all(|id| core.name_of(ProcessId(id))))
    }

    /// Its id.
    pub fn id(&self) -> NodeId {
        self.shared().id.0
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.shared().name
    }

    /// The address it listens on; `None` over NATS or in memory.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// A session for one client, or one part of the program: what it holds ends with it. Other nodes show its
    /// label, cut off after 255 bytes.
    pub fn session(&self, label: impl Into<Arc<str>>) -> Session {
        self.session.open(shortened(label))
    }

    /// Returns when the node is a member of a group, and a majority of its members answers.
    pub async fn ready(&self) -> Result<(), Error> {
        let mut readiness = self.shared().readiness();
        let ready = readiness.wait_for(|readiness| *readiness != Readiness::Waiting).await;
        match ready.as_deref() {
            Ok(Readiness::Ready) => Ok(()),
            _ => Err(Error::Left),
        }
    }

    /// Whether the node is a member of a group, and a majority of its members has answered lately. Without a
    /// majority, nothing is granted.
    pub fn has_quorum(&self) -> bool {
        *self.shared().readiness().borrow() == Readiness::Ready
    }

    /// A stream that tells whether the node [has a quorum](Self::has_quorum): now, and after each change.
    pub fn watch_quorum(&self) -> QuorumWatch {
        QuorumWatch::new(self.shared().readiness())
    }

    /// Why there is no group yet; `None` if there is one.
    pub fn what_is_missing(&self) -> Option<String> {
        let missing = self.shared().look(|core| core.what_is_missing());
        Some(missing).filter(|what| !what.is_empty()).map(|missing| self.and_network(missing))
    }

    /// Whether there is no group although all [`seeds`](crate::Builder::seeds) answer, and this node is not
    /// among them. Then the nodes have different lists of founders.
    pub fn is_unlisted(&self) -> bool {
        self.shared().look(|core| core.is_unlisted())
    }

    /// Puts a failure of the network before what it explains.
    fn and_network(&self, missing: String) -> String {
        match self.shared().troubles().1 {
            Some(trouble) => format!("{trouble} ({missing})"),
            None => missing,
        }
    }

    /// The status of this node and its group, to show or serialise.
    pub fn status(&self) -> Status {
        let now = self.shared().clock.now();
        let mut status = self.shared().look(|core| core.status(now));
        (status.trouble, status.network) = self.shared().troubles();
        status.missing = status.missing.map(|missing| self.and_network(missing));
        if let Some(carrier) = self.shared().carrier() {
            for member in &mut status.members {
                member.identity = carrier.identity(ProcessId(member.node));
            }
        }
        status
    }

    /// The reason why a lock is not free: its holder and since when, its waiters, and any cycle of clients that
    /// wait for each other.
    pub fn why(&self, lock: &str) -> Why {
        let now = self.shared().clock.now();
        self.shared().look(|core| core.why(lock, now))
    }

    /// A stream of events, from now on.
    pub fn events(&self) -> Events {
        Events::new(self.shared().look(|core| core.events()))
    }

    /// A stream of the leaders under `name`.
    pub fn observe(&self, name: &str) -> Result<Observer, Error> {
        Observer::new(self.shared(), name)
    }

    /// Revokes a lock: with `token`, only that grant. The holder is notified, but may not react; so the
    /// resource should check tokens.
    pub async fn revoke(&self, lock: &str, token: Option<Token>) -> Result<(), Error> {
        self.revoke_key(Space::Lock, lock, token).await
    }

    /// Revokes the permits of a semaphore: with `token`, only that one. The holders are notified, as with
    /// [`revoke`](Self::revoke).
    pub async fn revoke_permits(&self, semaphore: &str, token: Option<Token>) -> Result<(), Error> {
        self.revoke_key(Space::Semaphore, semaphore, token).await
    }

    /// Ends the leadership under `name`: the next candidate leads.
    pub async fn step_down(&self, name: &str) -> Result<(), Error> {
        self.revoke_key(Space::Campaign, name, None).await
    }

    async fn revoke_key(
        &self,
        space: Space,
        name: &str,
        token: Option<Token>,
    ) -> Result<(), Error> {
        let key = Key { space, name: check_name(name)? };
        let (reply, answer) = oneshot::channel();
        self.shared().with(|core, _| core.revoke(key, token, reply));
        let answer = async { answer.await.map_err(|_| Error::Left)? };
        self.shared().answer_of_majority(answer).await
    }

    /// Calls these addresses, too, again and again: for members that were added or moved.
    pub fn call<S: Into<String>>(&self, addresses: impl IntoIterator<Item = S>) {
        if let Some(carrier) = self.shared().carrier() {
            carrier.dial(self.shared(), addresses.into_iter().map(Into::into).collect());
        }
    }

    /// Uses these keys for new connections, as [`Builder::pre_shared_keys`](crate::Builder::pre_shared_keys)
    /// does. Established ones continue. To change the key without an interruption, give all members one after
    /// the other the new key and the old one; then give them the new one alone.
    pub fn change_keys<K: Into<Vec<u8>>>(
        &self,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<(), Error> {
        self.change(Security::Keys(SharedKeys::new(keys)))
    }

    /// Shuts out the nodes with these identities, and no others, as
    /// [`Builder::deny`](crate::Builder::deny) does. Their connections end at once.
    pub fn deny<S: Into<String>>(&self, identities: impl IntoIterator<Item = S>) {
        if let Some(carrier) = self.shared().carrier() {
            carrier.deny(identities.into_iter().map(Into::into).collect());
        }
    }

    /// Uses these certificates for new connections. Call it before the old ones expire.
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

    /// Founds a group of one in a new generation, for others to join: an operator's last resort when a
    /// majority is lost for good. If it is not lost, there are two groups; this one has the higher tokens.
    pub fn found_alone(&self) {
        self.shared().with(|core, _| core.found_alone());
    }

    /// Ends the node as a crash would: nothing is released, and connections close.
    pub fn kill(&self) {
        self.shared().crash();
    }

    /// Leaves the group in order: all grants are released at once, and requests that still wait end with
    /// [`Error::Left`]. Returns when the other members have confirmed, or after a lease without an answer.
    /// Then the port is closed and the data directory is unlocked.
    pub async fn leave(&self) -> Result<(), Error> {
        self.shared().with(|core, now| core.leave(now));
        let mut readiness = self.shared().readiness();
        let _ = readiness.wait_for(|readiness| *readiness == Readiness::Left).await;
        if let Some(carrier) = self.shared().stop() {
            carrier.closed().await;
        }
        Ok(())
    }
}

/// Requests in the node's own session.
impl Node {
    /// Requests a lock; see [`Session::lock`].
    pub fn lock(&self, name: &str) -> LockRequest {
        self.session.lock(name)
    }

    /// Requests one of `permits` permits; see [`Session::semaphore`].
    pub fn semaphore(&self, name: &str, permits: u32) -> LockRequest {
        self.session.semaphore(name, permits)
    }

    /// Requests several locks, all or none; see [`Session::lock_all`].
    pub fn lock_all<S: AsRef<str>>(&self, names: impl IntoIterator<Item = S>) -> LockAll {
        self.session.lock_all(names)
    }

    /// Stands for election under `name`; see [`Session::campaign`].
    pub fn campaign(&self, name: &str) -> Campaign {
        self.session.campaign(name)
    }

    /// A barrier for `n` parties; see [`Session::barrier`].
    pub fn barrier(&self, name: &str, n: u32) -> Barrier {
        self.session.barrier(name, n)
    }

    /// Joins a group of the application; see [`Session::group`].
    pub async fn group(&self, name: &str) -> Result<Group, Error> {
        self.session.group(name).await
    }
}
