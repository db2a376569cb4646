//! The bully algorithm of Garcia-Molina, in the message form of the slides, and hardened.
//!
//! Who misses the coordinator asks all higher processes to take over. A higher one answers and
//! asks those above itself; who hears no answer in time has nobody above and announces itself. So
//! the highest live process bullies all others into following it.
//!
//! The textbook form has no memory of earlier elections, and late messages deceive it: where the
//! announcement is there before the questions of others who start at the same time, each of them
//! re-opens the election, and the messages grow exponentially with the group. The hardened
//! form numbers the reigns: a reign is a round and an id, later reigns supersede earlier ones, who
//! announces an old reign is told the latest, and a leader in office answers for itself.
//! What the paper itself specifies is in [`bully_1982`](super::bully_1982).

use std::time::Duration;

use konklave_process::topology::Shape;
use konklave_process::{Context, Fixed, NoRecord, Process, ProcessId};
use serde::{Deserialize, Serialize};

use super::{Election, Indication, Request};
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Facts, Guarantee, Metric, Mistake, Setup,
    SetupError, Switch, Winner,
};

const NO_GUARD: Mistake = Mistake {
    name: "no-guard",
    what: "every ELECTION starts one more election, also during one (printed on the slides): 2^(n−1) messages",
    breaks: "bound",
    caught_by: "-n 5 --down 4 --initiators 0 --synchronous --clock 1 --property bound:20",
};
const NO_SECOND_TIMEOUT: Mistake = Mistake {
    name: "no-second-timeout",
    what: "after an ANSWER one waits for the coordinator without end (\"do something else\" on the slides)",
    breaks: "deadlock",
    caught_by: "-n 3 --down 2 --initiators 0 --crash 1 --synchronous --property deadlock",
};

const SHEET: DataSheet = DataSheet {
    name: "bully",
    title: "Bully",
    idea: "Ask all above you to take over; if nobody answers in time, you lead.",
    source: "H. Garcia-Molina, IEEE Trans. Computers 31(1), 1982; lecture \"Wahlverfahren\", Bully-Algorithmus",
    assumes: &[
        Assumption::Reliable,
        Assumption::NoRestart,
        Assumption::Synchronous,
        Assumption::KnownMembership,
        Assumption::UniqueIds,
    ],
    topologies: &[Shape::Complete],
    winner: Some(Winner::MaxAll),
    costs: &[
        Cost {
            metric: Metric::Messages,
            formula: "(n − i)² + n − 2 (hardened: + 1), i = rank of the lowest detector",
            when: "the highest is down from the start, all who detect that do so at once, and answers come in time",
            bound: |f| detector(f).map(|rank| Bound::Exactly(of_one_detector(f, rank))),
        },
        Cost {
            metric: Metric::Messages,
            formula: "n² − n − 1 (hardened: + 1)",
            when: "the highest is down from the start, all who detect that do so at once, and answers come in time",
            bound: |f| detector(f).map(|_| Bound::AtMost(of_one_detector(f, 1.0))),
        },
        Cost {
            metric: Metric::Messages,
            formula: "n − 1",
            when: "nobody is down, and only the highest starts",
            bound: |f| highest_alone(f).then(|| Bound::Exactly(f.n() - 1.0)),
        },
        Cost {
            metric: Metric::Time,
            formula: "timeout + 2T",
            when: "the highest is down from the start, all detectors at once, delays have a limit",
            bound: |f| detector(f).and(f.delay_max).map(|t| Bound::AtMost(timeout(f) + 2.0 * t)),
        },
        Cost {
            metric: Metric::Time,
            formula: "T",
            when: "nobody is down, only the highest starts, delays have a limit",
            bound: |f| f.delay_max.filter(|_| highest_alone(f)).map(Bound::AtMost),
        },
    ],
    guarantees: &[
        Guarantee::UniqueLeader,
        Guarantee::Agreement,
        Guarantee::LiveLeader,
        Guarantee::Termination,
    ],
    fence: None,
    mistakes: &[NO_GUARD, NO_SECOND_TIMEOUT],
    switches: &[
        Switch {
            name: "mode",
            values: &["textbook", "hardened"],
            what: "as taught, or with numbered reigns (which promises one leader per epoch only)",
        },
        Switch {
            name: "timeout",
            values: &["5", "<number>"],
            what: "how long to wait for an ANSWER, in T: two delays at least; three times that for a coordinator",
        },
        Switch {
            name: "ping",
            values: &["0", "<number>"],
            what: "hardened: how often a leader reminds everyone of itself, in T; 0: never",
        },
    ],
};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Bully {
    phase: Phase,
    /// Whom we follow, or ourselves.
    coordinator: Option<ProcessId>,
    /// Hardened: the latest reign we lived under.
    reign: Reign,
    /// Hardened: the highest round we heard of.
    round: u32,
    /// How many elections of ours are open: without the guard there may be many.
    open: u32,
    #[serde(skip)]
    settings: Fixed<Settings>,
}

