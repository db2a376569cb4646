//! Virtual synchrony: views and messages in one order that is the same for all.
//!
//! Inside a view the most senior member gives each message its place, and a message is delivered
//! when a majority has it. To end a view, a candidate has a majority stop and tell what they know,
//! proposes the next view together with the exact messages before it, and has a majority accept
//! that: one consensus for each view. Four rules make it safe: a candidate adopts what may have
//! been accepted before (Q1); only those who stopped belong to the next view (Q2); who accepts has
//! every message of the proposal (Q3); who has stopped acknowledges nothing more (Q4).

mod change;
mod joining;
mod messages;
mod ordering;
mod sheet;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use change::Change;
use joining::Transfer;
use konklave_process::{Context, Fixed, Process, ProcessId, ProcessSet};
use ordering::Ordering;
use serde::Serialize;
use sheet::{NO_MAJORITY, Settings, TWO_HALVES};

use super::{Bytes, Data, Indication, Member, Plan, Request, View, ViewId};
use crate::{Mistake, Setup};
pub use messages::{Ballot, Entry, Message, Next, Promise, Record, Timer};

/// How many messages may wait for their turn, in windows.
const WAITING: u32 = 16;

/// One process of a group that carries commands `C`.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct VirtualSynchrony<C = Bytes> {
    standing: Standing,
    /// Which of our lives this is.
    incarnation: u32,
    /// The highest generation we have seen.
    generation: u32,
    /// Where we are; empty while we are outside.
    view: View,
    /// Whether the application has the state of the group.
    has_state: bool,
    ordering: Ordering<C>,
    change: Change<C>,
    transfer: Transfer<C>,
    /// What the application wants to send when it may.
    waiting: VecDeque<C>,
    /// Whom we take for dead.
    suspects: ProcessSet,
    /// Whom others take for dead.
    reports: BTreeMap<ProcessId, ProcessSet>,
    /// Whether such a report is new in this view.
    reported: bool,
    /// Whether we wait for others who want in.
    batching: bool,
    /// While we join: who has answered.
    heard: ProcessSet,
    joins: Vec<Member>,
    /// Whose life in our view is over for sure: another life of it has spoken to us.
    over: ProcessSet,
    leaves: ProcessSet,
    /// Whether we want to leave.
    leaving: bool,
    /// Which observers have the state.
    synced: ProcessSet,
    /// For how many periods we have not heard the others; nothing where there are no heartbeats.
    silence: BTreeMap<ProcessId, u32>,
    /// Whether we stand by the leader for now.
    loyal: bool,
    /// How the last view ended, for those who are late.
    history: Option<(ViewId, Arc<Next<C>>)>,
    /// What belongs to views to come.
    ahead: Vec<(ProcessId, Message<C>)>,
    #[serde(skip)]
    settings: Fixed<Settings>,
    /// Whether a layer above has something to say at the end of each view.
    #[serde(skip)]
    summarises: Fixed<bool>,
    #[serde(skip)]
    mistake: Fixed<Option<&'static str>>,
}

/// Where we stand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub enum Standing {
    /// We are in no view.
    Outside,
    /// We want to be in one.
    Joining,
    /// We are in one.
    Inside,
}

