//! A leader on top of views: the most senior member.
//!
//! All agree on the views, so all agree on the leader; and views only grow, so a number that every
//! command of a leader carries tells it from all leaders before. That is all one can have without
//! clocks: an old leader may believe in itself until it hears otherwise. With a *lease* no two
//! believe at the same time: a member that grants one does not follow another for a while.

mod sheet;

use std::time::Duration;

use konklave_process::{Context, Fixed, Indications, Process, ProcessId, ProcessSet};
use serde::{Deserialize, Serialize};

use self::sheet::{NO_DELAY, SAME_EPOCH};
use super::virtual_synchrony::{Record, VirtualSynchrony};
use super::{Bytes, Indication as Told, Request as Wish, View, ViewId, virtual_synchrony};
use crate::election::{Election, Indication, Request};
use crate::{
    Algorithm, Metric, Mistake, Pause, Problem, ProblemSheet, Setup, Watch, Workload, election,
};

/// One process of the group.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Leader {
    group: VirtualSynchrony<Bytes>,
    /// Whether we believe that we lead.
    leads: bool,
    /// At the leader: the rounds of asking for a lease that still count, with who granted.
    rounds: Vec<(u32, ProcessSet)>,
    /// At the leader: the last round.
    round: u32,
    /// At the leader: whether its lease has lapsed in this view.
    lapsed: bool,
    #[serde(skip)]
    lease: Fixed<Option<Duration>>,
    #[serde(skip)]
    mistake: Fixed<Option<&'static str>>,
}

/// What the processes say.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// Something about views.
    Group(virtual_synchrony::Message<Bytes>),
    /// Stand by me for a while.
    Ask {
        /// The view in which I lead.
        view: ViewId,
        /// Which question this is.
        round: u32,
    },
    /// I do.
    Grant {
        /// The view.
        view: ViewId,
        /// Which question this answers.
        round: u32,
    },
}

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// One of the group.
    Group(virtual_synchrony::Timer),
    /// The leader asks for the next lease.
    Renew,
    /// What was granted in this round, counted modulo 8, counts no longer.
    Lapse(u8),
    /// We are free to follow another.
    Free,
}

impl From<virtual_synchrony::Message<Bytes>> for Message {
    fn from(message: virtual_synchrony::Message<Bytes>) -> Self {
        Self::Group(message)
    }
}

impl From<virtual_synchrony::Timer> for Timer {
    fn from(timer: virtual_synchrony::Timer) -> Self {
        Self::Group(timer)
    }
}

impl Leader {
    fn makes(&self, mistake: &Mistake) -> bool {
        *self.mistake == Some(mistake.name)
    }

    /// The present view.
    pub fn view(&self) -> &View {
        self.group.view()
    }

    /// Whether we lead, and with which number.
    pub fn leads(&self) -> Option<ViewId> {
        self.leads.then_some(self.view().id)
    }

    /// The view's number as one that grows.
    fn number(&self) -> u32 {
        let ViewId { generation, epoch, .. } = self.view().id;
        let epoch = if self.makes(&SAME_EPOCH) { 0 } else { epoch as u32 & 0xf_ffff };
        generation << 20 | epoch
    }

