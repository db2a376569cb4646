//! Itai and Rodeh's election on a one-way ring without names.
//!
//! Everyone draws a number and sends it round with a count of its hops: after n hops it is at home,
//! for n is known. Higher numbers silence lower ones, equal ones spoil each other. A number that
//! comes home unspoilt has won; a spoilt one is drawn anew. No name is ever compared.

use konklave_process::topology::Shape;
use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId};
use serde::{Deserialize, Serialize};

use super::{Election, Indication, Request};
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Setup, SetupError, Switch,
    Winner,
};

const SHEET: DataSheet = DataSheet {
    name: "itai-rodeh",
    title: "Itai–Rodeh",
    idea: "Draw lots, send them round, and draw again where the highest was drawn twice.",
    source: "A. Itai, M. Rodeh, Inf. and Comp. 88(1), 1990; W. Fokkink, J. Pang, JUCS 12(8), 2006 (without phases)",
    assumes: &[Assumption::Reliable, Assumption::NoDuplicates, Assumption::NoCrash],
    topologies: &[Shape::DirectedRing],
    winner: Some(Winner::Any),
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "2n",
            when: "one initiator",
            bound: |f| {
                let known = f.setup.chosen(&SHEET, "believed-n").is("n");
                (known && f.k() == 1.0 && f.n() > 1.0).then(|| Bound::Exactly(2.0 * f.n()))
            },
        },
        Cost {
            metric: Metric::Messages,
            formula: "O(n log n)",
            when: "many runs are averaged: a single one may draw lots for as long as it likes",
            // Nothing that a single run could break.
            bound: |_| None,
        },
    ],
    guarantees: &[
        Guarantee::UniqueLeader,
        Guarantee::Agreement,
        Guarantee::TerminationWithProbabilityOne,
    ],
    fence: None,
    mistakes: &[],
    switches: &[
        Switch {
            name: "range",
            values: &["n", "<number>"],
            what: "how many numbers there are to draw from",
        },
        Switch {
            name: "phases",
            values: &["told", "untold"],
            what: "whether numbers tell their phase; if they do not, FIFO is needed",
        },
        Switch {
            name: "believed-n",
            values: &["n", "<number>"],
            what: "how many the processes think they are: wrong, and there are several leaders or none",
        },
    ],
};

/// What is assumed where numbers do not tell their phase.
const ASSUMES_ORDER: &[Assumption] =
    &[Assumption::Reliable, Assumption::NoDuplicates, Assumption::NoCrash, Assumption::Fifo];

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

    fn at_rest(&self) -> bool {
        !matches!(self.role, Role::Active(_) | Role::Passive)
    }
}

impl Algorithm for ItaiRodeh {
    type Problem = Election;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        let n = setup.group.len() as u32;
        let or_n = |switch| match setup.chosen(&SHEET, switch) {
            chosen if chosen.is("n") => n,
            chosen => chosen.number(),
        };
        Self {
            role: Role::Asleep,
            successor: Fixed(setup.successor(me)),
            rules: Fixed(Rules {
                n: or_n("believed-n"),
                range: or_n("range"),
                tell_phase: setup.chosen(&SHEET, "phases").is("told"),
            }),
        }
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        setup.need(&SHEET, 1, &["believed-n"])?;
        // With one number to draw, nobody is ever the only one with the highest.
        setup.need(&SHEET, 2, &["range"])
    }

    fn sheet(setup: &Setup) -> DataSheet {
        if setup.chosen(&SHEET, "phases").is("untold") {
            return DataSheet { assumes: ASSUMES_ORDER, ..SHEET };
        }
        SHEET
    }
}

#[cfg(test)]
mod tests {
    use konklave_process::{Group, Topology};
    use konklave_testkit::{Bench, send, tell};

    use super::*;

    /// Process 0 of a ring of three, which draws 2.
    fn with_a_two() -> Bench<ItaiRodeh> {
        let group = Group::of(3);
        let setup = Setup::new(group.clone(), Topology::directed_ring(3));
        let mut bench = Bench::new(ItaiRodeh::new(ProcessId(0), &setup), ProcessId(0), &group);
        assert_eq!(bench.draw(&[1, 0]).ask(Request::Elect), [send(1, token(1, 2, 1, true))]);
        bench
    }

    fn token(phase: u32, number: u32, hop: u32, unique: bool) -> Message {
        Message::Token { lot: Lot { phase, number }, hop, unique }
    }

    #[test]
    fn a_lower_lot_is_stopped_an_equal_one_spoilt_a_higher_one_obeyed() {
        let mut p0 = with_a_two();
        assert_eq!(p0.hear(2, token(1, 1, 1, true)), []);
        assert_eq!(p0.hear(2, token(1, 2, 1, true)), [send(1, token(1, 2, 2, false))]);
        assert_eq!(p0.hear(2, token(1, 3, 1, true)), [send(1, token(1, 3, 2, true))]);
        assert_eq!(p0.process.role, Role::Passive);
    }

    #[test]
    fn a_later_phase_counts_more_than_a_higher_number() {
        let mut p0 = with_a_two();
        assert_eq!(p0.hear(2, token(2, 1, 1, true)), [send(1, token(2, 1, 2, true))]);
        assert_eq!(p0.process.role, Role::Passive);
    }

    #[test]
    fn what_comes_home_unspoilt_has_won() {
        let mut p0 = with_a_two();
        let announced = [tell(Indication::Leading { epoch: 0 }), send(1, Message::Elected)];
        assert_eq!(p0.hear(2, token(1, 2, 3, true)), announced);
        assert_eq!(p0.hear(2, Message::Elected), []);
    }

    #[test]
    fn what_comes_home_spoilt_is_drawn_anew() {
        let mut p0 = with_a_two();
        assert_eq!(p0.hear(2, token(1, 2, 3, false)), [send(1, token(2, 1, 1, true))]);
    }

    #[test]
    fn nobody_learns_the_name_of_the_leader() {
        let mut p0 = with_a_two();
        let following = Indication::Following { leader: None, epoch: 0 };
        assert_eq!(p0.hear(2, Message::Elected), [tell(following), send(1, Message::Elected)]);
    }
}
