//! One node, without a network and without a clock: it is told what happens and when, and says what to
//! send and to save. Virtual synchrony below, the table above, and between them what only this node
//! knows: who here waits, who here holds, and until when that is safe.

mod circles;
mod desk;
mod early;
mod forming;
mod founding;
mod hurry;
mod lease;
mod lifted;
mod meetings;
mod outgoing;
mod pulse;
mod refusals;
mod report;
mod sessions;
mod stage;

pub(crate) use circles::{Ear, Said};
pub(crate) use desk::{Flag, Granted, Wish};
pub(crate) use forming::Standing;
pub(crate) use founding::Founding;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use konklave_algorithms::Setup;
use konklave_algorithms::group::virtual_synchrony::{
    Membership, Message, Record as Life, Timer, VirtualSynchrony,
};
use konklave_algorithms::group::{Indication, Member, Request, View};
use konklave_process::{Context, Group, Process, ProcessId, ProcessSet, Rng, Topology};
use tokio::sync::broadcast;

use crate::builder::Timings;
use crate::flight::Flight;
use crate::mutex::Mutex;
use crate::status::{Event, Loss};
use crate::store::Record;
use crate::streak::Streak;
use crate::table::{Batch, Outcome, Table};
use crate::wire::Frame;
use forming::{Forming, Peer};
use lease::Lease;
use stage::Stage;

type Below = VirtualSynchrony<Batch>;

/// How many events are kept for who is slow to read them.
const EVENTS: usize = 1024;

/// What a node was told when it was built.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) id: ProcessId,
    pub(crate) name: Arc<str>,
    pub(crate) timings: Timings,
    /// What is kept on disk, if anything.
    pub(crate) record: Option<Record>,
    /// How many addresses the founders have.
    pub(crate) seeds: usize,
    /// Which of them is ours, if that is known before anyone answers there.
    pub(crate) own: Option<usize>,
    /// How many founders there are, if not one at each address.
    pub(crate) founders: Option<usize>,
    /// Whether to found a group of one, for others to join.
    pub(crate) alone: bool,
    pub(crate) rng_seed: u64,
    /// The calendar, for generations without memory.
    pub(crate) calendar: u32,
    /// What serves exclusive locks.
    pub(crate) mutex: Mutex,
    /// How many turns those here have in a row before others are listened to.
    pub(crate) turns: u32,
    /// Whether those who hold something outlive the node, by a lease at most.
    pub(crate) lingers: bool,
}

/// What the node wants of its host, in this order.
#[derive(Debug)]
pub(crate) enum Output {
    Send {
        to: ProcessId,
        frame: Frame,
    },
    /// Before anything that follows.
    Save(Record),
    /// When there is room: nothing depends on it.
    Note(Record),
}

pub(crate) struct Core {
    me: ProcessId,
    config: Config,
    /// Everyone we know, ourselves included.
    known: Group,
    below: Below,
    timers: Vec<(Timer, Duration)>,
    rng: Rng,
    record: Record,
    table: Table,
    /// Whether the table is the group's.
    has_table: bool,
    /// Whether we took part in the last view that we know of.
    was_member: bool,
    pending: outgoing::Pending,
    in_flight: usize,
    /// How many messages of this view the table has taken in.
    applied: u64,
    desk: desk::Desk,
    lifted: lifted::Lifted,
    circles: circles::Circles,
    meetings: meetings::Meetings,
    observers: Vec<report::Observing>,
    sessions: BTreeMap<u32, Arc<str>>,
    last_session: u32,
    lease: Lease,
    /// When which silent member must know that it is out.
    thaws: BTreeMap<Member, Duration>,
    peers: BTreeMap<ProcessId, Peer>,
    forming: Forming,
    promises: founding::Promises,
    /// Until then someone may go on with what it was granted in an earlier life of ours.
    wary_until: Duration,
    /// Since when our view could go on only with members that are not there.
    hopeless: Option<Duration>,
    /// When we found a group of one, if nobody is in one by then.
    alone_at: Option<Duration>,
    /// Whether something that must be on disk is not.
    unsaved: bool,
    blocked: bool,
    leaving: bool,
    /// When we leave without the consent of others.
    leave_by: Option<Duration>,
    /// Whether we left for good.
    left: bool,
    pulse: pulse::Pulse,
    events: broadcast::Sender<Event>,
    refusals: refusals::Refusals,
    waits: hurry::Waits,
    /// What passed.
    pub(crate) flight: Flight,
    out: Vec<Output>,
    /// Empty between steps: kept for the room they have.
    told: VecDeque<Indication<Batch>>,
    outcomes: Vec<Outcome>,
    streak: Arc<Streak>,
    now: Duration,
}

