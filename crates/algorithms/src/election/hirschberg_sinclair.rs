//! Hirschberg and Sinclair's election on a two-way ring.
//!
//! In phase p a candidate sends probes 2^p hops in both directions; a higher candidate stops them, and the process at
//! the end of the way replies. After two replies the candidate doubles its reach, and a probe that returns home has
//! passed all others. Messages carry their phase, so their order does not matter.

mod rules;
mod sheet;
#[cfg(test)]
mod tests;

use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId};
use serde::{Deserialize, Serialize};

use self::rules::Rules;
use super::ring::{Direction, Sides};
use super::{Indication, Request, ring};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct HirschbergSinclair {
    role: Role,
    /// The winner, once known.
    leader: Option<ProcessId>,
    #[serde(skip)]
    sides: Fixed<Sides>,
    #[serde(skip)]
    rules: Fixed<Rules>,
}

/// The role of a process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum Role {
    /// It knows of no election.
    Asleep,
    /// It passes every message on.
    Relay,
    /// It stops the probes of lower processes, even if it cannot win any more.
    Candidate {
        /// Its probes go 2^phase hops.
        phase: u8,
        /// The direction of the reply, if exactly one has arrived.
        answered: Option<Direction>,
    },
}

/// The messages, which go round.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// The probe of a candidate.
    Probe {
        /// The candidate.
        id: ProcessId,
        /// Its phase.
        phase: u8,
        /// The number of hops so far.
        hop: u32,
        /// Its direction.
        way: Direction,
    },
    /// No process within the reach of the probe is a higher candidate.
    Reply {
        /// The candidate.
        id: ProcessId,
        /// The phase of the probe.
        phase: u8,
        /// Its direction: back.
        way: Direction,
    },
    /// This process leads.
    Elected {
        /// Its id.
        id: ProcessId,
    },
}

impl Process for HirschbergSinclair {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, Request::Elect: Request, ctx: &mut Context<'_, Self>) {
        if let Some(leader) = self.leader {
            ring::announce(leader, 0, ctx);
        } else if self.rules.permits_start(self.role) {
            self.start(ctx);
        }
    }

    fn on_message(&mut self, _from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        self.wake(ctx);
        match message {
            Message::Probe { id, phase, hop, way } => self.on_probe((id, phase, hop, way), ctx),
            Message::Reply { id, phase, way } if id == ctx.me() => self.on_reply(phase, way, ctx),
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

impl HirschbergSinclair {
    fn start(&mut self, ctx: &mut Context<'_, Self>) {
        ctx.indicate(Indication::Candidate);
        if ctx.group_size() == 1 {
            return self.end(ctx.me(), ctx);
        }
        self.probe(0, ctx);
    }

    /// A message wakes a process: it becomes a relay, or with the switch `join` a candidate.
    fn wake(&mut self, ctx: &mut Context<'_, Self>) {
        if self.role == Role::Asleep {
            if self.rules.joins {
                self.start(ctx);
            } else {
                self.role = Role::Relay;
            }
        }
    }

    fn probe(&mut self, phase: u8, ctx: &mut Context<'_, Self>) {
        self.role = Role::Candidate { phase, answered: None };
        for way in Direction::BOTH {
            self.send(way, Message::Probe { id: ctx.me(), phase, hop: 1, way }, ctx);
        }
    }

    fn on_probe(
        &mut self,
        (id, phase, hop, way): (ProcessId, u8, u32, Direction),
        ctx: &mut Context<'_, Self>,
    ) {
        if id == ctx.me() {
            // Both probes return home, but there is one announcement.
            if self.leader != Some(id) {
                self.end(id, ctx);
                self.send(Direction::Clockwise, Message::Elected { id }, ctx);
            }
        } else if id < ctx.me() && self.is_candidate() {
            // A lower candidate cannot win.
        } else if u64::from(hop) < reach(phase) {
            self.send(way, Message::Probe { id, phase, hop: hop.saturating_add(1), way }, ctx);
        } else {
            self.send(way.back(), Message::Reply { id, phase, way: way.back() }, ctx);
        }
    }

    /// A reply to a probe of this process.
    fn on_reply(&mut self, of: u8, way: Direction, ctx: &mut Context<'_, Self>) {
        match self.role {
            Role::Candidate { phase, answered: None } if phase == of => {
                self.role = Role::Candidate { phase, answered: Some(way) };
            }
            Role::Candidate { phase, answered: Some(other) } if phase == of && other != way => {
                self.probe(phase.saturating_add(1), ctx);
            }
            // A reply of an earlier phase, or a copy.
            Role::Asleep | Role::Relay | Role::Candidate { .. } => {}
        }
    }

    fn end(&mut self, leader: ProcessId, ctx: &mut Context<'_, Self>) {
        self.leader = Some(leader);
        ring::announce(leader, 0, ctx);
    }

    fn send(&self, way: Direction, message: Message, ctx: &mut Context<'_, Self>) {
        ctx.send(self.sides.towards(way), message);
    }

    fn is_candidate(&self) -> bool {
        matches!(self.role, Role::Candidate { .. })
    }
}

/// The number of hops of a probe in this phase.
fn reach(phase: u8) -> u64 {
    1 << phase.min(63)
}
