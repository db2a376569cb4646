//! A leader on top of views: the most senior member of the view leads.
//!
//! All members agree on the views, so they agree on the leader. The number of the view is the
//! leader's epoch: it grows from leader to leader.
//!
//! Without clocks, an old leader may take itself for the leader until it learns of the next view.
//! With a *lease* (Gray, Cheriton), no two processes do so at the same time: a member that grants
//! a lease follows no other candidate until the lease is over.
//!
//! Instead of seniority, an election of the literature may choose the leader of each view: see `inside`.

mod any;
mod inside;
mod sheet;

pub use any::{Any, AnyMessage, NAMES};
pub use inside::InnerMessage;

use std::time::Duration;

use konklave_process::{Context, Fixed, Indications, Process, ProcessId, ProcessSet};
use serde::{Deserialize, Serialize};

use self::inside::Inside;
use super::virtual_synchrony::{Record, VirtualSynchrony};
use super::{
    Bytes, Indication as GroupIndication, Request as GroupRequest, View, ViewId, virtual_synchrony,
};
use crate::election::{Election, Indication, Request};
use crate::{Algorithm, Metric, Pause, Problem, ProblemSheet, Setup, Watch, Workload, election};

/// One process of the group.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct Leader {
    group: VirtualSynchrony<Bytes>,
    /// Whether this process takes itself for the leader.
    leads: bool,
    /// At the leader: the rounds of asking for a lease that still count, and the members that granted.
    rounds: Vec<(u32, ProcessSet)>,
    /// At the leader: the number of the last round.
    round: u32,
    /// At the leader: whether its lease has lapsed in this view.
    lapsed: bool,
    /// The election inside the present view; none if the most senior member leads.
    #[serde(skip_serializing_if = "Option::is_none")]
    inside: Option<Box<Inside>>,
    #[serde(skip)]
    lease: Fixed<Option<Duration>>,
    #[serde(skip)]
    mistake: Fixed<Option<&'static str>>,
}

/// The messages.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// A message of the group.
    Group(virtual_synchrony::Message<Bytes>),
    /// The leader asks for a lease.
    Ask {
        /// The leader's view.
        view: ViewId,
        /// The number of this round of asking.
        round: u32,
    },
    /// The sender grants the lease.
    Grant {
        /// The view.
        view: ViewId,
        /// The round that it answers.
        round: u32,
    },
    /// A message of the election inside the view.
    Inside(InnerMessage),
    /// The sender has received all messages of the receiver's election up to this number.
    Got {
        /// The view.
        view: ViewId,
        /// The number of the last one.
        upto: u32,
    },
}

