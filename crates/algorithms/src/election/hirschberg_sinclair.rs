//! Hirschberg and Sinclair's election on a two-way ring.
//!
//! In phase p a candidate sends probes 2^p hops both ways. A higher candidate stops them; where they
//! come to their end, they are answered. Two answers, and the candidate doubles its reach; a probe
//! that comes home has passed everyone. Messages tell their phase, so their order does not matter.

mod sheet;
#[cfg(test)]
mod tests;

use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId};
use serde::{Deserialize, Serialize};

use super::ring::{Direction, Sides};
use super::{Indication, Request, ring};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct HirschbergSinclair {
    role: Role,
    /// Who has won, once we know.
    leader: Option<ProcessId>,
    #[serde(skip)]
    sides: Fixed<Sides>,
    #[serde(skip)]
    joins: Fixed<bool>,
    #[serde(skip)]
    no_relay_lock: Fixed<bool>,
}

/// What we are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum Role {
    /// We know of no election.
    Asleep,
    /// We pass on what comes, whatever it is.
    Relay,
    /// We stop lower numbers, even when we cannot win any more.
    Candidate {
        /// Our probes go 2^phase hops.
        phase: u8,
        /// The way of the one answer that has come, if only one has.
        answered: Option<Direction>,
    },
}

/// What goes round.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// May this one lead?
    Probe {
        /// Who.
        id: ProcessId,
        /// In which phase.
        phase: u8,
        /// How far it has come.
        hop: u32,
        /// Which way it goes.
        way: Direction,
    },
    /// As far as the probe went, nobody objects.
    Reply {
        /// Whose probe it was.
        id: ProcessId,
        /// Of which phase.
        phase: u8,
        /// Which way it goes: back.
        way: Direction,
    },
    /// This one leads.
    Elected {
        /// Who.
        id: ProcessId,
    },
}

impl HirschbergSinclair {
    fn start(&mut self, ctx: &mut Context<'_, Self>) {
        ctx.indicate(Indication::Candidate);
        if ctx.group_size() == 1 {
            return self.end(ctx.me(), ctx);
        }
        self.probe(0, ctx);
    }

    fn probe(&mut self, phase: u8, ctx: &mut Context<'_, Self>) {
        self.role = Role::Candidate { phase, answered: None };
        for way in Direction::BOTH {
            self.send(way, Message::Probe { id: ctx.me(), phase, hop: 1, way }, ctx);
        }
    }

    fn send(&self, way: Direction, message: Message, ctx: &mut Context<'_, Self>) {
        ctx.send(self.sides.towards(way), message);
    }

    /// The relay lock: who has handled a message is no candidate any more.
    fn wake(&mut self, ctx: &mut Context<'_, Self>) {
        if self.role == Role::Asleep {
            if *self.joins {
                self.start(ctx);
            } else {
                self.role = Role::Relay;
            }
        }
    }

    fn is_candidate(&self) -> bool {
        matches!(self.role, Role::Candidate { .. })
    }

    fn end(&mut self, leader: ProcessId, ctx: &mut Context<'_, Self>) {
        self.leader = Some(leader);
        ring::announce(leader, 0, ctx);
    }

    fn on_probe(
        &mut self,
        (id, phase, hop, way): (ProcessId, u8, u32, Direction),
        ctx: &mut Context<'_, Self>,
    ) {
        if id == ctx.me() {
            // Two copies come home, but we announce once.
            if self.leader != Some(id) {
                self.end(id, ctx);
                self.send(Direction::Clockwise, Message::Elected { id }, ctx);
            }
        } else if id < ctx.me() && self.is_candidate() {
            // It cannot win.
        } else if u64::from(hop) < reach(phase) {
            self.send(way, Message::Probe { id, phase, hop: hop.saturating_add(1), way }, ctx);
        } else {
            self.send(way.back(), Message::Reply { id, phase, way: way.back() }, ctx);
        }
    }

    /// An answer to a probe of ours.
    fn on_answer(&mut self, of: u8, way: Direction, ctx: &mut Context<'_, Self>) {
        match self.role {
            Role::Candidate { phase, answered: None } if phase == of => {
                self.role = Role::Candidate { phase, answered: Some(way) };
            }
            Role::Candidate { phase, answered: Some(other) } if phase == of && other != way => {
                self.probe(phase.saturating_add(1), ctx);
            }
            // An answer of an earlier phase, or a copy.
            Role::Asleep | Role::Relay | Role::Candidate { .. } => {}
        }
    }
}

/// How far probes of this phase go.
fn reach(phase: u8) -> u64 {
    1 << phase.min(63)
}

impl Process for HirschbergSinclair {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, Request::Elect: Request, ctx: &mut Context<'_, Self>) {
        match (self.leader, self.role) {
            (Some(leader), _) => ring::announce(leader, 0, ctx),
            (None, Role::Asleep) => self.start(ctx),
            (None, Role::Relay) if *self.no_relay_lock => self.start(ctx),
            (None, Role::Relay | Role::Candidate { .. }) => {}
        }
    }

    fn on_message(&mut self, _from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        self.wake(ctx);
        match message {
            Message::Probe { id, phase, hop, way } => self.on_probe((id, phase, hop, way), ctx),
            Message::Reply { id, phase, way } if id == ctx.me() => self.on_answer(phase, way, ctx),
            Message::Reply { way, .. } => self.send(way, message, ctx),
            Message::Elected { id } => {
                if self.leader.is_none() {
                    self.end(id, ctx);
                    self.send(Direction::Clockwise, message, ctx);
                }
            }
        }
    }
}
