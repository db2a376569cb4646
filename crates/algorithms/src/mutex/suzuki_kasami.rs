//! Suzuki and Kasami's mutual exclusion by a broadcast token.
//!
//! Whoever has the token may enter. Who wants it asks everyone; the token knows whose last request
//! was served and keeps the queue of those who wait.

use std::collections::VecDeque;
use std::sync::Arc;

use konklave_process::topology::Shape;
use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId, ProcessMap};
use serde::{Deserialize, Serialize};

use super::{Fence, Indication, Mutex, Request};
use crate::{Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Mistake, Setup};

const STALE: Mistake = Mistake {
    name: "stale-request",
    what: "an idle holder sends the token to whoever asks, even if that request was served already",
    breaks: "deadlock",
    caught_by: "-n 3 --requests 2,1,1",
};

const SHEET: DataSheet = DataSheet {
    name: "suzuki-kasami",
    title: "Suzuki–Kasami",
    idea: "A token that is asked for by broadcast and carries its own queue.",
    source: "I. Suzuki, T. Kasami, TOCS 3(4), 1985; lecture \"Gegenseitiger Ausschluss\"",
    assumes: &[Assumption::Reliable, Assumption::NoCrash, Assumption::KnownMembership],
    topologies: &[Shape::Complete],
    winner: None,
    costs: &[
        Cost {
            metric: Metric::MessagesPerEntry,
            formula: "n, or 0 where the token is",
            when: "always",
            bound: |f| Some(Bound::AtMost(if f.n() > 1.0 { f.n() } else { 0.0 })),
        },
        Cost {
            metric: Metric::SyncDelay,
            formula: "T, or 2T while the next one's request is on its way",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(2.0 * t)),
        },
        Cost {
            metric: Metric::EntryDelay,
            formula: "2T, or 0 where the token is",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(2.0 * t)),
        },
    ],
    guarantees: &[Guarantee::MutualExclusion, Guarantee::DeadlockFree, Guarantee::StarvationFree],
    fence: Some("the token's count of entries"),
    mistakes: &[STALE],
    switches: &[],
};

/// One process of the algorithm. At first the first of the group has the token.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct SuzukiKasami {
    phase: Phase,
    /// RN: the highest number of a request of each process that we heard of.
    requested: ProcessMap<u32>,
    token: Option<Token>,
    #[serde(skip)]
    stale: Fixed<bool>,
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

/// The right to enter.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Token {
    /// LN: the number of the last request of each process that was served.
    served: ProcessMap<u32>,
    /// Who waits.
    queue: VecDeque<ProcessId>,
}

/// What the processes say.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// I want the token, for the `number`-th time.
    Request(u32),
    /// Here it is.
    Token(Arc<Token>),
}

impl SuzukiKasami {
    fn enter(&mut self, ctx: &mut Context<'_, Self>) {
        let token = self.token.as_ref().expect("only the one with the token enters");
        let entries: u64 = token.served.values().map(|&times| u64::from(times)).sum();
        self.phase = Phase::Held;
        ctx.indicate(Indication::Granted { fence: Some(Fence(0, entries + 1)) });
    }

    fn pass_on(&mut self, to: ProcessId, ctx: &mut Context<'_, Self>) {
        let token = self.token.take().expect("only the one with the token passes it on");
        ctx.send(to, Message::Token(Arc::new(token)));
    }
}

impl Process for SuzukiKasami {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        let me = ctx.me();
        match request {
            Request::Acquire => {
                self.requested[me] += 1;
                if self.token.is_some() {
                    return self.enter(ctx);
                }
                self.phase = Phase::Wanting;
                ctx.send_to_others(Message::Request(self.requested[me]));
            }
            Request::Release => {
                self.phase = Phase::Idle;
                let token = self.token.as_mut().expect("only the one with the token leaves");
                token.served[me] = self.requested[me];
                // From our successor on: everyone's turn comes, whatever the ids.
                for p in self.requested.after(me) {
                    if self.requested[p] > token.served[p] && !token.queue.contains(&p) {
                        token.queue.push_back(p);
                    }
                }
                if let Some(next) = token.queue.pop_front() {
                    self.pass_on(next, ctx);
                }
            }
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Request(number) => {
                let known = &mut self.requested[from];
                *known = (*known).max(number);
                let wants = |token: &Token| number > token.served[from] || *self.stale;
                if self.phase == Phase::Idle && self.token.as_ref().is_some_and(wants) {
                    self.pass_on(from, ctx);
                }
            }
            Message::Token(token) => {
                if self.token.is_some() {
                    return ctx.unexpected("a second token");
                }
                self.token = Some(Arc::unwrap_or_clone(token));
                if self.phase == Phase::Wanting {
                    self.enter(ctx);
                }
            }
        }
    }

    fn at_rest(&self) -> bool {
        self.phase == Phase::Idle && self.token.as_ref().is_none_or(|t| t.queue.is_empty())
    }

    fn tokens(&self) -> usize {
        self.token.is_some().into()
    }

    fn tokens_in(message: &Message) -> usize {
        matches!(message, Message::Token(_)).into()
    }
}

impl Algorithm for SuzukiKasami {
    type Problem = Mutex;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        let nothing = ProcessMap::new(&setup.group, 0);
        let first = Token { served: nothing.clone(), queue: VecDeque::new() };
        Self {
            phase: Phase::Idle,
            requested: nothing,
            token: (setup.group.id(0) == me).then_some(first),
            stale: setup.makes(&STALE),
        }
    }
}
