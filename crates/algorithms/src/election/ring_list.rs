//! The ring election of the slides: gather everyone, then take the maximum.
//!
//! A list goes round to which everyone adds itself; who finds itself on it closes the round and
//! sends the result after it. The slides credit Chang and Roberts; it is rather Le Lann's, for no
//! number stops another. Hardened, elections are numbered and a dead winner opens a new one.

use std::sync::Arc;
use std::time::Duration;

use konklave_process::topology::Shape;
use konklave_process::{Context, Fixed, Process, ProcessId};
use serde::{Deserialize, Serialize};

use super::ring::{self, Suspects};
use super::{Election, Indication, Request};
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Mistake, Setup, Switch,
    Winner,
};

const NO_FORWARD: Mistake = Mistake {
    name: "no-forward",
    what: "FINISH_ELECTION as printed does not pass the result on: only one neighbour learns it",
    breaks: "termination",
    caught_by: "-n 3 --initiators 0",
};

const SHEET: DataSheet = DataSheet {
    name: "ring-list",
    title: "List-collecting ring election",
    idea: "A list goes round, everyone adds itself, and the maximum of the full list leads.",
    source: "lecture \"Wahlverfahren\", ring algorithm; after G. Le Lann, IFIP Congress 1977",
    assumes: &[
        Assumption::Reliable,
        Assumption::NoDuplicates,
        Assumption::NoCrash,
        Assumption::UniqueIds,
        Assumption::KnownMembership,
    ],
    topologies: &[Shape::DirectedRing],
    winner: Some(Winner::MaxAll),
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "2n·s, n of them alive, s = number of initiators",
            when: "all start before they learn of a leader; hardened: one initiator",
            bound: |f| {
                let counts = !is_hardened(f.setup) || f.k() == 1.0;
                let alive = f.n() - f.setup.down.len() as f64;
                let all = if alive > 1.0 { 2.0 * alive * f.k() } else { 0.0 };
                counts.then_some(Bound::Exactly(all))
            },
        },
        Cost {
            metric: Metric::Time,
            formula: "2n",
            when: "all start at once, and delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(2.0 * f.n() * t)),
        },
    ],
    guarantees: &[
        Guarantee::UniqueLeader,
        Guarantee::Agreement,
        Guarantee::LiveLeader,
        Guarantee::Termination,
    ],
    fence: None,
    mistakes: &[NO_FORWARD],
    switches: &[Switch {
        name: "mode",
        values: &["textbook", "hardened"],
        what: "hardened: numbered elections, a timeout, and a dead winner opens a new election",
    }],
};

fn is_hardened(setup: &Setup) -> bool {
    setup.chosen(&SHEET, "mode").is("hardened")
}

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct RingList {
    successor: ProcessId,
    /// Whom the detector suspects: skipped.
    suspects: Suspects,
    leader: Option<ProcessId>,
    /// Whether we started (hardened: or took part), and do not know the outcome.
    waiting: bool,
    /// The latest election we know of, if elections are numbered.
    epoch: Epoch,
    #[serde(skip)]
    hardened: Fixed<bool>,
    #[serde(skip)]
    patience: Fixed<Duration>,
    #[serde(skip)]
    no_forward: Fixed<bool>,
}

/// Which election: a later round goes before an earlier one, then the higher origin.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize)]
struct Epoch {
    round: u32,
    origin: ProcessId,
}

/// A list of processes; a message on its way is its only owner, so that adding to it copies nothing.
type List = Arc<Vec<ProcessId>>;

/// What goes round. The first of a list opened the election.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// Add yourself.
    Election {
        /// The number of the election; 0 where they have none.
        round: u32,
        /// Who has been reached.
        list: List,
    },
    /// The highest of them leads.
    Coordinator {
        /// The number of the election.
        round: u32,
        /// Who was reached.
        list: List,
        /// Who knows the result.
        informed: List,
    },
}

/// What is kept in stable storage: the round of the latest election.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Record(u32);

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// The election should be over.
    Outcome,
}

impl RingList {
    fn start(&mut self, ctx: &mut Context<'_, Self>) {
        let me = ctx.me();
        if *self.hardened {
            self.take_part(Epoch { round: self.epoch.round.saturating_add(1), origin: me }, ctx);
        }
        if self.successor == me {
            return self.decide(me, ctx);
        }
        self.waiting = true;
        let round = self.epoch.round;
        ctx.send(self.successor, Message::Election { round, list: Arc::new(vec![me]) });
    }

    /// What was decided before does not hold any more.
    fn take_part(&mut self, epoch: Epoch, ctx: &mut Context<'_, Self>) {
        self.epoch = epoch;
        self.waiting = true;
        ctx.save(Record(epoch.round));
        ctx.set_timer(Timer::Outcome, *self.patience);
        if self.leader.take().is_some() {
            ctx.indicate(Indication::Deposed);
        }
    }

    fn decide(&mut self, leader: ProcessId, ctx: &mut Context<'_, Self>) {
        if *self.hardened && self.waiting {
            ctx.cancel_timer(Timer::Outcome);
        }
        if self.waiting || self.leader != Some(leader) {
            self.waiting = false;
            self.leader = Some(leader);
            ring::announce(leader, self.epoch.round, ctx);
        }
    }

