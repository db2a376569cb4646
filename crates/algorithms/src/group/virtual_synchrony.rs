//! Virtual synchrony (Birman): views and messages form one sequence, the same at every member.
//!
//! Inside a view the leader, its most senior member, gives each message its place. A member delivers
//! a message when a majority has it. One consensus ends each view, in two phases:
//!
//! 1. A candidate sends `Prepare`. Each receiver wedges (it stops taking in messages) and promises.
//! 2. With a majority of promises, the candidate proposes the next view and the exact messages
//!    before it. Once a majority has accepted the proposal, it is decided.
//!
//! Four rules make this safe:
//!
//! - Q1: A candidate adopts the accepted proposal of the highest ballot among its promises.
//! - Q2: Only processes that promised belong to the next view.
//! - Q3: A process that accepts a proposal has every message of it: `Accept` carries them.
//! - Q4: A wedged process acknowledges no message.

mod change;
mod joining;
mod messages;
mod ordering;
mod sheet;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use change::ViewChange;
use joining::StateTransfer;
use konklave_process::{Context, Fixed, Process, ProcessId, ProcessSet};
use ordering::Ordering;
use serde::Serialize;
use sheet::Settings;

use super::{Bytes, Data, Indication, Member, Plan, Request, View, ViewId};
use crate::Setup;
pub use messages::{Ballot, Entry, Message, Promise, Proposal, Record, Timer};

/// How many windows of messages may wait to be sent before a multicast is refused.
const WAITING: u32 = 16;

/// One process of a group that carries commands `C`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct VirtualSynchrony<C = Bytes> {
    #[serde(rename = "standing")]
    membership: Membership,
    /// The incarnation of this process: it grows with every restart and every exit from a view.
    incarnation: u32,
    /// The highest generation that this process has seen.
    generation: u32,
    /// The present view; empty while this process is outside.
    view: View,
    /// Whether the application has the state of the group.
    has_state: bool,
    ordering: Ordering<C>,
    change: ViewChange<C>,
    transfer: StateTransfer<C>,
    /// Commands of the application that have no number yet.
    waiting: VecDeque<C>,
    /// The processes that this process suspects to have crashed.
    suspects: ProcessSet,
    /// The processes of the view that each other process suspects.
    reports: BTreeMap<ProcessId, ProcessSet>,
    /// Whether a new report arrived in this view.
    reported: bool,
    /// Whether a view change is delayed, so that it serves all processes that want to join.
    batching: bool,
    /// While this process joins: the members whose `Welcome` it received.
    heard: ProcessSet,
    /// The processes that want to join.
    joins: Vec<Member>,
    /// The processes of the view of which a later incarnation asked to join.
    #[serde(rename = "over")]
    restarted: ProcessSet,
    /// The processes that want to leave.
    leaves: ProcessSet,
    /// Whether this process wants to leave.
    leaving: bool,
    /// The observers that have the application's state.
    synced: ProcessSet,
    /// For how many periods nothing has arrived from each process; empty without heartbeats.
    #[serde(rename = "silence")]
    silent_periods: BTreeMap<ProcessId, u32>,
    /// Whether a lease binds this process to the leader: see [`Self::set_bound_to_leader`].
    #[serde(rename = "loyal")]
    bound_to_leader: bool,
    /// The last view and the proposal that ended it, for processes that are still in that view.
    #[serde(rename = "history")]
    last_change: Option<(ViewId, Arc<Proposal<C>>)>,
    /// Messages that belong to later views, with their senders.
    #[serde(rename = "ahead")]
    later: Vec<(ProcessId, Message<C>)>,
    #[serde(skip)]
    settings: Fixed<Settings>,
    /// Whether the layer above gives a summary at the end of each view.
    #[serde(skip)]
    summarises: Fixed<bool>,
    #[serde(skip)]
    mistake: Fixed<Option<&'static str>>,
}

/// Whether this process belongs to a view.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum Membership {
    /// It is in no view.
    Outside,
    /// It is in no view, and has asked to join.
    Joining,
    /// It is in a view, as a member or as an observer.
    Inside,
}

