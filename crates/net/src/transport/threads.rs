//! Channels in memory.

use std::sync::{Arc, PoisonError, RwLock};

use konklave_process::{Group, ProcessId};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::node::Parcel;
use crate::transport::Arrival;

/// Whom to reach where, in node order. They change when a process comes up again.
type Doors = Arc<RwLock<Vec<UnboundedSender<Arrival>>>>;

pub(crate) struct Network(Doors);

pub(crate) struct Inbox(UnboundedReceiver<Arrival>);

pub(crate) struct Outlet {
    me: ProcessId,
    doors: Doors,
}

impl Network {
    pub(super) fn new(group: &Group) -> Self {
        let closed = || unbounded_channel().0;
        Self(Arc::new(RwLock::new((0..group.len()).map(|_| closed()).collect())))
    }

    pub(super) fn attach(&self, place: usize, me: ProcessId) -> (Inbox, Outlet) {
        let (sender, receiver) = unbounded_channel();
        self.0.write().unwrap_or_else(PoisonError::into_inner)[place] = sender;
        (Inbox(receiver), Outlet { me, doors: self.0.clone() })
    }
}

impl Inbox {
    pub(super) async fn next(&mut self) -> Option<Arrival> {
        self.0.recv().await
    }
}

impl Outlet {
    pub(super) fn send(&self, Parcel { to, id, message }: Parcel) {
        let doors = self.doors.read().unwrap_or_else(PoisonError::into_inner);
        // Who is not there has crashed, and the message was counted as lost then.
        let _ = doors[to].send(Arrival::Message { from: self.me, id, message });
    }
}
