//! Any algorithm of mutual exclusion, lifted into views.
//!
//! Inside a view nobody fails as far as the algorithm can tell, so a classic one runs there at its
//! own cost: nothing where the token is, one message to hand it over. When a view ends, everyone
//! stops it, and says who holds and who waits; the decided next view contains what all who go on
//! said, and from these facts all of them start the algorithm anew. A token on its way is lost then,
//! and so nobody holds twice. Tokens of the next view are higher: what an excluded member still holds
//! is refused by the resource, or, with leases, is known by it to be lost before another enters.

mod any;
mod channel;
mod instance;
mod lease;
mod sheet;

pub use any::{Any, AnyMessage, NAMES};
pub use instance::{Instance, Outcome, home};

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use konklave_process::{Context, Fixed, Input, NoRecord, NoTimer, Process, ProcessId, ProcessSet};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::locks::{Indication, Locks, Mode, Name, Request, Token};
use super::virtual_synchrony::{self, Record, VirtualSynchrony};
use super::{Indication as Told, Plan, Request as Wish, View, ViewId};
use crate::{Algorithm, Assumption, DataSheet, Mistake, Setup, SetupError, mutex};
use channel::Channel;
use lease::Lease;
use sheet::{NO_WAIT, OLD_VIEW, OWN_SUMMARY, SAME_BASE, SHEET, THAW};

/// How many messages of views to come are kept.
const AHEAD: usize = 4096;

/// An algorithm that can be lifted: one of mutual exclusion, without timers and storage.
pub trait Inner:
    Process<
        Message: Serialize + DeserializeOwned + Send,
        Timer = NoTimer,
        Request = mutex::Request,
        Indication = mutex::Indication,
        Record = NoRecord,
    > + Serialize
    + Send
    + 'static
{
    /// The process `me` of the group that `setup` describes.
    fn build(me: ProcessId, setup: &Setup) -> Self;
}

impl<A> Inner for A
where
    A: Algorithm<Problem = mutex::Mutex>
        + Process<
            Message: Serialize + DeserializeOwned + Send,
            Timer = NoTimer,
            Request = mutex::Request,
            Indication = mutex::Indication,
            Record = NoRecord,
        > + Serialize
        + Send
        + 'static,
{
    fn build(me: ProcessId, setup: &Setup) -> Self {
        A::new(me, setup)
    }
}

/// What a member says of a lock at the end of a view.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Report {
    /// I hold it, with this token.
    Holding(Token),
    /// I wait for it, and asked when there had been so many entries.
    Waiting(u64),
    /// Its token is here, and nobody uses it.
    Parked,
}

/// What a member says at the end of a view: of every lock that it has something to say of.
pub type Summary = Vec<(Name, Report)>;

/// One process of the group.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(bound = "A: Serialize")]
pub struct Lifted<A: Inner = Any> {
    group: VirtualSynchrony<Summary>,
    /// Whether the view is ending: the algorithm stands still.
    frozen: bool,
    /// The locks that we have had to do with in this view.
    locks: BTreeMap<Name, Instance<A>>,
    /// What the application wants and has.
    wishes: BTreeMap<Name, Hold>,
    /// What we said when the view was ending.
    said: Summary,
    /// The channels of this view.
    channels: BTreeMap<ProcessId, Channel<A::Message>>,
    /// Messages of views to come.
    ahead: Vec<(ProcessId, Inside<A::Message>)>,
    /// Whether someone may be inside who is excluded and does not know it.
    cautious: bool,
    /// The locks of which we know that no such one holds them.
    known: BTreeSet<Name>,
    lease: Lease,
    /// Who was in the last view.
    last: ProcessSet,
    #[serde(skip)]
    settings: Fixed<Settings>,
    #[serde(skip)]
    mistake: Fixed<Option<&'static str>>,
}

#[derive(Clone, Debug)]
struct Settings {
    setup: Setup,
    /// How long a lease lasts; none: there are none.
    lease: Option<Duration>,
    /// Whether there are heartbeats, with which what may be lost is repeated.
    repeats: bool,
}

