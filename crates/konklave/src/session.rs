//! Sessions of clients: the requests and grants of a client belong to its session.

use std::sync::Arc;

use crate::shared::Shared;
use crate::table::{LockMode, Space};
use crate::{Barrier, Campaign, Error, Group, LockAll, LockRequest};

/// The requests and grants of one client. When the last clone is dropped, or the session is closed, all
/// grants are released and all requests withdrawn.
#[derive(Clone)]
pub struct Session {
    open: Arc<Open>,
}

struct Open {
    running: Arc<Running>,
    number: u32,
}

/// Stops the node when its last session is dropped.
struct Running {
    shared: Arc<Shared>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.shared.stop();
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        let number = self.number;
        self.running.shared.with(|core, _| core.close(number));
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Session({})", self.open.number)
    }
}

impl Session {
    /// The node's own session, which lives as long as the node.
    pub(crate) fn first(shared: Arc<Shared>) -> Self {
        Self { open: Arc::new(Open { running: Arc::new(Running { shared }), number: 0 }) }
    }

    /// Another session of the same node.
    pub(crate) fn open(&self, label: Arc<str>) -> Self {
        let running = self.open.running.clone();
        let number = running.shared.with(|core, _| core.open(label));
        Self { open: Arc::new(Open { running, number }) }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.open.running.shared
    }

    /// Its number at this node.
    pub fn number(&self) -> u32 {
        self.open.number
    }

    /// Requests a lock: by default exclusive, in order, and without a timeout.
    pub fn lock(&self, name: &str) -> LockRequest {
        LockRequest::new(self.clone(), Space::Lock, name, LockMode::Exclusive)
    }

    /// Requests one of `permits` permits. All requests must name the same number.
    ///
    /// ```
    /// # fn main() -> Result<(), konklave::Error> {
    /// let cluster = konklave::testing::Cluster::new(3);
    /// cluster.block_on(async {
    ///     let first = cluster.node(0).semaphore("gpu", 2).acquire().await?;
    ///     let second = cluster.node(1).semaphore("gpu", 2).acquire().await?;
    ///     let third = cluster.node(2).semaphore("gpu", 2).try_acquire().await;
    ///     assert!(matches!(third, Err(konklave::Error::Busy(_))), "two of two are taken");
    ///     assert!(first.token() < second.token());
    ///     first.release().await
    /// })
    /// # }
    /// ```
    pub fn semaphore(&self, name: &str, permits: u32) -> LockRequest {
        LockRequest::new(self.clone(), Space::Semaphore, name, LockMode::Permit { of: permits })
    }

    /// Requests several locks, all or none. They are requested in the order of their names, whatever order they
    /// are given in, so two such requests never wait for each other.
    ///
    /// ```
    /// # fn main() -> Result<(), konklave::Error> {
    /// let cluster = konklave::testing::Cluster::new(3);
    /// cluster.block_on(async {
    ///     let both = cluster.node(0).lock_all(["savings", "giro"]).label("transfer").acquire().await?;
    ///     let names: Vec<_> = both.iter().map(|guard| guard.name()).collect();
    ///     assert_eq!(names, ["giro", "savings"]);
    ///     // Another request gets none of them.
    ///     assert!(cluster.node(1).lock_all(["giro", "rent"]).try_acquire().await.is_err());
    ///     both.release().await
    /// })
    /// # }
    /// ```
    pub fn lock_all<S: AsRef<str>>(&self, names: impl IntoIterator<Item = S>) -> LockAll {
        LockAll::new(self.clone(), names)
    }

    /// Stands for election under `name`.
    ///
    /// ```
    /// # fn main() -> Result<(), konklave::Error> {
    /// let cluster = konklave::testing::Cluster::new(3);
    /// cluster.block_on(async {
    ///     let mut leaders = cluster.node(2).observe("scheduler")?;
    ///     assert_eq!(leaders.next().await, Some(None), "nobody leads yet");
    ///     let leadership = cluster.node(0).campaign("scheduler").label("here").await?;
    ///     let leader = leaders.next().await.flatten().expect("node 0 leads");
    ///     assert_eq!((leader.label.as_str(), leader.token), ("here", leadership.token()));
    ///     // … lead, and stop when `leadership.lost().await` returns …
    ///     leadership.resign().await
    /// })
    /// # }
    /// ```
    pub fn campaign(&self, name: &str) -> Campaign {
        Campaign::new(self.clone(), name)
    }

    /// A barrier for `n` parties.
    ///
    /// ```
    /// # fn main() -> Result<(), konklave::Error> {
    /// let cluster = konklave::testing::Cluster::new(3);
    /// cluster.block_on(async {
    ///     let gates = [0, 1, 2].map(|i| cluster.node(i).barrier("loaded", 3));
    ///     // No party passes before all three have arrived.
    ///     let (a, b, c) = tokio::join!(gates[0].wait(), gates[1].wait(), gates[2].wait());
    ///     a.and(b).and(c)
    /// })
    /// # }
    /// ```
    pub fn barrier(&self, name: &str, n: u32) -> Barrier {
        Barrier::new(self.clone(), name, n)
    }

    /// Joins a group of the application: all members get the same messages and views in the same order. Returns
    /// when the group has the new member. Its first event is the state, which another member gives in answer to
    /// its own event [`GroupEvent::Snapshot`](crate::GroupEvent), or [`GroupEvent::First`](crate::GroupEvent).
    ///
    /// ```
    /// use konklave::GroupEvent;
    /// # fn main() -> Result<(), konklave::Error> {
    /// let cluster = konklave::testing::Cluster::new(3);
    /// cluster.block_on(async {
    ///     let mut chat = cluster.node(0).session("alice").group("chat").await?;
    ///     chat.send(&b"hello"[..]).await?;
    ///     while let Some(event) = chat.next().await {
    ///         match event {
    ///             GroupEvent::View(view) => assert!(view.members.contains(chat.me())),
    ///             GroupEvent::Message { from, bytes } => {
    ///                 assert_eq!((from.label.as_str(), &*bytes), ("alice", &b"hello"[..]));
    ///                 break;
    ///             }
    ///             GroupEvent::Snapshot(wanted) => wanted.give(&b"what we agreed on"[..])?,
    ///             _ => {}
    ///         }
    ///     }
    ///     Ok(())
    /// })
    /// # }
    /// ```
    pub async fn group(&self, name: &str) -> Result<Group, Error> {
        Group::enter(self.clone(), name).await
    }

    /// Ends the session: releases its grants, and withdraws its requests.
    pub fn close(&self) {
        let number = self.open.number;
        self.shared().with(|core, _| core.close(number));
    }

    /// Whether the session has not ended.
    pub fn is_open(&self) -> bool {
        self.shared().look(|core| core.is_open(self.open.number))
    }
}
