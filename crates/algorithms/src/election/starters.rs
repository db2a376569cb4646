//! The application: it asks some processes to start an election, once or several times.

use konklave_process::{Application, Fixed, Group, Process, ProcessId, ProcessMap};

use super::{Indication, Request};
use crate::Workload;

/// The number of elections that each process has still to start.
///
/// A process starts its next election only when it knows the outcome of the last. One that learns
/// the outcome before it was to start has no reason to start any more, unless a script says so.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Starters {
    starters: ProcessMap<Starter>,
    /// Whether a script names each start and its time. Then each takes place, also after an election.
    scripted: Fixed<bool>,
    /// Whether every initiator starts, as by one signal.
    together: Fixed<bool>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
struct Starter {
    left: u16,
    /// It started, or takes part, and does not know the outcome.
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
        Self { starters, scripted: Fixed(false), together: Fixed(false) }
    }

    /// The same, with every initiator obliged to start if `together`.
    pub fn obliged(mut self, together: bool) -> Self {
        self.together = Fixed(together);
        self
    }

    /// The same by a script: a process starts at its time, even if it has learned an outcome before.
    pub fn scripted(group: &Group, workload: &Workload) -> Self {
        Self { scripted: Fixed(true), ..Self::new(group, workload) }
    }
}

impl<P: Process<Request = Request, Indication = Indication>> Application<P> for Starters {
    fn next(&self, at: ProcessId) -> Option<Request> {
        let starter = self.starters[at];
        (starter.left > 0 && !starter.waits && !starter.crashed).then_some(Request::Elect)
    }

    fn on_request(&mut self, at: ProcessId, Request::Elect: &Request) {
        let starter = &mut self.starters[at];
        starter.left = starter.left.saturating_sub(1);
        starter.waits = true;
    }

    fn on_indication(&mut self, at: ProcessId, indication: &Indication) {
        match indication {
            Indication::Leading { .. } | Indication::Following { .. } | Indication::Loop => {
                let starter = &mut self.starters[at];
                if !std::mem::take(&mut starter.waits) && !*self.scripted {
                    starter.left = starter.left.saturating_sub(1);
                }
            }
            Indication::Candidate | Indication::Deposed => {}
        }
    }

    fn on_crash(&mut self, at: ProcessId) {
        self.starters[at] = Starter { crashed: true, waits: false, ..self.starters[at] };
    }

    fn on_restart(&mut self, at: ProcessId) {
        self.starters[at].crashed = false;
    }

    fn must_request(&self, _at: ProcessId) -> bool {
        *self.together
    }

    #[inline]
    fn prefetch(&self, at: ProcessId) {
        self.starters.prefetch(at);
    }

    fn waiting(&self) -> Vec<ProcessId> {
        self.starters.iter().filter(|(_, starter)| starter.waits).map(|(p, _)| p).collect()
    }
}
