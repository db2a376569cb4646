//! Channels in memory.

use std::sync::{Arc, PoisonError, RwLock};

use konklave_process::{Group, ProcessId};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::node::Parcel;
use crate::transport::Arrival;

/// Whom to reach where, in node order. They change when a process comes up again.
type Doors<M> = Arc<RwLock<Vec<UnboundedSender<Arrival<M>>>>>;

pub(crate) struct Network<M>(Doors<M>);

pub(crate) struct Inbox<M>(UnboundedReceiver<Arrival<M>>);

pub(crate) struct Outlet<M> {
    me: ProcessId,
    doors: Doors<M>,
}

impl<M> Network<M> {
    pub(super) fn new(group: &Group) -> Self {
        let closed = || unbounded_channel().0;
        Self(Arc::new(RwLock::new((0..group.len()).map(|_| closed()).collect())))
    }

    pub(super) fn attach(&self, place: usize, me: ProcessId) -> (Inbox<M>, Outlet<M>) {
        let (sender, receiver) = unbounded_channel();
        self.0.write().unwrap_or_else(PoisonError::into_inner)[place] = sender;
        (Inbox(receiver), Outlet { me, doors: self.0.clone() })
    }
}

impl<M> Inbox<M> {
    pub(super) async fn next(&mut self) -> Option<Arrival<M>> {
        self.0.recv().await
    }
}

impl<M> Outlet<M> {
    pub(super) fn send(&self, Parcel { to, id, message }: Parcel<M>) {
        let doors = self.doors.read().unwrap_or_else(PoisonError::into_inner);
        // Who is not there has crashed, and the message was counted as lost then.
        let _ = doors[to].send(Arrival::Message { from: self.me, id, message });
    }
}
