//! The tree identification of IEEE 1394 (FireWire): the process that is asked on all its edges is the root.
//!
//! After a bus reset a leaf asks its neighbour to be its parent; a process that was asked on all edges but one
//! acknowledges its children and asks over the last edge. If two processes ask each other, each waits for a random
//! short or long time; the process with the longer wait is asked again, and is the root.
//!
//! On a cycle no process is asked on enough edges, and only a timeout reveals the loop. Plugging or unplugging an edge
//! begins a new generation. The processes have no ids.

mod rules;
mod sheet;
#[cfg(test)]
mod tests;
mod timing;

use std::sync::Arc;

use konklave_process::{Context, Fixed, NoRecord, Port, PortSet, Process, ProcessId};
use serde::{Deserialize, Serialize};

use self::rules::Rules;
use super::edges::Edges;
use super::{Indication, Request};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct FireWire {
    /// The number of known bus resets.
    generation: u32,
    state: State,
    /// The edges of processes that asked this one to be their parent.
    children: PortSet,
    /// The number of plugged edges without a question.
    silent: u32,
    /// The edges where nothing is plugged in.
    unplugged: PortSet,
    /// Whether the time for this generation has run out.
    late: bool,
    #[serde(skip)]
    edges: Edges,
    #[serde(skip)]
    rules: Fixed<Arc<Rules>>,
}

/// The progress of a process in this generation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
enum State {
    /// No reset has arrived yet.
    Off,
    /// More than one edge is silent.
    Waiting,
    /// The process asked over this edge.
    Asking(Port),
    /// Both ends of this edge asked; whether the other end has asked again.
    Contending {
        with: Port,
        asked: bool,
    },
    Child(Port),
    Root,
}

/// The messages, which go over edges.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// The bus is reset.
    Reset {
        /// The new generation; 0 from a newcomer, which knows none.
        generation: u32,
    },
    /// The question: the receiver should be the parent.
    BeMyParent {
        /// The generation.
        generation: u32,
        /// The asking process, if ids settle contention.
        id: Option<ProcessId>,
    },
    /// The acknowledgement: the receiver is a child.
    YouAreMyChild {
        /// The generation.
        generation: u32,
    },
}

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// The look at the ports is over.
    Look,
    /// The short or long wait of contention is over.
    Contention,
    /// A root is overdue.
    Configuration,
}

impl Process for FireWire {
    type Message = Message;
    type Timer = Timer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_recover(&mut self, _saved: Option<NoRecord>, ctx: &mut Context<'_, Self>) {
        if self.edges.len() == 0 {
            return self.reset_anew(ctx);
        }
        // This process knows no generation: a neighbour that does begins the next.
        self.edges.send_all_but(None, Message::Reset { generation: 0 }, ctx);
    }

    fn on_request(&mut self, Request::Elect: Request, ctx: &mut Context<'_, Self>) {
        if self.is_settled() || self.late {
            self.reset_anew(ctx);
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        let Some(port) = self.edges.port(from) else {
            return ctx.unexpected("a message from a stranger");
        };
        // A message from before the plug was pulled is void.
        if self.unplugged.contains(port) {
            return;
        }
        let ours = self.generation;
        match message {
            Message::Reset { generation: 0 } => self.reset_anew(ctx),
            Message::Reset { generation } if generation > ours => self.reset(generation, None, ctx),
            // A newer generation is on its way to the sender.
            Message::Reset { .. } => {}
            Message::BeMyParent { generation, .. } if generation > ours => {
                self.reset(generation, Some(port), ctx);
            }
            Message::BeMyParent { generation, id } => {
                if self.rules.counts_question(generation, ours) {
                    self.on_question(port, id, ctx);
                }
            }
            Message::YouAreMyChild { generation } => {
                if generation == ours {
                    self.on_acknowledgement(port, ctx);
                }
            }
        }
    }

    fn on_timer(&mut self, timer: Timer, ctx: &mut Context<'_, Self>) {
        match (timer, self.state) {
            (Timer::Look, State::Waiting) => self.evaluate(ctx),
            (Timer::Contention, State::Contending { with, asked: false }) => self.ask(with, ctx),
            (Timer::Contention, State::Contending { with, asked: true }) => {
                if self.may_be_root() {
                    self.lead_after_contention(with, ctx);
                }
            }
            (Timer::Configuration, _) if !self.is_settled() => {
                self.late = true;
                ctx.indicate(Indication::Loop);
            }
            (Timer::Look | Timer::Contention | Timer::Configuration, _) => {}
        }
    }

    fn on_suspect(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        if let Some(port) = self.edges.port(peer)
            && self.unplugged.insert(port)
        {
            self.reset_anew(ctx);
        }
    }

    fn on_trust(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        if let Some(port) = self.edges.port(peer)
            && self.unplugged.remove(port)
        {
            // The generation of the neighbour is not known either: it may be later.
            ctx.send(peer, Message::Reset { generation: 0 });
            self.reset_anew(ctx);
        }
    }
}

impl FireWire {
    /// Begins a generation. If a question announced it, the asking process is the first child.
    fn reset(&mut self, generation: u32, child: Option<Port>, ctx: &mut Context<'_, Self>) {
        match self.state {
            State::Child(_) | State::Root => ctx.indicate(Indication::Deposed),
            State::Contending { .. } => ctx.cancel_timer(Timer::Contention),
            State::Off | State::Waiting | State::Asking(_) => {}
        }
        self.generation = generation;
        self.state = State::Waiting;
        self.children = child.into_iter().collect();
        self.silent = (self.edges.len() - self.unplugged.len() - self.children.len()) as u32;
        self.late = false;
        if !self.rules.timing.timeout.is_zero() {
            ctx.set_timer(Timer::Configuration, self.rules.timing.timeout);
        }
        for port in self.plugged().filter(|_| !self.rules.by_wire) {
            ctx.send(self.edges.peer(port), Message::Reset { generation });
        }
        self.look(ctx);
    }