#[derive(Clone, Copy, Debug)]
struct Settings {
    hardened: bool,
    timeout: Duration,
    ping: Option<Duration>,
    no_guard: bool,
    no_second_timeout: bool,
}

/// What a process waits for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum Phase {
    /// Nothing.
    Idle,
    /// An answer from above.
    AwaitAnswer,
    /// The announcement of the one who answered.
    AwaitCoordinator,
}

/// A time in office; later ones are greater. Textbook processes know only round 0.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default, Serialize, Deserialize,
)]
pub struct Reign {
    round: u32,
    leader: ProcessId,
}

/// What the processes say.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// Who of you above takes over? The latest reign I know is over.
    Election(Reign),
    /// I do, or someone above me.
    Answer,
    /// I lead, in this round.
    Coordinator(u32),
    /// You do not: there was a later reign.
    Reject(Reign),
    /// I still lead, in this round.
    Ping(u32),
}

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// Someone above should have answered.
    Answer,
    /// Who answered should have announced itself, or someone else.
    Coordinator,
    /// Time to remind everyone of us.
    Ping,
    /// The coordinator should have reminded us of itself.
    Silence,
}

impl Bully {
    /// Whom it follows; itself if it leads.
    pub fn coordinator(&self) -> Option<ProcessId> {
        self.coordinator
    }

    /// Asks everyone above.
    fn hold(&mut self, ctx: &mut Context<'_, Self>) {
        self.leave(ctx);
        let (me, mut alone) = (ctx.me(), true);
        for p in ctx.others().filter(|p| *p > me) {
            alone = false;
            ctx.send(p, Message::Election(self.reign));
        }
        if alone {
            return self.win(ctx);
        }
        // One detector brings about so many at most: more would only be more states to explore.
        let most = if self.settings.no_guard { 1 << ctx.group_size().min(31) } else { 1 };
        self.open = (self.open + 1).min(most);
        self.phase = Phase::AwaitAnswer;
        ctx.cancel_timer(Timer::Coordinator);
        ctx.set_timer(Timer::Answer, self.settings.timeout);
    }

    /// The coordinator, which we may be ourselves, is none any more.
    fn leave(&mut self, ctx: &mut Context<'_, Self>) {
        if self.coordinator.take().is_some() {
            ctx.indicate(Indication::Deposed);
            self.stop_pinging(ctx);
        }
    }

    fn win(&mut self, ctx: &mut Context<'_, Self>) {
        self.settle(ctx.me(), ctx);
        if self.settings.hardened {
            self.round += 1;
            self.reign = Reign { round: self.round, leader: ctx.me() };
        }
        ctx.indicate(Indication::Leading { epoch: self.epoch(ctx) });
        for _ in 0..self.open.max(1) {
            self.tell_those_who_follow(Message::Coordinator(self.round), ctx);
        }
        self.open = 0;
        if let Some(period) = self.settings.ping {
            ctx.set_timer(Timer::Ping, period);
        }
    }

    /// A textbook leader speaks to those below; a hardened one to all, for it may err.
    fn tell_those_who_follow(&self, message: Message, ctx: &mut Context<'_, Self>) {
        let me = ctx.me();
        for p in ctx.others().filter(|p| *p < me || self.settings.hardened) {
            ctx.send(p, message);
        }
    }

    fn follow(&mut self, reign: Reign, ctx: &mut Context<'_, Self>) {
        self.settle(reign.leader, ctx);
        self.open = 0;
        if self.settings.hardened {
            self.reign = reign;
        }
        let epoch = self.epoch(ctx);
        ctx.indicate(Indication::Following { leader: Some(reign.leader), epoch });
        self.expect_ping(ctx);
    }