    /// Lets the group take a step, and draws our conclusions.
    fn run(
        &mut self,
        ctx: &mut Context<'_, Self>,
        step: impl FnOnce(&mut VirtualSynchrony, &mut Context<'_, VirtualSynchrony>),
    ) {
        let told = ctx.below(|ctx| step(&mut self.group, ctx));
        self.conclude(told, ctx);
    }

    fn conclude(&mut self, told: Indications<VirtualSynchrony>, ctx: &mut Context<'_, Self>) {
        for indication in told {
            match indication {
                Told::Installed { .. } => self.on_view(ctx),
                Told::Wedged => self.step_down(ctx),
                Told::Excluded | Told::Left | Told::Blocked => {
                    self.leads = false;
                    ctx.indicate(Indication::Deposed);
                }
                Told::StateWanted => {
                    // Who leads is all there is to know, and the view tells it.
                    let state = Wish::State(Vec::new());
                    let told = ctx.below(|ctx| self.group.on_request(state, ctx));
                    self.conclude(told, ctx);
                }
                Told::Sent { .. }
                | Told::Refused(_)
                | Told::Delivered { .. }
                | Told::State { .. } => {}
            }
        }
    }

    fn on_view(&mut self, ctx: &mut Context<'_, Self>) {
        self.step_down(ctx);
        self.lapsed = false;
        ctx.cancel_timer(Timer::Free);
        let Some(leader) = self.view().leader() else { return };
        if leader != ctx.me() {
            return ctx
                .indicate(Indication::Following { leader: Some(leader), epoch: self.number() });
        }
        if self.lease.is_some() {
            self.ask(ctx);
        } else {
            self.lead(ctx);
        }
    }

    fn lead(&mut self, ctx: &mut Context<'_, Self>) {
        if !std::mem::replace(&mut self.leads, true) {
            ctx.indicate(Indication::Leading { epoch: self.number() });
        }
    }

    fn step_down(&mut self, ctx: &mut Context<'_, Self>) {
        self.rounds.clear();
        for slot in 0..8 {
            if self.lease.is_some() {
                ctx.cancel_timer(Timer::Lapse(slot));
            }
        }
        if std::mem::take(&mut self.leads) {
            ctx.indicate(Indication::Deposed);
        }
    }

    /// Asks for a lease. It counts from now on, not from when it is granted.
    fn ask(&mut self, ctx: &mut Context<'_, Self>) {
        let Some(lease) = *self.lease else { return };
        if self.view().leader() != Some(ctx.me()) || self.group.is_wedged() {
            return;
        }
        self.round = self.round.wrapping_add(1);
        let (view, round) = (self.view().id, self.round);
        self.rounds.retain(|(r, _)| *r % 8 != round % 8);
        self.rounds.push((round, [ctx.me()].into_iter().collect()));
        // Less than the grant lasts: clocks differ, by less than a tenth each.
        ctx.set_timer(Timer::Lapse((round % 8) as u8), lease * 8 / 10);
        ctx.set_timer(Timer::Renew, lease / 4);
        for to in self.view().others(ctx.me()) {
            ctx.send(to, Message::Ask { view, round });
        }
        self.count(ctx);
    }

    /// Whether a majority has granted a lease that still counts.
    fn count(&mut self, ctx: &mut Context<'_, Self>) {
        let view = self.view();
        let leased = self.rounds.iter().any(|(_, by)| view.is_quorum(by, false));
        if leased && !self.lapsed {
            self.lead(ctx);
        } else if !leased && std::mem::take(&mut self.leads) {
            // Who has been out of office comes into it again only with a higher number.
            self.lapsed = true;
            ctx.indicate(Indication::Deposed);
            self.run(ctx, |group, ctx| group.on_request(Wish::Reform, ctx));
        }
    }

    fn on_ask(&mut self, from: ProcessId, round: u32, ctx: &mut Context<'_, Self>) {
        let Some(lease) = *self.lease else { return };
        if self.group.is_wedged() || self.view().leader() != Some(from) {
            return;
        }
        if !self.makes(&NO_DELAY) {
            self.run(ctx, |group, ctx| group.set_bound_to_leader(true, ctx));
            ctx.set_timer(Timer::Free, lease);
        }
        ctx.send(from, Message::Grant { view: self.view().id, round });
    }

    fn on_grant(&mut self, from: ProcessId, round: u32, ctx: &mut Context<'_, Self>) {
        if let Some((_, by)) = self.rounds.iter_mut().find(|(r, _)| *r == round) {
            by.insert(from);
            self.count(ctx);
        }
    }
}

impl Process for Leader {
    type Message = Message;
    type Timer = Timer;
    type Request = Request;
    type Indication = Indication;
    type Record = Record;

    fn on_start(&mut self, ctx: &mut Context<'_, Self>) {
        self.run(ctx, |group, ctx| group.on_start(ctx));
    }

    fn on_recover(&mut self, saved: Option<Record>, ctx: &mut Context<'_, Self>) {
        self.run(ctx, |group, ctx| {
            group.on_recover(saved, ctx);
            group.on_request(Wish::Join, ctx);
        });
    }

    fn on_request(&mut self, Request::Elect: Request, ctx: &mut Context<'_, Self>) {
        self.run(ctx, |group, ctx| group.on_request(Wish::Reform, ctx));
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        let here = self.view().id;
        match message {
            Message::Group(message) => {
                self.run(ctx, |group, ctx| group.on_message(from, message, ctx));
            }
            Message::Ask { view, round } if view == here => self.on_ask(from, round, ctx),
            Message::Grant { view, round } if view == here => self.on_grant(from, round, ctx),
            Message::Ask { .. } | Message::Grant { .. } => {}
        }
    }

    fn on_timer(&mut self, timer: Timer, ctx: &mut Context<'_, Self>) {
        match timer {
            Timer::Group(timer) => self.run(ctx, |group, ctx| group.on_timer(timer, ctx)),
            Timer::Renew => self.ask(ctx),
            Timer::Lapse(slot) => {
                self.rounds.retain(|(round, _)| *round % 8 != u32::from(slot));
                self.count(ctx);
            }
            Timer::Free => self.run(ctx, |group, ctx| group.set_bound_to_leader(false, ctx)),
        }
    }

    fn on_suspect(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.run(ctx, |group, ctx| group.on_suspect(peer, ctx));
    }

    fn on_trust(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.run(ctx, |group, ctx| group.on_trust(peer, ctx));
    }
}

/// The problem of a group's leader: an election that never ends.
#[derive(Clone, Copy, Debug)]
pub struct Leadership;

impl<P> Problem<P> for Leadership
where
    P: Algorithm + Process<Request = Request, Indication = Indication>,
{
    type Application = election::Starters;
    type Monitor = election::Properties;
    type Meter = election::Measures;
    type Summary = election::Summary;

    const SHEET: ProblemSheet = super::SHEET;

    fn application(workload: &Workload, setup: &Setup) -> Self::Application {
        <Election as Problem<P>>::application(workload, setup)
    }

    fn monitor(watch: &Watch, setup: &Setup) -> Self::Monitor {
        <Election as Problem<P>>::monitor(watch, setup)
    }

    fn meter(setup: &Setup) -> Self::Meter {
        <Election as Problem<P>>::meter(setup)
    }

    fn pause(request: &Request) -> Pause {
        <Election as Problem<P>>::pause(request)
    }

    fn summary(meter: &Self::Meter, monitor: &Self::Monitor, unit: f64) -> Self::Summary {
        <Election as Problem<P>>::summary(meter, monitor, unit)
    }

    fn measured(meter: &Self::Meter, metric: Metric, unit: f64) -> Option<f64> {
        <Election as Problem<P>>::measured(meter, metric, unit)
    }
}
