//! Lamport's mutual exclusion: one queue of requests, replicated everywhere and ordered by logical time.
//!
//! To enter, a process multicasts a timestamped request, which every process puts into its queue. The process whose
//! request is the head enters once every other process has sent it something later: on FIFO channels nothing earlier
//! can then be on its way.

mod rules;
mod sheet;
#[cfg(test)]
mod tests;

use konklave_process::{
    Context, Fixed, LamportClock, NoRecord, NoTimer, Process, ProcessId, ProcessSet, Timestamp,
};
use serde::{Deserialize, Serialize};

use self::rules::Rules;
use super::{Fence, Indication, Request};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Lamport {
    clock: LamportClock,
    state: State,
    /// Every known request that was not released, oldest first.
    queue: Vec<Timestamp>,
    #[serde(skip)]
    rules: Fixed<Rules>,
}

/// Outside; waiting since this timestamp, with nothing later received from `awaiting`; or inside.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
#[expect(missing_docs, reason = "the states of the paper")]
pub enum State {
    Released,
    Wanted { since: u32, awaiting: ProcessSet },
    Held { since: u32 },
}

/// Each message carries the time of its sender; a release also names the request that is over.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the messages of the paper")]
pub enum Message {
    Request { timestamp: u32 },
    Ack { clock: u32 },
    Release { request: u32, clock: u32 },
}

impl Process for Lamport {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        let process = ctx.me();
        match request {
            Request::Acquire => {
                let since = self.clock.tick();
                self.insert(Timestamp { time: since, process });
                self.state = State::Wanted { since, awaiting: ctx.others().collect() };
                ctx.send_to_others(Message::Request { timestamp: since });
                self.try_enter(ctx);
            }
            Request::Release => {
                let State::Held { since } = self.state else { return };
                self.state = State::Released;
                self.remove(Timestamp { time: since, process });
                let clock = self.clock.tick();
                ctx.send_to_others(Message::Release { request: since, clock });
            }
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Request { timestamp } => {
                let request = Timestamp { time: timestamp, process: from };
                self.receive(request, ctx);
                self.insert(request);
                self.acknowledge(request, ctx);
            }
            Message::Ack { clock } => self.receive(Timestamp { time: clock, process: from }, ctx),
            Message::Release { request, clock } => {
                self.receive(Timestamp { time: clock, process: from }, ctx);
                self.remove(Timestamp { time: request, process: from });
            }
        }
        self.try_enter(ctx);
    }
}

impl Lamport {
    /// After a message later than our request, its sender cannot send anything earlier any more.
    fn receive(&mut self, sent: Timestamp, ctx: &Context<'_, Self>) {
        self.clock.witness(sent.time);
        let State::Wanted { since, awaiting } = &mut self.state else { return };
        if (Timestamp { time: *since, process: ctx.me() }) < sent {
            awaiting.remove(sent.process);
        }
    }

    fn try_enter(&mut self, ctx: &mut Context<'_, Self>) {
        let State::Wanted { since, ref awaiting } = self.state else { return };
        let ours = Timestamp { time: since, process: ctx.me() };
        if awaiting.is_empty() && self.rules.is_head(ours, &self.queue) {
            self.state = State::Held { since };
            let fence = Fence(since.into(), ctx.me().0.into());
            ctx.indicate(Indication::Granted { fence: Some(fence) });
        }
    }

    fn insert(&mut self, request: Timestamp) {
        if let Err(place) = self.queue.binary_search(&request) {
            self.queue.insert(place, request);
        }
    }

    fn remove(&mut self, request: Timestamp) {
        if let Ok(place) = self.queue.binary_search(&request) {
            self.queue.remove(place);
        }
    }
}
