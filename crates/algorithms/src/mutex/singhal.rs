//! Singhal's heuristically aided token.
//!
//! Everyone remembers of everyone whether it last asked for the token, and so may have it by now;
//! only those are asked. The token remembers the same, and where two memories meet, the fresher one
//! wins. At first the i-th of the group asks those before it: a staircase, in which of any two at
//! least one asks the other.
//!
//! As printed, requests get lost when messages are late: a request that the token has overtaken is
//! taken for old news, although it says that its sender no longer asks us. Here it is a hint, and
//! what the token knows counts from its arrival on.

use std::sync::Arc;

use konklave_process::topology::Shape;
use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId, ProcessMap};
use serde::{Deserialize, Serialize};

use super::{Fence, Indication, Mutex, Request, hand_over};
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Mistake, Setup, Switch,
};

const AS_PRINTED: Mistake = Mistake {
    name: "as-printed",
    what: "as in the lecture: an outdated request is ignored, and the token's knowledge is looked \
           at only on leaving",
    breaks: "deadlock",
    caught_by: "-n 3 --requests 1,1,2",
};
const ONLY_MERGE: Mistake = Mistake {
    name: "only-merge",
    what: "half of the repair: the token's knowledge counts on arrival, but an outdated request is \
           ignored",
    breaks: "deadlock",
    caught_by: "-n 3 --requests 2,2,2",
};
const ONLY_HINTS: Mistake = Mistake {
    name: "only-hints",
    what: "half of the repair: an outdated request is a hint, but the token's knowledge is looked \
           at only on leaving",
    breaks: "deadlock",
    caught_by: "-n 3 --requests 2,2,2",
};
const NO_STAIRCASE: Mistake = Mistake {
    name: "no-staircase",
    what: "at first everyone asks only the one with the token",
    breaks: "deadlock",
    caught_by: "-n 3",
};
const NO_ECHO: Mistake = Mistake {
    name: "no-echo",
    what: "who waits and hears a new request does not ask its sender in turn",
    breaks: "deadlock",
    caught_by: "-n 3",
};

const SHEET: DataSheet = DataSheet {
    name: "singhal",
    title: "Singhal",
    idea: "Ask only those who may have the token: those who asked for it.",
    source: "M. Singhal, IEEE Trans. Computers 38(5), 1989; lecture \"Gegenseitiger Ausschluss\"; \
             repaired",
    assumes: &[
        Assumption::Reliable,
        Assumption::NoDuplicates,
        Assumption::NoCrash,
        Assumption::KnownMembership,
    ],
    topologies: &[Shape::Complete],
    winner: None,
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "i + 1 for the first entry of the i-th process, counted from 0, and nothing \
                      from then on; so (n + 1)/2 on average, and 0 where the token is",
            when: "only one process asks",
            bound: |f| f.uncontended.then(|| Bound::Exactly(of_one_asker(f))),
        },
        Cost {
            metric: Metric::MessagesPerEntry,
            formula: "n, and for each of the requests up to E + 1 hints, E = number of entries",
            when: "always: a hint is answered by another only if the token was faster",
            bound: |f| {
                let hints = (f.n() - 1.0) * (f.entries() + 1.0);
                Some(Bound::AtMost(if f.n() > 1.0 { f.n() + hints } else { 0.0 }))
            },
        },
        Cost {
            metric: Metric::SyncDelay,
            formula: "T",
            when: hand_over::SETTLED,
            bound: |f| hand_over::settled(f, 1.0),
        },
        // In the worst case an old request is still on its way to the one that leaves: a hint goes
        // back, a request comes, the token follows.
        Cost {
            metric: Metric::SyncDelay,
            formula: "4T",
            when: "nothing happens to messages, and delays have a limit",
            bound: |f| f.delay_max.filter(|_| f.undisturbed).map(|t| Bound::AtMost(4.0 * t)),
        },
        Cost {
            metric: Metric::EntryDelay,
            formula: "2T, or 0 where the token is",
            when: "only one process asks, and delays have a limit",
            bound: |f| f.delay_max.filter(|_| f.uncontended).map(|t| Bound::AtMost(2.0 * t)),
        },
    ],
    guarantees: &[Guarantee::MutualExclusion, Guarantee::DeadlockFree, Guarantee::StarvationFree],
    fence: Some("the token's count of entries"),
    mistakes: &[AS_PRINTED, ONLY_MERGE, ONLY_HINTS, NO_STAIRCASE, NO_ECHO],
    switches: &[Switch {
        name: "arbitration",
        values: &["round-robin", "smallest", "nearest"],
        what: "who gets the token next: in turn, the one served least, or the nearest (who is far \
               may starve)",
    }],
};