    fn reset_anew(&mut self, ctx: &mut Context<'_, Self>) {
        self.reset(self.generation.saturating_add(1), None, ctx);
    }

    fn plugged(&self) -> impl Iterator<Item = Port> + use<> {
        let unplugged = self.unplugged.clone();
        self.edges.ports().filter(move |port| !unplugged.contains(*port))
    }

    /// If at most one edge is silent, the process acts after a look at its ports. A question may still arrive over the
    /// last edge meanwhile.
    fn look(&mut self, ctx: &mut Context<'_, Self>) {
        if self.edges.len() == self.unplugged.len() {
            self.lead(ctx);
        } else if self.silent <= 1 {
            ctx.set_timer(Timer::Look, self.rules.timing.look);
        }
    }

    /// Asks over the last silent edge; if there is none, this process is the root.
    fn evaluate(&mut self, ctx: &mut Context<'_, Self>) {
        if self.silent > 1 || (self.silent == 0 && !self.may_be_root()) {
            return;
        }
        for child in self.children.iter() {
            self.acknowledge(child, ctx);
        }
        match self.plugged().find(|port| !self.children.contains(*port)) {
            Some(last) => self.ask(last, ctx),
            None => self.lead(ctx),
        }
    }

    fn ask(&mut self, port: Port, ctx: &mut Context<'_, Self>) {
        self.state = State::Asking(port);
        let id = self.rules.by_id.then_some(ctx.me());
        let question = Message::BeMyParent { generation: self.generation, id };
        ctx.send(self.edges.peer(port), question);
    }

    fn acknowledge(&self, child: Port, ctx: &mut Context<'_, Self>) {
        let message = Message::YouAreMyChild { generation: self.generation };
        ctx.send(self.edges.peer(child), message);
    }

    fn lead(&mut self, ctx: &mut Context<'_, Self>) {
        self.settle(State::Root, Indication::Leading { epoch: self.generation }, ctx);
    }

    fn settle(&mut self, state: State, outcome: Indication, ctx: &mut Context<'_, Self>) {
        self.state = state;
        if !std::mem::take(&mut self.late) && !self.rules.timing.timeout.is_zero() {
            ctx.cancel_timer(Timer::Configuration);
        }
        ctx.indicate(outcome);
    }

    /// The asked process becomes the last child.
    fn lead_after_contention(&mut self, with: Port, ctx: &mut Context<'_, Self>) {
        self.silent -= u32::from(self.children.insert(with));
        self.acknowledge(with, ctx);
        self.lead(ctx);
    }

    fn on_question(&mut self, from: Port, id: Option<ProcessId>, ctx: &mut Context<'_, Self>) {
        match self.state {
            State::Waiting => {
                self.silent -= u32::from(self.children.insert(from));
                self.look(ctx);
            }
            State::Asking(asked) if asked == from => self.contend(from, id, ctx),
            State::Contending { with, .. } if with == from => {
                self.state = State::Contending { with, asked: true };
            }
            State::Off
            | State::Asking(_)
            | State::Contending { .. }
            | State::Child(_)
            | State::Root => self.ignore("a question that was answered", ctx),
        }
    }

    fn on_acknowledgement(&mut self, from: Port, ctx: &mut Context<'_, Self>) {
        if self.state != State::Asking(from) {
            return self.ignore("an answer without a question", ctx);
        }
        let outcome = Indication::Following { leader: None, epoch: self.generation };
        self.settle(State::Child(from), outcome, ctx);
    }

    /// Both ends of an edge asked each other: the contention of the standard.
    fn contend(&mut self, with: Port, id: Option<ProcessId>, ctx: &mut Context<'_, Self>) {
        if !self.rules.by_id {
            self.state = State::Contending { with, asked: false };
            let wait = self.rules.timing.wait(|bound| ctx.choose(bound));
            ctx.set_timer(Timer::Contention, wait);
        } else if id < Some(ctx.me()) && self.may_be_root() {
            self.lead_after_contention(with, ctx);
        }
    }

    fn is_settled(&self) -> bool {
        matches!(self.state, State::Off | State::Child(_) | State::Root)
    }
}