    /// The election is over.
    fn settle(&mut self, coordinator: ProcessId, ctx: &mut Context<'_, Self>) {
        self.stop_pinging(ctx);
        self.coordinator = Some(coordinator);
        match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Idle => {}
            Phase::AwaitAnswer => ctx.cancel_timer(Timer::Answer),
            Phase::AwaitCoordinator => ctx.cancel_timer(Timer::Coordinator),
        }
    }

    fn stop_pinging(&self, ctx: &mut Context<'_, Self>) {
        if self.settings.ping.is_some() {
            ctx.cancel_timer(Timer::Ping);
            ctx.cancel_timer(Timer::Silence);
        }
    }

    fn expect_ping(&self, ctx: &mut Context<'_, Self>) {
        if let Some(period) = self.settings.ping {
            ctx.set_timer(Timer::Silence, 3 * period);
        }
    }

    /// Rounds and ids in one number: no two leaders share one. Textbook reigns have none.
    fn epoch(&self, ctx: &Context<'_, Self>) -> u32 {
        if !self.settings.hardened {
            return 0;
        }
        let place = ctx.group().place(self.reign.leader).expect("leaders are members");
        let n = ctx.group_size() as u32;
        self.reign.round.saturating_mul(n).saturating_add(place as u32)
    }

    fn on_election(&mut self, from: ProcessId, over: Reign, ctx: &mut Context<'_, Self>) {
        self.round = self.round.max(over.round);
        let leads = self.coordinator == Some(ctx.me());
        if self.settings.hardened && leads && over < self.reign {
            // It missed our announcement: it need not disturb everyone.
            return ctx.send(from, Message::Coordinator(self.reign.round));
        }
        if self.settings.hardened && leads && over.leader <= ctx.me() {
            // It gave us up, or knows an old reign of ours: only a new one makes it follow.
            return self.win(ctx);
        }
        ctx.send(from, Message::Answer);
        if self.phase == Phase::Idle || self.settings.no_guard {
            self.hold(ctx);
        }
    }

    fn on_coordinator(&mut self, reign: Reign, ctx: &mut Context<'_, Self>) {
        if self.settings.hardened {
            self.round = self.round.max(reign.round);
            if reign < self.reign {
                return ctx.send(reign.leader, Message::Reject(self.reign));
            }
            if reign == self.reign {
                return;
            }
        }
        if reign.leader > ctx.me() {
            self.follow(reign, ctx);
        } else if self.phase == Phase::Idle {
            // We are alive and higher: we take over.
            self.hold(ctx);
        }
    }

    fn on_reject(&mut self, reign: Reign, ctx: &mut Context<'_, Self>) {
        self.round = self.round.max(reign.round);
        if self.coordinator != Some(ctx.me()) || reign <= self.reign {
            return;
        }
        if reign.leader == ctx.me() {
            // That was us, before we crashed.
            self.win(ctx);
        } else {
            self.hold(ctx);
        }
    }
}

impl Process for Bully {
    type Message = Message;
    type Timer = Timer;
    type Request = Request;
    type Indication = Indication;
    type Record = NoRecord;

    fn on_recover(&mut self, _saved: Option<NoRecord>, ctx: &mut Context<'_, Self>) {
        self.hold(ctx);
    }

    fn on_request(&mut self, Request::Elect: Request, ctx: &mut Context<'_, Self>) {
        if self.phase == Phase::Idle {
            self.hold(ctx);
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Election(_) if from > ctx.me() => ctx.unexpected("an election from above"),
            Message::Election(over) => self.on_election(from, over, ctx),
            Message::Answer => {
                if self.phase == Phase::AwaitAnswer {
                    self.open = 1;
                    self.phase = Phase::AwaitCoordinator;
                    ctx.cancel_timer(Timer::Answer);
                    if !self.settings.no_second_timeout {
                        ctx.set_timer(Timer::Coordinator, 3 * self.settings.timeout);
                    }
                }
            }
            Message::Coordinator(round) => self.on_coordinator(Reign { round, leader: from }, ctx),
            Message::Reject(reign) => self.on_reject(reign, ctx),
            Message::Ping(round) => {
                let reign = Reign { round, leader: from };
                if reign == self.reign && self.coordinator == Some(from) {
                    self.expect_ping(ctx);
                }
                self.on_coordinator(reign, ctx);
            }
        }
    }

