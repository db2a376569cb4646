//! The tree identification of IEEE 1394 (FireWire): whoever is asked on all its edges is the root.
//!
//! After a bus reset a leaf asks its neighbour to be its parent; a process that was asked on all
//! its edges but one acknowledges its children and asks over the last. Two may ask each other: they
//! wait, each for a short or a long time by chance, and who waits longer is asked again and is the
//! root. On a cycle nobody is ever asked often enough, and only a timeout tells. Plugging and
//! unplugging begins a new generation. The processes have no names.

mod sheet;
#[cfg(test)]
mod tests;
mod timing;

use std::sync::Arc;

use konklave_process::topology::Shape;
use konklave_process::{Context, Fixed, NoRecord, Port, PortSet, Process, ProcessId};
use serde::{Deserialize, Serialize};
use timing::Timing;

use self::sheet::{INNER_ONLY, NO_GENERATION, NO_IGNORE, SHEET};
use super::edges::Edges;
use super::{Indication, Request};
use crate::{Facts, Mistake};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct FireWire {
    /// How many bus resets we know of.
    generation: u32,
    state: State,
    /// Who asked us to be its parent, and how many have not.
    children: PortSet,
    silent: u32,
    /// Where nothing is plugged in.
    unplugged: PortSet,
    /// Whether the time for this generation has run out.
    late: bool,
    #[serde(skip)]
    edges: Edges,
    #[serde(skip)]
    rules: Fixed<Arc<Rules>>,
}

/// How far we are in this generation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
enum State {
    /// There was no reset yet.
    Off,
    /// More than one edge is silent.
    Waiting,
    /// We asked this one to be our parent.
    Asking(Port),
    /// We and this one asked each other; whether it has asked again.
    Contending {
        with: Port,
        asked: bool,
    },
    Child(Port),
    Root,
}

/// What a process was built with.
#[derive(Debug)]
struct Rules {
    by_id: bool,
    by_wire: bool,
    mistake: Option<&'static str>,
    timing: Timing,
}

/// What goes over an edge.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// The bus is reset.
    Reset {
        /// To which generation; 0 from a newcomer, which knows none.
        generation: u32,
    },
    /// Be my parent.
    BeMyParent {
        /// In which generation.
        generation: u32,
        /// Who asks, where contention is settled by id.
        id: Option<ProcessId>,
    },
    /// You are my child.
    YouAreMyChild {
        /// In which generation.
        generation: u32,
    },
}

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// We have looked at our ports.
    Look,
    /// Contention: the short or the long time is over.
    Contention,
    /// There should be a root by now.
    Configuration,
}

impl FireWire {
    /// Begins a generation. One that was first heard of by a question has its first child.
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

    /// When at most one edge is silent, we are to act. That takes a moment, in which the last may
    /// speak, too.
    fn look(&mut self, ctx: &mut Context<'_, Self>) {
        if self.edges.len() == self.unplugged.len() {
            self.lead(ctx);
        } else if self.silent <= 1 {
            ctx.set_timer(Timer::Look, self.rules.timing.look);
        }
    }

    /// Asks over the last silent edge; with none left, we are the root.
    fn evaluate(&mut self, ctx: &mut Context<'_, Self>) {
        if self.silent > 1 || (self.silent == 0 && self.may_not_be_root()) {
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

    /// Takes the one that we asked in vain for our last child.
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

    /// Out of turn comes only what was overtaken (settled by id, the acknowledgement may overtake
    /// the other's question) or was meant for our former self, before a restart.
    fn ignore(&self, what: &'static str, ctx: &mut Context<'_, Self>) {
        if self.makes(NO_IGNORE) {
            ctx.unexpected(what);
        }
    }

    /// Both ends of an edge asked each other.
    fn contend(&mut self, with: Port, id: Option<ProcessId>, ctx: &mut Context<'_, Self>) {
        if !self.rules.by_id {
            self.state = State::Contending { with, asked: false };
            let wait = self.rules.timing.wait(|bound| ctx.choose(bound));
            ctx.set_timer(Timer::Contention, wait);
        } else if id < Some(ctx.me()) && !self.may_not_be_root() {
            self.lead_after_contention(with, ctx);
        }
    }

    fn is_settled(&self) -> bool {
        matches!(self.state, State::Off | State::Child(_) | State::Root)
    }

    fn may_not_be_root(&self) -> bool {
        self.makes(INNER_ONLY) && self.edges.len() - self.unplugged.len() == 1
    }

    fn makes(&self, mistake: Mistake) -> bool {
        self.rules.mistake == Some(mistake.name)
    }
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
        // We know no generation: whoever does shall begin the next.
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
        // What was sent before the plug was pulled is void.
        if self.unplugged.contains(port) {
            return;
        }
        let ours = self.generation;
        match message {
            Message::Reset { generation: 0 } => self.reset_anew(ctx),
            Message::Reset { generation } if generation > ours => self.reset(generation, None, ctx),
            // Ours is newer, and on its way to them.
            Message::Reset { .. } => {}
            Message::BeMyParent { generation, .. } if generation > ours => {
                self.reset(generation, Some(port), ctx);
            }
            Message::BeMyParent { generation, id } => {
                if generation == ours || self.makes(NO_GENERATION) {
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
                if !self.may_not_be_root() {
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
            // Of their generation, too, we know nothing: they may be ahead of us.
            ctx.send(peer, Message::Reset { generation: 0 });
            self.reset_anew(ctx);
        }
    }
}

/// Whether there is a root, and contention for it is settled by id.
fn by_id(f: &Facts<'_>) -> bool {
    f.setup.topology.fits(Shape::Tree) && f.setup.chosen(&SHEET, "contention").is("id")
}
