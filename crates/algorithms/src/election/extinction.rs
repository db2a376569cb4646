//! Echo with extinction: every initiator starts a wave, and only the strongest comes home.
//!
//! A wave bears the number of its initiator. A process joins a wave that is stronger than its own
//! as if it had never been in another: it forgets all answers, takes the sender for its parent and
//! explores on; weaker waves die where they meet it. When all neighbours have answered, it echoes
//! to its parent. The initiator whose neighbours have all answered has won, and tells everyone.

mod sheet;
#[cfg(test)]
mod tests;

use konklave_process::{
    CompactOption, Context, Fixed, NoRecord, NoTimer, Port, PortSet, Process, ProcessId,
};
use serde::{Deserialize, Serialize};

use super::edges::Edges;
use super::{Indication, Request};

/// One process of the algorithm. Graphs of many are built of these: it takes one line of the cache.
#[repr(align(64))]
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Extinction {
    /// The strongest wave that came by, if any: ours.
    wave: CompactOption<ProcessId>,
    /// Where it came from; none if it is of our own.
    parent: CompactOption<Port>,
    /// Who has not answered in this wave.
    awaited: PortSet,
    leader: CompactOption<ProcessId>,
    #[serde(skip)]
    edges: Edges,
    #[serde(skip)]
    late_start: Fixed<bool>,
    #[serde(skip)]
    no_crossing: Fixed<bool>,
}

/// What goes over an edge.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// Join the wave of this initiator.
    Explore(ProcessId),
    /// All on this side are in the wave of this initiator.
    Echo(ProcessId),
    /// This one leads.
    Info(ProcessId),
}

impl Extinction {
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

    /// All have answered: tells the parent, or, at the initiator, everyone.
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

impl Process for Extinction {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, Request::Elect: Request, ctx: &mut Context<'_, Self>) {
        match (self.leader.get(), self.wave.get()) {
            (Some(leader), _) => ctx.indicate(Indication::outcome(leader, ctx.me())),
            // Who was captured is no candidate any more.
            (None, Some(_)) if !*self.late_start => {}
            (None, _) => {
                ctx.indicate(Indication::Candidate);
                self.join(ctx.me(), None, ctx);
            }
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        if let (Message::Info(_), Some(_)) = (message, self.leader.get()) {
            // Most of a flood comes to those who know: over which edge does not matter.
            return;
        }
        let Some(port) = self.edges.port(from) else {
            return ctx.unexpected("a message from a stranger");
        };
        match message {
            Message::Explore(wave) if self.wave < Some(wave) => self.join(wave, Some(port), ctx),
            Message::Explore(_) if *self.no_crossing => {}
            // An explorer of our own wave that comes to meet us is an answer, too.
            Message::Explore(wave) | Message::Echo(wave) if self.wave == Some(wave) => {
                self.on_answer(wave, port, ctx);
            }
            // What belongs to a weaker wave dies here.
            Message::Explore(_) | Message::Echo(_) => {}
            Message::Info(leader) => self.decide(leader, Some(port), ctx),
        }
    }
}
