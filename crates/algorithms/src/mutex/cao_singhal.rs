//! Cao and Singhal's mutual exclusion by quorums with the shortest delay.
//!
//! As in [Maekawa's algorithm](super::maekawa) a process needs the locks of its quorum, an older request has an arbiter
//! inquire, and a requester that has to wait anyway gives a lock back. Three things differ:
//!
//! - an arbiter tells the holder of its lock which request is next (TRANSFER), and the holder passes the lock on when it
//!   leaves: one message instead of one to the arbiter and one from it;
//! - the release names the request that got the lock; if it arrives after that one's own release, the arbiter keeps that
//!   until its turn comes;
//! - each lock of an arbiter has a number, as the same request may get the lock of the same arbiter more than once.

mod arbiter;
mod requester;
mod rules;
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
use self::rules::Rules;
use super::locking::Outbox;
use super::{Indication, Request};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct CaoSinghal {
    clock: LamportClock,
    /// The highest known fence.
    entries: u32,
    requester: Requester,
    arbiter: Arbiter,
    #[serde(skip)]
    rules: Fixed<Arc<Rules>>,
}

/// A lock is named by its arbiter and its number. TRANSFER and INQUIRE name the `next` request, `request` is a timestamp,
/// `entries` the highest fence that the sender knows, and `clock` its clock, or 0 if only requests move clocks.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the messages of the paper")]
pub enum Message {
    Request {
        time: u32,
    },
    Locked {
        by: ProcessId,
        lock: u32,
        request: u32,
        next: Option<Timestamp>,
        entries: u32,
        clock: u32,
    },
    Failed {
        request: u32,
        clock: u32,
    },
    Transfer {
        lock: u32,
        next: Timestamp,
        clock: u32,
    },
    Inquire {
        lock: u32,
        next: Timestamp,
        clock: u32,
    },
    Yield {
        lock: u32,
        clock: u32,
    },
    Release {
        lock: u32,
        forwarded: Option<Timestamp>,
        entries: u32,
        clock: u32,
    },
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
            return ctx.unexpected("a message about a lock that was not asked for");
        }
        self.clock.witness(message.clock());
        let mut outbox = Outbox::new(self.entries, self.rules.clocks.told(self.clock), ctx);
        self.receive(from, message, &mut outbox);
        self.finish(outbox);
    }
}

impl CaoSinghal {
    fn receive(&mut self, from: ProcessId, message: Message, outbox: &mut Outbox<'_, '_, Self>) {
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

    /// Handles the messages of this process to itself.
    fn finish(&mut self, mut outbox: Outbox<'_, '_, Self>) {
        while let Some(message) = outbox.next_own() {
            self.receive(outbox.me(), message, &mut outbox);
        }
        self.entries = outbox.entries;
    }
}
