//! Raymond's mutual exclusion on a tree.
//!
//! Everyone knows in which direction the token is, and nobody more: `holder` pointers along the
//! edges of a tree lead to it. Who wants it asks its holder; a process asks once on behalf of all
//! in its queue, and the token comes back the way the requests went.

use std::collections::VecDeque;

use konklave_process::topology::Shape;
use konklave_process::{Context, Fixed, NoRecord, NoTimer, Process, ProcessId};
use serde::{Deserialize, Serialize};

use super::{Fence, Indication, Mutex, Request};
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Mistake, Setup, Switch,
};

const NO_ASKED_FLAG: Mistake = Mistake {
    name: "no-asked-flag",
    what: "a process asks again for everyone who joins its queue: its holder queues it twice",
    breaks: "expected inputs",
    caught_by: "-n 3 --topology path --requests 0,1,1",
};
const FORGETS_SELF: Mistake = Mistake {
    name: "forgets-self",
    what: "the token goes on to the first of the queue, as on the slide: if that is the process \
           itself, its entry is gone and it never enters",
    breaks: "deadlock",
    caught_by: "-n 2 --topology path --requests 0,1",
};
const FORGETS_REST: Mistake = Mistake {
    name: "forgets-rest",
    what: "who passes the token on does not ask the new holder for the rest of its queue",
    breaks: "deadlock",
    caught_by: "-n 3 --topology path --requests 0,1,1",
};
const UNBOUNDED_GREEDY: Mistake = Mistake {
    name: "unbounded-greedy",
    what: "who leaves keeps the token for its own next wish, however many others wait",
    breaks: "deadlock",
    caught_by: "-n 2 --topology path --requests 1,1",
};

const SHEET: DataSheet = DataSheet {
    name: "raymond",
    title: "Raymond's tree",
    idea: "Pointers along a tree lead to the token; requests go that way, the token comes back.",
    source: "K. Raymond, TOCS 7(1), 1989; lecture \"Gegenseitiger Ausschluss\" 5.5.4",
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
            formula: "2D, D = diameter of the tree; about 4 when all want",
            when: "always",
            bound: |f| Some(Bound::AtMost(2.0 * f.setup.tree_diameter() as f64)),
        },
        Cost {
            metric: Metric::SyncDelay,
            formula: "D·T, or 2D·T while the next one's request is on its way",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(2.0 * f.setup.tree_diameter() as f64 * t)),
        },
        Cost {
            metric: Metric::EntryDelay,
            formula: "2D·T, or 0 where the token is",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(2.0 * f.setup.tree_diameter() as f64 * t)),
        },
    ],
    guarantees: &[Guarantee::MutualExclusion, Guarantee::DeadlockFree, Guarantee::StarvationFree],
    fence: Some("the token's count of entries"),
    mistakes: &[NO_ASKED_FLAG, FORGETS_SELF, FORGETS_REST, UNBOUNDED_GREEDY],
    switches: &[Switch {
        name: "greedy",
        values: &["0", "<number>"],
        what: "how many wishes in a row a process may serve itself before those who queue first",
    }],
};

/// One process of the algorithm. At first the first of the group has the token.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Raymond {
    holder: Holder,
    /// Who wants the token from us: neighbours and ourselves, each at most once.
    queue: VecDeque<ProcessId>,
    /// Whether we have asked our holder.
    asked: bool,
    phase: Phase,
    /// How many wishes in a row we have served before those who queued first.
    ahead: u32,
    /// How many we may.
    #[serde(skip)]
    greedy: Fixed<u32>,
    #[serde(skip)]
    mistake: Fixed<Option<&'static str>>,
}

/// Where we stand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum Phase {
    /// We want nothing.
    Idle,
    /// We are in our own queue.
    Wanting,
    /// We are inside.
    Held,
}

/// Where the token is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum Holder {
    /// We have it.
    Us {
        /// How many entries there were.
        entries: u32,
    },
    /// In the direction of this neighbour.
    Neighbour(ProcessId),
}

/// What goes over an edge of the tree.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// Someone on my side wants the token.
    Request,
    /// Here it is.
    Token {
        /// How many entries there were.
        entries: u32,
    },
}

impl Raymond {
    fn makes(&self, mistake: &Mistake) -> bool {
        *self.mistake == Some(mistake.name)
    }

    /// Serves the next in the queue if the token is here and free; asks for it if it is not here.
    fn step(&mut self, ctx: &mut Context<'_, Self>) {
        if let Holder::Us { entries } = self.holder
            && self.phase != Phase::Held
            && let Some(next) = self.next(ctx.me())
        {
            if next == ctx.me() {
                self.enter(entries + 1, ctx);
            } else {
                self.holder = Holder::Neighbour(next);
                ctx.send(next, Message::Token { entries });
                if self.makes(&FORGETS_REST) {
                    return;
                }
            }
        }
        self.ask(ctx);
    }

