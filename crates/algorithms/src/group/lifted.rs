//! Any algorithm of mutual exclusion, lifted into views.
//!
//! *Lifted* means that a classic algorithm, which tolerates no fault, runs inside a view. There no
//! member fails as far as the algorithm can tell, so it runs at its own cost. When the view ends,
//! every member stops the algorithm and reports the locks that it holds or waits for. The decision
//! on the next view contains these reports, and every member of that view starts the algorithm anew
//! from them.
//!
//! - A token that is under way when the view ends is lost: it belongs to the old run. So no lock is
//!   held twice.
//! - An excluded member may not know yet that its locks are lost. Tokens of the next view are higher,
//!   so a resource with a fence refuses that member. With leases, that member knows of its loss
//!   before another member enters.

mod any;
mod barrier;
mod channel;
mod inner;
mod instance;
mod lease;
mod messages;
mod requests;
mod sheet;

pub use any::{Any, AnyMessage, NAMES};
pub use inner::Inner;
pub use instance::{Homes, Instance, Outcome, home};
pub use messages::{InnerMessage, Message, Report, Summary, Timer};

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use konklave_process::{Context, Fixed, Input, Process, ProcessId, ProcessSet};
use serde::Serialize;

use super::channel::{Channels, LATER};
use super::locks::{Indication, Name, Request};
use super::virtual_synchrony::{self, Record, VirtualSynchrony};
use super::{Indication as GroupIndication, Request as GroupRequest, Token, View};
use crate::Setup;
use lease::Lease;
use requests::RequestState;

/// One process of the group.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(bound = "A: Serialize")]
pub struct Lifted<A: Inner = Any> {
    group: VirtualSynchrony<Summary>,
    /// Whether the view is ending and the algorithm is stopped.
    #[serde(rename = "frozen")]
    wedged: bool,
    /// The algorithm of each lock that this process has dealt with in this view.
    locks: BTreeMap<Name, Instance<A>>,
    /// The application's request for each lock.
    #[serde(rename = "wishes")]
    requests: BTreeMap<Name, RequestState>,
    /// The summary that this process gave when the view was ending.
    #[serde(rename = "said")]
    own_summary: Summary,
    /// The channels of this view.
    channels: Channels<InnerMessage<A::Message>>,
    /// Messages of later views, with their senders.
    #[serde(rename = "ahead")]
    later: Vec<(ProcessId, InnerMessage<A::Message>)>,
    /// With leases: whether an excluded process may still hold a lock without knowing of its loss.
    #[serde(rename = "cautious")]
    excluded_may_hold: bool,
    /// The locks of which a member reported the holder or the token: no excluded process holds them.
    #[serde(rename = "known")]
    accounted_for: BTreeSet<Name>,
    lease: Lease,
    /// The processes of the last view.
    #[serde(rename = "last")]
    last_view: ProcessSet,
    #[serde(skip)]
    settings: Fixed<Settings>,
    #[serde(skip)]
    mistake: Fixed<Option<&'static str>>,
}

#[derive(Clone, Debug)]
struct Settings {
    setup: Setup,
    /// How long a lease lasts; none without leases.
    lease: Option<Duration>,
    /// Whether unconfirmed messages are sent again with the heartbeats.
    repeats: bool,
}

impl<A: Inner> Process for Lifted<A> {
    type Message = Message<A::Message>;
    type Timer = Timer;
    type Request = Request;
    type Indication = Indication;
    type Record = Record;

    fn on_start(&mut self, ctx: &mut Context<'_, Self>) {
        self.step_group(ctx, |group, ctx| group.on_start(ctx));
    }