/// Where the application stands with a lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
enum Hold {
    /// It asked when there had been so many entries.
    Wanted(u64),
    /// It asked, and wants it no more.
    Unwanted,
    /// It could have it, but for the lease.
    Ready(Token),
    /// It has it.
    Held(Token),
}

/// What was decided about a lock: who goes on holding it, and who waits, since when.
#[derive(Default)]
struct Facts {
    holder: Option<ProcessId>,
    waiters: Vec<(u64, ProcessId)>,
}

impl Facts {
    /// The facts of all locks that a member of `view` holds or waits for.
    fn of(summaries: &[(ProcessId, Summary)], view: &View) -> BTreeMap<Name, Self> {
        let mut names: BTreeMap<Name, Self> = BTreeMap::new();
        for (id, summary) in summaries.iter().filter(|(id, _)| view.has_member(*id)) {
            for (name, report) in summary {
                match report {
                    Report::Holding(_) => names.entry(name.clone()).or_default().holder = Some(*id),
                    Report::Waiting(since) => {
                        names.entry(name.clone()).or_default().waiters.push((*since, *id));
                    }
                    Report::Parked => {}
                }
            }
        }
        names
    }
}

/// A message of the algorithm within.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Inside<M> {
    /// The view it belongs to.
    pub view: ViewId,
    /// Which of those from its sender to its receiver in this view, from 1.
    pub seq: u32,
    /// The lock.
    pub name: Name,
    /// How many entries the sender knows of.
    pub count: u64,
    /// What it says.
    pub message: M,
}

/// What the processes say.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message<M> {
    /// Something about views.
    Group(virtual_synchrony::Message<Summary>),
    /// Something about a lock.
    Inside(Inside<M>),
    /// I have all of yours up to here.
    Got {
        /// The view.
        view: ViewId,
        /// The last in a row.
        upto: u32,
    },
    /// Am I still with you?
    Ask {
        /// The view.
        view: ViewId,
        /// Which question this is.
        round: u32,
    },
    /// Yes.
    Yes {
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
    /// It is time to ask for the next lease.
    Renew,
    /// What this question brought, counted modulo 8, counts no longer.
    Lapse(u8),
    /// Whoever is excluded knows it by now.
    Caution,
}

impl<M> From<virtual_synchrony::Message<Summary>> for Message<M> {
    fn from(message: virtual_synchrony::Message<Summary>) -> Self {
        Self::Group(message)
    }
}

impl From<virtual_synchrony::Timer> for Timer {
    fn from(timer: virtual_synchrony::Timer) -> Self {
        Self::Group(timer)
    }
}

impl<A: Inner> Lifted<A> {
    /// The present view.
    pub fn view(&self) -> &View {
        self.group.view()
    }

    /// How many locks we keep something of.
    pub fn kept(&self) -> usize {
        self.locks.len() + self.wishes.len()
    }

    fn makes(&self, mistake: &Mistake) -> bool {
        *self.mistake == Some(mistake.name)
    }

    fn token(&self, count: u64) -> Token {
        if self.makes(&SAME_BASE) {
            return Token { count, ..Token::default() };
        }
        Token::of(self.view().id, count)
    }

    /// Whether the algorithm runs, and we take part.
    fn runs(&self, me: ProcessId) -> bool {
        !self.frozen && self.view().has_member(me)
    }

