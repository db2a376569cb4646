//! Hirschberg and Sinclair's election on a two-way ring.
//!
//! In phase p a candidate sends probes 2^p hops both ways. A higher candidate stops them; where they
//! come to their end, they are answered. Two answers, and the candidate doubles its reach; a probe
//! that comes home has passed everyone. Messages tell their phase, so their order does not matter.

use konklave_process::topology::Shape;
use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId};
use serde::{Deserialize, Serialize};

use super::ring::{self, Sides, Way};
use super::{Election, Indication, Request};
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Mistake, Setup, Winner,
};

const NO_RELAY_LOCK: Mistake = Mistake {
    name: "no-relay-lock",
    what: "a process that passed a probe on may still start: too late to stop the one it let pass",
    breaks: "one leader at a time",
    caught_by: "-n 2 --property unique",
};

const SHEET: DataSheet = DataSheet {
    name: "hirschberg-sinclair",
    title: "Hirschberg–Sinclair",
    idea: "Probes go twice as far in each phase; only a local maximum gets its answers.",
    source: "D. S. Hirschberg, J. B. Sinclair, CACM 23(11), 1980",
    assumes: &[
        Assumption::Reliable,
        Assumption::NoDuplicates,
        Assumption::NoCrash,
        Assumption::UniqueIds,
    ],
    topologies: &[Shape::Ring],
    winner: Some(Winner::MaxInitiator),
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "8n(1 + ⌈log₂ n⌉) + n",
            when: "always",
            bound: |f| {
                let all = 8.0 * f.n() * (1.0 + f.n().log2().ceil()) + f.n();
                Some(if f.n() > 1.0 { Bound::AtMost(all) } else { Bound::Exactly(0.0) })
            },
        },
        Cost {
            metric: Metric::Time,
            formula: "5n + n; 3n + n if n is a power of two",
            when: "all start at once, and delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost((slowest(f) + f.n()) * t)),
        },
    ],
    guarantees: &[Guarantee::UniqueLeader, Guarantee::Agreement, Guarantee::Termination],
    fence: None,
    mistakes: &[NO_RELAY_LOCK],
    switches: &[ring::JOIN],
};

/// Until a probe comes home.
fn slowest(f: &Facts<'_>) -> f64 {
    if f.setup.group.len().is_power_of_two() { 3.0 * f.n() } else { 5.0 * f.n() }
}

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct HirschbergSinclair {
    role: Role,
    /// Who has won, once we know.
    leader: Option<ProcessId>,
    #[serde(skip)]
    sides: Fixed<Sides>,
    #[serde(skip)]
    joins: Fixed<bool>,
    #[serde(skip)]
    no_relay_lock: Fixed<bool>,
}

/// What we are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum Role {
    /// We know of no election.
    Asleep,
    /// We pass on what comes, whatever it is.
    Relay,
    /// We stop lower numbers, even when we cannot win any more.
    Candidate {
        /// Our probes go 2^phase hops.
        phase: u8,
        /// The way of the one answer that has come, if only one has.
        answered: Option<Way>,
    },
}

/// What goes round.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// May this one lead?
    Probe {
        /// Who.
        id: ProcessId,
        /// In which phase.
        phase: u8,
        /// How far it has come.
        hop: u32,
        /// Which way it goes.
        way: Way,
    },
    /// As far as the probe went, nobody objects.
    Reply {
        /// Whose probe it was.
        id: ProcessId,
        /// Of which phase.
        phase: u8,
        /// Which way it goes: back.
        way: Way,
    },
    /// This one leads.
    Elected {
        /// Who.
        id: ProcessId,
    },
}

impl HirschbergSinclair {
    fn start(&mut self, ctx: &mut Context<'_, Self>) {
        ctx.indicate(Indication::Candidate);
        if ctx.group_size() == 1 {
            return self.end(ctx.me(), ctx);
        }
        self.probe(0, ctx);
    }

