//! Chang and Roberts's election on a one-way ring, in the form of the project report.
//!
//! Proposals go round; each process lets only numbers above its own pass, and a process that did
//! not take part yet puts its own number in for a lower one. The number that comes home has won,
//! and its owner tells the ring. In the original form, who did not start only passes numbers on.
//! The hardened form numbers its elections and outlives crashes, losses and copies.

mod hardened;

use konklave_process::topology::Shape;
use konklave_process::{Context, Fixed, Process, ProcessId, ProcessSet};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use self::hardened::Hardened;
use super::{Election, Indication, Request, ring};
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Mistake, Setup,
    SetupError, Switch, Winner,
};

const NO_STEP_DOWN: Mistake = Mistake {
    name: "no-step-down",
    what: "the incumbent stays in office while the next election runs",
    breaks: "one leader at a time",
    caught_by: "-n 2 --requests 2,0 --crash 1 --restart 1 --property unique",
};
const NO_HOP_LIMIT: Mistake = Mistake {
    name: "no-hop-limit",
    what: "a message whose owner crashed goes round for ever",
    breaks: "livelock",
    caught_by: "-n 3 --crash 1 --property livelock",
};

const SHEET: DataSheet = DataSheet {
    name: "chang-roberts",
    title: "Chang–Roberts",
    idea: "Numbers go round a ring; only the highest comes home.",
    source: "E. Chang, R. Roberts, CACM 22(5), 1979; project report on the ring election",
    assumes: &[
        Assumption::Reliable,
        Assumption::NoDuplicates,
        Assumption::Fifo,
        Assumption::NoCrash,
        Assumption::UniqueIds,
    ],
    topologies: &[Shape::DirectedRing],
    winner: Some(Winner::MaxAll),
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "d + 2n, d = hops from the initiator to the maximum",
            when: "one initiator",
            bound: |f| {
                let alone = f.initiators.len() == 1 && !is(f.setup, "original");
                alone.then(|| Bound::Exactly(one_starts(f)))
            },
        },
        Cost {
            metric: Metric::Messages,
            formula: "S + n, S = Σ distance to the next higher id",
            when: "all start at once",
            bound: |f| {
                (f.n() > 1.0 && f.k() == f.n()).then(|| Bound::Exactly(proposals(f) + f.n()))
            },
        },
        Cost {
            metric: Metric::Messages,
            formula: "nk − k(k − 1)/2 + n, k = number of initiators",
            when: "in the original form",
            bound: |f| is(f.setup, "original").then(|| Bound::AtMost(relayed(f))),
        },
        Cost {
            metric: Metric::Messages,
            formula: "n(n + 1)/2 + n",
            when: "always",
            bound: |f| Some(Bound::AtMost(f.n() * (f.n() + 1.0) / 2.0 + f.n())),
        },
    ],
    guarantees: &[Guarantee::UniqueLeader, Guarantee::Agreement, Guarantee::Termination],
    fence: None,
    mistakes: &[NO_STEP_DOWN, NO_HOP_LIMIT],
    switches: &[Switch {
        name: "mode",
        values: &["textbook", "original", "hardened"],
        what: "original: who did not start only passes on; hardened: numbered elections and timeouts",
    }],
};

fn is(setup: &Setup, mode: &str) -> bool {
    setup.chosen(&SHEET, "mode").is(mode)
}

/// One process of the algorithm. Rings of millions are built of these: it takes 16 bytes.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct ChangRoberts {
    successor: ProcessId,
    /// Whether we let a proposal of this election pass.
    participant: bool,
    leading: bool,
    /// Whether we pass on the numbers of an election we did not start (original form).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    relays: bool,
    #[serde(skip)]
    rules: Fixed<Rules>,
    /// What most processes of a large ring do not have.
    #[serde(flatten)]
    aside: Aside,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Aside(Option<Box<Rare>>);

#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
struct Rare {
    /// Whom the detector suspects: skipped.
    suspects: ProcessSet,
    hardened: Option<Hardened>,
}

/// The form and the mistakes.
#[derive(Clone, Copy)]
struct Rules(u8);