impl<C: Data> VirtualSynchrony<C> {
    /// The process `me`. Who does not join later is in the first view.
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
            standing: if is_founder { Standing::Inside } else { Standing::Outside },
            incarnation: 1,
            generation: 0,
            has_state: is_founder,
            ordering: Ordering::new(&view),
            view,
            change: Change::default(),
            transfer: Transfer::none(),
            waiting: VecDeque::new(),
            suspects: ProcessSet::new(),
            reports: BTreeMap::new(),
            reported: false,
            batching: false,
            heard: ProcessSet::new(),
            joins: Vec::new(),
            over: ProcessSet::new(),
            leaves: ProcessSet::new(),
            leaving: false,
            synced: ProcessSet::new(),
            silence: BTreeMap::new(),
            loyal: false,
            history: None,
            ahead: Vec::new(),
            settings: Fixed(Settings::of(setup)),
            summarises: Fixed(false),
            mistake: Fixed(setup.mistake),
        }
    }

    /// The process `me` in a first view that its members have agreed on by other means.
    pub fn found(me: ProcessId, setup: &Setup, view: View) -> Self {
        let incarnation = view.find(me).map_or(1, |m| m.incarnation);
        let generation = view.id.generation;
        let mut founder =
            Self { incarnation, generation, has_state: true, ..Self::build(me, setup) };
        founder.enter(view);
        founder
    }

    /// Whether we stand by the leader for now: until we are set free, we neither start nor follow
    /// an attempt of another to end the view.
    pub fn set_loyal(&mut self, loyal: bool, ctx: &mut Context<'_, Self>) {
        if std::mem::replace(&mut self.loyal, loyal) && !loyal {
            if let Some(ballot) = self.change.deferred.take() {
                self.on_prepare(ballot, ctx);
            }
            self.consider(ctx);
        }
    }

    /// The same process below a layer that answers [`Indication::Wedged`] with
    /// [`Request::Freeze`].
    pub fn summarised(mut self) -> Self {
        self.summarises = Fixed(true);
        self
    }

    /// Where we stand.
    pub fn standing(&self) -> Standing {
        self.standing
    }

    /// The present view.
    pub fn view(&self) -> &View {
        &self.view
    }

    /// Whether we have stopped for a view change.
    pub fn is_wedged(&self) -> bool {
        self.change.wedged
    }

    /// How many messages we keep: in order, out of order, to be sent, of views to come.
    pub fn buffered(&self) -> usize {
        let ordering = &self.ordering;
        ordering.order.len()
            + ordering.early.len()
            + ordering.own.len()
            + self.waiting.len()
            + self.ahead.len()
    }

    /// The message at this place of the present view, as long as we keep it.
    pub fn entry_at(&self, position: u64) -> Option<&Entry<C>> {
        let place = usize::try_from(position.checked_sub(self.ordering.base)?).ok()?;
        self.ordering.order.get(place)
    }

    /// The place after the last message that we have without a gap.
    pub fn end(&self) -> u64 {
        self.ordering.end()
    }

    /// The messages that some may lack for all we know, in order; then those that came before their
    /// predecessors.
    pub fn unstable(&self) -> (impl Iterator<Item = &Entry<C>>, impl Iterator<Item = &Entry<C>>) {
        (self.ordering.order.iter(), self.ordering.early.values())
    }

    /// What we of these have sent, and what we have still to send.
    pub fn own_unstable(&self, me: ProcessId) -> impl Iterator<Item = &C> {
        let placed = self.ordering.order.iter().filter(move |entry| entry.sender == me);
        placed.map(|entry| &entry.command).chain(&self.ordering.own).chain(&self.waiting)
    }

    /// Whom we take for dead.
    pub fn suspects(&self) -> &ProcessSet {
        &self.suspects
    }

    fn makes(&self, mistake: &Mistake) -> bool {
        *self.mistake == Some(mistake.name)
    }

    fn myself(&self, me: ProcessId) -> Member {
        Member { id: me, incarnation: self.incarnation }
    }

    /// Whether we have a vote.
    fn is_member(&self, me: ProcessId) -> bool {
        self.standing == Standing::Inside && self.view.has_member(me)
    }

    fn is_quorum(&self, set: &ProcessSet) -> bool {
        if self.makes(&NO_MAJORITY) {
            return !set.is_empty();
        }
        self.view.is_quorum(set, self.settings.tie_break) || self.is_last_half(set)
    }

    /// Whether `set` is half of the members, and all others have been born again since. No other half is
    /// left that could decide, and every majority that ever did has a member in this one. Not where the half
    /// with the most senior member decides anyway: it may have done so before it was born again.
    fn is_last_half(&self, set: &ProcessSet) -> bool {
        let (yes, others): (Vec<&Member>, Vec<&Member>) =
            self.view.members.iter().partition(|m| set.contains(m.id));
        let alone = !self.settings.tie_break || self.makes(&TWO_HALVES);
        alone && yes.len() == others.len() && others.iter().all(|m| self.over.contains(m.id))
    }

    fn start_heartbeat(&mut self, ctx: &mut Context<'_, Self>) {
        if let Some(period) = self.settings.heartbeat {
            ctx.set_timer(Timer::Heartbeat, period);
        }
    }

    /// Says that we are alive, and notices who does not.
    fn on_heartbeat_timer(&mut self, ctx: &mut Context<'_, Self>) {
        self.start_heartbeat(ctx);
        if self.standing != Standing::Inside {
            return;
        }
        let (view, held) = (self.view.id, self.ordering.end());
        for to in self.view.others(ctx.me()) {
            let suspects = self.suspects.clone();
            ctx.send(to, Message::Heartbeat { view, held, suspects });
            let silent = self.silence.entry(to).or_insert(0);
            *silent += 1;
            if *silent > self.settings.misses && !self.suspects.contains(to) {
                self.suspect(to, ctx);
            }
        }
        self.ask_again(ctx);
        self.resend_state(ctx);
        self.repeat_wishes(ctx);
    }

    fn suspect(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.suspects.insert(peer);
        if self.standing != Standing::Inside {
            return;
        }
        // Whoever waits for an answer of this one need not.
        self.collect(ctx);
        self.consider(ctx);
        if self.view.find(peer).is_some() && !self.change.wedged {
            self.report(ctx);
        }
    }

    /// Tells whose turn it is whom we suspect: it may hear better than we do.
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
            // Another life of it says that the one in our view is over.
            return self.suspect(from, ctx);
        }
        if self.reports.get(&from) == Some(&of) {
            return;
        }
        // Nobody can tell that it is itself dead; but it may be deaf.
        let of_us = of.contains(ctx.me());
        self.reports.insert(from, of.clone());
        self.reported = true;
        self.consider(ctx);
        // Passed on towards the one whose turn it is.
        if !self.change.wedged
            && !of_us
            && let Some(candidate) = self.candidate().filter(|c| *c != ctx.me() && *c != from)
        {
            ctx.send(candidate, Message::Suspect { view: self.view.id, suspects: of });
        }
    }

    /// A message arrives, of our view, of an earlier or of a later one.
    fn hear(&mut self, from: ProcessId, message: Message<C>, ctx: &mut Context<'_, Self>) {
        let Some(view) = message.view() else { return self.on_outer(from, message, ctx) };
        if let Message::Install { view, next } = message {
            return self.on_install(view, next, ctx);
        }
        match self.standing {
            Standing::Outside => {}
            Standing::Joining => self.keep(from, message),
            Standing::Inside if view > self.view.id => self.keep(from, message),
            Standing::Inside if view < self.view.id => {
                if message.calls_for_help() {
                    self.help(from, view, ctx);
                }
            }
            Standing::Inside if self.view.find(from).is_none() => {}
            Standing::Inside => self.on_inner(from, message, ctx),
        }
    }

    /// A message that belongs to no view.
    fn on_outer(&mut self, from: ProcessId, message: Message<C>, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Join { member, heard } => self.on_join(from, member, &heard, ctx),
            Message::Welcome => self.on_welcome(from, ctx),
            Message::NotMember { view } => self.on_not_member(view, ctx),
            _ => ctx.unexpected("a message of a view outside of views"),
        }
    }

    /// A message of our view.
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
                self.consider(ctx);
            }
            Message::Synced { .. } => {
                self.synced.insert(from);
                self.consider(ctx);
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
        if self.standing == Standing::Inside {
            let view = self.view.clone();
            let (left, summaries) = (ProcessSet::new(), Vec::new());
            ctx.indicate(Indication::Installed { view, left, summaries });
            self.start_heartbeat(ctx);
        }
    }

    /// A new life: nobody of the old one's views counts on us.
    fn on_recover(&mut self, saved: Option<Record>, ctx: &mut Context<'_, Self>) {
        // Without a memory, a number that the old lives have not had, as good as certainly.
        let saved =
            saved.unwrap_or_else(|| Record { incarnation: 1 + ctx.choose(1 << 30), generation: 0 });
        self.incarnation = saved.incarnation + 1;
        self.generation = saved.generation;
        let nobody = View { observers: Vec::new(), members: Vec::new(), id: ViewId::default() };
        self.enter(nobody);
        (self.standing, self.has_state) = (Standing::Outside, false);
        self.save(ctx);
    }

    fn on_request(&mut self, request: Request<C>, ctx: &mut Context<'_, Self>) {
        match request {
            Request::Multicast(command) => {
                let full = self.waiting.len() as u32 >= WAITING * self.settings.window;
                if full || self.standing == Standing::Outside {
                    return ctx.indicate(Indication::Refused(command));
                }
                self.waiting.push_back(command);
                self.send_waiting(ctx);
            }
            Request::Join if self.standing == Standing::Outside => self.ask_to_join(ctx),
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
            self.silence.remove(&from);
            self.suspects.remove(from);
        }
        self.hear(from, message, ctx);
    }

    fn on_timer(&mut self, timer: Timer, ctx: &mut Context<'_, Self>) {
        match timer {
            Timer::Heartbeat => self.on_heartbeat_timer(ctx),
            Timer::Collect => self.on_collect(ctx),
            Timer::Retry => self.on_retry(ctx),
            Timer::Join if self.standing == Standing::Joining => self.ask_to_join(ctx),
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
