//! The rules of Suzuki–Kasami that a mistake changes.

use konklave_process::ProcessId;

use crate::{Mistake, Setup};

pub(super) const STALE: Mistake = Mistake {
    name: "stale-request",
    what: "an idle holder sends the token to every process that asks, even if that request was served already",
    breaks: "deadlock",
    caught_by: "-n 3 --requests 2,1,1",
};
pub(super) const OWN_NUMBER: Mistake = Mistake {
    name: "own-number",
    what: "a request moves and is judged by the receiver's own number, as the slide's index has it",
    breaks: "deadlock",
    caught_by: "-n 2 --requests 1,1",
};
pub(super) const UNCOUNTED: Mistake = Mistake {
    name: "uncounted-entry",
    what: "a holder that enters without asking does not count that as a request",
    breaks: "growing fences",
    caught_by: "-n 2 --requests 2,0 --property fence",
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

    /// A request has a number of its own, although the process with the token tells it to no other.
    pub(super) fn increment_with_token(self) -> u32 {
        u32::from(!self.makes(&UNCOUNTED))
    }

    /// A request is its sender's.
    pub(super) fn requester(self, from: ProcessId, me: ProcessId) -> ProcessId {
        if self.makes(&OWN_NUMBER) { me } else { from }
    }

    /// A request is answered only if it was not served.
    pub(super) fn is_outstanding(self, requested: u32, served: u32) -> bool {
        requested > served || self.makes(&STALE)
    }
}
