//! The rules of Naimi–Tréhel that a mistake changes.

use konklave_process::ProcessId;

use super::NaimiTrehel;
use crate::mutex::State;
use crate::{Mistake, Setup};

pub(super) const LAST_AFTER_SEND: Mistake = Mistake {
    name: "last-after-send",
    what: "a requester becomes the root only when the token arrives, not before it sends",
    breaks: "expected inputs",
    caught_by: "-n 3",
};
pub(super) const NO_PATH_REVERSAL: Mistake = Mistake {
    name: "no-path-reversal",
    what: "a root that gives the token away does not point to where it went",
    breaks: "one token",
    caught_by: "-n 2",
};
pub(super) const ONLY_HOLDERS_QUEUE: Mistake = Mistake {
    name: "only-holders-queue",
    what: "a root that only waits answers a request with the token, which it does not have",
    breaks: "one token",
    caught_by: "-n 3",
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

    /// A process becomes the root when it asks.
    pub(super) fn last_of_requester(self, last: ProcessId) -> Option<ProcessId> {
        self.makes(&LAST_AFTER_SEND).then_some(last)
    }

    /// When the token arrives, requests may have come in, and the process is not the root any more.
    pub(super) fn last_at_token(self, last: Option<ProcessId>) -> Option<ProcessId> {
        last.filter(|_| !self.makes(&LAST_AFTER_SEND))
    }

    /// The root lets requests wait while it is inside, and while it waits itself.
    pub(super) fn queues_requests(self, state: State) -> bool {
        match state {
            State::Released => false,
            State::Wanted => !self.makes(&ONLY_HOLDERS_QUEUE),
            State::Held => true,
        }
    }
}

impl NaimiTrehel {
    /// Every process that a request passes turns its pointer to the requester, the root included.
    pub(super) fn reverse_path(&mut self, requester: ProcessId) {
        let gave_token_away = self.last.is_none() && self.state == State::Released;
        if !(gave_token_away && self.rules.makes(&NO_PATH_REVERSAL)) {
            self.last = Some(requester);
        }
    }
}
