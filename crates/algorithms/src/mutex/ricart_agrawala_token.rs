//! Ricart and Agrawala's mutual exclusion by a token.
//!
//! Whoever has the token may enter. Who wants it asks everyone; the token carries the number of
//! the last request of each process that was served. Who leaves looks around in a circle, from
//! itself on, for the first whose request is newer than that.

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
const UNCOUNTED: Mistake = Mistake {
    name: "uncounted-entry",
    what: "a holder that enters without asking does not count that as a request",
    breaks: "growing fences",
    caught_by: "-n 2 --requests 2,0 --property fence",
};

const SHEET: DataSheet = DataSheet {
    name: "ricart-agrawala-token",
    title: "Ricart–Agrawala with a token",
    idea: "A token that is asked for by broadcast and goes round to those who have asked.",
    source: "G. Ricart, A. K. Agrawala, CACM 26(2), 1983",
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
    mistakes: &[STALE, UNCOUNTED],
    switches: &[],
};

/// One process of the algorithm. At first the first of the group has the token.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct RicartAgrawalaToken {
    phase: Phase,
    /// The highest number of a request of each process that we heard of.
    requested: ProcessMap<u32>,
    /// The token: the number of the last request of each process that was served.
    token: Option<ProcessMap<u32>>,
    #[serde(skip)]
    stale: Fixed<bool>,
    #[serde(skip)]
    uncounted: Fixed<bool>,
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
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// I want the token, for the `number`-th time.
    Request(u32),
    /// Here it is, with the number of the last request of each process that was served.
    Token(Arc<ProcessMap<u32>>),
}

impl RicartAgrawalaToken {
    fn enter(&mut self, served: ProcessMap<u32>, ctx: &mut Context<'_, Self>) {
        let entries: u64 = served.values().map(|&times| u64::from(times)).sum();
        self.token = Some(served);
        self.phase = Phase::Held;
        ctx.indicate(Indication::Granted { fence: Some(Fence(0, entries + 1)) });
    }

    /// Passes the token on, if someone is to have it.
    fn pass_on(&mut self, to: Option<ProcessId>, ctx: &mut Context<'_, Self>) {
        if let Some(to) = to
            && let Some(token) = self.token.take()
        {
            ctx.send(to, Message::Token(Arc::new(token)));
        }
    }
}

impl Process for RicartAgrawalaToken {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        let me = ctx.me();
        match request {
            Request::Acquire => match self.token.take() {
                Some(served) => {
                    self.requested[me] += u32::from(!*self.uncounted);
                    self.enter(served, ctx);
                }
                None => {
                    self.phase = Phase::Wanting;
                    self.requested[me] += 1;
                    ctx.send_to_others(Message::Request(self.requested[me]));
                }
            },
            Request::Release => {
                self.phase = Phase::Idle;
                let Some(served) = &mut self.token else { return };
                served[me] = self.requested[me];
                let mut circle = self.requested.after(me);
                let next = circle.find(|&p| self.requested[p] > served[p]);
                drop(circle);
                self.pass_on(next, ctx);
            }
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Request(number) => {
                let known = &mut self.requested[from];
                *known = (*known).max(number);
                let wants = |served: &ProcessMap<u32>| number > served[from] || *self.stale;
                if self.phase == Phase::Idle && self.token.as_ref().is_some_and(wants) {
                    self.pass_on(Some(from), ctx);
                }
            }
            Message::Token(served) => {
                // A copy of an earlier token answers a request that was served.
                let due = served[ctx.me()] + 1 == self.requested[ctx.me()];
                if self.phase == Phase::Wanting && due {
                    self.enter(Arc::unwrap_or_clone(served), ctx);
                }
            }
        }
    }

    fn at_rest(&self) -> bool {
        self.phase == Phase::Idle
    }

    fn tokens(&self) -> usize {
        self.token.is_some().into()
    }

    fn tokens_in(message: &Message) -> usize {
        matches!(message, Message::Token(_)).into()
    }
}

impl Algorithm for RicartAgrawalaToken {
    type Problem = Mutex;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        let nothing = ProcessMap::new(&setup.group, 0);
        Self {
            phase: Phase::Idle,
            token: (setup.group.id(0) == me).then(|| nothing.clone()),
            requested: nothing,
            stale: setup.makes(&STALE),
            uncounted: setup.makes(&UNCOUNTED),
        }
    }
}

#[cfg(test)]
mod tests {
    use konklave_process::{Effect, Group, Topology};
    use konklave_testkit::{Bench, tell};

    use super::*;

    fn bench(me: u32) -> Bench<RicartAgrawalaToken> {
        let group = Group::of(3);
        let setup = Setup::new(group.clone(), Topology::complete(3));
        Bench::new(RicartAgrawalaToken::new(ProcessId(me), &setup), ProcessId(me), &group)
    }

    /// The token with these numbers.
    fn token(numbers: [u32; 3]) -> Message {
        let mut served = ProcessMap::new(&Group::of(3), 0);
        for (p, number) in numbers.into_iter().enumerate() {
            served[ProcessId(p as u32)] = number;
        }
        Message::Token(Arc::new(served))
    }

    fn send(to: u32, message: Message) -> Effect<RicartAgrawalaToken> {
        konklave_testkit::send(to, message)
    }

    fn granted(number: u64) -> Effect<RicartAgrawalaToken> {
        tell(Indication::Granted { fence: Some(Fence(0, number)) })
    }

    #[test]
    fn who_leaves_looks_around_from_itself_on() {
        let mut p1 = bench(1);
        assert_eq!(
            p1.ask(Request::Acquire),
            [send(0, Message::Request(1)), send(2, Message::Request(1))]
        );
        p1.hear(0, Message::Request(1));
        p1.hear(2, Message::Request(1));
        assert_eq!(p1.hear(0, token([0, 0, 0])), [granted(1)]);
        assert_eq!(p1.ask(Request::Release), [send(2, token([0, 1, 0]))]);
    }

    #[test]
    fn a_request_that_was_served_does_not_attract_the_token() {
        let mut p0 = bench(0);
        assert_eq!(p0.hear(1, Message::Request(1)), [send(1, token([0, 0, 0]))]);
        p0.ask(Request::Acquire);
        assert_eq!(p0.hear(1, token([0, 1, 0])), [granted(2)]);
        p0.ask(Request::Release);
        assert_eq!(p0.hear(1, Message::Request(1)), []);
        assert_eq!(p0.hear(1, Message::Request(2)), [send(1, token([1, 1, 0]))]);
    }

    #[test]
    fn a_copy_of_an_earlier_token_is_ignored() {
        let mut p1 = bench(1);
        p1.ask(Request::Acquire);
        assert_eq!(p1.hear(0, token([0, 0, 0])), [granted(1)]);
        p1.hear(2, Message::Request(1));
        p1.ask(Request::Release);
        assert_eq!(p1.hear(0, token([0, 0, 0])), []);
        p1.ask(Request::Acquire);
        assert_eq!(p1.hear(0, token([0, 0, 0])), []);
        assert_eq!(p1.hear(2, token([0, 1, 1])), [granted(3)]);
    }

    #[test]
    fn the_holder_enters_again_without_a_message_and_counts_that() {
        let mut p0 = bench(0);
        assert_eq!(p0.ask(Request::Acquire), [granted(1)]);
        assert_eq!(p0.ask(Request::Release), []);
        assert_eq!(p0.ask(Request::Acquire), [granted(2)]);
    }
}