    fn ask(&mut self, ctx: &mut Context<'_, Self>) {
        if let Holder::Neighbour(holder) = self.holder
            && !self.queue.is_empty()
            && (!self.asked || self.makes(&NO_ASKED_FLAG))
        {
            self.asked = true;
            ctx.send(holder, Message::Request);
        }
    }

    /// Takes the next one to serve out of the queue: the first, or ourselves if we are greedy and
    /// have not been too often.
    fn next(&mut self, me: ProcessId) -> Option<ProcessId> {
        if self.queue.front() == Some(&me) {
            self.ahead = 0;
        } else if self.phase == Phase::Wanting && self.ahead < *self.greedy {
            self.ahead += 1;
            let place = self.queue.iter().position(|&p| p == me)?;
            return self.queue.remove(place);
        }
        self.queue.pop_front()
    }

    fn enter(&mut self, entries: u32, ctx: &mut Context<'_, Self>) {
        self.phase = Phase::Held;
        self.holder = Holder::Us { entries };
        ctx.indicate(Indication::Granted { fence: Some(Fence(0, entries.into())) });
    }

    /// Whether `from` is in the queue. That must not be, so a look at the newest will do: the queue
    /// in the middle of a star is long.
    fn has_newly_queued(&self, from: ProcessId) -> bool {
        self.queue.iter().rev().take(32).any(|&p| p == from)
    }

    fn on_token(&mut self, entries: u32, ctx: &mut Context<'_, Self>) {
        self.holder = Holder::Us { entries };
        self.asked = false;
        if self.makes(&FORGETS_SELF) && self.queue.front() == Some(&ctx.me()) {
            self.queue.pop_front();
        }
        self.step(ctx);
    }
}

impl Process for Raymond {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        match request {
            Request::Acquire => {
                self.phase = Phase::Wanting;
                self.queue.push_back(ctx.me());
                self.step(ctx);
            }
            Request::Release => {
                self.phase = Phase::Idle;
                if !self.makes(&UNBOUNDED_GREEDY) {
                    self.step(ctx);
                }
            }
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Request if self.has_newly_queued(from) => {
                ctx.unexpected("a second request of the same neighbour");
            }
            Message::Request => {
                self.queue.push_back(from);
                self.step(ctx);
            }
            Message::Token { entries } if self.holder == Holder::Neighbour(from) => {
                self.on_token(entries, ctx);
            }
            Message::Token { .. } => ctx.unexpected("a token from where there is none"),
        }
    }

    fn at_rest(&self) -> bool {
        self.phase == Phase::Idle && self.queue.is_empty()
    }

    fn tokens(&self) -> usize {
        matches!(self.holder, Holder::Us { .. }).into()
    }

    fn tokens_in(message: &Message) -> usize {
        matches!(message, Message::Token { .. }).into()
    }
}

impl Algorithm for Raymond {
    type Problem = Mutex;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        Self {
            holder: setup.parent(me).map_or(Holder::Us { entries: 0 }, Holder::Neighbour),
            queue: VecDeque::new(),
            asked: false,
            phase: Phase::Idle,
            ahead: 0,
            greedy: Fixed(setup.chosen(&SHEET, "greedy").number()),
            mistake: Fixed(setup.mistake),
        }
    }
}

#[cfg(test)]
mod tests {
    use konklave_process::{Group, Topology};
    use konklave_testkit::{Bench, send, tell};

    use super::*;

    /// Process `me` of a path of three.
    fn bench(me: u32, greedy: &str) -> Bench<Raymond> {
        let group = Group::of(3);
        let mut setup = Setup::new(group.clone(), Topology::path(3));
        setup.chosen.insert("greedy", greedy.into());
        Bench::new(Raymond::new(ProcessId(me), &setup), ProcessId(me), &group)
    }

    fn granted(number: u64) -> konklave_process::Effect<Raymond> {
        tell(Indication::Granted { fence: Some(Fence(0, number)) })
    }

    #[test]
    fn who_has_the_token_enters_without_a_message() {
        let mut p0 = bench(0, "0");
        assert_eq!(p0.ask(Request::Acquire), [granted(1)]);
        assert_eq!(p0.ask(Request::Release), []);
        assert_eq!(p0.ask(Request::Acquire), [granted(2)]);
    }

    #[test]
    fn one_request_goes_up_for_all_who_queue() {
        let mut p1 = bench(1, "0");
        assert_eq!(p1.hear(2, Message::Request), [send(0, Message::Request)]);
        assert_eq!(p1.ask(Request::Acquire), []);
    }

