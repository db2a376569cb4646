//! Suzuki and Kasami's mutual exclusion by a broadcast token.
//!
//! Whoever has the token may enter. Who wants it asks everyone; the token knows whose last request
//! was served and keeps the queue of those who wait.

use std::collections::VecDeque;
use std::sync::Arc;

use konklave_process::topology::Shape;
use konklave_process::{
    Context, Fixed, NoRecord, NoTimer, Process, ProcessId, ProcessMap, ProcessSet,
};
use serde::{Deserialize, Serialize};

use super::{Fence, Indication, Mutex, Request};
use crate::{Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Mistake, Setup};

const STALE: Mistake = Mistake {
    name: "stale-request",
    what: "an idle holder sends the token to whoever asks, even if that request was served already",
    breaks: "deadlock",
    caught_by: "-n 3 --requests 2,1,1",
};
const OWN_NUMBER: Mistake = Mistake {
    name: "own-number",
    what: "a request moves and is judged by the receiver's own number, as the slide's index has it",
    breaks: "deadlock",
    caught_by: "-n 2 --requests 1,1",
};
const UNCOUNTED: Mistake = Mistake {
    name: "uncounted-entry",
    what: "a holder that enters without asking does not count that as a request",
    breaks: "growing fences",
    caught_by: "-n 2 --requests 2,0 --property fence",
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
    mistakes: &[STALE, OWN_NUMBER, UNCOUNTED],
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
    fn makes(&self, mistake: &Mistake) -> bool {
        *self.mistake == Some(mistake.name)
    }

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
                if self.token.is_some() {
                    self.requested[me] += u32::from(!self.makes(&UNCOUNTED));
                    return self.enter(ctx);
                }
                self.phase = Phase::Wanting;
                self.requested[me] += 1;
                ctx.send_to_others(Message::Request(self.requested[me]));
            }
            Request::Release => {
                self.phase = Phase::Idle;
                let token = self.token.as_mut().expect("only the one with the token leaves");
                token.served[me] = self.requested[me];
                let queued: ProcessSet = token.queue.iter().copied().collect();
                // From our successor on: everyone's turn comes, whatever the ids.
                for p in self.requested.after(me) {
                    if self.requested[p] > token.served[p] && !queued.contains(p) {
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
                let whose = if self.makes(&OWN_NUMBER) { ctx.me() } else { from };
                let known = &mut self.requested[whose];
                *known = (*known).max(number);
                let number = *known;
                let wants = |token: &Token| number > token.served[whose] || self.makes(&STALE);
                if self.phase == Phase::Idle && self.token.as_ref().is_some_and(wants) {
                    self.pass_on(from, ctx);
                }
            }
            Message::Token(token) => {
                // A copy of an earlier token answers a request that was served.
                let due = token.served[ctx.me()] + 1 == self.requested[ctx.me()];
                if self.phase == Phase::Wanting && due {
                    self.token = Some(Arc::unwrap_or_clone(token));
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
            mistake: Fixed(setup.mistake),
        }
    }
}

#[cfg(test)]
mod tests {
    use konklave_process::{Effect, Group, Topology};
    use konklave_testkit::{Bench, tell};

    use super::*;

    fn bench(me: u32) -> Bench<SuzukiKasami> {
        let group = Group::of(3);
        let setup = Setup::new(group.clone(), Topology::complete(3));
        Bench::new(SuzukiKasami::new(ProcessId(me), &setup), ProcessId(me), &group)
    }

    /// The token with these numbers and this queue.
    fn token(numbers: [u32; 3], queue: &[u32]) -> Message {
        let mut served = ProcessMap::new(&Group::of(3), 0);
        for (p, number) in numbers.into_iter().enumerate() {
            served[ProcessId(p as u32)] = number;
        }
        let queue = queue.iter().copied().map(ProcessId).collect();
        Message::Token(Arc::new(Token { served, queue }))
    }

    fn send(to: u32, message: Message) -> Effect<SuzukiKasami> {
        konklave_testkit::send(to, message)
    }

    fn granted(number: u64) -> Effect<SuzukiKasami> {
        tell(Indication::Granted { fence: Some(Fence(0, number)) })
    }

    #[test]
    fn who_leaves_queues_all_whose_requests_are_open_from_its_successor_on() {
        let mut p1 = bench(1);
        let request = |number| Message::Request(number);
        assert_eq!(p1.ask(Request::Acquire), [send(0, request(1)), send(2, request(1))]);
        p1.hear(0, request(3));
        p1.hear(2, request(1));
        assert_eq!(p1.hear(0, token([2, 0, 0], &[])), [granted(3)]);
        assert_eq!(p1.ask(Request::Release), [send(2, token([2, 1, 0], &[0]))]);
    }

    #[test]
    fn an_idle_holder_gives_the_token_to_an_open_request_only() {
        let mut p0 = bench(0);
        assert_eq!(p0.hear(1, Message::Request(1)), [send(1, token([0, 0, 0], &[]))]);
        p0.ask(Request::Acquire);
        assert_eq!(p0.hear(1, token([0, 1, 0], &[])), [granted(2)]);
        p0.ask(Request::Release);
        assert_eq!(p0.hear(1, Message::Request(1)), []);
        assert!(p0.process.at_rest());
    }

    #[test]
    fn a_copy_of_an_earlier_token_is_ignored() {
        let mut p1 = bench(1);
        p1.ask(Request::Acquire);
        assert_eq!(p1.hear(0, token([0, 0, 0], &[])), [granted(1)]);
        p1.hear(2, Message::Request(1));
        assert_eq!(p1.ask(Request::Release), [send(2, token([0, 1, 0], &[]))]);
        assert_eq!(p1.hear(0, token([0, 0, 0], &[])), []);
        p1.ask(Request::Acquire);
        assert_eq!(p1.hear(0, token([0, 0, 0], &[])), []);
        assert_eq!(p1.hear(2, token([0, 1, 1], &[])), [granted(3)]);
    }
}