    fn on_recover(&mut self, saved: Option<Record>, ctx: &mut Context<'_, Self>) {
        self.step_group(ctx, |group, ctx| group.on_recover(saved, ctx));
    }

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        match request {
            Request::Acquire { name, .. } => self.acquire(name, ctx),
            Request::Release { name } => self.release(name, ctx),
            Request::Join => {
                self.step_group(ctx, |group, ctx| group.on_request(GroupRequest::Join, ctx))
            }
            Request::Leave => {
                self.step_group(ctx, |group, ctx| group.on_request(GroupRequest::Leave, ctx))
            }
            Request::Reform => {
                self.step_group(ctx, |group, ctx| group.on_request(GroupRequest::Reform, ctx))
            }
            Request::Refound => {
                self.lose_all(ctx);
                self.step_group(ctx, |group, ctx| group.on_request(GroupRequest::Refound, ctx));
            }
            Request::Adopt { .. } | Request::Revoke { .. } | Request::Operate(_) => {}
        }
    }

    fn on_message(
        &mut self,
        from: ProcessId,
        message: Message<A::Message>,
        ctx: &mut Context<'_, Self>,
    ) {
        let here = self.view().id;
        match message {
            Message::Group(message) => {
                self.step_group(ctx, |group, ctx| group.on_message(from, message, ctx));
            }
            Message::Inside(inside) => self.on_inside(from, inside, ctx),
            Message::Ask { view, round } if view == here => self.on_ask(from, round, ctx),
            Message::Yes { view, round } if view == here => self.on_yes(from, round, ctx),
            Message::Got { view, upto } if view == here => self.channels.confirm(from, upto),
            Message::Ask { .. } | Message::Yes { .. } | Message::Got { .. } => {}
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
            Timer::Renew => self.on_renew(ctx),
            Timer::Lapse(slot) => self.on_lapse(slot, ctx),
            Timer::Caution => {
                self.excluded_may_hold = false;
                self.enter_ready(ctx);
            }
        }
    }

    fn on_suspect(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.step_group(ctx, |group, ctx| group.on_suspect(peer, ctx));
    }

    fn on_trust(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.step_group(ctx, |group, ctx| group.on_trust(peer, ctx));
    }
}

impl<A: Inner> Lifted<A> {
    /// The present view.
    pub fn view(&self) -> &View {
        self.group.view()
    }

    /// How many locks and requests are kept.
    pub fn kept(&self) -> usize {
        self.locks.len() + self.requests.len()
    }

    /// The token of entry number `count` in the present view.
    fn token(&self, count: u64) -> Token {
        if !self.tokens_grow_over_views() {
            return Token { k: count, ..Token::default() };
        }
        Token::of(self.view().id, count)
    }

    /// Whether the algorithm runs and this process takes part.
    fn runs(&self, me: ProcessId) -> bool {
        !self.wedged && self.view().has_member(me)
    }

