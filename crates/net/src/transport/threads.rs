//! Channels in memory.

use std::sync::{Arc, PoisonError, RwLock};

use konklave_process::{Group, ProcessId};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::node::OutgoingMessage;
use crate::transport::Arrival;

/// The senders into all inboxes, in node order. A sender is replaced when its process restarts.
type Inboxes = Arc<RwLock<Vec<UnboundedSender<Arrival>>>>;

pub(crate) struct Network(Inboxes);

pub(crate) struct Inbox(UnboundedReceiver<Arrival>);

pub(crate) struct Outlet {
    me: ProcessId,
    inboxes: Inboxes,
}

impl Network {
    pub(super) fn new(group: &Group) -> Self {
        let closed = || unbounded_channel().0;
        Self(Arc::new(RwLock::new((0..group.len()).map(|_| closed()).collect())))
    }

    pub(super) fn attach(&self, place: usize, me: ProcessId) -> (Inbox, Outlet) {
        let (sender, receiver) = unbounded_channel();
        self.0.write().unwrap_or_else(PoisonError::into_inner)[place] = sender;
        (Inbox(receiver), Outlet { me, inboxes: self.0.clone() })
    }
}

impl Inbox {
    pub(super) async fn next(&mut self) -> Option<Arrival> {
        self.0.recv().await
    }
}

impl Outlet {
    pub(super) fn send(&self, OutgoingMessage { to, id, message }: OutgoingMessage) {
        let inboxes = self.inboxes.read().unwrap_or_else(PoisonError::into_inner);
        // If the receiver has crashed, the message was counted as lost then.
        let _ = inboxes[to].send(Arrival::Message { from: self.me, id, message });
    }
}