impl<C: Data> VirtualSynchrony<C> {
    /// The process `me`. All processes that do not join later form the first view.
    pub fn build(me: ProcessId, setup: &Setup) -> Self {
        let joiners = Plan::of(setup).joiners;
        let founders = setup.group.members().iter().copied().filter(|p| !joiners.contains(*p));
        let members: Vec<Member> = founders.map(|id| Member { id, incarnation: 1 }).collect();
        let coordinator = members.first().map_or(me, |m| m.id);
        let view = View {
            id: ViewId { generation: 0, epoch: 0, coordinator },
            members,
            observers: Vec::new(),
        };
        let is_founder = view.has_member(me);
        Self {
            membership: if is_founder { Membership::Inside } else { Membership::Outside },
            incarnation: 1,
            generation: 0,
            has_state: is_founder,
            ordering: Ordering::new(&view),
            view,
            change: ViewChange::default(),
            transfer: StateTransfer::none(),
            waiting: VecDeque::new(),
            suspects: ProcessSet::new(),
            reports: BTreeMap::new(),
            reported: false,
            batching: false,
            heard: ProcessSet::new(),
            joins: Vec::new(),
            restarted: ProcessSet::new(),
            leaves: ProcessSet::new(),
            leaving: false,
            synced: ProcessSet::new(),
            silent_periods: BTreeMap::new(),
            bound_to_leader: false,
            last_change: None,
            later: Vec::new(),
            settings: Fixed(Settings::of(setup)),
            summarises: Fixed(false),
            mistake: Fixed(setup.mistake),
        }
    }

    /// The process `me` in a first view on which its members have agreed outside this algorithm.
    pub fn found(me: ProcessId, setup: &Setup, view: View) -> Self {
        let incarnation = view.find(me).map_or(1, |m| m.incarnation);
        let generation = view.id.generation;
        let mut founder =
            Self { incarnation, generation, has_state: true, ..Self::build(me, setup) };
        founder.enter(view);
        founder
    }

    /// Binds this process to the leader, or sets it free. While it is bound, it neither starts nor
    /// follows an attempt to end the view, unless the candidate is the leader.
    pub fn set_bound_to_leader(&mut self, bound: bool, ctx: &mut Context<'_, Self>) {
        if std::mem::replace(&mut self.bound_to_leader, bound) && !bound {
            if let Some(ballot) = self.change.deferred.take() {
                self.on_prepare(ballot, ctx);
            }
            self.consider_view_change(ctx);
        }
    }

    /// The same process below a layer that answers [`Indication::Wedged`] with
    /// [`Request::Freeze`].
    pub fn summarised(mut self) -> Self {
        self.summarises = Fixed(true);
        self
    }

    /// Whether this process belongs to a view.
    pub fn membership(&self) -> Membership {
        self.membership
    }

    /// The present view.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// Whether this process has stopped for a view change.
    pub fn is_wedged(&self) -> bool {
        self.change.wedged
    }

    /// How many messages are kept: in order, out of order, not yet sent, and of later views.
    pub fn buffered(&self) -> usize {
        let ordering = &self.ordering;
        ordering.order.len()
            + ordering.out_of_order.len()
            + ordering.unplaced.len()
            + self.waiting.len()
            + self.later.len()
    }

    /// The message at this place of the present view, if it is still kept.
    pub fn entry_at(&self, position: u64) -> Option<&Entry<C>> {
        let place = usize::try_from(position.checked_sub(self.ordering.base)?).ok()?;
        self.ordering.order.get(place)
    }

    /// The place after the last message that arrived without a gap.
    pub fn end(&self) -> u64 {
        self.ordering.end()
    }

    /// The messages that another process may lack, in order; then the messages that arrived before
    /// one of their predecessors.
    pub fn unstable(&self) -> (impl Iterator<Item = &Entry<C>>, impl Iterator<Item = &Entry<C>>) {
        (self.ordering.order.iter(), self.ordering.out_of_order.values())
    }

    /// The commands of `me` that another process may lack or that have no number yet.
    pub fn own_unstable(&self, me: ProcessId) -> impl Iterator<Item = &C> {
        let placed = self.ordering.order.iter().filter(move |entry| entry.sender == me);
        placed.map(|entry| &entry.command).chain(&self.ordering.unplaced).chain(&self.waiting)
    }

    /// The processes that this process suspects to have crashed.
    pub fn suspects(&self) -> &ProcessSet {
        &self.suspects
    }

    fn myself(&self, me: ProcessId) -> Member {
        Member { id: me, incarnation: self.incarnation }
    }

    /// Whether this process has a vote in the present view.
    fn is_member(&self, me: ProcessId) -> bool {
        self.membership == Membership::Inside && self.view.has_member(me)
    }

    /// Whether `set` may decide for the present view.
    fn is_quorum(&self, set: &ProcessSet) -> bool {
        if !self.requires_majority() {
            return !set.is_empty();
        }
        self.view.is_quorum(set, self.settings.tie_break) || self.is_surviving_half(set)
    }

