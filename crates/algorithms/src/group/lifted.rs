//! Any algorithm of mutual exclusion, lifted into views.
//!
//! Inside a view nobody fails as far as the algorithm can tell, so a classic one runs there at its
//! own cost: nothing where the token is, one message to hand it over. When a view ends, everyone
//! stops it, and says who holds and who waits; the decided next view contains what all who go on
//! said, and from these facts all of them start the algorithm anew. A token on its way is lost then,
//! and so nobody holds twice. Tokens of the next view are higher: what an excluded member still holds
//! is refused by the resource, or, with leases, is known by it to be lost before another enters.

mod any;
mod barrier;
mod channel;
mod instance;
mod lease;
mod messages;
mod sheet;
mod wishes;

pub use any::{Any, AnyMessage, NAMES};
pub use instance::{Homes, Instance, Outcome, home};
pub use messages::{Inside, Message, Report, Summary, Timer};

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use konklave_process::{
    Context, Fixed, Input, Inspect, NoRecord, NoTimer, Process, ProcessId, ProcessSet,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::locks::{Indication, Locks, Name, Request, Token};
use super::virtual_synchrony::{self, Record, VirtualSynchrony};
use super::{Indication as Told, Plan, Request as Wish, View, assumed};
use crate::{Algorithm, DataSheet, Mistake, Setup, SetupError, mutex};
use channel::Channel;
use lease::Lease;
use sheet::{OLD_VIEW, SAME_BASE, SHEET, THAW};
use wishes::Hold;

/// How many messages of views to come are kept.
const AHEAD: usize = 4096;

/// An algorithm that can be lifted: one of mutual exclusion, without timers and storage.
pub trait Inner:
    Inspect<
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
                let stays = summaries.into_iter().filter(|(member, _)| view.includes(*member));
                let said: Vec<_> = stays.map(|(member, said)| (member.id, said)).collect();
                self.on_view(view, &left, &said, ctx);
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
}

impl<A: Inner> Inspect for Lifted<A> {
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
        let leases = setup.chosen(&SHEET, "safety").is("lease");
        DataSheet { assumes: assumed(Self::goes_on(setup), leases), ..SHEET }
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        setup.need(&SHEET, 1, &["lease", "names"])?;
        Plan::check(setup)
    }
}
