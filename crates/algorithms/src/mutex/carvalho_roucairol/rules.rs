//! The rules of Carvalho–Roucairol that a mistake changes.

use konklave_process::{Context, ProcessId, Timestamp};

use super::CarvalhoRoucairol;
use crate::mutex::Fence;
use crate::{Mistake, Setup};

pub(super) const NO_RE_REQUEST: Mistake = Mistake {
    name: "no-re-request",
    what: "a waiting process that gives a permission away does not ask for it again",
    breaks: "deadlock",
    caught_by: "-n 3",
};
pub(super) const TIMESTAMP_FENCE: Mistake = Mistake {
    name: "timestamp-fence",
    what: "(timestamp, id) is the fence, as in Ricart–Agrawala: but a process with all permissions enters \
           before an older request that it does not know of",
    breaks: "growing fences",
    caught_by: "-n 2 --requests 2,1 --property fence",
};

/// Which mistakes a process makes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    no_re_request: bool,
    timestamp_fence: bool,
}

impl Rules {
    pub(super) fn of(setup: &Setup) -> Self {
        Self {
            no_re_request: *setup.makes(&NO_RE_REQUEST),
            timestamp_fence: *setup.makes(&TIMESTAMP_FENCE),
        }
    }

    /// The fence of an entry counts the entries: the permissions carry it.
    pub(super) fn fence(self, count: u64, request: Timestamp) -> Fence {
        match self.timestamp_fence {
            true => Fence(request.time.into(), request.process.0.into()),
            false => Fence(0, count),
        }
    }
}

impl CarvalhoRoucairol {
    /// A process that gives a permission away while it waits asks to have it back.
    pub(super) fn ask_back(&self, peer: ProcessId, since: u32, ctx: &mut Context<'_, Self>) {
        if !self.rules.no_re_request {
            self.ask(peer, since, ctx);
        }
    }
}