/// One process of the algorithm. At first the first of the group has the token.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Singhal {
    /// ST of ourselves.
    state: State,
    /// ST and SN: what we know of each other process, and how often we have asked.
    known: ProcessMap<Known>,
    token: Option<Token>,
    #[serde(skip)]
    arbitration: Fixed<Arbitration>,
    #[serde(skip)]
    merges_on_arrival: Fixed<bool>,
    #[serde(skip)]
    takes_hints: Fixed<bool>,
    #[serde(skip)]
    no_echo: Fixed<bool>,
}

/// What is known of a process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Known {
    state: State,
    /// How often it has asked.
    number: u32,
}

/// The states of the book: R, E, H and N.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum State {
    /// It asked, and may have the token by now.
    Requesting,
    /// It is inside.
    Executing,
    /// It has the token, unused.
    Holding,
    /// None of these.
    Nothing,
}

/// The right to enter, and what it knows: TST and TSN.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Token {
    known: ProcessMap<Known>,
    entries: u32,
}

/// Who gets the token next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Arbitration {
    RoundRobin,
    Smallest,
    Nearest,
}

/// What the processes say.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// I want the token, for the `number`-th time.
    Request(u32),
    /// Here it is.
    Token(Arc<Token>),
    /// Your request came late: from now on, ask me, for I do not ask you.
    Hint,
}

impl Singhal {
    fn enter(&mut self, ctx: &mut Context<'_, Self>) {
        let Some(token) = &mut self.token else { return };
        token.entries += 1;
        self.state = State::Executing;
        let fence = Fence(0, token.entries.into());
        ctx.indicate(Indication::Granted { fence: Some(fence) });
    }

    fn pass_on(&mut self, to: ProcessId, ctx: &mut Context<'_, Self>) {
        let Some(token) = self.token.take() else { return };
        self.state = State::Nothing;
        ctx.send(to, Message::Token(Arc::new(token)));
    }

    /// We and the token tell each other what we know; the fresher knowledge wins.
    fn merge(&mut self) {
        let Some(token) = &mut self.token else { return };
        for (ours, its) in self.known.values_mut().zip(token.known.values_mut()) {
            if ours.number > its.number {
                *its = *ours;
            } else {
                *ours = *its;
            }
        }
    }

    /// The same when the token arrives; only that it need not know yet.
    fn learn(&mut self) {
        let Some(token) = &self.token else { return };
        for (ours, its) in self.known.values_mut().zip(token.known.values()) {
            if ours.number <= its.number {
                *ours = *its;
            }
        }
    }

    /// A request that we had not heard of.
    fn on_new_request(&mut self, from: ProcessId, number: u32, ctx: &mut Context<'_, Self>) {
        self.mark(from, ctx);
        self.known[from].number = number;
        if self.state == State::Holding {
            if let Some(token) = &mut self.token {
                token.known[from] = self.known[from];
            }
            self.pass_on(from, ctx);
        }
    }

    /// `from` does not ask us any more: so we ask `from` from now on, and at once if we wait.
    fn mark(&mut self, from: ProcessId, ctx: &mut Context<'_, Self>) {
        let before = std::mem::replace(&mut self.known[from].state, State::Requesting);
        let waits = self.state == State::Requesting;
        if waits && before != State::Requesting && !*self.no_echo {
            ctx.send(from, Message::Request(self.known[ctx.me()].number));
        }
    }

    /// Something old from `from`: it says no more than that `from` does not ask us.
    fn on_hint(&mut self, from: ProcessId, ctx: &mut Context<'_, Self>) {
        match self.state {
            State::Nothing | State::Requesting => self.mark(from, ctx),
            // The token must not take it for a request: let `from` ask us instead.
            State::Executing | State::Holding => ctx.send(from, Message::Hint),
        }
    }

    /// Who gets the token next, if anyone wants it.
    fn next(&self, ctx: &Context<'_, Self>) -> Option<ProcessId> {
        let me = ctx.me();
        let place = |p: ProcessId| ctx.group().place(p).unwrap_or(0);
        let mut wanting =
            self.known.after(me).filter(|p| self.known[*p].state == State::Requesting);
        match *self.arbitration {
            Arbitration::RoundRobin => wanting.next(),
            Arbitration::Smallest => wanting.min_by_key(|p| self.known[*p].number),
            Arbitration::Nearest => {
                wanting.min_by_key(|p| (place(*p).abs_diff(place(me)), place(*p)))
            }
        }
    }
}

