//! Franklin's election on a two-way ring.
//!
//! In every round each active process sends its number to both sides and compares it with those of
//! its nearest active neighbours. Only who is higher than both stays active, so that each round
//! halves them; the others only pass numbers on. Who meets its own number is alone and has won.

use konklave_process::topology::Shape;
use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId};
use serde::{Deserialize, Serialize, Serializer};
use smallvec::SmallVec;

use super::ring::{self, Sides, Way};
use super::{Election, Indication, Request};
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Mistake, Setup,
    Switch, Winner,
};

const DROP_QUEUED: Mistake = Mistake {
    name: "drop-queued",
    what: "who turns passive forgets the numbers that wait in its queues instead of passing them on",
    breaks: "deadlock",
    caught_by: "-n 3",
};
const EQUAL_SIDES: Mistake = Mistake {
    name: "equal-sides",
    what: "the same number from both sides is taken for the end, even if it is another's",
    breaks: "one leader at a time",
    caught_by: "-n 2",
};

const SHEET: DataSheet = DataSheet {
    name: "franklin",
    title: "Franklin",
    idea: "Round by round, only who is higher than both active neighbours stays active.",
    source: "W. R. Franklin, CACM 25(5), 1982; project report on the ring election",
    assumes: &[
        Assumption::Reliable,
        Assumption::NoDuplicates,
        Assumption::Fifo,
        Assumption::NoCrash,
        Assumption::UniqueIds,
    ],
    topologies: &[Shape::Ring],
    winner: Some(Winner::MaxInitiator),
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "3n",
            when: "one initiator",
            bound: |f| (f.n() > 1.0 && rounds(f) == 1.0).then(|| Bound::Exactly(3.0 * f.n())),
        },
        Cost {
            metric: Metric::Messages,
            formula: "2n(⌊log₂ k⌋ + 1) + n, k = number of initiators",
            when: "always",
            bound: |f| {
                let all = 2.0 * f.n() * rounds(f) + f.n();
                Some(if f.n() > 1.0 { Bound::AtMost(all) } else { Bound::Exactly(0.0) })
            },
        },
        Cost {
            metric: Metric::Time,
            formula: "n(⌊log₂ k⌋ + 3)",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(f.n() * (rounds(f) + 2.0) * t)),
        },
    ],
    guarantees: &[Guarantee::UniqueLeader, Guarantee::Agreement, Guarantee::Termination],
    fence: None,
    mistakes: &[DROP_QUEUED, EQUAL_SIDES],
    switches: &[
        ring::JOIN,
        Switch {
            name: "rounds",
            values: &["untold", "told"],
            what: "whether numbers tell their round; if they do, FIFO is not needed",
        },
    ],
};

/// What is assumed where numbers tell their round.
const ASSUMES_NO_ORDER: &[Assumption] =
    &[Assumption::Reliable, Assumption::NoDuplicates, Assumption::NoCrash, Assumption::UniqueIds];

/// The most rounds there can be: each halves those who are active, and one stays.
fn rounds(f: &Facts<'_>) -> f64 {
    ring::log_of_starters(&SHEET, f) + 1.0
}

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
    fn hear(&mut self, heard: Heard, way: Way) {
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
        way: Way,
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
        for way in Way::BOTH {
            self.pass_on(Heard { round: self.round, id: ctx.me() }, way, ctx);
        }
    }

    fn pass_on(&self, Heard { round, id }: Heard, way: Way, ctx: &mut Context<'_, Self>) {
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
                ctx.send(self.sides.towards(Way::Clockwise), Message::Elected { id: me });
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
        for (queue, way) in queues.iter().zip(Way::BOTH) {
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
                    ctx.send(self.sides.towards(Way::Clockwise), Message::Elected { id });
                }
            },
        }
    }

    fn at_rest(&self) -> bool {
        matches!(self.role, Role::Asleep | Role::Over(_))
    }
}

impl Algorithm for Franklin {
    type Problem = Election;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        Self {
            role: Role::Asleep,
            round: 0,
            heard: Queues::default(),
            sides: Sides::new(me, setup),
            joins: Fixed(ring::joins(&SHEET, setup)),
            tells_round: Fixed(setup.chosen(&SHEET, "rounds").is("told")),
            drop_queued: setup.makes(&DROP_QUEUED),
            equal_sides: setup.makes(&EQUAL_SIDES),
        }
    }

    fn sheet(setup: &Setup) -> DataSheet {
        let sheet = ring::sheet_with_join(SHEET, setup);
        if setup.chosen(&SHEET, "rounds").is("told") {
            return DataSheet { assumes: ASSUMES_NO_ORDER, ..sheet };
        }
        sheet
    }
}