    /// Whether `set` is half of the members, and every other member has restarted since.
    ///
    /// The restarted half can decide nothing more for this view, and every majority that has decided
    /// shares a member with `set`. So `set` may decide. With the tie-break, the half with the most
    /// senior member decides alone and may have done so before it restarted; so `set` may not.
    fn is_surviving_half(&self, set: &ProcessSet) -> bool {
        let (yes, others): (Vec<&Member>, Vec<&Member>) =
            self.view.members.iter().partition(|m| set.contains(m.id));
        self.surviving_half_may_decide()
            && yes.len() == others.len()
            && others.iter().all(|m| self.restarted.contains(m.id))
    }

    fn start_heartbeat(&mut self, ctx: &mut Context<'_, Self>) {
        if let Some(period) = self.settings.heartbeat {
            ctx.set_timer(Timer::Heartbeat, period);
        }
    }

    /// Sends a heartbeat to every process of the view, and suspects the silent ones.
    fn on_heartbeat_timer(&mut self, ctx: &mut Context<'_, Self>) {
        self.start_heartbeat(ctx);
        if self.membership != Membership::Inside {
            return;
        }
        let (view, held) = (self.view.id, self.ordering.end());
        for to in self.view.others(ctx.me()) {
            let suspects = self.suspects.clone();
            ctx.send(to, Message::Heartbeat { view, held, suspects });
            let silent = self.silent_periods.entry(to).or_insert(0);
            *silent += 1;
            if *silent > self.settings.misses && !self.suspects.contains(to) {
                self.suspect(to, ctx);
            }
        }
        self.resend_unplaced(ctx);
        self.resend_state(ctx);
        self.repeat_announcements(ctx);
    }

    fn suspect(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.suspects.insert(peer);
        if self.membership != Membership::Inside {
            return;
        }
        // An attempt that waits for the promise of `peer` may be complete without it.
        self.try_propose(ctx);
        self.consider_view_change(ctx);
        if self.view.find(peer).is_some() && !self.change.wedged {
            self.report(ctx);
        }
    }

    /// Tells the candidate which processes we suspect. Their messages may still reach the candidate.
    fn report(&mut self, ctx: &mut Context<'_, Self>) {
        if let Some(candidate) = self.candidate().filter(|c| *c != ctx.me()) {
            let (view, suspects) = (self.view.id, self.suspects.clone());
            ctx.send(candidate, Message::Suspect { view, suspects });
        }
    }

    fn on_suspicion(&mut self, from: ProcessId, of: ProcessSet, ctx: &mut Context<'_, Self>) {
        let everyone: ProcessSet = self.view.everyone().map(|m| m.id).collect();
        let of = of.intersection(&everyone);
        if of.is_empty() {
            self.reports.remove(&from);
            return;
        }
        if of.contains(from) {
            // A later incarnation of `from` reports that the one in our view is over.
            return self.suspect(from, ctx);
        }
        if self.reports.get(&from) == Some(&of) {
            return;
        }
        // A report about us counts, too: `from` may not receive our messages. We do not pass it on.
        let of_us = of.contains(ctx.me());
        self.reports.insert(from, of.clone());
        self.reported = true;
        self.consider_view_change(ctx);
        // The report may have come from a process that takes us for the candidate: pass it on.
        if !self.change.wedged
            && !of_us
            && let Some(candidate) = self.candidate().filter(|c| *c != ctx.me() && *c != from)
        {
            ctx.send(candidate, Message::Suspect { view: self.view.id, suspects: of });
        }
    }

    /// Handles a message of the present view, of an earlier view or of a later one.
    fn dispatch(&mut self, from: ProcessId, message: Message<C>, ctx: &mut Context<'_, Self>) {
        let Some(view) = message.view() else { return self.on_outer(from, message, ctx) };
        if let Message::Install { view, next } = message {
            return self.on_install(view, next, ctx);
        }
        match self.membership {
            Membership::Outside => {}
            Membership::Joining => self.keep_for_later(from, message),
            Membership::Inside if view > self.view.id => self.keep_for_later(from, message),
            Membership::Inside if view < self.view.id => {
                if message.needs_successor() {
                    self.report_successor(from, view, ctx);
                }
            }
            Membership::Inside if self.view.find(from).is_none() => {}
            Membership::Inside => self.on_inner(from, message, ctx),
        }
    }

