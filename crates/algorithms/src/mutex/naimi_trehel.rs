//! Naimi and Tréhel's mutual exclusion by path reversal.
//!
//! `last` pointers lead to the one who will have the token last. A request follows them, and all
//! on its way turn their pointers to who asked: the more someone asks, the shorter the ways to it.
//! Those who wait form a queue: each knows who is `next`.

use konklave_process::topology::Shape;
use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId};
use serde::{Deserialize, Serialize};

use super::{Fence, Indication, Mutex, Request};
use crate::{Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Mistake, Setup};

const LAST_AFTER_SEND: Mistake = Mistake {
    name: "last-after-send",
    what: "who asks becomes the root only when the token arrives, not before it sends",
    breaks: "expected inputs",
    caught_by: "-n 3",
};
const NO_PATH_REVERSAL: Mistake = Mistake {
    name: "no-path-reversal",
    what: "a root that gives the token away does not point to where it went",
    breaks: "one token",
    caught_by: "-n 2",
};
const ONLY_HOLDERS_QUEUE: Mistake = Mistake {
    name: "only-holders-queue",
    what: "a root that only waits answers a request with the token, which it does not have",
    breaks: "one token",
    caught_by: "-n 3",
};

const SHEET: DataSheet = DataSheet {
    name: "naimi-trehel",
    title: "Naimi–Tréhel",
    idea: "Requests follow pointers to the last in the queue, and turn the pointers to who asks.",
    source: "M. Naimi, M. Tréhel, 1987; with A. Arnold, JPDC 34(1), 1996",
    assumes: &[
        Assumption::Reliable,
        Assumption::NoDuplicates,
        Assumption::NoCrash,
        Assumption::KnownMembership,
        Assumption::UniqueIds,
    ],
    topologies: &[Shape::Complete],
    winner: None,
    costs: &[
        Cost {
            metric: Metric::MessagesPerEntry,
            formula: "n, or 0 where the token is; O(log n) on average",
            when: "always",
            bound: |f| Some(Bound::AtMost(if f.n() > 1.0 { f.n() } else { 0.0 })),
        },
        Cost {
            metric: Metric::SyncDelay,
            formula: "T, or n·T while the next one's request is on its way",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(f.n() * t)),
        },
        Cost {
            metric: Metric::EntryDelay,
            formula: "n·T, or 0 where the token is; O(log n) on average",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(f.n() * t)),
        },
    ],
    guarantees: &[Guarantee::MutualExclusion, Guarantee::DeadlockFree, Guarantee::StarvationFree],
    fence: Some("the token's count of entries"),
    mistakes: &[LAST_AFTER_SEND, NO_PATH_REVERSAL, ONLY_HOLDERS_QUEUE],
    switches: &[],
};

/// One process of the algorithm. At first the first of the group has the token.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct NaimiTrehel {
    phase: Phase,
    /// Who asked last, as far as we know; none if that is ourselves: then we are the root.
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
    /// This one wants the token; whoever passes it on says so on its behalf.
    Request(ProcessId),
    /// Here it is.
    Token {
        /// How many entries there were.
        entries: u32,
    },
}

impl NaimiTrehel {
    fn makes(&self, mistake: &Mistake) -> bool {
        *self.mistake == Some(mistake.name)
    }

    fn enter(&mut self, ctx: &mut Context<'_, Self>) {
        self.phase = Phase::Held;
        let entries = self.token.map_or(1, |entries| entries + 1);
        self.token = Some(entries);
        ctx.indicate(Indication::Granted { fence: Some(Fence(0, entries.into())) });
    }

    fn pass_on(&mut self, to: ProcessId, ctx: &mut Context<'_, Self>) {
        // Only a mistaken root is without the token: what it sends is a forgery.
        let entries = self.token.take().unwrap_or_default();
        ctx.send(to, Message::Token { entries });
    }

    fn on_wish(&mut self, origin: ProcessId, ctx: &mut Context<'_, Self>) {
        let waits = match self.phase {
            Phase::Idle => false,
            Phase::Wanting => !self.makes(&ONLY_HOLDERS_QUEUE),
            Phase::Held => true,
        };
        match self.last {
            Some(last) => ctx.send(last, Message::Request(origin)),
            None if !waits => {
                self.pass_on(origin, ctx);
                if self.makes(&NO_PATH_REVERSAL) {
                    return;
                }
            }
            None if self.next.is_some() => return ctx.unexpected("a second successor"),
            None => self.next = Some(origin),
        }
        self.last = Some(origin);
    }
}