    /// Lets the group take a step, and draws our conclusions.
    fn run(
        &mut self,
        ctx: &mut Context<'_, Self>,
        step: impl FnOnce(&mut VirtualSynchrony<Summary>, &mut Context<'_, VirtualSynchrony<Summary>>),
    ) {
        let mut told: VecDeque<Told<Summary>> =
            ctx.below(|ctx| step(&mut self.group, ctx)).into_iter().collect();
        while let Some(indication) = told.pop_front() {
            if let Some(answer) = self.conclude(indication, ctx) {
                told.extend(ctx.below(|ctx| self.group.on_request(answer, ctx)));
            }
        }
    }

    /// Draws our conclusions, and gives the group the answer it waits for, if it does.
    fn conclude(
        &mut self,
        indication: Told<Summary>,
        ctx: &mut Context<'_, Self>,
    ) -> Option<Wish<Summary>> {
        match indication {
            Told::Wedged => {
                self.frozen = true;
                // Who has not entered yet only waits: what forbade it may still do so.
                for hold in self.wishes.values_mut() {
                    if let Hold::Ready(_) = hold {
                        *hold = Hold::Wanted(0);
                    }
                }
                self.said = self.summary();
                return Some(Wish::Freeze(self.said.clone()));
            }
            Told::Installed { view, left, summaries } => {
                self.on_view(view, &left, &summaries, ctx);
            }
            Told::StateWanted => {
                // The next view will tell: there is no state besides.
                return Some(Wish::State(Vec::new()));
            }
            Told::Excluded => {
                self.go_out(ctx);
                ctx.indicate(Indication::Excluded);
            }
            Told::Left => {
                self.go_out(ctx);
                ctx.indicate(Indication::Left);
            }
            Told::Blocked => {
                self.lose_all(ctx);
                ctx.indicate(Indication::Blocked);
            }
            Told::Sent { .. } | Told::Refused(_) | Told::Delivered { .. } | Told::State { .. } => {}
        }
        None
    }

    fn go_out(&mut self, ctx: &mut Context<'_, Self>) {
        self.lose_all(ctx);
        self.wishes.clear();
        self.locks.clear();
        self.channels.clear();
        self.ahead.clear();
        self.last.clear();
        (self.frozen, self.cautious) = (false, false);
        self.lease = Lease::default();
    }

    /// What we have to say when the view ends.
    fn summary(&self) -> Summary {
        let mut summary = Summary::new();
        for (name, hold) in &self.wishes {
            match hold {
                Hold::Held(token) => summary.push((name.clone(), Report::Holding(*token))),
                Hold::Wanted(since) => summary.push((name.clone(), Report::Waiting(*since))),
                Hold::Ready(_) | Hold::Unwanted => {}
            }
        }
        // Of a name whose last holder may still believe in it we say nothing: our token is a new one.
        let parked = |(name, lock): &(&Name, &Instance<A>)| {
            let sure = !self.cautious || self.known.contains(*name);
            sure && lock.has_token() && !self.wishes.contains_key(*name)
        };
        let parked = self.locks.iter().filter(parked);
        summary.extend(parked.map(|(name, _)| (name.clone(), Report::Parked)));
        summary.sort_unstable();
        summary
    }

    /// The next view: the algorithm starts anew, from what was decided.
    fn on_view(
        &mut self,
        view: View,
        left: &ProcessSet,
        summaries: &[(ProcessId, Summary)],
        ctx: &mut Context<'_, Self>,
    ) {
        let me = ctx.me();
        let own = [(me, std::mem::take(&mut self.said))];
        let facts = if self.makes(&OWN_SUMMARY) { &own[..] } else { summaries };
        self.frozen = false;
        self.locks.clear();
        self.channels.clear();
        self.look_back(&view, left, facts, ctx);
        ctx.indicate(Indication::Installed(view.clone()));
        if !view.has_member(me) {
            return;
        }
        for (name, Facts { holder, mut waiters }) in Facts::of(facts, &view) {
            waiters.sort_unstable();
            let waiters: Vec<ProcessId> = waiters.into_iter().map(|(_, id)| id).collect();
            let setup = &self.settings.setup;
            let lock = Instance::resumed(me, holder, &waiters, &view, setup);
            self.locks.extend(lock.map(|lock| (name.clone(), lock)));
            if holder == Some(me) || waiters.contains(&me) {
                let first = holder.is_none() && waiters.first() == Some(&me);
                self.resume(&name, holder == Some(me), first, ctx);
            }
        }
        self.ask_for_the_rest(facts, ctx);
        self.want_lease(ctx);
        let ahead = std::mem::take(&mut self.ahead);
        for (from, inside) in ahead {
            self.on_inside(from, inside, ctx);
        }
    }

    /// Who is gone without having wished it may be inside and not know.
    fn look_back(
        &mut self,
        view: &View,
        left: &ProcessSet,
        facts: &[(ProcessId, Summary)],
        ctx: &mut Context<'_, Self>,
    ) {
        let now: ProcessSet = view.everyone().map(|m| m.id).collect();
        let last = std::mem::replace(&mut self.last, now.clone());
        let gone = !last.difference(&now).difference(left).is_empty();
        // A new member does not know who was there before.
        let newcomer = last.is_empty() && view.id.epoch > 0;
        let Some(lasts) = self.settings.lease else { return };
        if (gone || newcomer || self.cautious) && !self.makes(&NO_WAIT) {
            self.cautious = true;
            ctx.set_timer(Timer::Caution, lasts);
        }
        let sure = |report: &Report| match report {
            Report::Holding(_) | Report::Parked => true,
            Report::Waiting(_) => false,
        };
        let reports = facts.iter().flat_map(|(_, summary)| summary);
        self.known = reports.filter(|(_, r)| sure(r)).map(|(name, _)| name.clone()).collect();
    }

    /// After the start anew: `held` if we were inside when the view ended, `first` if we are the first
    /// who waited and so are inside now. Meanwhile the application may have changed its mind.
    fn resume(&mut self, name: &Name, held: bool, first: bool, ctx: &mut Context<'_, Self>) {
        match self.wishes.get(name).copied() {
            Some(Hold::Held(_) | Hold::Ready(_)) => {}
            Some(Hold::Wanted(_)) if first => self.admit(name.clone(), 1, ctx),
            Some(Hold::Wanted(_)) if held => {
                self.drive(name, Input::Request(mutex::Request::Release), ctx);
                self.drive(name, Input::Request(mutex::Request::Acquire), ctx);
            }
            Some(Hold::Wanted(_) | Hold::Unwanted) => {}
            None if held || first => {
                self.drive(name, Input::Request(mutex::Request::Release), ctx);
            }
            None => {
                self.wishes.insert(name.clone(), Hold::Unwanted);
            }
        }
    }

    /// Asks for what we wanted only after we had spoken.
    fn ask_for_the_rest(&mut self, facts: &[(ProcessId, Summary)], ctx: &mut Context<'_, Self>) {
        let me = ctx.me();
        let said = facts.iter().find(|(id, _)| *id == me).map_or(&[][..], |(_, s)| s.as_slice());
        let fresh: Vec<Name> = self
            .wishes
            .iter()
            .filter(|(name, hold)| {
                let told = said.iter().any(|(n, report)| n == *name && *report != Report::Parked);
                matches!(hold, Hold::Wanted(_)) && !told
            })
            .map(|(name, _)| name.clone())
            .collect();
        for name in fresh {
            self.drive(&name, Input::Request(mutex::Request::Acquire), ctx);
        }
    }

    /// One step of the algorithm within.
    fn drive(&mut self, name: &Name, input: Input<A>, ctx: &mut Context<'_, Self>) {
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
            self.say(to, Inside { view, seq, name, count, message }, ctx);
        }
        if let Some(what) = outcome.unexpected {
            ctx.unexpected(what);
        }
        if outcome.granted {
            self.admit(name.clone(), count, ctx);
        }
    }

