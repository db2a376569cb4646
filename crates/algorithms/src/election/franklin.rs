//! Franklin's election on a two-way ring.
//!
//! In every round each active process sends its number to both sides and compares it with the numbers of its nearest
//! active neighbours. Only a process with a higher number than both stays active; the others pass numbers on. A process
//! that receives its own number is alone and has won.

mod queues;
mod rules;
mod sheet;
#[cfg(test)]
mod tests;

use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId};
use serde::{Deserialize, Serialize};

use self::queues::{Heard, Queues};
use self::rules::Rules;
use super::ring::{Direction, Sides};
use super::{Indication, Request, ring};

/// One process of the algorithm. Rings of millions are built of these: it takes 32 bytes.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Franklin {
    role: Role,
    /// The round of this process; always 0 if numbers do not carry their round.
    round: u32,
    heard: Queues,
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
    /// It may win.
    Active,
    /// It passes messages on.
    Passive,
    /// This process has won.
    Over(ProcessId),
}

/// The messages, which go round.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// The number of an active process.
    Id {
        /// The number.
        id: ProcessId,
        /// Its round; 0 if numbers do not carry their round.
        round: u32,
        /// Its direction.
        way: Direction,
    },
    /// This process leads.
    Elected {
        /// Its number.
        id: ProcessId,
    },
}

impl Process for Franklin {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, Request::Elect: Request, ctx: &mut Context<'_, Self>) {
        match self.role {
            Role::Asleep => self.start(ctx),
            Role::Active | Role::Passive => {}
            Role::Over(leader) => ring::announce(leader, 0, ctx),
        }
    }

    fn on_message(&mut self, _from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Id { id, round, way } => {
                self.wake(ctx);
                let heard = Heard { round, id };
                match self.role {
                    Role::Active => {
                        self.heard.push(heard, way);
                        self.compare(ctx);
                    }
                    Role::Asleep | Role::Passive => self.pass_on(heard, way, ctx),
                    Role::Over(_) => ctx.unexpected("a number after the end"),
                }
            }
            Message::Elected { id } => match self.role {
                Role::Over(_) => {}
                Role::Asleep | Role::Active | Role::Passive => {
                    self.end(id, ctx);
                    ctx.send(self.sides.towards(Direction::Clockwise), Message::Elected { id });
                }
            },
        }
    }
}

impl Franklin {
    fn start(&mut self, ctx: &mut Context<'_, Self>) {
        ctx.indicate(Indication::Candidate);
        if ctx.group_size() == 1 {
            return self.end(ctx.me(), ctx);
        }
        self.role = Role::Active;
        self.next_round(ctx);
    }

    /// A process that has passed a number on must not start any more; with the switch `join` it starts first.
    fn wake(&mut self, ctx: &mut Context<'_, Self>) {
        if self.role == Role::Asleep {
            if self.rules.joins {
                self.start(ctx);
            } else {
                self.role = Role::Passive;
            }
        }
    }

    fn next_round(&mut self, ctx: &mut Context<'_, Self>) {
        self.round += u32::from(self.rules.tells_round);
        for way in Direction::BOTH {
            self.pass_on(Heard { round: self.round, id: ctx.me() }, way, ctx);
        }
    }

    fn pass_on(&self, Heard { round, id }: Heard, way: Direction, ctx: &mut Context<'_, Self>) {
        ctx.send(self.sides.towards(way), Message::Id { id, round, way });
    }

    /// Compares round by round, while there is a number from each side.
    fn compare(&mut self, ctx: &mut Context<'_, Self>) {
        let me = ctx.me();
        while self.role == Role::Active
            && let Some([a, b]) = self.heard.take_both(self.round)
        {
            if self.rules.is_alone([a, b], me) {
                self.end(me, ctx);
                ctx.send(self.sides.towards(Direction::Clockwise), Message::Elected { id: me });
            } else if me > a && me > b {
                self.next_round(ctx);
            } else {
                self.turn_passive(ctx);
            }
        }
    }

    fn turn_passive(&mut self, ctx: &mut Context<'_, Self>) {
        self.role = Role::Passive;
        self.round = 0;
        for (heard, way) in self.rules.left_over(&mut self.heard) {
            self.pass_on(heard, way, ctx);
        }
    }

    fn end(&mut self, leader: ProcessId, ctx: &mut Context<'_, Self>) {
        self.role = Role::Over(leader);
        self.round = 0;
        self.heard = Queues::default();
        ring::announce(leader, 0, ctx);
    }
}