    fn probe(&mut self, phase: u8, ctx: &mut Context<'_, Self>) {
        self.role = Role::Candidate { phase, answered: None };
        for way in Way::BOTH {
            self.send(way, Message::Probe { id: ctx.me(), phase, hop: 1, way }, ctx);
        }
    }

    fn send(&self, way: Way, message: Message, ctx: &mut Context<'_, Self>) {
        ctx.send(self.sides.towards(way), message);
    }

    /// The relay lock: who has handled a message is no candidate any more.
    fn wake(&mut self, ctx: &mut Context<'_, Self>) {
        if self.role == Role::Asleep {
            if *self.joins {
                self.start(ctx);
            } else {
                self.role = Role::Relay;
            }
        }
    }

    fn is_candidate(&self) -> bool {
        matches!(self.role, Role::Candidate { .. })
    }

    fn end(&mut self, leader: ProcessId, ctx: &mut Context<'_, Self>) {
        self.leader = Some(leader);
        ring::announce(leader, 0, ctx);
    }

    fn on_probe(
        &mut self,
        (id, phase, hop, way): (ProcessId, u8, u32, Way),
        ctx: &mut Context<'_, Self>,
    ) {
        if id == ctx.me() {
            // Two copies come home, but we announce once.
            if self.leader != Some(id) {
                self.end(id, ctx);
                self.send(Way::Clockwise, Message::Elected { id }, ctx);
            }
        } else if id < ctx.me() && self.is_candidate() {
            // It cannot win.
        } else if u64::from(hop) < reach(phase) {
            self.send(way, Message::Probe { id, phase, hop: hop.saturating_add(1), way }, ctx);
        } else {
            self.send(way.back(), Message::Reply { id, phase, way: way.back() }, ctx);
        }
    }

    /// An answer to a probe of ours.
    fn on_answer(&mut self, of: u8, way: Way, ctx: &mut Context<'_, Self>) {
        match self.role {
            Role::Candidate { phase, answered: None } if phase == of => {
                self.role = Role::Candidate { phase, answered: Some(way) };
            }
            Role::Candidate { phase, answered: Some(other) } if phase == of && other != way => {
                self.probe(phase.saturating_add(1), ctx);
            }
            // An answer of an earlier phase, or a copy.
            Role::Asleep | Role::Relay | Role::Candidate { .. } => {}
        }
    }
}

/// How far probes of this phase go.
fn reach(phase: u8) -> u64 {
    1 << phase.min(63)
}

impl Process for HirschbergSinclair {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, Request::Elect: Request, ctx: &mut Context<'_, Self>) {
        match (self.leader, self.role) {
            (Some(leader), _) => ring::announce(leader, 0, ctx),
            (None, Role::Asleep) => self.start(ctx),
            (None, Role::Relay) if *self.no_relay_lock => self.start(ctx),
            (None, Role::Relay | Role::Candidate { .. }) => {}
        }
    }

    fn on_message(&mut self, _from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        self.wake(ctx);
        match message {
            Message::Probe { id, phase, hop, way } => self.on_probe((id, phase, hop, way), ctx),
            Message::Reply { id, phase, way } if id == ctx.me() => self.on_answer(phase, way, ctx),
            Message::Reply { way, .. } => self.send(way, message, ctx),
            Message::Elected { id } => {
                if self.leader.is_none() {
                    self.end(id, ctx);
                    self.send(Way::Clockwise, message, ctx);
                }
            }
        }
    }

    fn at_rest(&self) -> bool {
        self.leader.is_some() || self.role == Role::Asleep
    }
}

impl Algorithm for HirschbergSinclair {
    type Problem = Election;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        Self {
            role: Role::Asleep,
            leader: None,
            sides: Sides::new(me, setup),
            joins: Fixed(ring::joins(&SHEET, setup)),
            no_relay_lock: setup.makes(&NO_RELAY_LOCK),
        }
    }

    fn sheet(setup: &Setup) -> DataSheet {
        ring::sheet_with_join(SHEET, setup)
    }
}