impl Process for Singhal {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        let me = ctx.me();
        match request {
            Request::Acquire => {
                self.known[me].number += 1;
                if self.token.is_some() {
                    return self.enter(ctx);
                }
                self.state = State::Requesting;
                let number = self.known[me].number;
                for (p, _) in self.known.iter().filter(|(_, k)| k.state == State::Requesting) {
                    ctx.send(p, Message::Request(number));
                }
            }
            Request::Release => {
                self.state = State::Holding;
                if let Some(token) = &mut self.token {
                    token.known[me] = self.known[me];
                }
                self.merge();
                if let Some(next) = self.next(ctx) {
                    self.pass_on(next, ctx);
                }
            }
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Request(number) if number > self.known[from].number => {
                self.on_new_request(from, number, ctx);
            }
            Message::Request(_) | Message::Hint => {
                if *self.takes_hints {
                    self.on_hint(from, ctx);
                }
            }
            Message::Token(token) => {
                if self.token.is_some() {
                    return ctx.unexpected("a second token");
                }
                if self.state != State::Requesting {
                    return ctx.unexpected("a token that was not asked for");
                }
                self.token = Some(Arc::unwrap_or_clone(token));
                if *self.merges_on_arrival {
                    self.learn();
                }
                self.known[ctx.me()].state = State::Nothing;
                self.enter(ctx);
            }
        }
    }

    fn at_rest(&self) -> bool {
        matches!(self.state, State::Nothing | State::Holding)
    }

    fn tokens(&self) -> usize {
        self.token.is_some().into()
    }

    fn tokens_in(message: &Message) -> usize {
        matches!(message, Message::Token(_)).into()
    }
}

impl Algorithm for Singhal {
    type Problem = Mutex;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        let group = &setup.group;
        let nothing = ProcessMap::new(group, Known { state: State::Nothing, number: 0 });
        let mut known = nothing.clone();
        let place = setup.place(me);
        let asked = if *setup.makes(&NO_STAIRCASE) { place.min(1) } else { place };
        for p in &group.members()[..asked] {
            known[*p].state = State::Requesting;
        }
        let (merge, hints) = match setup.mistake {
            Some(mistake) if mistake == AS_PRINTED.name => (false, false),
            Some(mistake) if mistake == ONLY_MERGE.name => (true, false),
            Some(mistake) if mistake == ONLY_HINTS.name => (false, true),
            Some(_) | None => (true, true),
        };
        Self {
            state: if place == 0 { State::Holding } else { State::Nothing },
            known,
            token: (place == 0).then_some(Token { known: nothing, entries: 0 }),
            arbitration: Fixed(match setup.chosen(&SHEET, "arbitration").0 {
                "smallest" => Arbitration::Smallest,
                "nearest" => Arbitration::Nearest,
                _ => Arbitration::RoundRobin,
            }),
            merges_on_arrival: Fixed(merge),
            takes_hints: Fixed(hints),
            no_echo: setup.makes(&NO_ECHO),
        }
    }
}

/// At first each asks all before it, and gets the token; then it has it.
fn of_one_asker(f: &Facts<'_>) -> f64 {
    let asker = f.served.iter().find(|(_, times)| *times > 0);
    match asker.map_or(0, |(p, _)| f.setup.place(*p)) {
        0 => 0.0,
        place => place as f64 + 1.0,
    }
}

#[cfg(test)]
mod tests {
    use konklave_process::{Effect, Group, Rng, Topology};
    use konklave_testkit::{Bench, send, tell};

    use super::*;

    fn bench(me: u32, n: usize) -> Bench<Singhal> {
        let setup = Setup::new(Group::of(n), Topology::complete(n));
        Bench::new(Singhal::new(ProcessId(me), &setup), ProcessId(me), &setup.group)
    }

    fn is_marked(bench: &Bench<Singhal>, p: u32) -> bool {
        bench.process.known[ProcessId(p)].state == State::Requesting
    }

    fn granted(entries: u64) -> Effect<Singhal> {
        tell(Indication::Granted { fence: Some(Fence(0, entries)) })
    }

