//! Cao and Singhal's mutual exclusion by quorums with the shortest delay.
//!
//! As in Maekawa's algorithm a process needs the locks of its quorum. But an arbiter tells the
//! holder of its lock who is next, and the holder passes the lock on when it leaves: that takes one
//! message, not one to the arbiter and one from it. Each lock of an arbiter has a number, for the
//! same request may get the same arbiter's lock more than once.

mod arbiter;
mod requester;
mod sheet;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use konklave_process::{
    Context, Fixed, LamportClock, NoRecord, NoTimer, Process, ProcessId, Timestamp,
};
use serde::{Deserialize, Serialize};

use self::arbiter::{Arbiter, Release};
use self::requester::Requester;
use super::locking::{Clocks, Outbox};
use super::{Indication, Request};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct CaoSinghal {
    clock: LamportClock,
    /// How many entries we know of: the latest had this number as its fence.
    entries: u32,
    requester: Requester,
    arbiter: Arbiter,
    #[serde(skip)]
    rules: Fixed<Arc<Rules>>,
}

/// What is said. Locks are named by their arbiter and their number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// Lock yourself for me, says a requester.
    Request {
        /// The time of the request.
        time: u32,
    },
    /// You have a lock, says its arbiter, or the one who had it before.
    Locked {
        /// Whose lock it is.
        by: ProcessId,
        /// The number of the lock.
        lock: u32,
        /// The time of your request.
        request: u32,
        /// Who is next, if that is known already.
        next: Option<Timestamp>,
        /// How many entries I know of.
        entries: u32,
        /// The clock of the one who says it; 0 if only requests move clocks.
        clock: u32,
    },
    /// You have to wait, says an arbiter.
    Failed {
        /// The time of your request.
        request: u32,
        /// The clock of the one who says it; 0 if only requests move clocks.
        clock: u32,
    },
    /// Pass my lock on when you leave, says an arbiter.
    Transfer {
        /// The number of the lock.
        lock: u32,
        /// To which request.
        next: Timestamp,
        /// The clock of the one who says it; 0 if only requests move clocks.
        clock: u32,
    },
    /// The same; and if you have to wait anyway, give my lock back.
    Inquire {
        /// The number of the lock.
        lock: u32,
        /// To which request.
        next: Timestamp,
        /// The clock of the one who says it; 0 if only requests move clocks.
        clock: u32,
    },
    /// Have your lock back, says a requester, who still wants it.
    Yield {
        /// The number of the lock.
        lock: u32,
        /// The clock of the one who says it; 0 if only requests move clocks.
        clock: u32,
    },
    /// I left, says a requester.
    Release {
        /// The number of the lock.
        lock: u32,
        /// To which request I passed the lock on.
        forwarded: Option<Timestamp>,
        /// How many entries there were, this one included.
        entries: u32,
        /// The clock of the one who says it; 0 if only requests move clocks.
        clock: u32,
    },
}

impl Message {
    /// What it tells of the time.
    fn clock(self) -> u32 {
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

/// How one process takes part. It never changes.
#[derive(Debug)]
struct Rules {
    /// Whom we ask for their locks, in the order of ids.
    quorum: Arc<[ProcessId]>,
    transfers: Transfers,
    /// Which messages move the clocks.
    clocks: Clocks,
    flaw: Option<Flaw>,
}

/// To whom a lock is passed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Transfers {
    /// The oldest that was announced.
    Strongest,
    /// The one that was announced last.
    Last,
    /// The oldest that was announced after the lock came.
    Prompt,
}

/// What can be done wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Flaw {
    TimestampsOnly,
    KeepTransfers,
    NoReleaseBuffer,
    DropEarlyInquire,
    NoInquireAfterForward,
    NoDisplacedFailed,
}

impl Rules {
    /// Whether each lock of an arbiter has a higher number than the one before.
    fn are_locks_numbered(&self) -> bool {
        !matches!(self.flaw, Some(Flaw::TimestampsOnly | Flaw::KeepTransfers))
    }

    /// The number of the lock after `lock`, for this request.
    fn next_lock(&self, lock: u32, request: Timestamp) -> u32 {
        if self.are_locks_numbered() { lock.saturating_add(1) } else { request.time }
    }
}

impl CaoSinghal {
    /// What the message says, and then all that follows from it within this process.
    fn hear(&mut self, from: ProcessId, message: Message, outbox: &mut Outbox<'_, '_, Self>) {
        let rules = &**self.rules;
        let (requester, arbiter) = (&mut self.requester, &mut self.arbiter);
        match message {
            Message::Request { time } => {
                arbiter.on_request(Timestamp { time, process: from }, rules, outbox);
            }
            Message::Locked { by, lock, request, next, entries, .. } => {
                outbox.entries = outbox.entries.max(entries);
                requester.on_locked(by, lock, request, next, rules, outbox);
            }
            Message::Failed { request, .. } => requester.on_failed(from, request, rules, outbox),
            Message::Transfer { lock, next, .. } => requester.on_transfer(from, lock, next, rules),
            Message::Inquire { lock, next, .. } => {
                requester.on_transfer(from, lock, next, rules);
                requester.on_inquire(from, lock, rules, outbox);
            }
            Message::Yield { lock, .. } => arbiter.on_yield(lock, from, rules, outbox),
            Message::Release { lock, forwarded, entries, .. } => {
                outbox.entries = outbox.entries.max(entries);
                arbiter.on_release(Release { lock, by: from, forwarded }, rules, outbox);
            }
        }
    }

    /// Handles what we sent ourselves.
    fn finish(&mut self, mut outbox: Outbox<'_, '_, Self>) {
        while let Some(message) = outbox.next_own() {
            self.hear(outbox.me(), message, &mut outbox);
        }
        self.entries = outbox.entries;
    }
}

impl Process for CaoSinghal {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        let since = match request {
            Request::Acquire => self.clock.tick(),
            Request::Release => self.clock.now(),
        };
        let mut outbox = Outbox::new(self.entries, self.rules.clocks.told(self.clock), ctx);
        match request {
            Request::Acquire => self.requester.acquire(since, &self.rules, &mut outbox),
            Request::Release => self.requester.release(&self.rules, &mut outbox),
        }
        self.finish(outbox);
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        let arbiter = match message {
            Message::Locked { by, .. } => Some(by),
            Message::Failed { .. } | Message::Transfer { .. } | Message::Inquire { .. } => {
                Some(from)
            }
            Message::Request { .. } | Message::Yield { .. } | Message::Release { .. } => None,
        };
        if arbiter.is_some_and(|arbiter| self.rules.quorum.binary_search(&arbiter).is_err()) {
            return ctx.unexpected("a message about a lock that we did not ask for");
        }
        self.clock.witness(message.clock());
        let mut outbox = Outbox::new(self.entries, self.rules.clocks.told(self.clock), ctx);
        self.hear(from, message, &mut outbox);
        self.finish(outbox);
    }
}