impl Rules {
    const ORIGINAL: u8 = 1;
    const NO_STEP_DOWN: u8 = 2;
    const NO_HOP_LIMIT: u8 = 4;

    fn new(setup: &Setup) -> Fixed<Self> {
        let rules = [
            (Self::ORIGINAL, is(setup, "original")),
            (Self::NO_STEP_DOWN, *setup.makes(&NO_STEP_DOWN)),
            (Self::NO_HOP_LIMIT, *setup.makes(&NO_HOP_LIMIT)),
        ];
        Fixed(Self(rules.iter().filter(|(_, holds)| *holds).map(|(rule, _)| rule).sum()))
    }

    #[inline]
    fn has(self, rule: u8) -> bool {
        self.0 & rule != 0
    }
}

/// What goes round.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// This one should lead.
    Propose {
        /// Who.
        id: ProcessId,
        /// How far this has come from its owner.
        hops: u32,
    },
    /// This one leads.
    Elected {
        /// Who.
        id: ProcessId,
        /// How far this has come from its owner.
        hops: u32,
    },
    /// This one should lead, in a numbered election (hardened form).
    ProposeIn {
        /// The number of the election.
        epoch: u32,
        /// Who.
        id: ProcessId,
        /// How far this has come from its owner. Short, for messages fill the memory of a large ring.
        hops: u16,
    },
    /// This one leads, by a numbered election (hardened form).
    ElectedIn {
        /// The number of the election.
        epoch: u32,
        /// Who.
        id: ProcessId,
        /// How far this has come from who sent it round.
        hops: u16,
    },
}

/// The timers of the hardened form.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// The election should be over.
    Election,
    /// Our word should have come home.
    Announcement,
}

/// What the hardened form keeps in stable storage: the number of the latest election.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Record(u32);

impl ChangRoberts {
    fn propose(&mut self, id: ProcessId, hops: u32, ctx: &mut Context<'_, Self>) {
        self.participant = true;
        ctx.send(self.successor, Message::Propose { id, hops });
    }

    /// An incumbent leaves office as soon as it hears of a new election.
    fn step_down(&mut self, ctx: &mut Context<'_, Self>) {
        if self.leading && !self.rules.has(Rules::NO_STEP_DOWN) {
            self.leading = false;
            ctx.indicate(Indication::Deposed);
        }
    }

    fn lead(&mut self, ctx: &mut Context<'_, Self>) {
        self.participant = false;
        self.leading = true;
        ctx.indicate(Indication::Leading { epoch: 0 });
        if self.successor != ctx.me() {
            ctx.send(self.successor, Message::Elected { id: ctx.me(), hops: 1 });
        }
    }

    /// Whether a message has passed everyone: then its owner is gone.
    fn is_orphan(&self, hops: u32, ctx: &Context<'_, Self>) -> bool {
        hops as usize > ctx.group_size()
    }

    /// One hop further.
    fn further(&self, hops: u32) -> u32 {
        if self.rules.has(Rules::NO_HOP_LIMIT) { hops } else { hops + 1 }
    }

    #[inline(always)]
    fn on_proposal(&mut self, id: ProcessId, hops: u32, ctx: &mut Context<'_, Self>) {
        let me = ctx.me();
        if id != me {
            self.step_down(ctx);
        }
        if !self.participant && self.rules.has(Rules::ORIGINAL) {
            if id != me {
                self.relays = true;
                ctx.send(self.successor, Message::Propose { id, hops: self.further(hops) });
            }
        } else if id > me {
            self.propose(id, self.further(hops), ctx);
        } else if id < me && !self.participant {
            self.propose(me, 1, ctx);
        } else if id == me && self.participant {
            // Our own number came home: nobody on the ring has a higher one.
            self.lead(ctx);
        }
    }

    fn mend_ring(&mut self, ctx: &Context<'_, Self>) {
        let none = ProcessSet::new();
        let suspects = self.aside.0.as_ref().map_or(&none, |rare| &rare.suspects);
        self.successor = ring::next_alive(ctx.me(), ctx.group(), suspects);
    }

    fn hardened(&mut self) -> Option<&mut Hardened> {
        self.aside.0.as_mut()?.hardened.as_mut()
    }
}