    /// The algorithm lets us in.
    fn admit(&mut self, name: Name, count: u64, ctx: &mut Context<'_, Self>) {
        match self.wishes.get(&name) {
            Some(Hold::Wanted(_)) => {
                self.wishes.insert(name, Hold::Ready(self.token(count)));
                self.enter_ready(ctx);
            }
            Some(Hold::Unwanted) => {
                self.wishes.remove(&name);
                self.drive(&name, Input::Request(mutex::Request::Release), ctx);
            }
            Some(Hold::Ready(_) | Hold::Held(_)) | None => {}
        }
    }

    /// Enters where nothing forbids it any more.
    fn enter_ready(&mut self, ctx: &mut Context<'_, Self>) {
        if !self.is_leased() {
            return;
        }
        for (name, hold) in &mut self.wishes {
            if let Hold::Ready(token) = *hold
                && (!self.cautious || self.known.contains(name))
            {
                *hold = Hold::Held(token);
                let mode = Mode::Exclusive;
                ctx.indicate(Indication::Granted { name: name.clone(), mode, token });
            }
        }
    }

    /// We must not rely on what we hold.
    fn lose_all(&mut self, ctx: &mut Context<'_, Self>) {
        let held = self.wishes.iter().filter(|(_, hold)| matches!(hold, Hold::Held(_)));
        let names: Vec<Name> = held.map(|(name, _)| name.clone()).collect();
        for name in names {
            self.wishes.remove(&name);
            ctx.indicate(Indication::Lost { name: name.clone() });
            if self.runs(ctx.me()) {
                self.drive(&name, Input::Request(mutex::Request::Release), ctx);
            }
        }
    }