impl Process for NaimiTrehel {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        match request {
            Request::Acquire => {
                let Some(last) = self.last else { return self.enter(ctx) };
                self.phase = Phase::Wanting;
                if !self.makes(&LAST_AFTER_SEND) {
                    self.last = None;
                }
                ctx.send(last, Message::Request(ctx.me()));
            }
            Request::Release => {
                self.phase = Phase::Idle;
                if let Some(next) = self.next.take() {
                    self.pass_on(next, ctx);
                }
            }
        }
    }

    fn on_message(&mut self, _from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Request(origin) if origin == ctx.me() => {
                ctx.unexpected("our own request");
            }
            Message::Request(origin) => self.on_wish(origin, ctx),
            Message::Token { entries } if self.phase == Phase::Wanting => {
                self.token = Some(entries);
                if self.makes(&LAST_AFTER_SEND) {
                    self.last = None;
                }
                self.enter(ctx);
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

impl Algorithm for NaimiTrehel {
    type Problem = Mutex;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        let first = setup.group.id(0);
        Self {
            phase: Phase::Idle,
            last: (me != first).then_some(first),
            next: None,
            token: (me == first).then_some(0),
            mistake: Fixed(setup.mistake),
        }
    }
}

#[cfg(test)]
mod tests {
    use konklave_process::{Effect, Group, Topology};
    use konklave_testkit::{Bench, send, tell};

    use super::*;

    fn bench(me: u32) -> Bench<NaimiTrehel> {
        let group = Group::of(4);
        let setup = Setup::new(group.clone(), Topology::complete(4));
        Bench::new(NaimiTrehel::new(ProcessId(me), &setup), ProcessId(me), &group)
    }

    fn request(origin: u32) -> Message {
        Message::Request(ProcessId(origin))
    }

    fn granted(number: u64) -> Effect<NaimiTrehel> {
        tell(Indication::Granted { fence: Some(Fence(0, number)) })
    }

    #[test]
    fn the_idle_root_gives_the_token_to_who_asks() {
        let mut p0 = bench(0);
        assert_eq!(p0.hear(2, request(2)), [send(2, Message::Token { entries: 0 })]);
        assert_eq!(p0.process.last, Some(ProcessId(2)));
    }

    #[test]
    fn a_request_is_passed_on_and_turns_the_pointer() {
        let mut p1 = bench(1);
        assert_eq!(p1.hear(2, request(2)), [send(0, request(2))]);
        assert_eq!(p1.hear(0, request(3)), [send(2, request(3))]);
        assert_eq!(p1.ask(Request::Acquire), [send(3, request(1))]);
    }

    #[test]
    fn a_waiting_root_queues_the_next_and_serves_it_when_it_leaves() {
        let mut p1 = bench(1);
        assert_eq!(p1.ask(Request::Acquire), [send(0, request(1))]);
        assert_eq!(p1.hear(0, request(3)), []);
        assert_eq!(p1.hear(0, request(2)), [send(3, request(2))]);
        assert_eq!(p1.hear(0, Message::Token { entries: 7 }), [granted(8)]);
        assert_eq!(p1.ask(Request::Release), [send(3, Message::Token { entries: 8 })]);
        assert!(p1.process.at_rest());
    }

    #[test]
    fn the_root_enters_again_without_a_message() {
        let mut p0 = bench(0);
        assert_eq!(p0.ask(Request::Acquire), [granted(1)]);
        assert_eq!(p0.ask(Request::Release), []);
        assert_eq!(p0.ask(Request::Acquire), [granted(2)]);
    }

    #[test]
    fn what_cannot_be_is_unexpected() {
        let mut p1 = bench(1);
        let unexpected = |effects: Vec<_>| matches!(effects[..], [Effect::Unexpected(_)]);
        assert!(unexpected(p1.hear(0, Message::Token { entries: 0 })));
        p1.ask(Request::Acquire);
        assert!(unexpected(p1.hear(0, request(1))));
    }
}
