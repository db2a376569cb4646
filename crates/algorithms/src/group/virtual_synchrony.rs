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
//!
//! This page has the state, the dispatch of messages, and the quorums. The handlers are by subject:
//!
//! - `ordering.rs`: the messages of a view, from the sender over the leader to the delivery;
//! - `change.rs`: the consensus that ends a view;
//! - `joining.rs`: joining, leaving, and the state of the application for new members;
//! - `suspicion.rs`: heartbeats, suspicions, and reports of them;
//! - `interface.rs`: what layers above build and ask.

mod change;
mod interface;
mod joining;
mod messages;
mod ordering;
mod sheet;
mod suspicion;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use change::ViewChange;
use joining::StateTransfer;
use konklave_process::{Context, Fixed, Process, ProcessId, ProcessSet};
use ordering::Ordering;
use serde::Serialize;
use sheet::Settings;

use super::{Bytes, Data, Indication, Member, Request, View, ViewId};
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

impl<C: Data> VirtualSynchrony<C> {
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
