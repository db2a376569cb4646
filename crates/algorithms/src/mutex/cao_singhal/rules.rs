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

/// The choice of the request that gets a lock from its holder: one of those that the arbiter announced by TRANSFER.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Transfers {
    /// The oldest one.
    Strongest,
    /// The last one.
    Last,
    /// The oldest one that was announced after the lock arrived.
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

    /// An INQUIRE may overtake its LOCKED, because another holder may have sent the lock. So the process keeps it.
    pub(super) fn notes_early_inquiry(&self) -> bool {
        self.flaw != Some(Flaw::DropEarlyInquire)
    }

    /// A TRANSFER may overtake its LOCKED, for the same reason. So the process keeps it.
    pub(super) fn notes_early_transfer(&self) -> bool {
        self.transfers != Transfers::Prompt
    }

    /// Whether `next` gets the lock instead of the request announced before.
    pub(super) fn goes_before(&self, next: Timestamp, announced: Timestamp) -> bool {
        next < announced || self.transfers == Transfers::Last
    }

    /// A process that relinquished a lock does not pass it on.
    pub(super) fn void_transfer<T: Copy>(&self, transfers: &mut Few<T>, arbiter: ProcessId) {
        if self.flaw != Some(Flaw::KeepTransfers) {
            transfers.remove(arbiter);
        }
    }

    /// A request that an older one displaces from the head of the queue gets a FAILED, too. Without it, its process
    /// might keep the locks of other arbiters for ever.
    pub(super) fn fails_displaced(&self) -> bool {
        self.flaw != Some(Flaw::NoDisplacedFailed)
    }

    /// A RELEASE may overtake the one of the previous holder. So the arbiter keeps it until its turn comes.
    pub(super) fn keeps_early_releases(&self) -> bool {
        self.flaw != Some(Flaw::NoReleaseBuffer)
    }

    /// An older request may come after the holder passed the lock on. So the arbiter sends an INQUIRE to the next holder.
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
