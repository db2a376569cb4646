//! Sessions: everything a client holds hangs on one.

use std::sync::Arc;

use crate::shared::Shared;
use crate::table::{Hold, Space};
use crate::{Barrier, Campaign, Error, Group, LockAll, LockRequest};

/// What one client of a node holds and waits for. Ends with its last clone, or when it is closed:
/// then everything it held is free, and everything it waited for is given up.
#[derive(Clone)]
pub struct Session {
    open: Arc<Open>,
}

struct Open {
    running: Arc<Running>,
    number: u32,
}

/// Stops the node when nobody has anything of it any more.
struct Running {
    shared: Arc<Shared>,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shared.stop();
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
    /// The first one of a node, which ends with it.
    pub(crate) fn first(shared: Arc<Shared>) -> Self {
        Self { open: Arc::new(Open { running: Arc::new(Running { shared }), number: 0 }) }
    }

    /// Another one of the same node.
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

    /// Asks for a lock: alone, in order, for as long as it takes, unless said otherwise.
    pub fn lock(&self, name: &str) -> LockRequest {
        LockRequest::new(self.clone(), Space::Lock, name, Hold::Exclusive)
    }

    /// Asks for one of `permits` permits. Everyone must name the same number.
    pub fn semaphore(&self, name: &str, permits: u32) -> LockRequest {
        LockRequest::new(self.clone(), Space::Semaphore, name, Hold::Permit { of: permits })
    }

    /// Asks for several locks, all or none. They are taken in the order of their names, whatever
    /// order they are given in, so that two who do this never wait for each other.
    pub fn lock_all<S: AsRef<str>>(&self, names: impl IntoIterator<Item = S>) -> LockAll {
        LockAll::new(self.clone(), names)
    }

    /// Stands for election under `name`.
    pub fn campaign(&self, name: &str) -> Campaign {
        Campaign::new(self.clone(), name)
    }

    /// A meeting point for `n`.
    pub fn barrier(&self, name: &str, n: u32) -> Barrier {
        Barrier::new(self.clone(), name, n)
    }

    /// Joins a group of the application.
    pub async fn group(&self, name: &str) -> Result<Group, Error> {
        Group::enter(self.clone(), name).await
    }

    /// Ends the session: all it holds is free, all it waits for is given up.
    pub fn close(&self) {
        let number = self.open.number;
        self.shared().with(|core, _| core.close(number));
    }

    /// Whether it has not ended.
    pub fn is_open(&self) -> bool {
        self.shared().look(|core| core.is_open(self.open.number))
    }
}
