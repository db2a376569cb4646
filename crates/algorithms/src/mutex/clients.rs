//! The clients: each wants in a number of times.

use konklave_process::{Application, Group, Process, ProcessId, ProcessMap};

use super::{Indication, Request};

/// One client for each process.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Clients(ProcessMap<Client>);

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Client {
    phase: Phase,
    /// How often it still wants in; the largest number means again and again.
    left: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Phase {
    Outside,
    Waiting,
    Inside,
    Crashed,
}

impl Clients {
    /// Clients that want in `requests` times each, given in node order.
    pub fn new(group: &Group, requests: &[u32]) -> Self {
        let mut clients = ProcessMap::new(group, Client { phase: Phase::Outside, left: 0 });
        for (&p, &left) in group.members().iter().zip(requests) {
            clients[p].left = left;
        }
        Self(clients)
    }
}

impl<P: Process<Request = Request, Indication = Indication>> Application<P> for Clients {
    fn next(&self, at: ProcessId) -> Option<Request> {
        let client = self.0[at];
        match client.phase {
            Phase::Outside if client.left > 0 => Some(Request::Acquire),
            Phase::Inside => Some(Request::Release),
            Phase::Outside | Phase::Waiting | Phase::Crashed => None,
        }
    }

    fn on_request(&mut self, at: ProcessId, request: &Request) {
        let client = &mut self.0[at];
        match request {
            Request::Acquire => {
                client.phase = Phase::Waiting;
                if client.left != u32::MAX {
                    client.left = client.left.saturating_sub(1);
                }
            }
            Request::Release => client.phase = Phase::Outside,
        }
    }

    fn on_indication(&mut self, at: ProcessId, indication: &Indication) {
        let Indication::Granted { .. } = indication;
        self.0[at].phase = Phase::Inside;
    }

    fn on_crash(&mut self, at: ProcessId) {
        self.0[at].phase = Phase::Crashed;
    }

    fn on_restart(&mut self, at: ProcessId) {
        self.0[at].phase = Phase::Outside;
    }

    #[inline]
    fn prefetch(&self, at: ProcessId) {
        self.0.prefetch(at);
    }

    fn holds(&self, at: ProcessId) -> bool {
        self.0[at].phase == Phase::Inside
    }

    fn waiting(&self) -> Vec<ProcessId> {
        let waiting = self.0.iter().filter(|(_, client)| client.phase == Phase::Waiting);
        waiting.map(|(p, _)| p).collect()
    }
}
