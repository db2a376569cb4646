//! The election of Dolev, Klawe and Rodeh (and Peterson) on a one-way ring.
//!
//! Franklin's idea where numbers go one way only: a process learns the values of its two nearest
//! active predecessors and takes the nearer one's place, if that one has the highest of the three
//! values. So values travel, each round halves them, and the one that meets itself has won: not the
//! process that finds out, but the one whose number it is.

mod sheet;
#[cfg(test)]
mod tests;

use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId};
use serde::{Deserialize, Serialize};

use super::{Indication, Request, ring};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct DolevKlaweRodeh {
    role: Role,
    #[serde(skip)]
    successor: Fixed<ProcessId>,
    #[serde(skip)]
    joins: Fixed<bool>,
    #[serde(skip)]
    detector_is_leader: Fixed<bool>,
}

/// What we are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum Role {
    /// We know of no election.
    Asleep,
    /// We carry a value that may win.
    Active {
        /// The value.
        value: ProcessId,
        /// That of our nearest active predecessor, once it told.
        before: Option<ProcessId>,
    },
    /// We pass on what comes.
    Passive,
    /// This one has won.
    Over(ProcessId),
}

/// What goes round.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// The value of the nearest active predecessor.
    One(ProcessId),
    /// The value of the one before that.
    Two(ProcessId),
    /// This one leads.
    Elected(ProcessId),
}

impl DolevKlaweRodeh {
    fn start(&mut self, ctx: &mut Context<'_, Self>) {
        ctx.indicate(Indication::Candidate);
        if ctx.group_size() == 1 {
            return self.end(ctx.me(), ctx);
        }
        self.carry(ctx.me(), ctx);
    }

    /// Begins a round with this value.
    fn carry(&mut self, value: ProcessId, ctx: &mut Context<'_, Self>) {
        self.role = Role::Active { value, before: None };
        self.send(Message::One(value), ctx);
    }

    fn send(&self, message: Message, ctx: &mut Context<'_, Self>) {
        ctx.send(*self.successor, message);
    }

    /// Any message wakes: who has passed something on may not start any more.
    fn wake(&mut self, ctx: &mut Context<'_, Self>) {
        if self.role == Role::Asleep {
            if *self.joins {
                self.start(ctx);
            } else {
                self.role = Role::Passive;
            }
        }
    }

    fn end(&mut self, leader: ProcessId, ctx: &mut Context<'_, Self>) {
        self.role = Role::Over(leader);
        ring::announce(leader, 0, ctx);
    }
}

impl Process for DolevKlaweRodeh {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, Request::Elect: Request, ctx: &mut Context<'_, Self>) {
        match self.role {
            Role::Asleep => self.start(ctx),
            Role::Active { .. } | Role::Passive => {}
            Role::Over(leader) => ring::announce(leader, 0, ctx),
        }
    }

    fn on_message(&mut self, _from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        self.wake(ctx);
        match (message, self.role) {
            (Message::One(x), Role::Active { value, before: None }) if x == value => {
                // The value met itself: it is the only one left. Its owner may be elsewhere.
                let leader = if *self.detector_is_leader { ctx.me() } else { value };
                self.end(leader, ctx);
                self.send(Message::Elected(leader), ctx);
            }
            (Message::One(x), Role::Active { value, before: None }) => {
                self.role = Role::Active { value, before: Some(x) };
                self.send(Message::Two(x), ctx);
            }
            (Message::Two(y), Role::Active { value, before: Some(x) }) => {
                if x > value && x > y {
                    self.carry(x, ctx);
                } else {
                    self.role = Role::Passive;
                }
            }
            (Message::One(_), Role::Active { before: Some(_), .. })
            | (Message::Two(_), Role::Active { before: None, .. }) => {
                ctx.unexpected("a value that overtook another");
            }
            (Message::One(_) | Message::Two(_), Role::Asleep | Role::Passive) => {
                self.send(message, ctx);
            }
            (Message::One(_) | Message::Two(_), Role::Over(_)) => {
                ctx.unexpected("a value after the end");
            }
            (Message::Elected(id), Role::Asleep | Role::Active { .. } | Role::Passive) => {
                self.end(id, ctx);
                self.send(message, ctx);
            }
            (Message::Elected(_), Role::Over(_)) => {}
        }
    }
}