    #[test]
    fn the_token_goes_to_the_first_and_is_asked_back_for_the_rest() {
        let mut p1 = bench(1, "0");
        p1.hear(2, Message::Request);
        p1.ask(Request::Acquire);
        let token = Message::Token { entries: 4 };
        assert_eq!(p1.hear(0, token), [send(2, token), send(2, Message::Request)]);
        assert_eq!(p1.hear(2, Message::Token { entries: 5 }), [granted(6)]);
        assert!(!p1.process.at_rest());
        assert_eq!(p1.ask(Request::Release), []);
        assert!(p1.process.at_rest());
    }

    #[test]
    fn the_greedy_go_first_as_often_as_they_may() {
        let mut p1 = bench(1, "1");
        p1.hear(2, Message::Request);
        p1.ask(Request::Acquire);
        assert_eq!(p1.hear(0, Message::Token { entries: 0 }), [granted(1)]);
        assert_eq!(p1.ask(Request::Release), [send(2, Message::Token { entries: 1 })]);
        // The second time in a row it has to wait its turn.
        p1.hear(0, Message::Request);
        p1.ask(Request::Acquire);
        let token = Message::Token { entries: 2 };
        assert_eq!(p1.hear(2, token), [send(0, token), send(0, Message::Request)]);
        assert_eq!(p1.hear(0, Message::Token { entries: 2 }), [granted(3)]);
    }

    #[test]
    fn a_request_may_overtake_the_token() {
        let mut p1 = bench(1, "0");
        p1.ask(Request::Acquire);
        assert_eq!(p1.hear(0, Message::Request), []);
        assert_eq!(p1.hear(0, Message::Token { entries: 0 }), [granted(1)]);
        assert_eq!(p1.ask(Request::Release), [send(0, Message::Token { entries: 1 })]);
    }

    #[test]
    fn a_second_request_and_a_second_token_are_unexpected() {
        let mut p1 = bench(1, "0");
        p1.hear(2, Message::Request);
        let unexpected =
            |effects: Vec<_>| matches!(effects[..], [konklave_process::Effect::Unexpected(_)]);
        assert!(unexpected(p1.hear(2, Message::Request)));
        assert!(unexpected(p1.hear(2, Message::Token { entries: 0 })));
    }

    /// The example of the slides: S1 is the root with the token, S6 and S7 are below S3.
    #[test]
    fn on_the_slide_s3_asks_once_for_s6_and_s7_and_the_token_visits_both() {
        let group = Group::new((1..=7).map(ProcessId).collect()).unwrap();
        let setup = Setup::new(group.clone(), Topology::kary_tree(7, 2));
        let [mut s1, mut s3, mut s6, mut s7] = [1, 3, 6, 7]
            .map(|s| Bench::new(Raymond::new(ProcessId(s), &setup), ProcessId(s), &group));
        let queue = |s: &Bench<Raymond>| s.process.queue.iter().map(|p| p.0).collect::<Vec<_>>();
        let token = |entries| Message::Token { entries };

        assert_eq!(s1.ask(Request::Acquire), [granted(1)]);
        assert_eq!(s6.ask(Request::Acquire), [send(3, Message::Request)]);
        assert_eq!(s3.hear(6, Message::Request), [send(1, Message::Request)]);
        assert_eq!(queue(&s3), [6]);
        assert_eq!(s7.ask(Request::Acquire), [send(3, Message::Request)]);
        assert_eq!(s3.hear(7, Message::Request), []);
        assert_eq!(queue(&s3), [6, 7]);
        assert_eq!(s1.hear(3, Message::Request), []);

        assert_eq!(s1.ask(Request::Release), [send(3, token(1))]);
        assert_eq!(s3.hear(1, token(1)), [send(6, token(1)), send(6, Message::Request)]);
        assert_eq!(queue(&s3), [7]);
        assert_eq!(s6.hear(3, token(1)), [granted(2)]);
        assert_eq!(s6.hear(3, Message::Request), []);

        assert_eq!(s6.ask(Request::Release), [send(3, token(2))]);
        assert_eq!(s3.hear(6, token(2)), [send(7, token(2))]);
        assert_eq!(s7.hear(3, token(2)), [granted(3)]);
        assert_eq!(s7.ask(Request::Release), []);
        assert!([&s1, &s3, &s6, &s7].iter().all(|s| s.process.at_rest()));
        assert_eq!(s1.process.holder, Holder::Neighbour(ProcessId(3)));
        assert_eq!(s3.process.holder, Holder::Neighbour(ProcessId(7)));
    }
}