    /// Handles a message that belongs to no view.
    fn on_outer(&mut self, from: ProcessId, message: Message<C>, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Join { member, heard } => self.on_join(from, member, &heard, ctx),
            Message::Welcome => self.on_welcome(from, ctx),
            Message::NotMember { view } => self.on_not_member(view, ctx),
            _ => ctx.unexpected("a message of a view outside of views"),
        }
    }

    /// Handles a message of the present view.
    fn on_inner(&mut self, from: ProcessId, message: Message<C>, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Data { seq, command, .. } => self.on_data(from, seq, command, ctx),
            Message::Order { position, entry, .. } => self.on_order(from, position, entry, ctx),
            Message::Ack { held, .. } => self.on_ack(from, held, ctx),
            Message::Heartbeat { held, suspects, .. } => {
                let stalled = self.ordering.held.get(&from).is_some_and(|known| *known >= held);
                self.on_ack(from, held, ctx);
                if stalled && held < self.ordering.end() {
                    self.repair(from, held, ctx);
                }
                self.on_suspicion(from, suspects, ctx);
            }
            Message::Suspect { suspects, .. } => self.on_suspicion(from, suspects, ctx),
            Message::Leave { .. } => {
                self.leaves.insert(from);
                self.consider_view_change(ctx);
            }
            Message::Synced { .. } => {
                self.synced.insert(from);
                self.consider_view_change(ctx);
            }
            Message::Prepare { ballot, .. } => self.on_prepare(ballot, ctx),
            Message::Promise { ballot, promise, .. } => {
                self.on_promise(from, ballot, promise, ctx);
            }
            Message::Accept { ballot, next, .. } => self.on_accept(from, ballot, next, ctx),
            Message::Accepted { ballot, .. } => self.note_accepted(ballot, from, ctx),
            Message::Ask { .. } => self.on_ask(from, ctx),
            Message::State { position, index, count, part, .. } => {
                self.on_state((from, position), (index, count), part, ctx);
            }
            Message::StateAck { parts, .. } => self.on_state_ack(from, parts, ctx),
            Message::Join { .. }
            | Message::Welcome
            | Message::NotMember { .. }
            | Message::Install { .. } => ctx.unexpected("a message of no view in a view"),
        }
    }
}

impl<C: Data> Process for VirtualSynchrony<C> {
    type Message = Message<C>;
    type Timer = Timer;
    type Request = Request<C>;
    type Indication = Indication<C>;
    type Record = Record;

    fn on_start(&mut self, ctx: &mut Context<'_, Self>) {
        self.save(ctx);
        if self.membership == Membership::Inside {
            let view = self.view.clone();
            let (left, summaries) = (ProcessSet::new(), Vec::new());
            ctx.indicate(Indication::Installed { view, left, summaries });
            self.start_heartbeat(ctx);
        }
    }

    /// A restart begins a new incarnation, which belongs to no view.
    fn on_recover(&mut self, saved: Option<Record>, ctx: &mut Context<'_, Self>) {
        // Without a record, the old incarnation's number is unknown: two incarnations with one number
        // could break a promise. A random number differs from all old ones, almost certainly.
        let saved =
            saved.unwrap_or_else(|| Record { incarnation: 1 + ctx.choose(1 << 30), generation: 0 });
        self.incarnation = saved.incarnation + 1;
        self.generation = saved.generation;
        let nobody = View { observers: Vec::new(), members: Vec::new(), id: ViewId::default() };
        self.enter(nobody);
        (self.membership, self.has_state) = (Membership::Outside, false);
        self.save(ctx);
    }

    fn on_request(&mut self, request: Request<C>, ctx: &mut Context<'_, Self>) {
        match request {
            Request::Multicast(command) => {
                let full = self.waiting.len() as u32 >= WAITING * self.settings.window;
                if full || self.membership == Membership::Outside {
                    return ctx.indicate(Indication::Refused(command));
                }
                self.waiting.push_back(command);
                self.send_waiting(ctx);
            }
            Request::Join if self.membership == Membership::Outside => self.ask_to_join(ctx),
            Request::Join => {}
            Request::Leave => self.leave(ctx),
            Request::Reform if self.is_member(ctx.me()) => self.start(ctx),
            Request::Reform => {}
            Request::Refound => self.refound(ctx),
            Request::Freeze(summary) => self.on_freeze(summary, ctx),
            Request::State(parts) => self.give_state(parts, ctx),
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message<C>, ctx: &mut Context<'_, Self>) {
        if self.settings.heartbeat.is_some() {
            self.silent_periods.remove(&from);
            self.suspects.remove(from);
        }
        self.dispatch(from, message, ctx);
    }

    fn on_timer(&mut self, timer: Timer, ctx: &mut Context<'_, Self>) {
        match timer {
            Timer::Heartbeat => self.on_heartbeat_timer(ctx),
            Timer::Collect => self.on_collect(ctx),
            Timer::Retry => self.on_retry(ctx),
            Timer::Join if self.membership == Membership::Joining => self.ask_to_join(ctx),
            Timer::Join => {}
            Timer::Batch => self.on_batch(ctx),
        }
    }

    fn on_suspect(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.suspect(peer, ctx);
    }

    fn on_trust(&mut self, peer: ProcessId, _ctx: &mut Context<'_, Self>) {
        self.suspects.remove(peer);
    }
}