impl Process for ChangRoberts {
    type Message = Message;
    type Timer = Timer;
    type Request = Request;
    type Indication = Indication;
    type Record = Record;

    fn on_recover(&mut self, saved: Option<Record>, ctx: &mut Context<'_, Self>) {
        if let Some(hardened) = self.hardened() {
            hardened.recover(saved);
            self.open(ctx);
        }
    }

    fn on_request(&mut self, Request::Elect: Request, ctx: &mut Context<'_, Self>) {
        // A second number of ours on its way would be one too many.
        if self.participant || self.relays {
            return;
        }
        if self.hardened().is_some() {
            return self.open(ctx);
        }
        self.step_down(ctx);
        if self.rules.has(Rules::ORIGINAL) {
            ctx.indicate(Indication::Candidate);
        }
        if self.successor == ctx.me() {
            return self.lead(ctx);
        }
        self.propose(ctx.me(), 1, ctx);
    }

    // Inlined, a host that has one kind of effect most of the time carries it out on the spot.
    #[inline(always)]
    fn on_message(&mut self, _from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Propose { hops, .. } | Message::Elected { hops, .. }
                if self.is_orphan(hops, ctx) => {}
            Message::Propose { id, hops } => self.on_proposal(id, hops, ctx),
            Message::Elected { id, hops } if id != ctx.me() => {
                self.participant = false;
                self.relays = false;
                self.step_down(ctx);
                ctx.indicate(Indication::Following { leader: Some(id), epoch: 0 });
                ctx.send(self.successor, Message::Elected { id, hops: self.further(hops) });
            }
            // Everyone knows.
            Message::Elected { .. } => {}
            Message::ProposeIn { .. } | Message::ElectedIn { .. } if self.hardened().is_none() => {
                ctx.unexpected("a numbered election");
            }
            Message::ProposeIn { epoch, id, hops } => self.on_propose_in(epoch, id, hops, ctx),
            Message::ElectedIn { epoch, id, hops } => self.on_elected_in(epoch, id, hops, ctx),
        }
    }

    fn on_timer(&mut self, timer: Timer, ctx: &mut Context<'_, Self>) {
        match timer {
            Timer::Election => self.on_silence(ctx),
            Timer::Announcement => self.announce_again(ctx),
        }
    }

    fn on_suspect(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.aside.0.get_or_insert_default().suspects.insert(peer);
        self.mend_ring(ctx);
        if self.hardened().is_some() {
            self.on_crash_of(peer, ctx);
        }
    }

    fn on_trust(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        if let Some(rare) = &mut self.aside.0 {
            rare.suspects.remove(peer);
            if **rare == Rare::default() {
                self.aside = Aside(None);
            }
        }
        self.mend_ring(ctx);
        if self.hardened().is_some() && self.leading {
            self.announce(ctx);
        }
    }

    fn at_rest(&self) -> bool {
        let telling = |rare: &Rare| rare.hardened.as_ref().is_some_and(Hardened::is_telling);
        !self.participant && !self.relays && !self.aside.0.as_deref().is_some_and(telling)
    }
}

impl Algorithm for ChangRoberts {
    type Problem = Election;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        let rare = Rare {
            suspects: setup.down.iter().copied().filter(|p| *p != me).collect(),
            hardened: is(setup, "hardened").then(|| Hardened::new(setup)),
        };
        Self {
            successor: match setup.down.is_empty() {
                true => setup.successor(me),
                false => ring::next_alive(me, &setup.group, &rare.suspects),
            },
            participant: false,
            leading: false,
            relays: false,
            rules: Rules::new(setup),
            aside: Aside(Some(rare).filter(|r| *r != Rare::default()).map(Box::new)),
        }
    }

    fn sheet(setup: &Setup) -> DataSheet {
        match setup.chosen(&SHEET, "mode").0 {
            "original" => DataSheet { winner: Some(Winner::MaxInitiator), ..SHEET },
            "hardened" => hardened::sheet(SHEET),
            _ => SHEET,
        }
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        let (n, most) = (setup.group.len(), usize::from(u16::MAX) - 1);
        match setup.mistake {
            _ if !is(setup, "hardened") => Ok(()),
            Some(mistake) => {
                Err(SetupError(format!("{mistake} is no mistake of the hardened form")))
            }
            None if n > most => {
                Err(SetupError(format!("a hardened ring has at most {most} nodes, not {n}")))
            }
            None => Ok(()),
        }
    }
}

