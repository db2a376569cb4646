//! Ricart and Agrawala's mutual exclusion with acknowledgements, so that crashes are noticed.
//!
//! Every request is answered at once: by a reply, or by an acknowledgement that the reply comes
//! later. Who does not answer in time is taken for crashed, and nobody waits for it; who puts its
//! reply off is asked from time to time whether it is still there. A process that comes up again
//! learns everyone's clock before it asks for anything; a wish of its application counts from then.
//! Until then, what it says tells others of the wish, though it has no time: someone who learns of it
//! by way of a third process may ask with an earlier time. So order is promised until someone restarts.
//!
//! This is right only where delays have a known bound. Where they have none, a process that is
//! merely slow is taken for crashed, and two are inside. With `model=asynchronous` nobody is ever
//! taken for crashed: that is safe everywhere, and a crash blocks for ever.

use std::time::Duration;

use konklave_process::topology::Shape;
use konklave_process::{Context, Fixed, LamportClock, Process, ProcessId, ProcessSet, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Fence, Indication, Mutex, Request};
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Mistake, Setup,
    SetupError, Switch,
};

const NO_PROBE: Mistake = Mistake {
    name: "no-probe",
    what: "who has acknowledged is never asked again: if it crashes then, its reply never comes",
    breaks: "deadlock",
    caught_by: "-n 2 --crash 1 --synchronous",
};
const NO_REJOIN: Mistake = Mistake {
    name: "no-rejoin",
    what: "who comes up again asks at once, with a clock that has forgotten what it replied to",
    breaks: "mutual exclusion",
    caught_by: "-n 3 --requests 1,0,1 --crash 1 --restart 1 --synchronous",
};

const SHEET: DataSheet = DataSheet {
    name: "ricart-agrawala-acknowledged",
    title: "Ricart–Agrawala with acknowledgements",
    idea: "As Ricart–Agrawala, but every request is answered at once, and who is silent has crashed.",
    source: "G. Ricart, A. K. Agrawala, CACM 24(1), 1981 (node failures); lecture \
             \"Gegenseitiger Ausschluss\", first improvement",
    assumes: &[
        Assumption::Reliable,
        Assumption::Synchronous,
        Assumption::KnownMembership,
        Assumption::StableStorage,
    ],
    topologies: &[Shape::Complete],
    winner: None,
    costs: &[
        Cost {
            metric: Metric::MessagesPerEntry,
            formula: "2(n − 1)",
            when: "only one process asks, and two delays are shorter than the timeout; else up to \
                   3(n − 1), and two for each probe",
            bound: |f| {
                let alone = f.uncontended && prompt(f).is_some();
                alone.then(|| Bound::Exactly(2.0 * (f.n() - 1.0)))
            },
        },
        Cost {
            metric: Metric::SyncDelay,
            formula: "T, or up to 3T while requests are on their way",
            when: "nobody crashes, and two delays are shorter than the timeout",
            bound: |f| prompt(f).map(|t| Bound::AtMost(3.0 * t)),
        },
        Cost {
            metric: Metric::EntryDelay,
            formula: "2T",
            when: "nobody crashes, and two delays are shorter than the timeout",
            bound: |f| prompt(f).map(|t| Bound::AtMost(2.0 * t)),
        },
    ],
    guarantees: &[
        Guarantee::MutualExclusion,
        Guarantee::DeadlockFree,
        Guarantee::StarvationFree,
        Guarantee::HappenedBeforeUntilRestart,
    ],
    fence: Some("(timestamp, id) of the request: entries come in this order"),
    mistakes: &[NO_PROBE, NO_REJOIN],
    switches: &[
        Switch {
            name: "model",
            values: &["synchronous", "asynchronous"],
            what: "whether silence means a crash, or nothing",
        },
        Switch {
            name: "timeout",
            values: &["5", "<number>"],
            what: "how long an answer may take, in T: more than twice the longest delay",
        },
    ],
};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct RicartAgrawalaAcknowledged {
    clock: LamportClock,
    state: State,
    /// Whose reply (or welcome) we need.
    awaiting: ProcessSet,
    /// Who has not answered since we asked last.
    silent: ProcessSet,
    /// Whom we take for crashed.
    crashed: ProcessSet,
    /// Whom we reply to when we leave: their ids, in order, and the times of their requests.
    deferred: Vec<(ProcessId, u32)>,
    /// How often we have come up again.
    incarnation: u32,
    #[serde(skip)]
    timeout: Fixed<Duration>,
    /// Whether silence means a crash.
    #[serde(skip)]
    synchronous: Fixed<bool>,
    #[serde(skip)]
    no_probe: Fixed<bool>,
    #[serde(skip)]
    no_rejoin: Fixed<bool>,
}