#[cfg(test)]
mod tests {
    use konklave_process::{Effect, Group, Topology};
    use konklave_testkit::{Bench, send, tell};

    use super::*;
    use Way::{Clockwise, Counterclockwise};

    /// Process 2 of the ring 0 – 2 – 1.
    fn two(chosen: &[(&'static str, &str)]) -> Bench<Franklin> {
        let group = Group::new([0, 2, 1].map(ProcessId).to_vec()).unwrap();
        let mut setup = Setup::new(group.clone(), Topology::ring(3));
        setup.chosen = chosen.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Bench::new(Franklin::new(ProcessId(2), &setup), ProcessId(2), &group)
    }

    fn id(id: u32, round: u32, way: Way) -> Message {
        Message::Id { id: ProcessId(id), round, way }
    }

    fn both_ways(round: u32) -> [Effect<Franklin>; 2] {
        [send(1, id(2, round, Clockwise)), send(0, id(2, round, Counterclockwise))]
    }

    #[test]
    fn who_is_higher_than_both_neighbours_goes_on() {
        let mut p2 = two(&[]);
        assert_eq!(p2.ask(Request::Elect)[1..], both_ways(0));
        assert_eq!(p2.hear(0, id(0, 0, Clockwise)), [], "one side is not enough");
        assert_eq!(p2.hear(1, id(1, 0, Counterclockwise)), both_ways(0));
    }

    #[test]
    fn who_is_lower_passes_on_what_waits_in_its_queues() {
        let mut p2 = two(&[]);
        p2.ask(Request::Elect);
        p2.hear(0, id(0, 0, Clockwise));
        p2.hear(0, id(9, 0, Clockwise));
        assert_eq!(p2.hear(1, id(3, 0, Counterclockwise)), [send(1, id(9, 0, Clockwise))]);
        assert_eq!(p2.hear(0, id(8, 0, Clockwise)), [send(1, id(8, 0, Clockwise))]);
    }

    #[test]
    fn only_ones_own_number_from_both_sides_is_the_end() {
        let mut p2 = two(&[]);
        p2.ask(Request::Elect);
        p2.hear(0, id(2, 0, Clockwise));
        let announced = [
            tell(Indication::Leading { epoch: 0 }),
            send(1, Message::Elected { id: ProcessId(2) }),
        ];
        assert_eq!(p2.hear(1, id(2, 0, Counterclockwise)), announced);
        assert_eq!(p2.hear(0, Message::Elected { id: ProcessId(2) }), []);
    }

    #[test]
    fn who_passed_a_number_on_may_not_start_but_may_join_before() {
        let mut relay = two(&[]);
        assert_eq!(relay.hear(0, id(0, 0, Clockwise)), [send(1, id(0, 0, Clockwise))]);
        assert_eq!(relay.ask(Request::Elect), []);
        let mut joins = two(&[("join", "true")]);
        assert_eq!(joins.hear(0, id(0, 0, Clockwise))[1..], both_ways(0));
    }

    #[test]
    fn numbers_that_tell_their_round_wait_for_it() {
        let mut p2 = two(&[("rounds", "told")]);
        assert_eq!(p2.ask(Request::Elect)[1..], both_ways(1));
        assert_eq!(p2.hear(0, id(3, 2, Clockwise)), []);
        assert_eq!(p2.hear(1, id(1, 1, Counterclockwise)), [], "the other is of the next round");
        assert_eq!(p2.hear(0, id(0, 1, Clockwise)), both_ways(2));
        assert_eq!(p2.hear(1, id(1, 2, Counterclockwise)), [], "now it counts: 3 is higher");
        assert_eq!(p2.process.role, Role::Passive);
    }

    #[test]
    fn who_asks_after_the_end_is_told_the_outcome() {
        let mut p2 = two(&[]);
        p2.hear(0, Message::Elected { id: ProcessId(1) });
        let following = Indication::Following { leader: Some(ProcessId(1)), epoch: 0 };
        assert_eq!(p2.ask(Request::Elect), [tell(following)]);
    }
}