impl Serialize for Aside {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        let suspects = self.0.as_ref().map(|rare| &rare.suspects);
        map.serialize_entry("suspects", &suspects.filter(|s| !s.is_empty()))?;
        if let Some(hardened) = self.0.as_ref().and_then(|rare| rare.hardened.as_ref()) {
            map.serialize_entry("hardened", hardened)?;
        }
        map.end()
    }
}

/// The messages of an election that one process starts.
fn one_starts(f: &Facts<'_>) -> f64 {
    let group = &f.setup.group;
    if group.len() == 1 {
        return 0.0;
    }
    let place = |p| group.place(p).expect("initiators are members");
    let (from, to) = (place(f.initiators[0]), place(group.highest()));
    ((to + group.len() - from) % group.len()) as f64 + 2.0 * f.n()
}

/// The proposals of an election that all start: each number goes as far as the next higher one.
fn proposals(f: &Facts<'_>) -> f64 {
    let members = f.setup.group.members();
    let n = members.len();
    // Going back round the ring twice, the stack holds the numbers ahead that nothing hides.
    let (mut stack, mut sum) = (Vec::<usize>::new(), 0);
    for i in (0..2 * n).rev() {
        while stack.last().is_some_and(|&j| members[j % n] <= members[i % n]) {
            stack.pop();
        }
        if i < n {
            sum += stack.last().map_or(n, |j| (j - i).min(n));
        }
        stack.push(i);
    }
    sum as f64
}