/// Where we stand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum State {
    /// We are up again, and learn how late it is.
    Rejoining {
        /// Whether the application waits for that.
        wants: bool,
    },
    /// We are outside.
    Released,
    /// We asked.
    Wanted {
        /// The time of our request.
        since: u32,
    },
    /// We are inside.
    Held,
}

/// What the processes say; each message carries a time of its sender.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// May I enter?
    Request {
        /// The time of the request.
        timestamp: u32,
    },
    /// I am here, but not yet.
    Ack {
        /// The time of your request.
        to: u32,
        /// The time of this answer.
        clock: u32,
    },
    /// As for me, you may.
    Reply {
        /// The time of your request.
        to: u32,
        /// The time of this answer.
        clock: u32,
    },
    /// Are you still there, and may I enter?
    AreYouThere {
        /// The time of the request.
        timestamp: u32,
        /// The time of this question.
        clock: u32,
    },
    /// I am up again: how late is it?
    Hello {
        /// How often I have come up again.
        incarnation: u32,
        /// The time of this question, as far as I know.
        clock: u32,
    },
    /// So late.
    Welcome {
        /// How often you have come up again.
        incarnation: u32,
        /// The time.
        clock: u32,
    },
}

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// Everyone we asked must have answered.
    Answers,
}

impl RicartAgrawalaAcknowledged {
    /// Whether our claim goes before that of `from`. The order is total: of two rivals one yields.
    fn precedes(&self, me: ProcessId, timestamp: u32, from: ProcessId) -> bool {
        match self.state {
            // Our wish has no time yet: who got our reply now could wish again and go before us.
            State::Rejoining { wants } => wants,
            State::Released => false,
            State::Wanted { since } => {
                let ours = Timestamp { time: since, process: me };
                ours < Timestamp { time: timestamp, process: from }
            }
            State::Held => true,
        }
    }

    fn request(&mut self, ctx: &mut Context<'_, Self>) {
        let since = self.clock.tick();
        self.state = State::Wanted { since };
        self.ask_everyone(Message::Request { timestamp: since }, ctx);
    }

    /// Asks everyone whom we do not take for crashed.
    fn ask_everyone(&mut self, question: Message, ctx: &mut Context<'_, Self>) {
        let others: ProcessSet = ctx.others().collect();
        self.awaiting = others.difference(&self.crashed);
        self.ask(question, ctx);
    }

    /// Asks everyone we wait for, and goes on if there is nobody.
    fn ask(&mut self, question: Message, ctx: &mut Context<'_, Self>) {
        if self.awaiting.is_empty() {
            return self.go_on(ctx);
        }
        if *self.synchronous {
            self.silent = self.awaiting.clone();
        }
        for p in self.awaiting.iter() {
            ctx.send(p, question);
        }
        ctx.set_timer(Timer::Answers, *self.timeout);
    }

    /// We wait for nobody any more.
    fn go_on(&mut self, ctx: &mut Context<'_, Self>) {
        ctx.cancel_timer(Timer::Answers);
        match self.state {
            State::Rejoining { wants } => {
                self.state = State::Released;
                if wants {
                    self.request(ctx);
                    for (p, timestamp) in std::mem::take(&mut self.deferred) {
                        self.answer(p, timestamp, ctx);
                    }
                }
            }
            State::Wanted { since } => {
                self.state = State::Held;
                let fence = Fence(since.into(), ctx.me().0.into());
                ctx.indicate(Indication::Granted { fence: Some(fence) });
            }
            State::Released | State::Held => {}
        }
    }

    fn no_longer_await(&mut self, p: ProcessId, ctx: &mut Context<'_, Self>) {
        if self.awaiting.remove(p) && self.awaiting.is_empty() {
            self.go_on(ctx);
        }
    }

    fn answer(&mut self, from: ProcessId, timestamp: u32, ctx: &mut Context<'_, Self>) {
        let clock = self.clock.now();
        if self.precedes(ctx.me(), timestamp, from) {
            self.defer(from, timestamp);
            ctx.send(from, Message::Ack { to: timestamp, clock });
        } else {
            ctx.send(from, Message::Reply { to: timestamp, clock });
        }
    }

    fn defer(&mut self, from: ProcessId, timestamp: u32) {
        match self.deferred.binary_search_by_key(&from, |(p, _)| *p) {
            Ok(i) => self.deferred[i].1 = self.deferred[i].1.max(timestamp),
            Err(i) => self.deferred.insert(i, (from, timestamp)),
        }
    }
}

