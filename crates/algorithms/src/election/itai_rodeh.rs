//! Itai and Rodeh's election on a one-way ring without ids.
//!
//! Each process draws a number and sends it round with a count of its hops; the group size n is known, so a number is
//! home after n hops. A higher number makes a process passive, and an equal one marks the number as not unique. A
//! number that returns unique has won; otherwise its process draws again.

mod sheet;
#[cfg(test)]
mod tests;

use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId};
use serde::{Deserialize, Serialize};

use super::{Indication, Request};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct ItaiRodeh {
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
    /// It may win with this number.
    Active(Lot),
    /// It passes messages on.
    Passive,
    /// It has won.
    Leading,
    /// Another process has won.
    Following,
}

/// A number that a process drew.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Lot {
    /// The number of earlier draws; 0 if numbers do not carry their phase.
    phase: u32,
    number: u32,
}

/// The switches of a process.
#[derive(Clone, Copy)]
struct Rules {
    /// The group size that the process believes.
    n: u32,
    /// The number of numbers.
    range: u32,
    /// Whether numbers carry their phase.
    tell_phase: bool,
}

/// The messages, which go round.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// The number of an active process.
    Token {
        /// The number.
        lot: Lot,
        /// The number of hops so far.
        hop: u32,
        /// Whether no process on the way had drawn the same.
        unique: bool,
    },
    /// A process leads.
    Elected,
}

impl Process for ItaiRodeh {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, Request::Elect: Request, ctx: &mut Context<'_, Self>) {
        match self.role {
            Role::Asleep if ctx.group_size() == 1 => self.lead(ctx),
            Role::Asleep => self.draw(1, ctx),
            Role::Active(_) | Role::Passive => {}
            Role::Leading | Role::Following => self.tell(ctx),
        }
    }

    fn on_message(&mut self, _from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        if self.role == Role::Asleep {
            self.role = Role::Passive;
        }
        match (message, self.role) {
            (Message::Token { lot, hop, unique }, Role::Active(ours)) => {
                if hop == self.rules.n {
                    // The own number is home.
                    if unique { self.lead(ctx) } else { self.draw(ours.phase + 1, ctx) }
                } else if lot == ours {
                    self.pass_on(lot, hop, false, ctx);
                } else if lot > ours {
                    self.role = Role::Passive;
                    self.pass_on(lot, hop, unique, ctx);
                }
            }
            (Message::Token { lot, hop, unique }, Role::Asleep | Role::Passive) => {
                self.pass_on(lot, hop, unique, ctx);
            }
            // The end of the election has overtaken it.
            (Message::Token { .. }, Role::Leading | Role::Following) => {}
            (Message::Elected, Role::Asleep | Role::Active(_) | Role::Passive) => {
                self.role = Role::Following;
                self.tell(ctx);
                ctx.send(*self.successor, Message::Elected);
            }
            (Message::Elected, Role::Leading | Role::Following) => {}
        }
    }
}

impl ItaiRodeh {
    fn draw(&mut self, phase: u32, ctx: &mut Context<'_, Self>) {
        let phase = if self.rules.tell_phase { phase } else { 0 };
        let lot = Lot { phase, number: 1 + ctx.choose(self.rules.range) };
        self.role = Role::Active(lot);
        ctx.send(*self.successor, Message::Token { lot, hop: 1, unique: true });
    }

    fn pass_on(&self, lot: Lot, hop: u32, unique: bool, ctx: &mut Context<'_, Self>) {
        // More than n hops are possible only with a wrong n, and all equal.
        let hop = hop.min(self.rules.n) + 1;
        ctx.send(*self.successor, Message::Token { lot, hop, unique });
    }

    fn lead(&mut self, ctx: &mut Context<'_, Self>) {
        self.role = Role::Leading;
        self.tell(ctx);
        if ctx.group_size() > 1 {
            ctx.send(*self.successor, Message::Elected);
        }
    }

    /// Indicates the outcome to the application.
    fn tell(&self, ctx: &mut Context<'_, Self>) {
        ctx.indicate(if self.role == Role::Leading {
            Indication::Leading { epoch: 0 }
        } else {
            Indication::Following { leader: None, epoch: 0 }
        });
    }
}