/// The most messages of the original form: the i-th of the initiators, from above, stops i others.
fn relayed(f: &Facts<'_>) -> f64 {
    let (n, k) = (f.n(), f.k());
    if n > 1.0 { n * k - k * (k - 1.0) / 2.0 + n } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use konklave_process::{Effect, Group, Input, Topology};
    use konklave_testkit::{Bench, send, set, tell};

    use super::*;

    /// Process 1 of the ring 0 → 1 → 2.
    fn one(mode: &str) -> Bench<ChangRoberts> {
        let group = Group::of(3);
        let mut setup = Setup::new(group.clone(), Topology::directed_ring(3));
        setup.chosen.insert("mode", mode.to_owned());
        Bench::new(ChangRoberts::new(ProcessId(1), &setup), ProcessId(1), &group)
    }

    fn propose(id: u32, hops: u32) -> Message {
        Message::Propose { id: ProcessId(id), hops }
    }

    fn elected(id: u32, hops: u32) -> Message {
        Message::Elected { id: ProcessId(id), hops }
    }

    fn following(leader: u32, epoch: u32) -> Effect<ChangRoberts> {
        tell(Indication::Following { leader: Some(ProcessId(leader)), epoch })
    }

    #[test]
    fn a_process_of_a_large_ring_is_small() {
        assert_eq!((size_of::<ChangRoberts>(), size_of::<Message>()), (16, 12));
    }

    #[test]
    fn a_lower_number_is_replaced_once_and_then_stopped() {
        let mut p1 = one("textbook");
        assert_eq!(p1.hear(0, propose(0, 1)), [send(2, propose(1, 1))]);
        assert_eq!(p1.hear(0, propose(0, 1)), []);
        assert_eq!(p1.hear(0, propose(2, 2)), [send(2, propose(2, 3))]);
    }

    #[test]
    fn ones_own_number_wins_only_while_one_takes_part() {
        let mut p1 = one("textbook");
        p1.ask(Request::Elect);
        let won = [tell(Indication::Leading { epoch: 0 }), send(2, elected(1, 1))];
        assert_eq!(p1.hear(0, propose(1, 3)), won);
        assert_eq!(p1.hear(0, propose(1, 3)), [], "a copy changes nothing");
        assert_eq!(p1.hear(0, propose(2, 1))[0], tell(Indication::Deposed));
    }

    #[test]
    fn what_has_passed_everyone_is_dropped() {
        let mut p1 = one("textbook");
        assert_eq!(p1.hear(0, propose(2, 4)), []);
        assert_eq!(p1.hear(0, elected(2, 4)), []);
    }

    #[test]
    fn in_the_original_form_who_did_not_start_only_passes_on() {
        let mut p1 = one("original");
        assert_eq!(p1.hear(0, propose(0, 1)), [send(2, propose(0, 2))]);
        assert_eq!(p1.ask(Request::Elect), [], "too late to start");
        assert_eq!(p1.hear(0, elected(0, 1)), [following(0, 0), send(2, elected(0, 2))]);
        let started = [tell(Indication::Candidate), send(2, propose(1, 1))];
        assert_eq!(p1.ask(Request::Elect), started, "the next election is open again");
    }

    fn propose_in(epoch: u32, id: u32, hops: u16) -> Message {
        Message::ProposeIn { epoch, id: ProcessId(id), hops }
    }

    fn elected_in(epoch: u32, id: u32, hops: u16) -> Message {
        Message::ElectedIn { epoch, id: ProcessId(id), hops }
    }

    const PATIENCE: std::time::Duration = std::time::Duration::from_millis(18);

    #[test]
    fn hardened_the_latest_election_counts() {
        let mut p1 = one("hardened");
        let takes_part =
            [Effect::Save(Record(2)), set(Timer::Election, PATIENCE), send(2, propose_in(2, 1, 1))];
        assert_eq!(p1.hear(0, propose_in(2, 0, 1)), takes_part);
        assert_eq!(p1.hear(0, propose_in(1, 2, 1)), [], "an older one");
        assert_eq!(p1.hear(0, propose_in(2, 2, 1)), [send(2, propose_in(2, 2, 2))]);
        assert_eq!(p1.hear(0, propose_in(2, 1, 3)), [], "ours is home, but a higher one passed");
        let told = [
            Effect::CancelTimer { timer: Timer::Election },
            following(2, 2),
            send(2, elected_in(2, 2, 3)),
        ];
        assert_eq!(p1.hear(0, elected_in(2, 2, 2)), told);
        let behind = p1.hear(0, propose_in(1, 2, 1));
        assert_eq!(behind, [send(2, elected_in(2, 2, 1))], "who is behind is told");
    }

    #[test]
    fn hardened_the_winner_repeats_its_word_until_it_comes_home() {
        let mut p1 = one("hardened");
        p1.ask(Request::Elect);
        let repeated = [set(Timer::Announcement, PATIENCE), send(2, elected_in(1, 1, 1))];
        assert_eq!(p1.hear(0, propose_in(1, 1, 3))[2..], repeated);
        assert_eq!(p1.fire(Timer::Announcement), repeated);
        let home = [Effect::CancelTimer { timer: Timer::Announcement }];
        assert_eq!(p1.hear(0, elected_in(1, 1, 3)), home);
        assert!(p1.process.at_rest());
    }

    #[test]
    fn hardened_a_dead_leader_is_replaced_and_never_followed() {
        let mut p1 = one("hardened");
        p1.hear(0, elected_in(1, 2, 1));
        let opened = [
            Effect::Save(Record(2)),
            set(Timer::Election, PATIENCE),
            tell(Indication::Deposed),
            send(0, propose_in(2, 1, 1)),
        ];
        assert_eq!(p1.suspect(2), opened);
        assert_eq!(p1.hear(0, elected_in(2, 2, 1)), []);
        assert_eq!(p1.hear(0, propose_in(2, 2, 1)), []);
        assert_eq!(p1.fire(Timer::Election)[2..], [send(0, propose_in(3, 1, 1))]);
    }

    #[test]
    fn hardened_a_restarted_process_opens_the_next_election() {
        let mut p1 = one("hardened");
        let opened = p1.step(Input::Recover(Some(Record(7))));
        assert_eq!(opened[0], Effect::Save(Record(8)));
        assert_eq!(opened[2], send(2, propose_in(8, 1, 1)));
    }

    #[test]
    fn a_numbered_election_means_nothing_to_the_textbook_form() {
        let strange = [Effect::Unexpected("a numbered election")];
        assert_eq!(one("textbook").hear(0, propose_in(1, 2, 1)), strange);
    }
}
