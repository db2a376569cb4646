//! The clients: each multicasts a number of messages.

use konklave_process::{Application, Group, Process, ProcessId, ProcessMap};

use super::{Indication, Request};

/// One client for each process. No client waits for a delivery before it multicasts the next message.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Clients(ProcessMap<Client>);

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Client {
    /// How many messages it has multicast.
    sent: u32,
    /// How many messages it still wants to multicast.
    left: u32,
    /// How many of its messages were not delivered to it yet.
    open: u32,
}

impl Clients {
    /// Clients with these numbers of messages, in node order.
    pub fn new(group: &Group, requests: &[u32]) -> Self {
        let mut clients = ProcessMap::new(group, Client { sent: 0, left: 0, open: 0 });
        for (&p, &left) in group.members().iter().zip(requests) {
            clients[p].left = left;
        }
        Self(clients)
    }
}

impl<P: Process<Request = Request, Indication = Indication>> Application<P> for Clients {
    fn next(&self, at: ProcessId) -> Option<Request> {
        let client = self.0[at];
        (client.left > 0).then_some(Request::Multicast(client.sent + 1))
    }

    fn on_request(&mut self, at: ProcessId, request: &Request) {
        let Request::Multicast(number) = *request;
        let client = &mut self.0[at];
        client.sent = number;
        client.left = client.left.saturating_sub(1);
        client.open += 1;
    }

    fn on_indication(&mut self, at: ProcessId, indication: &Indication) {
        if let Indication::Delivered(unit) = indication
            && unit.from == at
        {
            let client = &mut self.0[at];
            client.open = client.open.saturating_sub(1);
        }
    }

    fn prefetch(&self, at: ProcessId) {
        self.0.prefetch(at);
    }

    fn on_crash(&mut self, at: ProcessId) {
        self.0[at].open = 0;
    }

    fn waiting(&self) -> Vec<ProcessId> {
        self.0.iter().filter(|(_, client)| client.open > 0).map(|(p, _)| p).collect()
    }
}