    fn on_election(&mut self, round: u32, mut list: List, ctx: &mut Context<'_, Self>) {
        let (me, epoch) = (ctx.me(), Epoch { round, origin: list[0] });
        let listed = list.contains(&me);
        if *self.hardened {
            if epoch < self.epoch {
                return self.tell(ctx);
            } else if epoch > self.epoch {
                self.take_part(epoch, ctx);
            } else if !listed || !self.waiting {
                // We have seen this one: it is a copy.
                return;
            }
        }
        if listed {
            self.finish(round, list, Vec::new(), ctx);
        } else {
            Arc::make_mut(&mut list).push(me);
            ctx.send(self.successor, Message::Election { round, list });
        }
    }

    /// Takes the result of `list` over and passes it on.
    fn finish(
        &mut self,
        round: u32,
        list: List,
        mut informed: Vec<ProcessId>,
        ctx: &mut Context<'_, Self>,
    ) {
        let leader = list.iter().copied().max().unwrap_or(ctx.me());
        if *self.hardened && self.suspects.contains(leader) {
            // Nobody shall follow the dead: unless we learn better, time will open a new election.
            return;
        }
        self.decide(leader, ctx);
        if informed.is_empty() || !*self.no_forward {
            informed.push(ctx.me());
            let informed = Arc::new(informed);
            ctx.send(self.successor, Message::Coordinator { round, list, informed });
        }
    }

    fn on_coordinator(
        &mut self,
        round: u32,
        list: List,
        informed: List,
        ctx: &mut Context<'_, Self>,
    ) {
        let epoch = Epoch { round, origin: list[0] };
        if informed.contains(&ctx.me()) || (*self.hardened && epoch < self.epoch) {
            return;
        }
        if *self.hardened && epoch > self.epoch {
            self.take_part(epoch, ctx);
        }
        self.finish(round, list, Arc::unwrap_or_clone(informed), ctx);
    }

    /// Someone is behind the times: the result goes round once more.
    fn tell(&self, ctx: &mut Context<'_, Self>) {
        let Some(leader) = self.leader.filter(|_| self.successor != ctx.me()) else { return };
        let Epoch { round, origin } = self.epoch;
        let mut list = vec![origin];
        list.extend(Some(leader).filter(|l| *l != origin));
        let informed = Arc::new(vec![ctx.me()]);
        ctx.send(self.successor, Message::Coordinator { round, list: Arc::new(list), informed });
    }
}

impl Process for RingList {
    type Message = Message;
    type Timer = Timer;
    type Request = Request;
    type Indication = Indication;
    type Record = Record;

    fn on_recover(&mut self, saved: Option<Record>, ctx: &mut Context<'_, Self>) {
        if *self.hardened {
            self.epoch.round = saved.map_or(0, |Record(round)| round);
            self.start(ctx);
        }
    }

    fn on_request(&mut self, Request::Elect: Request, ctx: &mut Context<'_, Self>) {
        if !(*self.hardened && self.waiting) {
            self.start(ctx);
        }
    }

    fn on_message(&mut self, _from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Election { list, .. } | Message::Coordinator { list, .. }
                if list.is_empty() =>
            {
                ctx.unexpected("an election that nobody opened");
            }
            Message::Election { round, list } => self.on_election(round, list, ctx),
            Message::Coordinator { round, list, informed } => {
                self.on_coordinator(round, list, informed, ctx);
            }
        }
    }

    fn on_timer(&mut self, Timer::Outcome: Timer, ctx: &mut Context<'_, Self>) {
        if self.waiting {
            self.start(ctx);
        }
    }

    fn on_suspect(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.suspects.insert(peer);
        self.successor = self.suspects.next_alive(ctx.me(), ctx.group());
        let alone = self.waiting && self.successor == ctx.me();
        if *self.hardened && (alone || self.leader == Some(peer)) {
            self.start(ctx);
        }
    }

    fn on_trust(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.suspects.remove(peer);
        self.successor = self.suspects.next_alive(ctx.me(), ctx.group());
        if *self.hardened && self.leader == Some(ctx.me()) {
            self.tell(ctx);
        }
    }

    fn at_rest(&self) -> bool {
        !self.waiting
    }
}

impl Algorithm for RingList {
    type Problem = Election;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        let suspects = Suspects::new(me, setup);
        Self {
            successor: suspects.successor(me, setup),
            suspects,
            leader: None,
            waiting: false,
            epoch: Epoch::default(),
            hardened: Fixed(is_hardened(setup)),
            patience: Fixed(ring::patience(setup)),
            no_forward: setup.makes(&NO_FORWARD),
        }
    }

    fn longest_delay(setup: &Setup) -> Option<f64> {
        is_hardened(setup).then(ring::longest_delay)
    }

    fn sheet(setup: &Setup) -> DataSheet {
        if is_hardened(setup) {
            return DataSheet { assumes: HARDENED_ASSUMES, ..SHEET };
        }
        SHEET
    }
}

