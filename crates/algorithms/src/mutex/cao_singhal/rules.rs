//! The rules of Cao and Singhal that a switch or a mistake changes.

use std::sync::Arc;

use konklave_process::{ProcessId, Timestamp};

use super::Message;
use crate::mutex::locking::{Clocks, Few};

/// The rules of one process. They never change.
#[derive(Debug)]
pub(super) struct Rules {
    /// The arbiters to ask for their locks, in the order of ids.
    pub(super) quorum: Arc<[ProcessId]>,
    pub(super) transfers: Transfers,
    /// Which messages move the clocks.
    pub(super) clocks: Clocks,
    pub(super) flaw: Option<Flaw>,
}

/// The request to which a lock is passed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Transfers {
    /// The oldest that was announced.
    Strongest,
    /// The one that was announced last.
    Last,
    /// The oldest that was announced after the lock came.
    Prompt,
}

/// A mistake in one of the rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Flaw {
    TimestampsOnly,
    KeepTransfers,
    NoReleaseBuffer,
    DropEarlyInquire,
    NoInquireAfterForward,
    NoDisplacedFailed,
}

impl Rules {
    /// Whether each lock of an arbiter has a higher number than the one before.
    pub(super) fn are_locks_numbered(&self) -> bool {
        !matches!(self.flaw, Some(Flaw::TimestampsOnly | Flaw::KeepTransfers))
    }

    /// The number of the lock after `lock`, for this request.
    pub(super) fn next_lock(&self, lock: u32, request: Timestamp) -> u32 {
        if self.are_locks_numbered() { lock.saturating_add(1) } else { request.time }
    }

    /// An inquiry may overtake the lock it asks about, as they take different ways: so it is noted.
    pub(super) fn notes_early_inquiry(&self) -> bool {
        self.flaw != Some(Flaw::DropEarlyInquire)
    }

    /// An announcement may overtake the lock it is about: so it is noted.
    pub(super) fn notes_early_transfer(&self) -> bool {
        self.transfers != Transfers::Prompt
    }

    /// Whether `next` gets the lock rather than the request that was announced before.
    pub(super) fn goes_before(&self, next: Timestamp, announced: Timestamp) -> bool {
        next < announced || self.transfers == Transfers::Last
    }

    /// Once a lock was given back, it is not passed on.
    pub(super) fn void_transfer<T: Copy>(&self, transfers: &mut Few<T>, arbiter: ProcessId) {
        if self.flaw != Some(Flaw::KeepTransfers) {
            transfers.remove(arbiter);
        }
    }

    /// A request that an older one displaces from the head of the queue fails, too: it might keep the locks of others
    /// for ever.
    pub(super) fn fails_displaced(&self) -> bool {
        self.flaw != Some(Flaw::NoDisplacedFailed)
    }

    /// A release that overtakes the release of the holder before is kept until its turn comes.
    pub(super) fn keeps_early_releases(&self) -> bool {
        self.flaw != Some(Flaw::NoReleaseBuffer)
    }

    /// An older request may come too late for the holder that passed the lock on: so the arbiter inquires of the next.
    pub(super) fn inquires_after_transfer(&self, head: Timestamp, holder: Timestamp) -> bool {
        head < holder && self.flaw != Some(Flaw::NoInquireAfterForward)
    }
}

impl Message {
    /// The clock of the sender; 0 if the message carries none.
    pub(super) fn clock(self) -> u32 {
        match self {
            Self::Request { time } => time,
            Self::Locked { clock, .. }
            | Self::Failed { clock, .. }
            | Self::Transfer { clock, .. }
            | Self::Inquire { clock, .. }
            | Self::Yield { clock, .. }
            | Self::Release { clock, .. } => clock,
        }
    }
}
