//! Adoption on arbitrary graphs: a stronger wave takes over what a weaker one has explored.
//!
//! Waves bear the number of their initiator, and each process keeps for each edge the strongest
//! explorer it sent there: the edge's mark. A process that a stronger wave reaches is adopted
//! together with all that was explored behind it; only the way to its former parent is explored
//! anew, and the tree turns round along that way. This is the algorithm of the slides with the
//! third of its four cases corrected: who lags behind is told the strongest wave, not its own.

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
pub struct Adoption {
    /// The strongest wave that came by, if any: ours.
    wave: CompactOption<ProcessId>,
    /// Where it came from; none if it is of our own.
    parent: CompactOption<Port>,
    /// Our edges, each with the strongest explorer we sent over it.
    #[serde(rename = "marks")]
    edges: Edges<CompactOption<ProcessId>, 2>,
    /// The edges that are not done; never the one to our parent.
    open: PortSet,
    leader: CompactOption<ProcessId>,
    #[serde(skip)]
    case3_literal: Fixed<bool>,
    #[serde(skip)]
    case3_close_edge: Fixed<bool>,
    #[serde(skip)]
    no_flood: Fixed<bool>,
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

impl Adoption {
    /// The first wave that reaches us, or our own, goes out over all other edges.
    fn begin(&mut self, wave: ProcessId, parent: Option<Port>, ctx: &mut Context<'_, Self>) {
        self.wave = wave.into();
        self.parent = parent.into();
        self.open = self.edges.all_but(parent);
        let silent = *self.no_flood && parent.is_some();
        for port in self.open.clone().iter().filter(|_| !silent) {
            self.explore(wave, port, ctx);
        }
        self.echo_if_done(ctx);
    }

    fn explore(&mut self, wave: ProcessId, port: Port, ctx: &mut Context<'_, Self>) {
        self.edges[port] = wave.into();
        ctx.send(self.edges.peer(port), Message::Explore(wave));
    }

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
            // Our stronger explorer is on its way to them.
        } else if theirs == ours {
            self.explore(ours, port, ctx);
            self.close(port, ctx);
        } else if theirs < ours {
            self.correct(theirs, ours, port, ctx);
        } else {
            self.adopt(theirs, port, ctx);
        }
    }

    /// They lag behind, and do not know of our wave yet: it goes to them.
    fn correct(
        &mut self,
        theirs: ProcessId,
        ours: ProcessId,
        port: Port,
        ctx: &mut Context<'_, Self>,
    ) {
        if *self.case3_literal {
            return self.explore(theirs, port, ctx);
        }
        if *self.case3_close_edge {
            self.explore(theirs, port, ctx);
            return self.close(port, ctx);
        }
        // Each explorer a process sends over an edge is stronger than all before it, and a second
        // one only ever answers one of ours, which is stronger than the first.
        if self.parent == Some(port) {
            return ctx.unexpected("an old explorer of our parent");
        }
        self.explore(ours, port, ctx);
        self.open.insert(port);
    }

    /// Their wave is stronger: we join it with all that was explored behind us, but for the way to
    /// our former parent.
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

impl Process for Adoption {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, Request::Elect: Request, ctx: &mut Context<'_, Self>) {
        match (self.leader.get(), self.wave.get()) {
            (Some(leader), _) => ctx.indicate(Indication::outcome(leader, ctx.me())),
            // Who was captured is no candidate any more.
            (None, Some(_)) => {}
            (None, None) => {
                ctx.indicate(Indication::Candidate);
                self.begin(ctx.me(), None, ctx);
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
            Message::Explore(theirs) => match self.wave.get() {
                None => self.begin(theirs, Some(port), ctx),
                Some(ours) => self.on_explore(theirs, ours, port, ctx),
            },
            // The echo of a wave that did not reach them as the last over this edge is void.
            Message::Echo(wave) => {
                if self.edges[port] == Some(wave) {
                    self.close(port, ctx);
                }
            }
            Message::Info(leader) => self.decide(leader, Some(port), ctx),
        }
    }
}
