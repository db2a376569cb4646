//! Neilsen and Mizuno's mutual exclusion on a directed acyclic graph.
//!
//! The edges of a tree lead to the one who will have the token last, the sink. A request follows
//! them and turns each edge on its way; the token then goes straight to who asked, past the tree.

use konklave_process::topology::Shape;
use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId};
use serde::{Deserialize, Serialize};

use super::{Fence, Indication, Mutex, Request};
use crate::{Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Mistake, Setup};

const NO_EDGE_REVERSAL: Mistake = Mistake {
    name: "no-edge-reversal",
    what: "who passes a request on does not turn its edge: it and its neighbour point at each other",
    breaks: "deadlock",
    caught_by: "-n 3 --topology path --requests 0,1,1",
};
const ONLY_HOLDERS_QUEUE: Mistake = Mistake {
    name: "only-holders-queue",
    what: "a sink that only waits answers a request with the token, which it does not have",
    breaks: "one token",
    caught_by: "-n 3 --topology path",
};

const SHEET: DataSheet = DataSheet {
    name: "neilsen-mizuno",
    title: "Neilsen–Mizuno",
    idea: "Requests follow the edges of a tree and turn them; the token comes straight back.",
    source: "M. L. Neilsen, M. Mizuno, ICDCS 1991",
    assumes: &[
        Assumption::Reliable,
        Assumption::NoDuplicates,
        Assumption::NoCrash,
        Assumption::UniqueIds,
    ],
    topologies: &[Shape::Tree, Shape::Connected, Shape::Complete],
    winner: None,
    costs: &[
        Cost {
            metric: Metric::MessagesPerEntry,
            formula: "D + 1, D = diameter of the tree, or 0 where the token is",
            when: "always",
            bound: |f| Some(Bound::AtMost(way(f.setup))),
        },
        Cost {
            metric: Metric::SyncDelay,
            formula: "T, or (D + 1)T while the next one's request is on its way",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(way(f.setup) * t)),
        },
        Cost {
            metric: Metric::EntryDelay,
            formula: "(D + 1)T, or 0 where the token is",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(way(f.setup) * t)),
        },
    ],
    guarantees: &[Guarantee::MutualExclusion, Guarantee::DeadlockFree, Guarantee::StarvationFree],
    fence: Some("the token's count of entries"),
    mistakes: &[NO_EDGE_REVERSAL, ONLY_HOLDERS_QUEUE],
    switches: &[],
};

/// The longest way of a request, and one step back.
fn way(setup: &Setup) -> f64 {
    match setup.tree_diameter() {
        0 => 0.0,
        d => d as f64 + 1.0,
    }
}

/// One process of the algorithm. At first the first of the group has the token.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct NeilsenMizuno {
    phase: Phase,
    /// The neighbour in whose direction the last one is who asked; none if that is ourselves.
    last: Option<ProcessId>,
    /// Who gets the token after us.
    next: Option<ProcessId>,
    /// The token: how many entries there were.
    token: Option<u32>,
    #[serde(skip)]
    mistake: Fixed<Option<&'static str>>,
}

/// Where we stand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum Phase {
    /// We want nothing.
    Idle,
    /// We have asked.
    Wanting,
    /// We are inside.
    Held,
}

/// What the processes say.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// This one wants the token, says a neighbour.
    Request(ProcessId),
    /// Here it is, straight from who had it.
    Token {
        /// How many entries there were.
        entries: u32,
    },
}

impl NeilsenMizuno {
    fn makes(&self, mistake: &Mistake) -> bool {
        *self.mistake == Some(mistake.name)
    }

    fn enter(&mut self, entries: u32, ctx: &mut Context<'_, Self>) {
        self.phase = Phase::Held;
        self.token = Some(entries);
        ctx.indicate(Indication::Granted { fence: Some(Fence(0, entries.into())) });
    }

    fn pass_on(&mut self, to: ProcessId, ctx: &mut Context<'_, Self>) {
        // Only a mistaken sink is without the token: what it sends is a forgery.
        let entries = self.token.take().unwrap_or_default();
        ctx.send(to, Message::Token { entries });
    }