    fn on_timer(&mut self, timer: Timer, ctx: &mut Context<'_, Self>) {
        match timer {
            Timer::Answer => self.win(ctx),
            Timer::Coordinator => {
                self.phase = Phase::Idle;
                self.hold(ctx);
            }
            Timer::Ping => {
                self.tell_those_who_follow(Message::Ping(self.reign.round), ctx);
                if let Some(period) = self.settings.ping {
                    ctx.set_timer(Timer::Ping, period);
                }
            }
            Timer::Silence => self.hold(ctx),
        }
    }

    fn on_suspect(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        if self.coordinator == Some(peer) {
            self.hold(ctx);
        }
    }

    fn at_rest(&self) -> bool {
        self.phase == Phase::Idle
    }
}

impl Algorithm for Bully {
    type Problem = Election;
    const SHEET: DataSheet = SHEET;

    fn sheet(setup: &Setup) -> DataSheet {
        if setup.chosen(&SHEET, "mode").is("textbook") {
            return SHEET;
        }
        let guarantees = &[
            Guarantee::UniquePerEpoch,
            Guarantee::Agreement,
            Guarantee::LiveLeader,
            Guarantee::Termination,
        ];
        // A later reign supersedes what a returning process knows and says.
        let assumes = &[
            Assumption::Reliable,
            Assumption::Synchronous,
            Assumption::KnownMembership,
            Assumption::UniqueIds,
        ];
        DataSheet { assumes, guarantees, ..SHEET }
    }

    fn longest_delay(setup: &Setup) -> Option<f64> {
        Some(f64::from(setup.chosen(&SHEET, "timeout").number()) / 2.0)
    }

    fn new(_me: ProcessId, setup: &Setup) -> Self {
        let hardened = setup.chosen(&SHEET, "mode").is("hardened");
        let ping = setup.chosen(&SHEET, "ping").number();
        Self {
            phase: Phase::Idle,
            coordinator: None,
            reign: Reign::default(),
            round: 0,
            open: 0,
            settings: Fixed(Settings {
                hardened,
                timeout: setup.unit * setup.chosen(&SHEET, "timeout").number(),
                ping: (hardened && ping > 0).then(|| setup.unit * ping),
                no_guard: *setup.makes(&NO_GUARD),
                no_second_timeout: *setup.makes(&NO_SECOND_TIMEOUT),
            }),
        }
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        setup.need(&SHEET, 1, &["timeout"])?;
        let textbook = setup.chosen(&SHEET, "mode").is("textbook");
        if textbook && setup.chosen(&SHEET, "ping").number() > 0 {
            return Err(SetupError("only the hardened mode has a ping".into()));
        }
        Ok(())
    }
}

fn timeout(f: &Facts<'_>) -> f64 {
    f64::from(f.setup.chosen(&SHEET, "timeout").number())
}

/// The rank of the lowest detector, counted from 1, where the highest alone is down. All above it
/// hold one election each, whether they detect anything or are asked: who is asked while it waits
/// holds no other, and an answer comes before anyone has waited long enough.
fn detector(f: &Facts<'_>) -> Option<f64> {
    let (lowest, [down]) = (f.initiators.iter().min()?, f.setup.down.as_slice()) else {
        return None;
    };
    let together = f.at_once || f.k() == 1.0;
    let in_time = f.delay_max.is_some_and(|t| 2.0 * t < timeout(f));
    let group = &f.setup.group;
    let below = group.members().iter().filter(|p| *p < lowest).count();
    (*down == group.highest() && together && in_time).then_some(below as f64 + 1.0)
}

fn highest_alone(f: &Facts<'_>) -> bool {
    f.setup.down.is_empty() && f.undisturbed && f.initiators == [f.setup.group.highest()]
}

fn of_one_detector(f: &Facts<'_>, rank: f64) -> f64 {
    let hardened = f.setup.chosen(&SHEET, "mode").is("hardened");
    (f.n() - rank).powi(2) + f.n() - 2.0 + f64::from(u8::from(hardened))
}

#[cfg(test)]
mod tests {
    use konklave_process::{Effect, Group, Input, Topology};
    use konklave_testkit::{Bench, send, set, tell};

    use super::*;

    const T: Duration = Duration::from_millis(5);

