//! Echo with extinction: every initiator starts a wave, and only the strongest returns.
//!
//! A wave carries the id of its initiator. A process joins a wave that is stronger than its own as if it were its
//! first; weaker waves end where they meet it. The initiator whose neighbours have all answered has won.

mod rules;
mod sheet;
#[cfg(test)]
mod tests;

use konklave_process::{
    CompactOption, Context, Fixed, NoRecord, NoTimer, Port, PortSet, Process, ProcessId,
};
use serde::{Deserialize, Serialize};

use self::rules::Rules;
use super::edges::Edges;
use super::{Indication, Request};

/// One process of the algorithm. Large graphs are built of these: it takes one cache line.
#[repr(align(64))]
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Extinction {
    /// The strongest wave that arrived, or the own one.
    wave: CompactOption<ProcessId>,
    /// The edge that it came over; none for the own wave.
    parent: CompactOption<Port>,
    /// The edges without an answer in this wave.
    awaited: PortSet,
    leader: CompactOption<ProcessId>,
    #[serde(skip)]
    edges: Edges,
    #[serde(skip)]
    rules: Fixed<Rules>,
}

/// Each message names the initiator of a wave.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// The receiver should join the wave.
    Explore(ProcessId),
    /// All processes behind the sender are in the wave.
    Echo(ProcessId),
    /// The initiator leads.
    Info(ProcessId),
}

impl Process for Extinction {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, Request::Elect: Request, ctx: &mut Context<'_, Self>) {
        if let Some(leader) = self.leader.get() {
            ctx.indicate(Indication::outcome(leader, ctx.me()));
        } else if self.rules.permits_start(self.wave) {
            ctx.indicate(Indication::Candidate);
            self.join(ctx.me(), None, ctx);
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        if let (Message::Info(_), Some(_)) = (message, self.leader.get()) {
            // Most messages of the flood arrive where the leader is known.
            return;
        }
        let Some(port) = self.edges.port(from) else {
            return ctx.unexpected("a message from a stranger");
        };
        match message {
            Message::Explore(wave) if self.wave < Some(wave) => self.join(wave, Some(port), ctx),
            Message::Explore(wave) if self.wave == Some(wave) => {
                if self.rules.counts_crossing_explorers() {
                    self.on_answer(wave, port, ctx);
                }
            }
            Message::Echo(wave) if self.wave == Some(wave) => self.on_answer(wave, port, ctx),
            // A weaker wave ends here.
            Message::Explore(_) | Message::Echo(_) => {}
            Message::Info(leader) => self.decide(leader, Some(port), ctx),
        }
    }
}

impl Extinction {
    /// Joins a stronger wave, or starts one: earlier answers are void, and all other edges are explored.
    fn join(&mut self, wave: ProcessId, parent: Option<Port>, ctx: &mut Context<'_, Self>) {
        self.wave = wave.into();
        self.parent = parent.into();
        self.awaited = self.edges.all_but(parent);
        self.edges.send_all_but(parent, Message::Explore(wave), ctx);
        if self.awaited.is_empty() {
            self.echo(wave, ctx);
        }
    }

    fn on_answer(&mut self, wave: ProcessId, port: Port, ctx: &mut Context<'_, Self>) {
        if self.awaited.remove(port) && self.awaited.is_empty() {
            self.echo(wave, ctx);
        }
    }

    /// All neighbours have answered: the parent gets the echo, and the initiator has won.
    fn echo(&mut self, wave: ProcessId, ctx: &mut Context<'_, Self>) {
        match self.parent.get() {
            Some(parent) => ctx.send(self.edges.peer(parent), Message::Echo(wave)),
            None => self.decide(ctx.me(), None, ctx),
        }
    }

    fn decide(&mut self, leader: ProcessId, by: Option<Port>, ctx: &mut Context<'_, Self>) {
        self.leader = leader.into();
        ctx.indicate(Indication::outcome(leader, ctx.me()));
        self.edges.send_all_but(by, Message::Info(leader), ctx);
    }
}
