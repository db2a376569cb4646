//! Adoption on arbitrary graphs: a stronger wave takes over the processes that a weaker one has explored.
//!
//! A wave carries the id of its initiator, and each edge is marked with the strongest explorer sent over it. If a
//! stronger wave reaches a process, it adopts the process together with all that was explored behind it; only the edge
//! to the former parent is explored anew, so the tree turns round along that way.
//!
//! This is the algorithm of the slides with the third of its four cases corrected: a sender with a weaker wave
//! receives the stronger one, not its own.

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
pub struct Adoption {
    /// The strongest wave that arrived, or the own one.
    wave: CompactOption<ProcessId>,
    /// The edge that it came over; none for the own wave.
    parent: CompactOption<Port>,
    /// The edges, each marked with the strongest explorer sent over it.
    #[serde(rename = "marks")]
    edges: Edges<CompactOption<ProcessId>, 2>,
    /// The edges that are not done, without that to the parent.
    open: PortSet,
    leader: CompactOption<ProcessId>,
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

impl Process for Adoption {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, Request::Elect: Request, ctx: &mut Context<'_, Self>) {
        match (self.leader.get(), self.wave.get()) {
            (Some(leader), _) => ctx.indicate(Indication::outcome(leader, ctx.me())),
            // A process that a wave has captured is no candidate any more.
            (None, Some(_)) => {}
            (None, None) => {
                ctx.indicate(Indication::Candidate);
                self.join(ctx.me(), None, ctx);
            }
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
            Message::Explore(theirs) => match self.wave.get() {
                None => self.join(theirs, Some(port), ctx),
                Some(ours) => self.on_explore(theirs, ours, port, ctx),
            },
            Message::Echo(wave) if self.edges[port] == Some(wave) => self.close(port, ctx),
            // The echo of a wave that a stronger explorer has overtaken on this edge.
            Message::Echo(_) => {}
            Message::Info(leader) => self.decide(leader, Some(port), ctx),
        }
    }
}

impl Adoption {
    /// Joins the first wave, or starts one, and explores all other edges.
    fn join(&mut self, wave: ProcessId, parent: Option<Port>, ctx: &mut Context<'_, Self>) {
        self.wave = wave.into();
        self.parent = parent.into();
        self.open = self.edges.all_but(parent);
        if self.rules.explores_further(parent) {
            for port in self.open.clone().iter() {
                self.explore(wave, port, ctx);
            }
        }
        self.echo_if_done(ctx);
    }

    fn explore(&mut self, wave: ProcessId, port: Port, ctx: &mut Context<'_, Self>) {
        self.edges[port] = wave.into();
        ctx.send(self.edges.peer(port), Message::Explore(wave));
    }

    /// The four cases of the slide, and two explorers of one wave that meet.
    fn on_explore(
        &mut self,
        theirs: ProcessId,
        ours: ProcessId,
        port: Port,
        ctx: &mut Context<'_, Self>,
    ) {
        let mark = self.edges[port];
        if mark == Some(theirs) {
            // Two explorers of one wave have met: this is no edge of the tree.
            self.close(port, ctx);
        } else if mark > Some(theirs) {
            // A stronger explorer is on its way to the sender.
        } else if theirs == ours {
            self.explore(ours, port, ctx);
            self.close(port, ctx);
        } else if theirs < ours {
            self.answer_weaker_wave(theirs, ours, port, ctx);
        } else {
            self.adopt(theirs, port, ctx);
        }
    }

    /// The stronger wave goes to a sender that does not know it yet.
    fn explore_again(&mut self, wave: ProcessId, port: Port, ctx: &mut Context<'_, Self>) {
        // Each explorer of a process over an edge is stronger than those before it. A parent sends a second one only
        // as an answer to one of ours, which is stronger than the first.
        if self.parent == Some(port) {
            return ctx.unexpected("an old explorer of our parent");
        }
        self.explore(wave, port, ctx);
        self.open.insert(port);
    }

    /// Joins a stronger wave with all that was explored behind this process, except the former parent.
    fn adopt(&mut self, wave: ProcessId, port: Port, ctx: &mut Context<'_, Self>) {
        let former = std::mem::replace(&mut self.parent, port.into());
        self.wave = wave.into();
        self.open.remove(port);
        if let Some(former) = former.get()
            && former != port
        {
            self.explore(wave, former, ctx);
            self.open.insert(former);
        }
        self.echo_if_done(ctx);
    }

    /// An edge is done.
    fn close(&mut self, port: Port, ctx: &mut Context<'_, Self>) {
        if self.open.remove(port) {
            self.echo_if_done(ctx);
        }
    }

    fn echo_if_done(&mut self, ctx: &mut Context<'_, Self>) {
        if let Some(wave) = self.wave.get()
            && self.open.is_empty()
        {
            match self.parent.get() {
                Some(parent) => ctx.send(self.edges.peer(parent), Message::Echo(wave)),
                None => self.decide(ctx.me(), None, ctx),
            }
        }
    }

    fn decide(&mut self, leader: ProcessId, by: Option<Port>, ctx: &mut Context<'_, Self>) {
        self.leader = leader.into();
        ctx.indicate(Indication::outcome(leader, ctx.me()));
        self.edges.send_all_but(by, Message::Info(leader), ctx);
    }
}