/// The timers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Timer {
    /// A timer of the group.
    Group(virtual_synchrony::Timer),
    /// The leader asks for the next lease.
    Renew,
    /// The lease of this round, modulo 8, is over.
    Lapse(u8),
    /// The lease that this member granted is over: it may follow another candidate.
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
    /// The present view.
    pub fn view(&self) -> &View {
        self.group.view()
    }

    /// The number under which this process leads, if it does.
    pub fn leads(&self) -> Option<ViewId> {
        self.leads.then_some(self.view().id)
    }

    /// The epoch of the leader: the number of the view, as one growing number.
    fn number(&self) -> u32 {
        let ViewId { generation, epoch, .. } = self.view().id;
        let epoch = if self.epochs_grow() { epoch as u32 & 0xf_ffff } else { 0 };
        generation << 20 | epoch
    }

    /// Lets the group take a step, and handles its indications.
    fn step_group(
        &mut self,
        ctx: &mut Context<'_, Self>,
        step: impl FnOnce(&mut VirtualSynchrony, &mut Context<'_, VirtualSynchrony>),
    ) {
        let indications = ctx.below(|ctx| step(&mut self.group, ctx));
        self.on_group_indication(indications, ctx);
    }

    fn on_group_indication(
        &mut self,
        indications: Indications<VirtualSynchrony>,
        ctx: &mut Context<'_, Self>,
    ) {
        for indication in indications {
            match indication {
                GroupIndication::Installed { .. } => self.on_view(ctx),
                GroupIndication::Wedged => self.step_down(ctx),
                GroupIndication::Excluded | GroupIndication::Left => {
                    if let Some(inside) = &mut self.inside {
                        inside.stop();
                    }
                    self.leads = false;
                    ctx.indicate(Indication::Deposed);
                }
                GroupIndication::Blocked => {
                    self.leads = false;
                    ctx.indicate(Indication::Deposed);
                }
                GroupIndication::StateWanted => {
                    // The view names the leader, and there is no other state.
                    let state = GroupRequest::State(Vec::new());
                    let indications = ctx.below(|ctx| self.group.on_request(state, ctx));
                    self.on_group_indication(indications, ctx);
                }
                GroupIndication::Sent { .. }
                | GroupIndication::Refused(_)
                | GroupIndication::Delivered { .. }
                | GroupIndication::State { .. } => {}
            }
        }
    }

    fn on_view(&mut self, ctx: &mut Context<'_, Self>) {
        self.step_down(ctx);
        self.lapsed = false;
        ctx.cancel_timer(Timer::Free);
        if self.elect_inside(ctx) {
            return;
        }
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

    /// Asks for a lease. It lasts from the moment of asking, not of granting.
    fn ask(&mut self, ctx: &mut Context<'_, Self>) {
        let Some(lease) = *self.lease else { return };
        if self.view().leader() != Some(ctx.me()) || self.group.is_wedged() {
            return;
        }
        self.round = self.round.wrapping_add(1);
        let (view, round) = (self.view().id, self.round);
        self.rounds.retain(|(r, _)| *r % 8 != round % 8);
        self.rounds.push((round, [ctx.me()].into_iter().collect()));
        // The lease must end before the grants do, although each clock may differ by up to a tenth.
        ctx.set_timer(Timer::Lapse((round % 8) as u8), lease * 8 / 10);
        ctx.set_timer(Timer::Renew, lease / 4);
        for to in self.view().others(ctx.me()) {
            ctx.send(to, Message::Ask { view, round });
        }
        self.count(ctx);
    }

    /// Leads as long as a majority's grants of one round count.
    fn count(&mut self, ctx: &mut Context<'_, Self>) {
        let view = self.view();
        let leased = self.rounds.iter().any(|(_, by)| view.is_quorum(by, false));
        if leased && !self.lapsed {
            self.lead(ctx);
        } else if !leased && std::mem::take(&mut self.leads) {
            // A leader whose lease has lapsed leads again only with a higher epoch: it asks for a new
            // view.
            self.lapsed = true;
            ctx.indicate(Indication::Deposed);
            self.step_group(ctx, |group, ctx| group.on_request(GroupRequest::Reform, ctx));
        }
    }

    fn on_ask(&mut self, from: ProcessId, round: u32, ctx: &mut Context<'_, Self>) {
        let Some(lease) = *self.lease else { return };
        if self.group.is_wedged() || self.view().leader() != Some(from) {
            return;
        }
        if self.grants_bind() {
            self.step_group(ctx, |group, ctx| group.set_bound_to_leader(true, ctx));
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
        self.step_group(ctx, |group, ctx| group.on_start(ctx));
    }

    fn on_recover(&mut self, saved: Option<Record>, ctx: &mut Context<'_, Self>) {
        self.step_group(ctx, |group, ctx| {
            group.on_recover(saved, ctx);
            group.on_request(GroupRequest::Join, ctx);
        });
    }

    fn on_request(&mut self, Request::Elect: Request, ctx: &mut Context<'_, Self>) {
        self.step_group(ctx, |group, ctx| group.on_request(GroupRequest::Reform, ctx));
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        let here = self.view().id;
        match message {
            Message::Group(message) => {
                self.step_group(ctx, |group, ctx| group.on_message(from, message, ctx));
            }
            Message::Ask { view, round } if view == here => self.on_ask(from, round, ctx),
            Message::Grant { view, round } if view == here => self.on_grant(from, round, ctx),
            Message::Inside(message) => self.on_inside(from, message, ctx),
            Message::Got { view, upto } if view == here => self.on_confirmed(from, upto),
            Message::Ask { .. } | Message::Grant { .. } | Message::Got { .. } => {}
        }
    }

    fn on_timer(&mut self, timer: Timer, ctx: &mut Context<'_, Self>) {
        match timer {
            Timer::Group(timer) => {
                self.step_group(ctx, |group, ctx| group.on_timer(timer, ctx));
                if timer == virtual_synchrony::Timer::Heartbeat {
                    self.confirm_and_resend(ctx);
                }
            }
            Timer::Renew => self.ask(ctx),
            Timer::Lapse(slot) => {
                self.rounds.retain(|(round, _)| *round % 8 != u32::from(slot));
                self.count(ctx);
            }
            Timer::Free => self.step_group(ctx, |group, ctx| group.set_bound_to_leader(false, ctx)),
        }
    }

    fn on_suspect(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.step_group(ctx, |group, ctx| group.on_suspect(peer, ctx));
    }

    fn on_trust(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.step_group(ctx, |group, ctx| group.on_trust(peer, ctx));
    }
}

/// The problem of a group's leader: an election that goes on for as long as the run.
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