    fn on_inside(
        &mut self,
        from: ProcessId,
        inside: Inside<A::Message>,
        ctx: &mut Context<'_, Self>,
    ) {
        let (view, here) = (inside.view, self.view().id);
        if view > here {
            if self.ahead.len() < AHEAD {
                self.ahead.push((from, inside));
            }
            return;
        }
        let old = view < here;
        let stopped = self.frozen && !self.makes(&THAW);
        if stopped || !self.view().has_member(ctx.me()) || !self.view().has_member(from) {
            return;
        }
        if old {
            if self.makes(&OLD_VIEW) {
                self.take(from, inside, ctx);
            }
            return;
        }
        for inside in self.in_order(from, inside) {
            self.take(from, inside, ctx);
        }
    }

    /// The next message of its channel.
    fn take(&mut self, from: ProcessId, inside: Inside<A::Message>, ctx: &mut Context<'_, Self>) {
        let Inside { name, count, message, .. } = inside;
        let known = self.locks.get(&name).map_or(0, |lock| lock.count);
        if !self.locks.contains_key(&name) {
            let setup = &self.settings.setup;
            let lock = Instance::fresh(ctx.me(), &name, self.group.view(), setup);
            self.locks.extend(lock.map(|lock| (name.clone(), lock)));
        }
        if let Some(lock) = self.locks.get_mut(&name) {
            lock.count = count.max(known);
        }
        self.drive(&name, Input::Message { from, message }, ctx);
    }

    fn acquire(&mut self, name: Name, ctx: &mut Context<'_, Self>) {
        match self.wishes.get(&name) {
            Some(Hold::Wanted(_) | Hold::Ready(_) | Hold::Held(_)) => return,
            // Still in the queue: it wants it again.
            Some(Hold::Unwanted) => {
                let since = self.locks.get(&name).map_or(0, |lock| lock.count);
                self.wishes.insert(name, Hold::Wanted(since));
                return;
            }
            None => {}
        }
        let since = self.locks.get(&name).map_or(0, |lock| lock.count);
        self.wishes.insert(name.clone(), Hold::Wanted(since));
        self.want_lease(ctx);
        if self.runs(ctx.me()) {
            self.drive(&name, Input::Request(mutex::Request::Acquire), ctx);
        }
    }

    fn release(&mut self, name: Name, ctx: &mut Context<'_, Self>) {
        match self.wishes.get(&name) {
            Some(Hold::Held(_) | Hold::Ready(_)) => {
                self.wishes.remove(&name);
                if self.runs(ctx.me()) {
                    self.drive(&name, Input::Request(mutex::Request::Release), ctx);
                }
            }
            Some(Hold::Wanted(_)) if self.runs(ctx.me()) => {
                self.wishes.insert(name, Hold::Unwanted);
            }
            Some(Hold::Wanted(_)) => {
                self.wishes.remove(&name);
            }
            Some(Hold::Unwanted) | None => {}
        }
    }
}

impl<A: Inner> Process for Lifted<A> {
    type Message = Message<A::Message>;
    type Timer = Timer;
    type Request = Request;
    type Indication = Indication;
    type Record = Record;