    fn process(me: u32, n: usize, mode: &str) -> Bench<Bully> {
        let mut setup = Setup::new(Group::of(n), Topology::complete(n));
        setup.chosen.insert("mode", mode.to_owned());
        Bench::new(Bully::new(ProcessId(me), &setup), ProcessId(me), &setup.group)
    }

    fn election() -> Message {
        Message::Election(Reign::default())
    }

    /// Hears `message` and forgets timers that stop: only the rest is looked at.
    fn hear(bench: &mut Bench<Bully>, from: u32, message: Message) -> Vec<Effect<Bully>> {
        let effects = bench.hear(from, message);
        effects.into_iter().filter(|e| !matches!(e, Effect::CancelTimer { .. })).collect()
    }

    #[test]
    fn an_initiator_asks_all_above_it() {
        let mut p = process(1, 4, "textbook");
        let effects = p.ask(Request::Elect);
        assert_eq!(effects[..2], [send(2, election()), send(3, election())]);
        assert_eq!(effects.last(), Some(&set(Timer::Answer, T)));
        assert_eq!(p.ask(Request::Elect), [], "one election at a time");
    }

    #[test]
    fn who_is_asked_answers_and_asks_those_above_but_only_once() {
        let mut p = process(1, 3, "textbook");
        let effects = hear(&mut p, 0, election());
        assert_eq!(effects, [send(0, Message::Answer), send(2, election()), set(Timer::Answer, T)]);
        assert_eq!(hear(&mut p, 0, election()), [send(0, Message::Answer)]);
    }

    #[test]
    fn who_hears_no_answer_leads_those_below() {
        let mut p = process(1, 3, "textbook");
        p.ask(Request::Elect);
        let effects = p.fire(Timer::Answer);
        let leading = tell(Indication::Leading { epoch: 0 });
        assert_eq!(effects[1..], [leading, send(0, Message::Coordinator(0))]);
        assert_eq!(p.process.coordinator(), Some(ProcessId(1)));
    }

    #[test]
    fn an_answer_is_waited_for_then_a_coordinator_then_all_begins_anew() {
        let mut p = process(0, 2, "textbook");
        p.ask(Request::Elect);
        assert_eq!(hear(&mut p, 1, Message::Answer), [set(Timer::Coordinator, 3 * T)]);
        assert!(!p.process.at_rest());
        let effects = p.fire(Timer::Coordinator);
        assert_eq!(effects[0], send(1, election()));
        let following = Indication::Following { leader: Some(ProcessId(1)), epoch: 0 };
        assert_eq!(hear(&mut p, 1, Message::Coordinator(0)), [tell(following)]);
        assert!(p.process.at_rest());
    }

    #[test]
    fn only_the_loss_of_the_coordinator_matters() {
        let mut p = process(0, 3, "textbook");
        p.hear(2, Message::Coordinator(0));
        assert_eq!(p.suspect(1), []);
        let effects = p.suspect(2);
        assert_eq!(effects[..2], [tell(Indication::Deposed), send(1, election())]);
    }

    #[test]
    fn the_highest_leads_as_soon_as_it_is_back() {
        let mut p = process(2, 3, "textbook");
        let effects = p.step(Input::Recover(None));
        assert_eq!(effects[0], tell(Indication::Leading { epoch: 0 }));
        assert_eq!(effects.len(), 3);
    }

    #[test]
    fn a_hardened_leader_answers_for_itself() {
        let mut p = process(1, 2, "hardened");
        p.ask(Request::Elect);
        assert_eq!(hear(&mut p, 0, election()), [send(0, Message::Coordinator(1))]);
        // Who gave up this very reign follows only a new one.
        let over = Reign { round: 1, leader: ProcessId(1) };
        let effects = hear(&mut p, 0, Message::Election(over));
        assert_eq!(effects[1], send(0, Message::Coordinator(2)));
    }

    #[test]
    fn an_old_reign_is_rejected_and_its_leader_begins_anew_above_it() {
        let mut p = process(0, 3, "hardened");
        p.hear(1, Message::Coordinator(7));
        let latest = Reign { round: 7, leader: ProcessId(1) };
        assert_eq!(hear(&mut p, 2, Message::Coordinator(1)), [send(2, Message::Reject(latest))]);
        let mut top = process(2, 3, "hardened");
        top.step(Input::Recover(None));
        let effects = hear(&mut top, 0, Message::Reject(latest));
        assert!(effects.contains(&send(0, Message::Coordinator(8))), "{effects:?}");
    }
}