#[cfg(test)]
mod tests {
    use konklave_process::{Group, Topology};
    use konklave_testkit::{Bench, send, tell};

    use super::*;
    use Way::{Clockwise, Counterclockwise};

    /// Process 2 of the ring 0 – 2 – 1, or of 0 – 2.
    fn two_of(ids: &[u32]) -> Bench<HirschbergSinclair> {
        let group = Group::new(ids.iter().copied().map(ProcessId).collect()).unwrap();
        let setup = Setup::new(group.clone(), Topology::ring(ids.len()));
        Bench::new(HirschbergSinclair::new(ProcessId(2), &setup), ProcessId(2), &group)
    }

    fn probe(id: u32, phase: u8, hop: u32, way: Way) -> Message {
        Message::Probe { id: ProcessId(id), phase, hop, way }
    }

    fn reply(id: u32, phase: u8, way: Way) -> Message {
        Message::Reply { id: ProcessId(id), phase, way }
    }

    #[test]
    fn a_candidate_doubles_its_reach_when_both_sides_have_answered() {
        let mut p2 = two_of(&[0, 2, 1]);
        let probes = |phase| {
            [send(1, probe(2, phase, 1, Clockwise)), send(0, probe(2, phase, 1, Counterclockwise))]
        };
        assert_eq!(p2.ask(Request::Elect)[1..], probes(0));
        assert_eq!(p2.hear(1, reply(2, 0, Counterclockwise)), []);
        assert_eq!(p2.hear(1, reply(2, 0, Counterclockwise)), [], "a copy counts once");
        assert_eq!(p2.hear(0, reply(2, 0, Clockwise)), probes(1));
        assert_eq!(p2.hear(0, reply(2, 0, Clockwise)), [], "of an earlier phase");
    }

    #[test]
    fn a_probe_goes_on_up_to_its_reach_and_is_answered_there() {
        let mut p2 = two_of(&[0, 2, 1]);
        assert_eq!(p2.hear(0, probe(0, 1, 1, Clockwise)), [send(1, probe(0, 1, 2, Clockwise))]);
        let answer = send(0, reply(0, 1, Counterclockwise));
        assert_eq!(p2.hear(0, probe(0, 1, 2, Clockwise)), [answer]);
        assert_eq!(
            p2.hear(1, reply(0, 1, Counterclockwise)),
            [send(0, reply(0, 1, Counterclockwise))]
        );
    }

    #[test]
    fn only_a_candidate_stops_lower_numbers() {
        let mut p2 = two_of(&[0, 2, 1]);
        p2.ask(Request::Elect);
        assert_eq!(p2.hear(0, probe(0, 1, 1, Clockwise)), []);
        assert_eq!(p2.hear(0, probe(3, 1, 1, Clockwise)), [send(1, probe(3, 1, 2, Clockwise))]);
    }

    #[test]
    fn who_passed_a_probe_on_may_not_start() {
        let mut p2 = two_of(&[0, 2, 1]);
        p2.hear(0, probe(0, 1, 1, Clockwise));
        assert_eq!(p2.ask(Request::Elect), []);
    }

    #[test]
    fn of_two_copies_that_come_home_the_first_is_announced() {
        let mut p2 = two_of(&[0, 2]);
        p2.ask(Request::Elect);
        let announced = [
            tell(Indication::Leading { epoch: 0 }),
            send(0, Message::Elected { id: ProcessId(2) }),
        ];
        assert_eq!(p2.hear(0, probe(2, 1, 2, Clockwise)), announced);
        assert_eq!(p2.hear(0, probe(2, 1, 2, Counterclockwise)), []);
        assert_eq!(p2.hear(0, Message::Elected { id: ProcessId(2) }), []);
    }

    #[test]
    fn no_phase_is_too_high() {
        let mut p2 = two_of(&[0, 2]);
        let far = probe(0, u8::MAX, u32::MAX, Clockwise);
        assert_eq!(p2.hear(0, far), [send(0, far)]);
    }
}