impl Core {
    pub(crate) fn new(config: Config, now: Duration) -> Self {
        let me = config.id;
        let mut core = Self {
            me,
            known: Group::new(vec![me]).expect("one member is a group"),
            below: outside(me, &config),
            timers: Vec::new(),
            rng: Rng::new(config.rng_seed),
            record: config.record.clone().unwrap_or_default(),
            table: Table::default(),
            has_table: false,
            was_member: false,
            pending: outgoing::Pending::default(),
            in_flight: 0,
            applied: 0,
            desk: desk::Desk::default(),
            lifted: lifted::Lifted::new(me, config.mutex),
            circles: circles::Circles::default(),
            meetings: meetings::Meetings::default(),
            observers: Vec::new(),
            sessions: BTreeMap::from([(0, "".into())]),
            last_session: 0,
            lease: Lease::default(),
            thaws: BTreeMap::new(),
            peers: BTreeMap::new(),
            forming: Forming::new(config.seeds),
            promises: founding::Promises::default(),
            wary_until: now,
            hopeless: None,
            alone_at: None,
            unsaved: false,
            blocked: false,
            leaving: false,
            leave_by: None,
            left: false,
            pulse: pulse::Pulse::new(&config.timings, now),
            events: broadcast::Sender::new(EVENTS),
            refusals: refusals::Refusals::default(),
            waits: hurry::Waits::default(),
            flight: Flight::default(),
            out: Vec::new(),
            told: VecDeque::new(),
            outcomes: Vec::new(),
            streak: Arc::new(Streak::new(config.turns)),
            now,
            config,
        };
        if core.config.lingers && core.config.record.as_ref().is_none_or(|r| r.incarnation > 0) {
            core.wary_until = now + core.config.timings.thaw_after();
        }
        if core.config.alone {
            // Those of the last view may be in one: they get a while to say so.
            let others = core.record.members.iter().any(|(id, _)| *id != me.0);
            let patience = if others { core.config.timings.silence } else { Duration::ZERO };
            core.alone_at = Some(core.wary_until.max(now + patience));
        }
        core.be_born();
        core.tick(now);
        core
    }

    /// A new life, in no view.
    fn be_born(&mut self) {
        self.timers.clear();
        self.below = outside(self.me, &self.config);
        let Record { incarnation, generation, .. } = self.record;
        // Who remembers nothing gets a number that its old lives have not had.
        let saved = (incarnation > 0).then_some(Life { incarnation, generation });
        self.step(|below, ctx| below.on_recover(saved, ctx));
    }

    /// What is to be done now, in order. What comes next is collected in `room`, which is empty.
    pub(crate) fn take_outputs(&mut self, room: Vec<Output>) -> Vec<Output> {
        std::mem::replace(&mut self.out, room)
    }

    pub(crate) fn has_outputs(&self) -> bool {
        !self.out.is_empty()
    }

    pub(crate) fn streak(&self) -> Arc<Streak> {
        self.streak.clone()
    }

    pub(crate) fn me(&self) -> ProcessId {
        self.me
    }

    pub(crate) fn events(&self) -> broadcast::Receiver<Event> {
        self.events.subscribe()
    }

    /// Whether we take part: with a vote, and with the table.
    pub(crate) fn is_member(&self) -> bool {
        self.is_inside() && self.has_table && self.below.view().has_member(self.me)
    }

    fn is_inside(&self) -> bool {
        self.below.membership() == Membership::Inside
    }

    /// Our present life in the present view.
    fn myself(&self) -> Member {
        let unborn = Member { id: self.me, incarnation: self.record.incarnation };
        self.below.view().find(self.me).unwrap_or(unborn)
    }