impl Process for RicartAgrawalaAcknowledged {
    type Message = Message;
    type Timer = Timer;
    type Request = Request;
    type Indication = Indication;
    /// The number of the incarnation.
    type Record = u32;

    fn on_recover(&mut self, saved: Option<u32>, ctx: &mut Context<'_, Self>) {
        if *self.no_rejoin {
            return;
        }
        // A welcome to an earlier incarnation may tell too early a time.
        self.incarnation = saved.unwrap_or(0) + 1;
        ctx.save(self.incarnation);
        self.state = State::Rejoining { wants: false };
        let (incarnation, clock) = (self.incarnation, self.clock.now());
        self.ask_everyone(Message::Hello { incarnation, clock }, ctx);
    }

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        match request {
            Request::Acquire => match &mut self.state {
                State::Rejoining { wants } => *wants = true,
                State::Released | State::Wanted { .. } | State::Held => self.request(ctx),
            },
            Request::Release => {
                self.state = State::Released;
                let clock = self.clock.now();
                for (p, timestamp) in self.deferred.drain(..) {
                    ctx.send(p, Message::Reply { to: timestamp, clock });
                }
            }
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        self.silent.remove(from);
        self.crashed.remove(from);
        match message {
            Message::Request { timestamp } => {
                self.clock.witness(timestamp);
                self.answer(from, timestamp, ctx);
            }
            Message::AreYouThere { timestamp, clock } => {
                self.clock.witness(clock);
                self.answer(from, timestamp, ctx);
            }
            Message::Ack { clock, .. } => self.clock.witness(clock),
            Message::Reply { to, clock } => {
                self.clock.witness(clock);
                if self.state == (State::Wanted { since: to }) {
                    self.no_longer_await(from, ctx);
                }
            }
            Message::Hello { incarnation, clock } => {
                self.clock.witness(clock);
                // What it had asked for, it does not want any more.
                self.deferred.retain(|(p, _)| *p != from);
                ctx.send(from, Message::Welcome { incarnation, clock: self.clock.now() });
            }
            Message::Welcome { incarnation, clock } => {
                self.clock.witness(clock);
                if matches!(self.state, State::Rejoining { .. }) && incarnation == self.incarnation
                {
                    self.no_longer_await(from, ctx);
                }
            }
        }
    }

    fn on_timer(&mut self, Timer::Answers: Timer, ctx: &mut Context<'_, Self>) {
        let dead = std::mem::take(&mut self.silent);
        self.awaiting = self.awaiting.difference(&dead);
        self.crashed.union_with(&dead);
        let clock = self.clock.now();
        match self.state {
            State::Wanted { .. } if *self.no_probe && !self.awaiting.is_empty() => {}
            State::Wanted { since } => {
                self.ask(Message::AreYouThere { timestamp: since, clock }, ctx);
            }
            State::Rejoining { .. } => {
                self.ask(Message::Hello { incarnation: self.incarnation, clock }, ctx);
            }
            State::Released | State::Held => {}
        }
    }

    fn stamp(&self) -> u64 {
        self.clock.now().into()
    }

    fn on_stamp(&mut self, _from: ProcessId, stamp: u64) {
        self.clock.witness(stamp as u32);
    }

    fn at_rest(&self) -> bool {
        self.state == State::Released && self.deferred.is_empty()
    }
}

impl Algorithm for RicartAgrawalaAcknowledged {
    type Problem = Mutex;
    const SHEET: DataSheet = SHEET;

    fn new(_me: ProcessId, setup: &Setup) -> Self {
        Self {
            clock: LamportClock::default(),
            state: State::Released,
            awaiting: ProcessSet::new(),
            silent: ProcessSet::new(),
            crashed: ProcessSet::new(),
            deferred: Vec::new(),
            incarnation: 0,
            timeout: Fixed(setup.unit * setup.chosen(&SHEET, "timeout").number()),
            synchronous: Fixed(setup.chosen(&SHEET, "model").is("synchronous")),
            no_probe: setup.makes(&NO_PROBE),
            no_rejoin: setup.makes(&NO_REJOIN),
        }
    }

    fn longest_delay(setup: &Setup) -> Option<f64> {
        let synchronous = setup.chosen(&SHEET, "model").is("synchronous");
        synchronous.then(|| f64::from(setup.chosen(&SHEET, "timeout").number()) / 2.0)
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        setup.need(&SHEET, 1, &["timeout"])
    }
}

