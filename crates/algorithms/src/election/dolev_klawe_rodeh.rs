//! The election of Dolev, Klawe and Rodeh (and Peterson) on a one-way ring.
//!
//! Franklin's idea where numbers go one way only: a process learns the values of its two nearest
//! active predecessors and takes the nearer one's place, if that one has the highest of the three
//! values. So values travel, each round halves them, and the one that meets itself has won: not the
//! process that finds out, but the one whose number it is.

use konklave_process::topology::Shape;
use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId};
use serde::{Deserialize, Serialize};

use super::{Election, Indication, Request, ring};
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Mistake, Setup, Winner,
};

const DETECTOR_IS_LEADER: Mistake = Mistake {
    name: "detector-is-leader",
    what: "whoever finds out that the election is over takes itself for the winner",
    breaks: "right winner",
    caught_by: "-n 2",
};

const SHEET: DataSheet = DataSheet {
    name: "dolev-klawe-rodeh",
    title: "Dolev–Klawe–Rodeh / Peterson",
    idea: "Values move on one way; only one that is higher than both its neighbours survives a round.",
    source: "D. Dolev, M. Klawe, M. Rodeh, J. Algorithms 3(3), 1982; G. L. Peterson, TOPLAS 4(4), 1982; \
             named in the project report on the ring election",
    assumes: &[
        Assumption::Reliable,
        Assumption::NoDuplicates,
        Assumption::Fifo,
        Assumption::NoCrash,
        Assumption::UniqueIds,
    ],
    topologies: &[Shape::DirectedRing],
    winner: Some(Winner::MaxInitiator),
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "2n",
            when: "one initiator",
            bound: |f| {
                let alone = ring::log_of_starters(&SHEET, f) == 0.0;
                (f.n() > 1.0 && alone).then(|| Bound::Exactly(2.0 * f.n()))
            },
        },
        Cost {
            metric: Metric::Messages,
            formula: "2n⌊log₂ k⌋ + 2n, k = number of initiators",
            when: "always",
            bound: |f| {
                let all = 2.0 * f.n() * (ring::log_of_starters(&SHEET, f) + 1.0);
                Some(if f.n() > 1.0 { Bound::AtMost(all) } else { Bound::Exactly(0.0) })
            },
        },
    ],
    guarantees: &[Guarantee::UniqueLeader, Guarantee::Agreement, Guarantee::Termination],
    fence: None,
    mistakes: &[DETECTOR_IS_LEADER],
    switches: &[ring::JOIN],
};

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

    fn at_rest(&self) -> bool {
        matches!(self.role, Role::Asleep | Role::Over(_))
    }
}

impl Algorithm for DolevKlaweRodeh {
    type Problem = Election;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        Self {
            role: Role::Asleep,
            successor: Fixed(setup.successor(me)),
            joins: Fixed(ring::joins(&SHEET, setup)),
            detector_is_leader: setup.makes(&DETECTOR_IS_LEADER),
        }
    }

    fn sheet(setup: &Setup) -> DataSheet {
        ring::sheet_with_join(SHEET, setup)
    }
}

#[cfg(test)]
mod tests {
    use konklave_process::{Effect, Group, Topology};
    use konklave_testkit::{Bench, send, tell};

    use super::*;

    /// Process 1 of the ring 0 → 1 → 2.
    fn one() -> Bench<DolevKlaweRodeh> {
        let group = Group::of(3);
        let setup = Setup::new(group.clone(), Topology::directed_ring(3));
        Bench::new(DolevKlaweRodeh::new(ProcessId(1), &setup), ProcessId(1), &group)
    }

    fn message(of: fn(ProcessId) -> Message, id: u32) -> Effect<DolevKlaweRodeh> {
        send(2, of(ProcessId(id)))
    }

    #[test]
    fn a_process_takes_the_place_of_a_predecessor_between_two_lower_ones() {
        let mut p1 = one();
        assert_eq!(p1.ask(Request::Elect)[1..], [message(Message::One, 1)]);
        assert_eq!(p1.hear(0, Message::One(ProcessId(9))), [message(Message::Two, 9)]);
        assert_eq!(p1.hear(0, Message::Two(ProcessId(5))), [message(Message::One, 9)]);
    }

    #[test]
    fn otherwise_it_only_passes_on() {
        let mut p1 = one();
        p1.ask(Request::Elect);
        p1.hear(0, Message::One(ProcessId(9)));
        assert_eq!(p1.hear(0, Message::Two(ProcessId(10))), []);
        assert_eq!(p1.hear(0, Message::One(ProcessId(0))), [message(Message::One, 0)]);
        assert_eq!(p1.hear(0, Message::Two(ProcessId(3))), [message(Message::Two, 3)]);
    }

    #[test]
    fn a_value_that_meets_itself_has_won_for_its_owner() {
        let mut p1 = one();
        p1.ask(Request::Elect);
        p1.hear(0, Message::One(ProcessId(2)));
        p1.hear(0, Message::Two(ProcessId(0)));
        let following = Indication::Following { leader: Some(ProcessId(2)), epoch: 0 };
        let announced = [tell(following), message(Message::Elected, 2)];
        assert_eq!(p1.hear(0, Message::One(ProcessId(2))), announced);
        assert_eq!(p1.hear(0, Message::Elected(ProcessId(2))), [], "it came round");
    }

    #[test]
    fn the_owner_leads_when_it_hears_of_it() {
        let mut p1 = one();
        p1.ask(Request::Elect);
        let announced = [tell(Indication::Leading { epoch: 0 }), message(Message::Elected, 1)];
        assert_eq!(p1.hear(0, Message::Elected(ProcessId(1))), announced);
    }

    #[test]
    fn a_value_that_overtook_another_is_unexpected() {
        let mut p1 = one();
        p1.ask(Request::Elect);
        let overtaken = Effect::Unexpected("a value that overtook another");
        assert_eq!(p1.hear(0, Message::Two(ProcessId(2))), [overtaken]);
    }
}
