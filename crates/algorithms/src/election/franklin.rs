//! Franklin's election on a two-way ring.
//!
//! In every round each active process sends its number to both sides and compares it with those of
//! its nearest active neighbours. Only who is higher than both stays active, so that each round
//! halves them; the others only pass numbers on. Who meets its own number is alone and has won.

mod sheet;
#[cfg(test)]
mod tests;

use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId};
use serde::{Deserialize, Serialize, Serializer};
use smallvec::SmallVec;

use super::ring::{Direction, Sides};
use super::{Indication, Request, ring};

/// One process of the algorithm. Rings of millions are built of these: it takes 32 bytes.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Franklin {
    role: Role,
    /// Our round; 0 for ever where numbers do not tell theirs.
    round: u32,
    heard: Queues,
    #[serde(skip)]
    sides: Fixed<Sides>,
    #[serde(skip)]
    joins: Fixed<bool>,
    #[serde(skip)]
    tells_round: Fixed<bool>,
    #[serde(skip)]
    drop_queued: Fixed<bool>,
    #[serde(skip)]
    equal_sides: Fixed<bool>,
}

/// What we are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum Role {
    /// We know of no election.
    Asleep,
    /// We may win.
    Active,
    /// We pass on what comes.
    Passive,
    /// This one has won.
    Over(ProcessId),
}

/// A number that came in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
struct Heard {
    round: u32,
    id: ProcessId,
}

/// What came from each side and was not compared yet, by round. In most processes, and soon in all
/// but a few, that is nothing.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Queues(Option<Box<[Queue; 2]>>);

type Queue = SmallVec<[Heard; 2]>;

impl Queues {
    fn hear(&mut self, heard: Heard, way: Direction) {
        let queue = &mut self.0.get_or_insert_default()[way as usize];
        let place = queue.partition_point(|earlier| earlier.round <= heard.round);
        queue.insert(place, heard);
    }

    /// The first of each side, if they are of this round; they leave the queues.
    fn take_both(&mut self, round: u32) -> Option<[ProcessId; 2]> {
        let queues = self.0.as_mut()?;
        let of_round = |queue: &Queue| queue.first().filter(|h| h.round == round).map(|h| h.id);
        let [Some(a), Some(b)] = [of_round(&queues[0]), of_round(&queues[1])] else { return None };
        for queue in queues.iter_mut() {
            queue.remove(0);
        }
        // Equal states are equal values.
        if queues.iter().all(|queue| queue.is_empty()) {
            self.0 = None;
        }
        Some([a, b])
    }
}

impl Serialize for Queues {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Some(queues) => queues.serialize(serializer),
            None => <[[Heard; 0]; 2]>::default().serialize(serializer),
        }
    }
}

/// What goes round.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// The number of an active process.
    Id {
        /// Whose.
        id: ProcessId,
        /// In which round; 0 where that is not told.
        round: u32,
        /// Which way it goes.
        way: Direction,
    },
    /// This one leads.
    Elected {
        /// Who.
        id: ProcessId,
    },
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

    fn next_round(&mut self, ctx: &mut Context<'_, Self>) {
        self.round += u32::from(*self.tells_round);
        for way in Direction::BOTH {
            self.pass_on(Heard { round: self.round, id: ctx.me() }, way, ctx);
        }
    }

    fn pass_on(&self, Heard { round, id }: Heard, way: Direction, ctx: &mut Context<'_, Self>) {
        ctx.send(self.sides.towards(way), Message::Id { id, round, way });
    }

    /// Compares round by round, as long as both sides have spoken.
    fn compare(&mut self, ctx: &mut Context<'_, Self>) {
        let me = ctx.me();
        while self.role == Role::Active
            && let Some([a, b]) = self.heard.take_both(self.round)
        {
            if a == b && (a == me || *self.equal_sides) {
                // Our own number came home both ways: nobody else is active.
                self.end(me, ctx);
                ctx.send(self.sides.towards(Direction::Clockwise), Message::Elected { id: me });
            } else if me > a && me > b {
                self.next_round(ctx);
            } else {
                self.turn_passive(ctx);
            }
        }
    }

    /// What waits in the queues was meant for those who are still active.
    fn turn_passive(&mut self, ctx: &mut Context<'_, Self>) {
        self.role = Role::Passive;
        self.round = 0;
        let Some(queues) = self.heard.0.take().filter(|_| !*self.drop_queued) else { return };
        for (queue, way) in queues.iter().zip(Direction::BOTH) {
            for &heard in queue {
                self.pass_on(heard, way, ctx);
            }
        }
    }

    fn end(&mut self, leader: ProcessId, ctx: &mut Context<'_, Self>) {
        self.role = Role::Over(leader);
        self.round = 0;
        self.heard = Queues::default();
        ring::announce(leader, 0, ctx);
    }
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
            // Who has passed a number on may not start any more.
            Role::Active | Role::Passive => {}
            Role::Over(leader) => ring::announce(leader, 0, ctx),
        }
    }

    fn on_message(&mut self, _from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Id { id, round, way } => {
                if self.role == Role::Asleep {
                    if *self.joins {
                        self.start(ctx);
                    } else {
                        self.role = Role::Passive;
                    }
                }
                match self.role {
                    Role::Active => {
                        self.heard.hear(Heard { round, id }, way);
                        self.compare(ctx);
                    }
                    Role::Asleep | Role::Passive => self.pass_on(Heard { round, id }, way, ctx),
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