/// Crashes, losses and copies only cost time.
const HARDENED_ASSUMES: &[Assumption] = &[
    Assumption::Synchronous,
    Assumption::StableStorage,
    Assumption::UniqueIds,
    Assumption::KnownMembership,
];

#[cfg(test)]
mod tests {
    use konklave_process::{Effect, Group, Input, Topology};
    use konklave_testkit::{Bench, send, set, tell};

    use super::*;

    const PATIENCE: Duration = Duration::from_millis(18);

    /// Process 1 of the ring 0 → 1 → 2.
    fn one(mode: &str) -> Bench<RingList> {
        let group = Group::of(3);
        let mut setup = Setup::new(group.clone(), Topology::directed_ring(3));
        setup.chosen.insert("mode", mode.to_owned());
        Bench::new(RingList::new(ProcessId(1), &setup), ProcessId(1), &group)
    }

    fn list(ids: &[u32]) -> List {
        Arc::new(ids.iter().copied().map(ProcessId).collect())
    }

    fn election(round: u32, ids: &[u32]) -> Message {
        Message::Election { round, list: list(ids) }
    }

    fn coordinator(round: u32, ids: &[u32], informed: &[u32]) -> Message {
        Message::Coordinator { round, list: list(ids), informed: list(informed) }
    }

    fn following(leader: u32, epoch: u32) -> Effect<RingList> {
        tell(Indication::Following { leader: Some(ProcessId(leader)), epoch })
    }

    #[test]
    fn who_is_not_on_the_list_adds_itself() {
        assert_eq!(one("textbook").hear(0, election(0, &[0])), [send(2, election(0, &[0, 1]))]);
    }

    #[test]
    fn who_is_on_the_list_closes_it_and_tells_the_ring() {
        let mut p1 = one("textbook");
        assert_eq!(p1.ask(Request::Elect), [send(2, election(0, &[1]))]);
        let told = [following(2, 0), send(2, coordinator(0, &[1, 2, 0], &[1]))];
        assert_eq!(p1.hear(0, election(0, &[1, 2, 0])), told);
        assert_eq!(p1.hear(0, coordinator(0, &[1, 2, 0], &[1, 2, 0])), []);
    }

    #[test]
    fn the_second_closes_the_list_if_the_first_has_died() {
        let mut p1 = one("textbook");
        p1.suspect(0);
        let told = [following(2, 0), send(2, coordinator(0, &[0, 1, 2], &[1]))];
        assert_eq!(p1.hear(2, election(0, &[0, 1, 2])), told);
    }

    #[test]
    fn the_dead_are_skipped_and_who_is_alone_leads() {
        let mut p1 = one("textbook");
        p1.suspect(2);
        assert_eq!(p1.ask(Request::Elect), [send(0, election(0, &[1]))]);
        p1.suspect(0);
        assert_eq!(p1.ask(Request::Elect), [tell(Indication::Leading { epoch: 0 })]);
    }

    #[test]
    fn a_list_of_nobody_is_unexpected() {
        let nobody = Effect::Unexpected("an election that nobody opened");
        assert_eq!(one("textbook").hear(0, election(0, &[])), [nobody]);
    }

    #[test]
    fn hardened_the_latest_election_counts() {
        let mut p1 = one("hardened");
        let takes_part =
            [Effect::Save(Record(2)), set(Timer::Outcome, PATIENCE), send(2, election(2, &[0, 1]))];
        assert_eq!(p1.hear(0, election(2, &[0])), takes_part);
        assert_eq!(p1.hear(0, election(2, &[0])), [], "a copy");
        assert_eq!(p1.hear(0, election(1, &[2, 0])), [], "an older one");
        let told = [
            Effect::CancelTimer { timer: Timer::Outcome },
            following(2, 2),
            send(2, coordinator(2, &[0, 1, 2], &[0, 1])),
        ];
        assert_eq!(p1.hear(0, coordinator(2, &[0, 1, 2], &[0])), told);
        let behind = p1.hear(0, election(1, &[2, 0]));
        assert_eq!(behind, [send(2, coordinator(2, &[0, 2], &[1]))], "who opened it is told");
    }

    #[test]
    fn hardened_a_dead_leader_is_replaced_and_never_followed() {
        let mut p1 = one("hardened");
        p1.hear(0, election(1, &[0]));
        p1.hear(0, coordinator(1, &[0, 1, 2], &[0]));
        let opened = [
            Effect::Save(Record(2)),
            set(Timer::Outcome, PATIENCE),
            tell(Indication::Deposed),
            send(0, election(2, &[1])),
        ];
        assert_eq!(p1.suspect(2), opened);
        assert_eq!(p1.hear(0, election(2, &[1, 2, 0])), []);
        assert_eq!(p1.fire(Timer::Outcome)[2..], [send(0, election(3, &[1]))]);
    }

    #[test]
    fn hardened_a_restarted_process_opens_the_next_election() {
        let mut p1 = one("hardened");
        let opened = p1.step(Input::Recover(Some(Record(7))));
        assert_eq!(opened[0], Effect::Save(Record(8)));
        assert_eq!(opened[2], send(2, election(8, &[1])));
    }
}