/// The longest delay, if all are there and answer before anyone takes them for crashed.
fn prompt(f: &Facts<'_>) -> Option<f64> {
    let timeout = f64::from(f.setup.chosen(&SHEET, "timeout").number());
    f.delay_max.filter(|t| f.undisturbed && f.setup.down.is_empty() && 2.0 * t < timeout)
}

#[cfg(test)]
mod tests {
    use konklave_process::{Effect, Group, Input, Topology};
    use konklave_testkit::{Bench, send, set, tell};

    use super::*;

    const PATIENCE: Duration = Duration::from_millis(5);

    fn bench(me: u32, model: &str) -> Bench<RicartAgrawalaAcknowledged> {
        let mut setup = Setup::new(Group::of(3), Topology::complete(3));
        setup.chosen.insert("model", model.into());
        let process = RicartAgrawalaAcknowledged::new(ProcessId(me), &setup);
        Bench::new(process, ProcessId(me), &setup.group)
    }

    fn entered(time: u64, id: u64) -> [Effect<RicartAgrawalaAcknowledged>; 2] {
        let fence = Some(Fence(time, id));
        [Effect::CancelTimer { timer: Timer::Answers }, tell(Indication::Granted { fence })]
    }

    #[test]
    fn who_puts_its_reply_off_says_so_at_once() {
        let mut p0 = bench(0, "synchronous");
        p0.ask(Request::Acquire);
        let asked = p0.hear(1, Message::Request { timestamp: 1 });
        assert_eq!(asked, [send(1, Message::Ack { to: 1, clock: 1 })]);
        p0.hear(1, Message::Reply { to: 1, clock: 1 });
        p0.hear(2, Message::Reply { to: 1, clock: 2 });
        assert_eq!(p0.ask(Request::Release), [send(1, Message::Reply { to: 1, clock: 2 })]);
    }

    #[test]
    fn who_is_silent_is_not_waited_for_and_who_is_not_is_asked_again() {
        let mut p0 = bench(0, "synchronous");
        p0.ask(Request::Acquire);
        p0.hear(1, Message::Ack { to: 1, clock: 4 });
        let probe = Message::AreYouThere { timestamp: 1, clock: 4 };
        assert_eq!(p0.fire(Timer::Answers), [send(1, probe), set(Timer::Answers, PATIENCE)]);
        assert_eq!(p0.fire(Timer::Answers), entered(1, 0));
        assert_eq!(p0.process.crashed.len(), 2);
        // The next time nobody is asked, until somebody says a word.
        p0.ask(Request::Release);
        assert_eq!(p0.ask(Request::Acquire), entered(5, 0));
        p0.hear(2, Message::Hello { incarnation: 1, clock: 0 });
        assert_eq!(p0.process.crashed.len(), 1);
    }

    #[test]
    fn where_silence_means_nothing_everyone_is_asked_again() {
        let mut p0 = bench(0, "asynchronous");
        p0.ask(Request::Acquire);
        for _ in 0..3 {
            let probe = Message::AreYouThere { timestamp: 1, clock: 1 };
            let again = [send(1, probe), send(2, probe), set(Timer::Answers, PATIENCE)];
            assert_eq!(p0.fire(Timer::Answers), again);
        }
    }

    #[test]
    fn who_comes_up_again_learns_the_time_before_it_asks() {
        let mut p0 = bench(0, "synchronous");
        let hello = Message::Hello { incarnation: 4, clock: 0 };
        assert_eq!(
            p0.step(Input::Recover(Some(3))),
            [Effect::Save(4), send(1, hello), send(2, hello), set(Timer::Answers, PATIENCE)]
        );
        assert_eq!(p0.ask(Request::Acquire), []);
        assert_eq!(p0.hear(1, Message::Welcome { incarnation: 3, clock: 2 }), []);
        assert_eq!(p0.hear(1, Message::Welcome { incarnation: 4, clock: 7 }), []);
        let request = Message::Request { timestamp: 8 };
        assert_eq!(
            p0.hear(2, Message::Welcome { incarnation: 4, clock: 5 })[1..],
            [send(1, request), send(2, request), set(Timer::Answers, PATIENCE)]
        );
    }

    #[test]
    fn an_answer_to_an_earlier_request_does_not_count() {
        let mut p0 = bench(0, "synchronous");
        p0.hear(1, Message::Request { timestamp: 4 });
        p0.ask(Request::Acquire);
        assert_eq!(p0.hear(1, Message::Reply { to: 3, clock: 9 }), []);
        assert_eq!(p0.hear(2, Message::Reply { to: 5, clock: 5 }), []);
        assert_eq!(p0.hear(1, Message::Reply { to: 5, clock: 9 }), entered(5, 0));
    }
}
