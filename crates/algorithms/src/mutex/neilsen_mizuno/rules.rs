//! The rules of Neilsen–Mizuno that a mistake changes.

use konklave_process::ProcessId;

use crate::mutex::State;
use crate::{Mistake, Setup};

pub(super) const NO_EDGE_REVERSAL: Mistake = Mistake {
    name: "no-edge-reversal",
    what: "a process that passes a request on does not turn its edge: it and its neighbour point at each other",
    breaks: "deadlock",
    caught_by: "-n 3 --topology path --requests 0,1,1",
};
pub(super) const ONLY_HOLDERS_QUEUE: Mistake = Mistake {
    name: "only-holders-queue",
    what: "a sink that only waits answers a request with the token, which it does not have",
    breaks: "one token",
    caught_by: "-n 3 --topology path",
};

/// Which mistake a process makes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules(Option<&'static str>);

impl Rules {
    pub(super) fn of(setup: &Setup) -> Self {
        Self(setup.mistake)
    }

    fn makes(self, mistake: &Mistake) -> bool {
        self.0 == Some(mistake.name)
    }

    /// A process that passes a request on turns its edge from `last` to the request's sender.
    pub(super) fn reversed(self, last: ProcessId, from: ProcessId) -> Option<ProcessId> {
        Some(if self.makes(&NO_EDGE_REVERSAL) { last } else { from })
    }

    /// The sink lets requests wait while it is inside, and while it waits itself.
    pub(super) fn queues_requests(self, state: State) -> bool {
        match state {
            State::Released => false,
            State::Wanted => !self.makes(&ONLY_HOLDERS_QUEUE),
            State::Held => true,
        }
    }
}
