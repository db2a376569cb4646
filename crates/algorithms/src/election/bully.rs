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

mod sheet;
#[cfg(test)]
mod tests;

use std::time::Duration;

use konklave_process::{Context, Fixed, NoRecord, Process, ProcessId};
use serde::{Deserialize, Serialize};

use self::sheet::SHEET;
use super::{Indication, Request};
use crate::Facts;

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
}

fn timeout(f: &Facts<'_>) -> f64 {
    f64::from(f.setup.chosen(&SHEET, "timeout").number())
}