    fn on_wish(&mut self, from: ProcessId, origin: ProcessId, ctx: &mut Context<'_, Self>) {
        let waits = match self.phase {
            Phase::Idle => false,
            Phase::Wanting => !self.makes(&ONLY_HOLDERS_QUEUE),
            Phase::Held => true,
        };
        match self.last {
            Some(last) => {
                ctx.send(last, Message::Request(origin));
                if self.makes(&NO_EDGE_REVERSAL) {
                    return;
                }
            }
            None if !waits => self.pass_on(origin, ctx),
            None if self.next.is_some() => return ctx.unexpected("a second successor"),
            None => self.next = Some(origin),
        }
        self.last = Some(from);
    }
}

impl Process for NeilsenMizuno {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        match request {
            Request::Acquire => match (self.last.take(), self.token) {
                (Some(last), _) => {
                    self.phase = Phase::Wanting;
                    ctx.send(last, Message::Request(ctx.me()));
                }
                (None, token) => self.enter(token.map_or(1, |entries| entries + 1), ctx),
            },
            Request::Release => {
                self.phase = Phase::Idle;
                if let Some(next) = self.next.take() {
                    self.pass_on(next, ctx);
                }
            }
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Request(origin) => self.on_wish(from, origin, ctx),
            Message::Token { entries } if self.phase == Phase::Wanting => {
                self.enter(entries + 1, ctx);
            }
            Message::Token { .. } => ctx.unexpected("a token that nobody asked for"),
        }
    }

    fn at_rest(&self) -> bool {
        self.phase == Phase::Idle && self.next.is_none()
    }

    fn tokens(&self) -> usize {
        self.token.is_some().into()
    }

    fn tokens_in(message: &Message) -> usize {
        matches!(message, Message::Token { .. }).into()
    }
}

impl Algorithm for NeilsenMizuno {
    type Problem = Mutex;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        let last = setup.parent(me);
        Self {
            phase: Phase::Idle,
            last,
            next: None,
            token: last.is_none().then_some(0),
            mistake: Fixed(setup.mistake),
        }
    }
}

#[cfg(test)]
mod tests {
    use konklave_process::{Effect, Group, Topology};
    use konklave_testkit::{Bench, send, tell};

    use super::*;

    /// Process `me` of a path of four.
    fn bench(me: u32) -> Bench<NeilsenMizuno> {
        let group = Group::of(4);
        let setup = Setup::new(group.clone(), Topology::path(4));
        Bench::new(NeilsenMizuno::new(ProcessId(me), &setup), ProcessId(me), &group)
    }

    fn request(origin: u32) -> Message {
        Message::Request(ProcessId(origin))
    }

    #[test]
    fn a_request_goes_on_and_turns_its_edge() {
        let mut p1 = bench(1);
        assert_eq!(p1.hear(2, request(3)), [send(0, request(3))]);
        assert_eq!(p1.hear(0, request(0)), [send(2, request(0))]);
        assert_eq!(p1.ask(Request::Acquire), [send(0, request(1))]);
    }

    #[test]
    fn the_idle_sink_sends_the_token_past_the_tree() {
        let mut p0 = bench(0);
        assert_eq!(p0.hear(1, request(3)), [send(3, Message::Token { entries: 0 })]);
        assert_eq!(p0.process.last, Some(ProcessId(1)));
    }

    #[test]
    fn a_waiting_sink_queues_the_next_and_serves_it_when_it_leaves() {
        let mut p2 = bench(2);
        assert_eq!(p2.ask(Request::Acquire), [send(1, request(2))]);
        assert_eq!(p2.hear(1, request(0)), []);
        assert_eq!(p2.hear(3, request(3)), [send(1, request(3))]);
        let granted = tell(Indication::Granted { fence: Some(Fence(0, 6)) });
        assert_eq!(p2.hear(0, Message::Token { entries: 5 }), [granted]);
        assert_eq!(p2.ask(Request::Release), [send(0, Message::Token { entries: 6 })]);
        assert!(p2.process.at_rest());
    }

    #[test]
    fn a_token_that_nobody_asked_for_is_unexpected() {
        let effects = bench(1).hear(0, Message::Token { entries: 0 });
        assert!(matches!(effects[..], [Effect::Unexpected(_)]));
    }
}
