//! The application: some processes are told to start an election, once or several times.

use konklave_process::{Application, Group, Process, ProcessId, ProcessMap};

use super::{Indication, Request};
use crate::Workload;

/// Who has still to start how many elections.
///
/// A process starts its next election only when it knows the outcome of the last. One that learns
/// the outcome before it was to start has no reason to start any more.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Starters(ProcessMap<Starter>);

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Starter {
    left: u16,
    /// It started, or was drawn in, and does not know the outcome.
    waits: bool,
    crashed: bool,
}

impl Starters {
    /// The initiators start as often as `workload` says: once where it says nothing.
    pub fn new(group: &Group, workload: &Workload) -> Self {
        let mut starters = ProcessMap::new(group, Starter::default());
        for &p in &workload.initiators {
            let times = group.place(p).and_then(|place| workload.requests.get(place));
            starters[p].left = times.map_or(1, |&t| t.min(u16::MAX.into()) as u16);
        }
        Self(starters)
    }
}

impl<P: Process<Request = Request, Indication = Indication>> Application<P> for Starters {
    fn next(&self, at: ProcessId) -> Option<Request> {
        let starter = self.0[at];
        (starter.left > 0 && !starter.waits && !starter.crashed).then_some(Request::Elect)
    }

    fn on_request(&mut self, at: ProcessId, Request::Elect: &Request) {
        let starter = &mut self.0[at];
        starter.left = starter.left.saturating_sub(1);
        starter.waits = true;
    }

    fn on_indication(&mut self, at: ProcessId, indication: &Indication) {
        match indication {
            Indication::Leading { .. } | Indication::Following { .. } | Indication::Loop => {
                let starter = &mut self.0[at];
                if !std::mem::take(&mut starter.waits) {
                    starter.left = starter.left.saturating_sub(1);
                }
            }
            Indication::Candidate | Indication::Deposed => {}
        }
    }

    fn on_crash(&mut self, at: ProcessId) {
        self.0[at] = Starter { crashed: true, waits: false, ..self.0[at] };
    }

    fn on_restart(&mut self, at: ProcessId) {
        self.0[at].crashed = false;
    }

    #[inline]
    fn call_up(&self, at: ProcessId) {
        self.0.call_up(at);
    }

    fn waiting(&self) -> Vec<ProcessId> {
        self.0.iter().filter(|(_, starter)| starter.waits).map(|(p, _)| p).collect()
    }
}