    fn is_leader(&self) -> bool {
        self.is_inside() && self.below.view().leader() == Some(self.me)
    }

    /// The same, at this time: whatever happens next, nothing is believed that has run out.
    pub(crate) fn at(&mut self, now: Duration) -> &mut Self {
        self.now = self.now.max(now);
        self
    }

    /// Time has passed.
    pub(crate) fn tick(&mut self, now: Duration) {
        self.now = self.now.max(now);
        while let Some(at) = self.timers.iter().position(|(_, due)| *due <= self.now) {
            let (timer, due) = self.timers.swap_remove(at);
            if timer == Timer::Heartbeat {
                self.make_up_for(due);
                // The group's signs of life and ours leave together, from now on at the same times.
                self.pulse.next = self.now;
            }
            self.step(|below, ctx| below.on_timer(timer, ctx));
        }
        if self.now >= self.pulse.next {
            self.beat();
        }
        if self.leave_by.is_some_and(|due| due <= self.now) {
            return self.die();
        }
        self.expire_wishes();
        self.expire_taken();
        self.found_alone_in_time();
        self.check_lease();
        self.thaw_due();
        self.thaw_inside();
        self.pump_all();
    }

    /// When something happens by itself.
    pub(crate) fn next_due(&self) -> Duration {
        let patience = self.patience();
        let mut due = self.pulse.next + patience;
        for (timer, at) in &self.timers {
            let at = if *timer == Timer::Heartbeat { *at + patience } else { *at };
            due = due.min(at);
        }
        let mut or = |other: Option<Duration>| due = other.map_or(due, |other| due.min(other));
        or(self.desk.has_holds().then(|| self.lease.runs_out()).flatten());
        or(self.thaws.values().min().copied());
        or(self.desk.first_deadline());
        or(self.desk.first_taken());
        or(self.lifted.first_thaw());
        or(self.alone_at);
        or(self.leave_by);
        due
    }

    /// What is kept on disk.
    pub(crate) fn record(&self) -> Record {
        self.record.clone()
    }

    /// The process is gone. Its handles learn that there is nothing behind them any more.
    pub(crate) fn die(&mut self) {
        self.leaving = true;
        self.timers.clear();
        self.below = outside(self.me, &self.config);
        self.forget(Loss::Left);
        self.end();
        self.out.clear();
    }

    /// Nothing will happen here any more: whoever waits for something learns that.
    fn end(&mut self) {
        self.left = true;
        self.leave_by = None;
        self.fail_waiting();
        self.observers.clear();
        self.events = broadcast::Sender::new(1);
    }

    /// Nothing that someone here waits for will be granted any more.
    fn fail_waiting(&mut self) {
        self.fail_wishes();
        self.meetings.end();
        self.circles.close();
        self.end_revocations();
    }

    /// A frame of another member arrives, and what it brings about leaves.
    pub(crate) fn on_frame_and_pump(&mut self, from: ProcessId, frame: Frame, now: Duration) {
        self.on_frame(from, frame, now);
        self.pump();
    }

    /// A frame of another member arrives.
    pub(crate) fn on_frame(&mut self, from: ProcessId, frame: Frame, now: Duration) {
        self.now = self.now.max(now);
        self.streak.heard();
        match frame {
            Frame::Group(message) if self.is_too_much(&message) => {}
            Frame::Group(Message::Join { .. }) if self.is_superseded_by(from) => {
                self.give_up_hope()
            }
            Frame::Group(message) => {
                self.step(|below, ctx| below.on_message(from, message, ctx));
            }
            Frame::Ping { view, stamp, said } => self.on_ping(from, view, stamp, said),
            Frame::Pong { view, stamp } => self.on_pong(from, view, stamp),
            Frame::Standing(standing) => self.on_standing(from, standing),
            Frame::Found(view) => self.on_found(&view),
            Frame::Founding(said) => self.on_founding(from, said),
            Frame::Inside(inside) => self.on_inside(from, inside),
            // The network's own.
            Frame::Peers(_) => {}
        }
    }