    fn on_start(&mut self, ctx: &mut Context<'_, Self>) {
        self.run(ctx, |group, ctx| group.on_start(ctx));
    }

    fn on_recover(&mut self, saved: Option<Record>, ctx: &mut Context<'_, Self>) {
        self.run(ctx, |group, ctx| group.on_recover(saved, ctx));
    }

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        match request {
            Request::Acquire { name, .. } => self.acquire(name, ctx),
            Request::Release { name } => self.release(name, ctx),
            Request::Join => self.run(ctx, |group, ctx| group.on_request(Wish::Join, ctx)),
            Request::Leave => self.run(ctx, |group, ctx| group.on_request(Wish::Leave, ctx)),
            Request::Reform => self.run(ctx, |group, ctx| group.on_request(Wish::Reform, ctx)),
            Request::Refound => {
                self.lose_all(ctx);
                self.run(ctx, |group, ctx| group.on_request(Wish::Refound, ctx));
            }
            Request::Operate(_) => {}
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
                self.run(ctx, |group, ctx| group.on_message(from, message, ctx));
            }
            Message::Inside(inside) => self.on_inside(from, inside, ctx),
            Message::Ask { view, round } if view == here => self.on_ask(from, round, ctx),
            Message::Yes { view, round } if view == here => self.on_yes(from, round, ctx),
            Message::Got { view, upto } if view == here => self.on_confirmed(from, upto),
            Message::Ask { .. } | Message::Yes { .. } | Message::Got { .. } => {}
        }
    }

    fn on_timer(&mut self, timer: Timer, ctx: &mut Context<'_, Self>) {
        match timer {
            Timer::Group(timer) => {
                self.run(ctx, |group, ctx| group.on_timer(timer, ctx));
                if timer == virtual_synchrony::Timer::Heartbeat {
                    self.tend(ctx);
                }
            }
            Timer::Renew => self.on_renew(ctx),
            Timer::Lapse(slot) => self.on_lapse(slot, ctx),
            Timer::Caution => {
                self.cautious = false;
                self.enter_ready(ctx);
            }
        }
    }

    fn on_suspect(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.run(ctx, |group, ctx| group.on_suspect(peer, ctx));
    }

    fn on_trust(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.run(ctx, |group, ctx| group.on_trust(peer, ctx));
    }

    fn at_rest(&self) -> bool {
        self.group.at_rest() && self.wishes.is_empty() && !self.frozen && self.is_in_order()
    }
}

impl<A: Inner> Algorithm for Lifted<A> {
    type Problem = Locks;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        let lasts = setup.unit * setup.chosen(&SHEET, "lease").number();
        let group = VirtualSynchrony::build(me, setup).summarised();
        Self {
            group,
            frozen: false,
            locks: BTreeMap::new(),
            wishes: BTreeMap::new(),
            said: Summary::new(),
            channels: BTreeMap::new(),
            ahead: Vec::new(),
            cautious: false,
            known: BTreeSet::new(),
            lease: Lease::default(),
            last: ProcessSet::new(),
            settings: Fixed(Settings {
                setup: setup.clone(),
                lease: setup.chosen(&SHEET, "safety").is("lease").then_some(lasts),
                repeats: setup.chosen(&SHEET, "heartbeat").number() > 0,
            }),
            mistake: Fixed(setup.mistake),
        }
    }

    /// Heartbeats have no end.
    fn goes_on(setup: &Setup) -> bool {
        setup.chosen(&SHEET, "heartbeat").number() > 0
    }

    /// With leases, what an excluded member believes depends on its clock.
    fn sheet(setup: &Setup) -> DataSheet {
        match setup.chosen(&SHEET, "safety").is("lease") {
            true => {
                DataSheet { assumes: &[Assumption::UniqueIds, Assumption::SteadyClocks], ..SHEET }
            }
            false => SHEET,
        }
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        setup.need(&SHEET, 1, &["lease", "names"])?;
        Plan::check(setup)
    }
}