    /// Lets the group take a step, and handles its indications.
    fn step_group(
        &mut self,
        ctx: &mut Context<'_, Self>,
        step: impl FnOnce(&mut VirtualSynchrony<Summary>, &mut Context<'_, VirtualSynchrony<Summary>>),
    ) {
        let mut indications: VecDeque<GroupIndication<Summary>> =
            ctx.below(|ctx| step(&mut self.group, ctx)).into_iter().collect();
        while let Some(indication) = indications.pop_front() {
            if let Some(answer) = self.on_group_indication(indication, ctx) {
                indications.extend(ctx.below(|ctx| self.group.on_request(answer, ctx)));
            }
        }
    }

    /// Handles an indication of the group. The result is the answer that the group waits for, if any.
    fn on_group_indication(
        &mut self,
        indication: GroupIndication<Summary>,
        ctx: &mut Context<'_, Self>,
    ) -> Option<GroupRequest<Summary>> {
        match indication {
            GroupIndication::Wedged => {
                self.wedged = true;
                // A lease held back this entry. It may still do so in the next view; so the request
                // waits again.
                for state in self.requests.values_mut() {
                    if let RequestState::Ready(_) = state {
                        *state = RequestState::Wanted(0);
                    }
                }
                self.own_summary = self.summary();
                return Some(GroupRequest::Freeze(self.own_summary.clone()));
            }
            GroupIndication::Installed { view, left, summaries } => {
                let stays = summaries.into_iter().filter(|(member, _)| view.includes(*member));
                let summaries: Vec<_> =
                    stays.map(|(member, summary)| (member.id, summary)).collect();
                self.on_view(view, &left, &summaries, ctx);
            }
            GroupIndication::StateWanted => {
                // The summaries are the whole state, and the next view contains them.
                return Some(GroupRequest::State(Vec::new()));
            }
            GroupIndication::Excluded => {
                self.exit_view(ctx);
                ctx.indicate(Indication::Excluded);
            }
            GroupIndication::Left => {
                self.exit_view(ctx);
                ctx.indicate(Indication::Left);
            }
            GroupIndication::Blocked => {
                self.lose_all(ctx);
                ctx.indicate(Indication::Blocked);
            }
            GroupIndication::Sent { .. }
            | GroupIndication::Refused(_)
            | GroupIndication::Delivered { .. }
            | GroupIndication::State { .. } => {}
        }
        None
    }

    fn exit_view(&mut self, ctx: &mut Context<'_, Self>) {
        self.lose_all(ctx);
        self.requests.clear();
        self.locks.clear();
        self.channels.clear();
        self.later.clear();
        self.last_view.clear();
        (self.wedged, self.excluded_may_hold) = (false, false);
        self.lease = Lease::default();
    }

    /// One step of the algorithm of lock `name`.
    fn step_lock(&mut self, name: &Name, input: Input<A>, ctx: &mut Context<'_, Self>) {
        let (me, view) = (ctx.me(), self.group.view());
        if !self.locks.contains_key(name) {
            let Some(lock) = Instance::fresh(me, name, view, &self.settings.setup) else { return };
            self.locks.insert(name.clone(), lock);
        }
        let view = view.id;
        let Some(lock) = self.locks.get_mut(name) else { return };
        let outcome = lock.step(me, input);
        if outcome.granted {
            lock.count += 1;
        }
        let count = lock.count;
        for (to, message) in outcome.sent {
            let (name, seq) = (name.clone(), 0);
            self.send_inner(to, InnerMessage { view, seq, name, count, message }, ctx);
        }
        if let Some(what) = outcome.unexpected {
            ctx.unexpected(what);
        }
        if outcome.granted {
            self.admit(name.clone(), count, ctx);
        }
    }

    fn on_inside(
        &mut self,
        from: ProcessId,
        inside: InnerMessage<A::Message>,
        ctx: &mut Context<'_, Self>,
    ) {
        let (view, here) = (inside.view, self.view().id);
        if view > here {
            if self.later.len() < LATER {
                self.later.push((from, inside));
            }
            return;
        }
        let old = view < here;
        let stopped = self.wedged && !self.takes_in_while_wedged();
        if stopped || !self.view().has_member(ctx.me()) || !self.view().has_member(from) {
            return;
        }
        if old {
            if self.takes_in_old_views() {
                self.take(from, inside, ctx);
            }
            return;
        }
        for inside in self.channels.in_order(from, inside, self.settings.repeats) {
            self.take(from, inside, ctx);
        }
    }

    /// Takes in the next message of a channel.
    fn take(
        &mut self,
        from: ProcessId,
        inside: InnerMessage<A::Message>,
        ctx: &mut Context<'_, Self>,
    ) {
        let InnerMessage { name, count, message, .. } = inside;
        let known = self.locks.get(&name).map_or(0, |lock| lock.count);
        if !self.locks.contains_key(&name) {
            let setup = &self.settings.setup;
            let lock = Instance::fresh(ctx.me(), &name, self.group.view(), setup);
            self.locks.extend(lock.map(|lock| (name.clone(), lock)));
        }
        if let Some(lock) = self.locks.get_mut(&name) {
            lock.count = count.max(known);
        }
        self.step_lock(&name, Input::Message { from, message }, ctx);
    }
}
