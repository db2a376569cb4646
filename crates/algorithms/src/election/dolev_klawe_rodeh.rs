//! The election of Dolev, Klawe and Rodeh, and of Peterson, on a one-way ring.
//!
//! This is Franklin's idea with messages in one direction: an active process learns the values of its two nearest
//! active predecessors, and continues with the nearer value if that is the highest of the three. So values travel, each
//! round at least halves their number, and the owner of the value that meets itself has won.

mod rules;
mod sheet;
#[cfg(test)]
mod tests;

use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId};
use serde::{Deserialize, Serialize};

use self::rules::Rules;
use super::{Indication, Request, ring};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct DolevKlaweRodeh {
    role: Role,
    #[serde(skip)]
    successor: Fixed<ProcessId>,
    #[serde(skip)]
    rules: Fixed<Rules>,
}

/// The role of a process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum Role {
    /// It knows of no election.
    Asleep,
    /// It carries a value that may win.
    Active {
        /// The value.
        value: ProcessId,
        /// The value of the nearest active predecessor, once known.
        before: Option<ProcessId>,
    },
    /// It passes messages on.
    Passive,
    /// This process has won.
    Over(ProcessId),
}

/// The messages, which go round.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// The value of the nearest active predecessor.
    One(ProcessId),
    /// The value of the active predecessor before that.
    Two(ProcessId),
    /// This process leads.
    Elected(ProcessId),
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
                let leader = self.rules.winner(value, ctx.me());
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

impl DolevKlaweRodeh {
    fn start(&mut self, ctx: &mut Context<'_, Self>) {
        ctx.indicate(Indication::Candidate);
        if ctx.group_size() == 1 {
            return self.end(ctx.me(), ctx);
        }
        self.carry(ctx.me(), ctx);
    }

    /// A process that has passed a message on must not start any more; with the switch `join` it starts first.
    fn wake(&mut self, ctx: &mut Context<'_, Self>) {
        if self.role == Role::Asleep {
            if self.rules.joins {
                self.start(ctx);
            } else {
                self.role = Role::Passive;
            }
        }
    }

    /// Begins a round with this value.
    fn carry(&mut self, value: ProcessId, ctx: &mut Context<'_, Self>) {
        self.role = Role::Active { value, before: None };
        self.send(Message::One(value), ctx);
    }

    fn send(&self, message: Message, ctx: &mut Context<'_, Self>) {
        ctx.send(*self.successor, message);
    }

    fn end(&mut self, leader: ProcessId, ctx: &mut Context<'_, Self>) {
        self.role = Role::Over(leader);
        ring::announce(leader, 0, ctx);
    }
}
