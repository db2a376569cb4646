//! Itai and Rodeh's election on a one-way ring without names.
//!
//! Everyone draws a number and sends it round with a count of its hops: after n hops it is at home,
//! for n is known. Higher numbers silence lower ones, equal ones spoil each other. A number that
//! comes home unspoilt has won; a spoilt one is drawn anew. No name is ever compared.

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

/// What we are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum Role {
    /// We know of no election.
    Asleep,
    /// We may win with this.
    Active(Lot),
    /// We pass on what comes.
    Passive,
    /// We have won.
    Leading,
    /// Someone has won.
    Following,
}

/// What a process drew.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct Lot {
    /// How often it had drawn before; 0 where that is not told.
    phase: u32,
    number: u32,
}

#[derive(Clone, Copy)]
struct Rules {
    /// How many we think we are.
    n: u32,
    /// How many numbers there are.
    range: u32,
    tell_phase: bool,
}

/// What goes round.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// Someone's lot.
    Token {
        /// What was drawn.
        lot: Lot,
        /// How far this has come.
        hop: u32,
        /// Whether nobody on the way had drawn the same.
        unique: bool,
    },
    /// Someone leads.
    Elected,
}

impl ItaiRodeh {
    fn draw(&mut self, phase: u32, ctx: &mut Context<'_, Self>) {
        let phase = if self.rules.tell_phase { phase } else { 0 };
        let lot = Lot { phase, number: 1 + ctx.choose(self.rules.range) };
        self.role = Role::Active(lot);
        ctx.send(*self.successor, Message::Token { lot, hop: 1, unique: true });
    }

    fn pass_on(&self, lot: Lot, hop: u32, unique: bool, ctx: &mut Context<'_, Self>) {
        // Beyond n hops, which only a wrong n allows, all are the same.
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

    /// Tells the application the outcome.
    fn tell(&self, ctx: &mut Context<'_, Self>) {
        ctx.indicate(if self.role == Role::Leading {
            Indication::Leading { epoch: 0 }
        } else {
            Indication::Following { leader: None, epoch: 0 }
        });
    }
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
                    // Ours came home.
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
            // It was overtaken by the end.
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
