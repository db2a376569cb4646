//! The ring election of the slides: gather all ids, then take the maximum.
//!
//! A list goes round to which every process adds itself; a process that finds itself on it closes the round and sends
//! the result after it. The slides credit Chang and Roberts; it is rather Le Lann's, for no id stops another.
//! The [`hardened`] form, a process of its own, outlives crashes, losses and copies.

pub mod hardened;
mod rules;
mod sheet;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId};
use serde::{Deserialize, Serialize};

use self::rules::Rules;
use super::ring::Suspects;
use super::{Indication, Request, ring};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct RingList {
    successor: ProcessId,
    /// The suspected processes: the successor is the first that is not.
    suspects: Suspects,
    leader: Option<ProcessId>,
    /// Whether this process opened an election whose result it does not know.
    waiting: bool,
    #[serde(skip)]
    rules: Fixed<Rules>,
}

/// A list of processes; a message on its way is its only owner, so that adding to it copies nothing.
pub type List = Arc<Vec<ProcessId>>;

/// The process that opened the election is the first of `list`, the processes that were reached; the highest of them
/// leads. `informed` know that. `round` is the number of a hardened election, or 0.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the messages of the slides")]
pub enum Message {
    Election { round: u32, list: List },
    Coordinator { round: u32, list: List, informed: List },
}

impl Process for RingList {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, Request::Elect: Request, ctx: &mut Context<'_, Self>) {
        let me = ctx.me();
        if self.successor == me {
            return self.decide(me, ctx);
        }
        self.waiting = true;
        ctx.send(self.successor, Message::Election { round: 0, list: Arc::new(vec![me]) });
    }

    fn on_message(&mut self, _from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        let me = ctx.me();
        match message {
            Message::Election { list, .. } | Message::Coordinator { list, .. }
                if list.is_empty() =>
            {
                ctx.unexpected("an election that nobody opened");
            }
            Message::Election { list, .. } if list.contains(&me) => {
                self.finish(list, Vec::new(), ctx);
            }
            Message::Election { round, mut list } => {
                Arc::make_mut(&mut list).push(me);
                ctx.send(self.successor, Message::Election { round, list });
            }
            Message::Coordinator { informed, .. } if informed.contains(&me) => {}
            Message::Coordinator { list, informed, .. } => {
                self.finish(list, Arc::unwrap_or_clone(informed), ctx);
            }
        }
    }

    fn on_suspect(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.suspects.insert(peer);
        self.successor = self.suspects.next_alive(ctx.me(), ctx.group());
    }

    fn on_trust(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.suspects.remove(peer);
        self.successor = self.suspects.next_alive(ctx.me(), ctx.group());
    }
}

impl RingList {
    /// FINISH_ELECTION: follows the highest of `list` and passes the result on.
    fn finish(&mut self, list: List, mut informed: Vec<ProcessId>, ctx: &mut Context<'_, Self>) {
        let leader = list.iter().copied().max().unwrap_or(ctx.me());
        self.decide(leader, ctx);
        if self.rules.passes_on(&informed) {
            informed.push(ctx.me());
            let informed = Arc::new(informed);
            ctx.send(self.successor, Message::Coordinator { round: 0, list, informed });
        }
    }

    fn decide(&mut self, leader: ProcessId, ctx: &mut Context<'_, Self>) {
        if self.waiting || self.leader != Some(leader) {
            self.waiting = false;
            self.leader = Some(leader);
            ring::announce(leader, 0, ctx);
        }
    }
}