    /// Lets everything arrive that is on its way, and everyone leave who is inside.
    fn settle(
        benches: &mut [Bench<Singhal>],
        flight: &mut Vec<(u32, u32, Message)>,
        rng: &mut Rng,
    ) {
        let mut inside = None;
        while !flight.is_empty() || inside.is_some() {
            let (at, effects) = match inside.take() {
                Some(at) if flight.is_empty() || rng.below(2) == 0 => {
                    (at, benches[at as usize].ask(Request::Release))
                }
                waits => {
                    inside = waits;
                    let (from, to, message) =
                        flight.swap_remove(rng.below(flight.len() as u32) as usize);
                    (to, benches[to as usize].hear(from, message))
                }
            };
            for effect in effects {
                match effect {
                    Effect::Send { to, message } => flight.push((at, to.0, message)),
                    Effect::Indicate(_) => assert_eq!(inside.replace(at), None),
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    #[test]
    fn at_first_the_ith_asks_those_before_it() {
        let mut p3 = bench(3, 5);
        let asked = [0, 1, 2].map(|p| send(p, Message::Request(1)));
        assert_eq!(p3.ask(Request::Acquire), asked);
        assert_eq!(bench(0, 5).ask(Request::Acquire), [granted(1)]);
    }

    #[test]
    fn who_holds_the_token_unused_sends_it_at_once() {
        let mut p0 = bench(0, 3);
        let effects = p0.hear(2, Message::Request(1));
        assert!(matches!(
            &effects[..],
            [Effect::Send { to: ProcessId(2), message: Message::Token(_) }]
        ));
        assert!(is_marked(&p0, 2) && p0.process.state == State::Nothing);
    }

    #[test]
    fn who_waits_asks_everyone_new_who_asks() {
        let mut p1 = bench(1, 3);
        p1.ask(Request::Acquire);
        assert_eq!(p1.hear(2, Message::Request(1)), [send(2, Message::Request(1))]);
        assert_eq!(p1.hear(2, Message::Request(2)), []);
    }

    #[test]
    fn an_old_request_is_a_hint_and_not_a_request() {
        let mut p0 = bench(0, 3);
        p0.ask(Request::Acquire);
        assert_eq!(p0.hear(2, Message::Request(0)), [send(2, Message::Hint)]);
        assert!(!is_marked(&p0, 2));
        let mut p1 = bench(1, 3);
        assert_eq!(p1.hear(2, Message::Hint), []);
        assert!(is_marked(&p1, 2));
    }

    #[test]
    fn six_of_thirteen_asks_five_and_then_nobody() {
        let mut benches: Vec<Bench<Singhal>> = (0..13).map(|me| bench(me, 13)).collect();
        let asked = benches[5].ask(Request::Acquire);
        assert_eq!(asked, [0, 1, 2, 3, 4].map(|p| send(p, Message::Request(1))));
        let mut flight: Vec<(u32, u32, Message)> =
            (0..5).map(|p| (5, p, Message::Request(1))).collect();
        settle(&mut benches, &mut flight, &mut Rng::new(1));
        assert!((0..13).all(|p| !is_marked(&benches[5], p)));
        assert!((0..13).filter(|p| *p != 5).all(|p| is_marked(&benches[p as usize], 5) || p > 5));
        assert_eq!(benches[5].process.state, State::Holding);
    }

    #[test]
    fn when_all_is_quiet_of_any_two_one_asks_the_other() {
        let n = 5;
        for seed in 0..200 {
            let mut rng = Rng::new(seed);
            let mut benches: Vec<Bench<Singhal>> = (0..n).map(|me| bench(me, n as usize)).collect();
            for _ in 0..20 {
                let mut flight = Vec::new();
                let mut inside = false;
                for at in 0..n {
                    // One who has the token would be inside while the others have not asked yet.
                    let holds = benches[at as usize].process.token.is_some();
                    if holds || rng.below(2) == 0 {
                        continue;
                    }
                    for effect in benches[at as usize].ask(Request::Acquire) {
                        match effect {
                            Effect::Send { to, message } => flight.push((at, to.0, message)),
                            _ => inside = true,
                        }
                    }
                }
                assert!(!inside);
                settle(&mut benches, &mut flight, &mut rng);
                for i in 0..n {
                    assert!(benches[i as usize].process.at_rest(), "seed {seed}");
                    for j in 0..i {
                        let marks = is_marked(&benches[i as usize], j)
                            || is_marked(&benches[j as usize], i);
                        assert!(marks, "seed {seed}: {i} and {j}");
                    }
                }
            }
        }
    }
}