    /// Lets the group below take a step, and draws our conclusions until there are none.
    fn step(&mut self, step: impl FnOnce(&mut Below, &mut Context<'_, Below>)) {
        let mut told = std::mem::take(&mut self.told);
        self.below_step(&mut told, step);
        while let Some(indication) = told.pop_front() {
            if let Some(wish) = self.conclude(indication) {
                self.below_step(&mut told, |below, ctx| below.on_request(wish, ctx));
            }
        }
        self.told = told;
        self.tell_early();
    }

    fn below_step(
        &mut self,
        told: &mut VecDeque<Indication<Batch>>,
        step: impl FnOnce(&mut Below, &mut Context<'_, Below>),
    ) {
        let mut stage = Stage {
            out: &mut self.out,
            timers: &mut self.timers,
            rng: &mut self.rng,
            told,
            record: &mut self.record,
            unsaved: &mut self.unsaved,
            now: self.now,
        };
        step(&mut self.below, &mut Context::new(self.me, &self.known, &mut stage));
    }

    /// What the group told us; what we answer.
    fn conclude(&mut self, told: Indication<Batch>) -> Option<Request<Batch>> {
        match told {
            Indication::Delivered { sender, command, position, .. } => {
                self.applied = position + 1;
                if sender == self.me {
                    self.in_flight = self.in_flight.saturating_sub(1);
                }
                let mut outcomes = std::mem::take(&mut self.outcomes);
                command.ops.iter().for_each(|op| self.table.apply(op, &mut outcomes));
                self.react(&mut outcomes);
                self.outcomes = outcomes;
            }
            Indication::Installed { view, left, summaries } => {
                self.on_view(view, &left, summaries);
            }
            Indication::StateWanted => return Some(Request::State(self.table.parts())),
            Indication::State { parts, .. } => {
                self.table = Table::default();
                self.table.set_view(self.below.view().id);
                let ops = parts.iter().flat_map(|part| part.ops.iter());
                ops.for_each(|op| self.table.apply(op, &mut Vec::new()));
                self.has_table = true;
                self.refresh_observers();
            }
            Indication::Excluded => {
                self.tell(Event::Excluded);
                self.forget(Loss::Excluded);
                self.end_if_leaving();
            }
            Indication::Left => {
                self.tell(Event::Left);
                self.forget(Loss::Left);
                self.end_if_leaving();
            }
            Indication::Blocked => {
                self.blocked = true;
                self.tell(Event::Blocked);
            }
            Indication::Refused(_) => self.in_flight = self.in_flight.saturating_sub(1),
            Indication::Wedged if self.config.mutex != Mutex::Table => {
                return Some(Request::Freeze(self.summary_of_locks()));
            }
            Indication::Sent { .. } | Indication::Wedged => {}
        }
        None
    }

    fn on_view(&mut self, view: View, left: &ProcessSet, said: Vec<(Member, Batch)>) {
        (self.blocked, self.applied) = (false, 0);
        self.circles.begin_view();
        self.waits = hurry::Waits::default();
        self.promises.clear();
        self.refusals.on_view();
        self.hopeless = None;
        self.remember(&view);
        if self.has_table {
            let mut outcomes = Vec::new();
            self.table.install(view.id, &view.members, left, &mut outcomes);
            self.tell_view(&view);
            self.react(&mut outcomes);
        } else {
            self.table.set_view(view.id);
            self.tell_view(&view);
        }
        self.lease.on_view(&view, self.me, self.now + self.config.timings.held_for());
        // Who begins to lead gives everyone their full time again; who goes on leading has its clocks.
        let frozen = if self.is_leader() { self.table.frozen() } else { Vec::new() };
        self.thaws.retain(|member, _| frozen.contains(member));
        let due = self.now + self.config.timings.thaw_after();
        frozen.into_iter().for_each(|member| _ = self.thaws.entry(member).or_insert(due));
        if self.config.mutex != Mutex::Table {
            self.install_locks(&view, left, said);
        }
        self.ping();
        if self.is_member() && !std::mem::replace(&mut self.was_member, true) {
            self.ask_anew();
            self.enter_anew();
            self.arrive_anew();
        }
        self.announce();
    }

    /// We are outside: nothing here is ours any more.
    fn forget(&mut self, why: Loss) {
        self.table = Table::default();
        (self.has_table, self.was_member, self.blocked) = (false, false, false);
        self.pending.clear();
        self.in_flight = 0;
        self.thaws.clear();
        self.lease.end();
        self.wary_until = self.wary_until.max(self.now + self.config.timings.thaw_after());
        self.lose_everything(why);
        self.desk.forget_others();
        self.lifted.clear();
        self.circles.end();
        self.meetings.fail();
        self.end_revocations();
        self.clear_observers();
        self.announce();
    }

    /// What became of operations, as far as we or our sessions are concerned.
    fn react(&mut self, outcomes: &mut Vec<Outcome>) {
        for outcome in outcomes.drain(..) {
            match outcome {
                Outcome::Granted { claim, key, token } => self.on_granted(claim, key, token),
                Outcome::Refused { claim, key, why } => self.on_refused(claim, &key, why),
                Outcome::Taken { claim, key, .. } => self.on_taken(claim, &key),
                Outcome::Wanted { key } => self.decide(&key),
                Outcome::Changed { key } => self.on_changed(&key),
                Outcome::Revoked { claim, held } => self.on_revoked(claim, held),
                Outcome::Opened { claims } => self.on_opened(&claims),
                Outcome::Mismatch { claim, of } => self.on_mismatch(claim, of),
                Outcome::Circle { group, places } => self.on_circle(&group, &places),
                Outcome::Said { group, from, payload } => self.on_said(&group, from, &payload),
                Outcome::Ask { group, donor, to } => self.on_ask(&group, donor, to),
                Outcome::Given { group, to, payload } => self.on_given(&group, to, &payload),
                Outcome::Frozen { member } => {
                    if self.is_leader() {
                        let due = self.now + self.config.timings.thaw_after();
                        self.thaws.entry(member).or_insert(due);
                    }
                }
            }
        }
    }

    /// Leaves the group, in order; alone, if nobody confirms it for as long as others wait for us.
    pub(crate) fn leave(&mut self, now: Duration) {
        self.now = self.now.max(now);
        if std::mem::replace(&mut self.leaving, true) {
            return;
        }
        if self.is_inside() {
            self.lose_everything(Loss::Left);
            self.pump_all();
            self.fail_waiting();
            let view = self.below.view();
            if view.members.len() == 1 && view.observers.is_empty() && self.is_member() {
                // Nobody is there to go on without us.
                return self.end();
            }
            self.leave_by = Some(self.now + self.config.timings.thaw_after());
            self.step(|below, ctx| below.on_request(Request::Leave, ctx));
        } else {
            self.end();
        }
    }

    fn end_if_leaving(&mut self) {
        if self.leaving {
            self.end();
        }
    }

    pub(crate) fn has_left(&self) -> bool {
        self.left
    }

    fn tell(&self, event: Event) {
        // Nobody may be listening.
        let _ = self.events.send(event);
    }

    fn send(&mut self, to: ProcessId, frame: Frame) {
        self.out.push(Output::Send { to, frame });
    }
}

/// A process of the group that is in no view yet.
fn outside(me: ProcessId, config: &Config) -> Below {
    let mut setup = setup(me, &config.timings);
    setup.chosen.insert("joiners", me.0.to_string());
    summing_up(Below::build(me, &setup), config)
}

/// The same, asking what we have to say of our locks when a view ends, if we have anything.
fn summing_up(below: Below, config: &Config) -> Below {
    if config.mutex == Mutex::Table { below } else { below.summarised() }
}

fn setup(me: ProcessId, timings: &Timings) -> Setup {
    let group = Group::new(vec![me]).expect("one member is a group");
    let mut setup =
        Setup::new(group, Topology::from_edges("alone", 1, []).expect("one place is a graph"));
    setup.unit = timings.unit;
    let (beats, misses) = timings.in_units();
    setup.chosen.insert("heartbeat", beats.to_string());
    setup.chosen.insert("misses", misses.to_string());
    setup
}

#[cfg(test)]
mod storms;
