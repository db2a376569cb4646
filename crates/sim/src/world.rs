//! The loop: the next thing happens, until nothing more can.

use std::mem::Discriminant;

use konklave_process::{
    Application, Context, Effect, End, Group, Host, Input, Meter, Monitor, Process, ProcessId,
    ProcessSet, Rng, Verdict, Violation,
};

use crate::network::{Fate, Network};
use crate::observer::Incident;
use crate::{Config, Fault, Memory, Observer, Pace, Time, UNIT, What, Wheel, When};

/// What comes from outside: processes, clients, judges, measures, watchers.
#[derive(Debug)]
pub struct Parts<P, A, M, T, O> {
    /// In node order.
    pub processes: Vec<P>,
    /// Who asks.
    pub application: A,
    /// Who judges.
    pub monitor: M,
    /// Who measures.
    pub meter: T,
    /// Who watches.
    pub observer: O,
}

/// A simulation under way.
pub struct Sim<P: Process, A, M: Monitor<P>, T, O: Observer<P> = ()> {
    group: Group,
    processes: Vec<P>,
    world: World<P, A, M, T, O>,
    /// As newly built, where a restart may need them.
    newborn: Vec<P>,
    /// Faults by time, the last first.
    timed: Vec<(Time, Control)>,
    /// Faults by step, the last first.
    stepped: Vec<(u64, Control)>,
    time_limit: Time,
    step_limit: u64,
    detect_after: Option<Time>,
}

/// All but the processes.
struct World<P: Process, A, M: Monitor<P>, T, O: Observer<P>> {
    now: Time,
    queue: Wheel<Event<P, M::Tag, O::Tag>>,
    network: Network,
    rng: Rng,
    timers: Timers<P::Timer>,
    application: A,
    monitor: M,
    meter: T,
    observer: O,
    counts: Counts,
    kinds: Vec<(Discriminant<P::Message>, u64, String)>,
    violations: Vec<(Time, Violation)>,
    think: Pause,
    hold: Pause,
    is_hold: fn(&P::Request) -> bool,
    /// Which places have a request of their client scheduled.
    pending: Vec<u64>,
    condition: Condition<P, M::Tag, O::Tag>,
    faulty: bool,
    app_messages: u32,
    nanos_per_tick: f64,
}

struct Event<P: Process, MT, OT> {
    place: u32,
    what: Happening<P, MT, OT>,
}

enum Happening<P: Process, MT, OT> {
    Message { from: ProcessId, message: P::Message, tags: (MT, OT) },
    Request { request: P::Request, incarnation: u32 },
    Timer { timer: P::Timer, armed: u32 },
    Start,
    Recover,
    Suspect(ProcessId),
    Trust(ProcessId),
    Stamp { from: ProcessId, stamp: u64, tags: (MT, OT) },
}

/// What faults do to processes; nothing is kept while all are well.
struct Condition<P: Process, MT, OT> {
    down: ProcessSet,
    /// Who sleeps, and what waits for it.
    asleep: Vec<(u32, Vec<Happening<P, MT, OT>>)>,
    incarnations: Vec<u32>,
    saved: Vec<Option<P::Record>>,
    rates: Vec<f64>,
}

/// A change of the world at its time.
#[derive(Clone, Debug)]
enum Control {
    Strike(What),
    End(What),
}

/// How many messages there were.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Handed to the network.
    pub sent: u64,
    /// Handed to a process.
    pub delivered: u64,
    /// Lost on the way, or arrived at a crashed process.
    pub lost: u64,
    /// Doubled on the way.
    pub duplicated: u64,
    /// Steps of processes.
    pub steps: u64,
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// Nothing more can happen.
    Quiet,
    /// It was cut off.
    CutOff,
}

impl<P, A, M, T, O> Sim<P, A, M, T, O>
where
    P: Process,
    A: Application<P>,
    M: Monitor<P>,
    T: Meter<P>,
    O: Observer<P>,
{
    /// A simulation in which nothing has happened yet. `classify` says which pause goes before a
    /// request: true for the pause inside.
    pub fn new(
        group: Group,
        parts: Parts<P, A, M, T, O>,
        config: &Config,
        is_hold: fn(&P::Request) -> bool,
    ) -> Self {
        let n = parts.processes.len();
        assert_eq!(group.len(), n, "every member has a process");
        let rng = Rng::new(config.seed);
        let ticks = |t: f64| (t * UNIT as f64).round() as Time;
        let mut timed = Vec::new();
        let mut stepped = Vec::new();
        let mut network = Network::new(config);
        let mut rates = Vec::new();
        let mut restarts = false;
        for Fault { what, when, until } in &config.faults {
            match what {
                What::Message(selector, mishap) => {
                    network.expect(selector.clone(), *mishap);
                    continue;
                }
                What::Rate(p, rate) => {
                    rates.resize(n, 1.0);
                    rates[group.place(*p).expect("faults name members")] = *rate;
                    continue;
                }
                What::Restart(..) => restarts = true,
                What::Crash(_)
                | What::Pause(_)
                | What::Cut(..)
                | What::Partition(_)
                | What::Suspect(..) => {}
            }
            match *when {
                When::Time(t) => timed.push((ticks(t), Control::Strike(what.clone()))),
                When::Step(k) => stepped.push((k, Control::Strike(what.clone()))),
            }
            if let Some(until) = until {
                timed.push((ticks(*until), Control::End(what.clone())));
            }
        }
        // Stable sorts: faults of one moment strike in the order they were given.
        timed.sort_by_key(|(at, _)| *at);
        timed.reverse();
        stepped.sort_by_key(|(step, _)| *step);
        stepped.reverse();
        let mut sim = Self {
            group,
            newborn: if restarts { parts.processes.clone() } else { Vec::new() },
            processes: parts.processes,
            timed,
            stepped,
            time_limit: ticks(config.time_limit),
            step_limit: config.step_limit,
            detect_after: config.detect_after.map(|t| ticks(t).max(1)),
            world: World {
                now: 0,
                queue: Wheel::default(),
                network,
                timers: Timers::default(),
                application: parts.application,
                monitor: parts.monitor,
                meter: parts.meter,
                observer: parts.observer,
                counts: Counts::default(),
                kinds: Vec::new(),
                violations: Vec::new(),
                think: Pause::new(config.think, n),
                hold: Pause::new(config.hold, n),
                is_hold,
                pending: vec![0; n.div_ceil(64)],
                condition: Condition {
                    down: ProcessSet::new(),
                    asleep: Vec::new(),
                    incarnations: Vec::new(),
                    saved: Vec::new(),
                    rates,
                },
                faulty: false,
                app_messages: config.app_messages,
                nanos_per_tick: config.unit.as_nanos() as f64 / UNIT as f64,
                rng,
            },
        };
        for place in 0..n {
            sim.run_step(place, Happening::Start);
        }
        for place in 0..n {
            sim.world.consult(place, sim.group.id(place));
        }
        sim
    }

    /// Lets everything happen until nothing more can, or a limit is reached.
    pub fn run(&mut self) -> Ending {
        loop {
            let control = self.timed.last().map_or(Time::MAX, |(at, _)| *at);
            let limit = control.min(self.time_limit.saturating_add(1));
            while self.world.counts.steps < self.step_limit {
                if let Some((step, _)) = self.stepped.last()
                    && self.world.counts.steps >= *step
                {
                    let (_, control) = self.stepped.pop().expect("it was just seen");
                    self.control(control);
                    continue;
                }
                let Some((now, Event { place, what })) = self.world.queue.pop_before(limit) else {
                    break;
                };
                self.world.now = now;
                self.happen(place as usize, what);
            }
            if self.world.counts.steps >= self.step_limit {
                return Ending::CutOff;
            }
            if limit == control && control <= self.time_limit {
                let (at, control) = self.timed.pop().expect("it was just seen");
                self.world.now = at.max(self.world.now);
                self.control(control);
            } else if self.world.queue.is_empty() {
                return Ending::Quiet;
            } else {
                self.world.now = self.time_limit;
                return Ending::CutOff;
            }
        }
    }

    /// Judges the end of the run; to be called once, after [`run`](Self::run).
    pub fn judge(&mut self, ending: Ending) {
        let world = &mut self.world;
        let down = &world.condition.down;
        let alive = self.group.members().iter().copied().filter(|p| !down.contains(*p)).collect();
        let end = End { alive, faulty: world.faulty, quiet: ending == Ending::Quiet };
        let verdict = world.monitor.at_end(&end);
        world.note(verdict);
    }

    fn happen(&mut self, place: usize, what: Happening<P, M::Tag, O::Tag>) {
        let world = &mut self.world;
        let condition = &mut world.condition;
        if !condition.down.is_empty() || !condition.asleep.is_empty() {
            let id = self.group.id(place);
            if condition.down.contains(id) {
                if let Happening::Message { from, message, tags } = &what {
                    world.lose(*from, id, message, &tags.1);
                }
                return;
            }
            if let Some((_, backlog)) =
                condition.asleep.iter_mut().find(|(p, _)| *p as usize == place)
            {
                backlog.push(what);
                return;
            }
        }
        self.run_step(place, what);
    }

    /// One step of one process.
    #[inline]
    fn run_step(&mut self, place: usize, what: Happening<P, M::Tag, O::Tag>) {
        let world = &mut self.world;
        let id = self.group.id(place);
        let (input, observed) = match what {
            Happening::Message { from, message, tags } => {
                world.counts.delivered += 1;
                let verdict = world.monitor.on_receive(id, Some(&message), &tags.0);
                world.note(verdict);
                (Input::Message { from, message }, tags.1)
            }
            Happening::Request { request, incarnation } => {
                if world.condition.incarnation(place) != incarnation {
                    return;
                }
                world.pending[place / 64] &= !(1 << (place % 64));
                if world.application.next(id).as_ref() != Some(&request) {
                    return world.consult(place, id);
                }
                world.meter.on_request(world.now, id, &request);
                world.application.on_request(id, &request);
                let verdict = world.monitor.on_request(id, &request);
                world.note(verdict);
                (Input::Request(request), O::Tag::default())
            }
            Happening::Timer { timer, armed } => {
                if !world.timers.expire(place, timer, armed) {
                    return;
                }
                (Input::Timer(timer), O::Tag::default())
            }
            Happening::Start => (Input::Start, O::Tag::default()),
            Happening::Recover => {
                let saved = world.condition.saved.get(place).cloned().flatten();
                (Input::Recover(saved), O::Tag::default())
            }
            Happening::Suspect(peer) => (Input::Suspect(peer), O::Tag::default()),
            Happening::Trust(peer) => (Input::Trust(peer), O::Tag::default()),
            Happening::Stamp { from, stamp, tags } => {
                let verdict = world.monitor.on_receive(id, None, &tags.0);
                world.note(verdict);
                (Input::Stamp { from, stamp }, tags.1)
            }
        };
        world.counts.steps += 1;
        let asked = matches!(input, Input::Request(_));
        world.observer.before_step(world.now, id, &input, &observed);
        let group = &self.group;
        let mut host = At { place, id, group, world, consult: asked };
        let process = &mut self.processes[place];
        process.handle(input, &mut Context::new(id, group, &mut host));
        let consult = host.consult;
        let verdict = world.monitor.after_step(id, process);
        world.note(verdict);
        world.observer.after_step(world.now, id, process);
        if asked && world.app_messages > 0 {
            world.send_app_messages(id, process.stamp(), group);
        }
        if consult {
            world.consult(place, id);
        }
    }

    fn control(&mut self, control: Control) {
        let world = &mut self.world;
        let place = |p: ProcessId| self.group.place(p).expect("faults name members");
        match control {
            Control::Strike(What::Crash(p)) => self.crash(p),
            Control::Strike(What::Restart(p, memory)) => self.restart(p, memory),
            Control::Strike(What::Pause(p)) => {
                world.condition.asleep.push((place(p) as u32, Vec::new()));
                world.observer.on_incident(world.now, &Incident::Pause(p));
            }
            Control::End(What::Pause(p)) => {
                let at = place(p);
                world.observer.on_incident(world.now, &Incident::Resume(p));
                let asleep = &mut world.condition.asleep;
                let Some(i) = asleep.iter().position(|(q, _)| *q as usize == at) else { return };
                for what in asleep.remove(i).1 {
                    self.happen(at, what);
                }
            }
            Control::Strike(What::Cut(from, to)) => {
                world.faulty = true;
                world.network.cut(from, to);
                world.observer.on_incident(world.now, &Incident::Cut(format!("{from} → {to}")));
            }
            Control::End(What::Cut(from, to)) => {
                world.network.join(from, to);
                world.observer.on_incident(world.now, &Incident::Heal(format!("{from} → {to}")));
            }
            Control::Strike(What::Partition(sides)) => {
                world.faulty = true;
                world.network.partition(&sides, &self.group);
                let incident = Incident::Cut(format!("partition {sides:?}"));
                world.observer.on_incident(world.now, &incident);
            }
            Control::End(What::Partition(_)) => {
                world.network.unite();
                world.observer.on_incident(world.now, &Incident::Heal("partition".into()));
            }
            Control::Strike(What::Suspect(who, whom)) => {
                world.faulty = true;
                let at = place(who);
                self.happen(at, Happening::Suspect(whom));
            }
            Control::Strike(What::Message(..) | What::Rate(..))
            | Control::End(
                What::Crash(_)
                | What::Restart(..)
                | What::Message(..)
                | What::Rate(..)
                | What::Suspect(..),
            ) => {}
        }
    }

    fn crash(&mut self, p: ProcessId) {
        let world = &mut self.world;
        if !world.condition.down.insert(p) {
            return;
        }
        world.faulty = true;
        let place = self.group.place(p).expect("faults name members");
        world.condition.next_incarnation(place, self.group.len());
        world.condition.asleep.retain(|(q, _)| *q as usize != place);
        world.timers.clear(place);
        world.pending[place / 64] &= !(1 << (place % 64));
        world.application.on_crash(p);
        world.monitor.on_crash(p);
        world.meter.on_crash(world.now, p);
        world.observer.on_incident(world.now, &Incident::Crash(p));
        self.tell_others(p, Happening::Suspect);
    }

    fn restart(&mut self, p: ProcessId, memory: Memory) {
        let world = &mut self.world;
        if !world.condition.down.remove(p) {
            return;
        }
        let place = self.group.place(p).expect("faults name members");
        match memory {
            Memory::Everything => {}
            Memory::Saved => self.processes[place] = self.newborn[place].clone(),
            Memory::Nothing => {
                self.processes[place] = self.newborn[place].clone();
                if let Some(saved) = world.condition.saved.get_mut(place) {
                    *saved = None;
                }
            }
        }
        world.application.on_restart(p);
        world.monitor.on_restart(p);
        world.observer.on_incident(world.now, &Incident::Restart(p));
        self.run_step(place, Happening::Recover);
        self.world.consult(place, p);
        self.tell_others(p, Happening::Trust);
        // The newcomer's own detector starts afresh, and learns who is down.
        if let Some(after) = self.detect_after {
            for peer in self.world.condition.down.iter() {
                let event = Event { place: place as u32, what: Happening::Suspect(peer) };
                self.world.queue.push(self.world.now + after, event);
            }
        }
    }

    /// Tells every other process, after the time that detection takes, if there is a detector.
    fn tell_others(&mut self, p: ProcessId, what: fn(ProcessId) -> Happening<P, M::Tag, O::Tag>) {
        let Some(after) = self.detect_after else { return };
        let at = self.world.now + after;
        for place in 0..self.group.len() {
            if self.group.id(place) != p {
                self.world.queue.push(at, Event { place: place as u32, what: what(p) });
            }
        }
    }

    /// The time, in ticks.
    pub fn now(&self) -> Time {
        self.world.now
    }

    /// The members of the group, in node order.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// The processes, in node order.
    pub fn processes(&self) -> &[P] {
        &self.processes
    }

    /// How many messages there were.
    pub fn counts(&self) -> &Counts {
        &self.world.counts
    }

    /// How many messages of each kind were sent.
    pub fn kinds(&self) -> impl Iterator<Item = (&str, u64)> {
        self.world.kinds.iter().map(|(_, count, name)| (name.as_str(), *count))
    }

    /// What broke, and when.
    pub fn violations(&self) -> &[(Time, Violation)] {
        &self.world.violations
    }

    /// Who waits for an answer.
    pub fn waiting(&self) -> Vec<ProcessId> {
        self.world.application.waiting()
    }

    /// Who is down.
    pub fn down(&self) -> &ProcessSet {
        &self.world.condition.down
    }

    /// Whether a fault struck.
    pub fn faulty(&self) -> bool {
        self.world.faulty
    }

    /// The judges.
    pub fn monitor(&self) -> &M {
        &self.world.monitor
    }

    /// The measures.
    pub fn meter(&self) -> &T {
        &self.world.meter
    }

    /// The watcher.
    pub fn into_observer(self) -> O {
        self.world.observer
    }
}

/// As many violations are kept; a broken run may have millions.
const MOST_VIOLATIONS: usize = 100;

impl<P, A, M, T, O> World<P, A, M, T, O>
where
    P: Process,
    A: Application<P>,
    M: Monitor<P>,
    T: Meter<P>,
    O: Observer<P>,
{
    #[inline]
    fn note(&mut self, verdict: Verdict) {
        if let Err(violation) = verdict {
            self.violate(violation);
        }
    }

    #[cold]
    fn violate(&mut self, violation: Violation) {
        let Violation { property, detail } = violation.clone();
        self.observer.on_incident(self.now, &Incident::Violation { property, detail });
        if self.violations.len() < MOST_VIOLATIONS {
            self.violations.push((self.now, violation));
        }
    }

    /// Asks the client at `place` whether it wants something, and when.
    fn consult(&mut self, place: usize, id: ProcessId) {
        if self.pending[place / 64] >> (place % 64) & 1 == 1 {
            return;
        }
        let Some(request) = self.application.next(id) else { return };
        let pause = if (self.is_hold)(&request) { &mut self.hold } else { &mut self.think };
        let at = pause.after(self.now, place, &mut self.rng);
        self.pending[place / 64] |= 1 << (place % 64);
        let incarnation = self.condition.incarnation(place);
        let what = Happening::Request { request, incarnation };
        self.queue.push(at, Event { place: place as u32, what });
    }

    fn count_kind(&mut self, message: &P::Message) {
        let kind = std::mem::discriminant(message);
        if let Some((_, count, _)) = self.kinds.iter_mut().find(|(k, ..)| *k == kind) {
            *count += 1;
            return;
        }
        self.kinds.push((kind, 1, name_of(message)));
    }

    #[inline]
    fn send(&mut self, from: ProcessId, to: ProcessId, message: P::Message, seen: O::Tag, group: &Group) {
        self.counts.sent += 1;
        self.count_kind(&message);
        let tag = self.monitor.on_send(from, Some(&message));
        let Some(place) = group.place(to) else {
            return self.violate(Violation::new("usage", format!("{from} sent to {to}, who is no member")));
        };
        let tags = (tag, seen);
        if self.network.calm {
            let at = self.now + self.network.delay(from, to, &mut self.rng);
            let what = Happening::Message { from, message, tags };
            return self.queue.push(at, Event { place: place as u32, what });
        }
        let kind = std::mem::discriminant(&message);
        let name = self.kinds.iter().find(|(k, ..)| *k == kind).map_or("", |(.., name)| name);
        match self.network.fate(self.now, (from, to), name, group, &mut self.rng) {
            Fate::Lost => self.lose(from, to, &message, &tags.1),
            Fate::Arrives(at) => {
                let what = Happening::Message { from, message, tags };
                self.queue.push(at, Event { place: place as u32, what });
            }
            Fate::ArrivesTwice(first, second) => {
                self.faulty = true;
                self.counts.duplicated += 1;
                self.monitor.on_duplicated(&message);
                self.observer.on_duplicated(self.now, &tags.1);
                for at in [first, second] {
                    let (message, tags) = (message.clone(), tags.clone());
                    let what = Happening::Message { from, message, tags };
                    self.queue.push(at, Event { place: place as u32, what });
                }
            }
        }
    }

    fn lose(&mut self, from: ProcessId, to: ProcessId, message: &P::Message, seen: &O::Tag) {
        self.faulty = true;
        self.counts.lost += 1;
        self.monitor.on_lost(message);
        self.observer.on_lost(self.now, from, to, seen);
    }

    /// The application talks past the algorithm; its messages carry the algorithm's clock.
    fn send_app_messages(&mut self, from: ProcessId, stamp: u64, group: &Group) {
        for _ in 0..self.app_messages.min(group.len() as u32 - 1) {
            let other = self.rng.below(group.len() as u32 - 1) as usize;
            let own = group.place(from).expect("who asks is a member");
            let place = if other >= own { other + 1 } else { other };
            let to = group.id(place);
            let tag = self.monitor.on_send(from, None);
            let seen = self.observer.on_app_message(self.now, from, to);
            let at = self.now + self.network.delay(from, to, &mut self.rng);
            let what = Happening::Stamp { from, stamp, tags: (tag, seen) };
            self.queue.push(at, Event { place: place as u32, what });
        }
    }
}

/// The first word of a message: the name of its kind.
fn name_of(message: &impl std::fmt::Debug) -> String {
    let text = format!("{message:?}");
    let word = text.split(|c: char| !c.is_alphanumeric() && c != '_').next();
    word.filter(|w| !w.is_empty()).unwrap_or("message").to_owned()
}

/// The world as seen from one process.
struct At<'a, P: Process, A, M: Monitor<P>, T, O: Observer<P>> {
    place: usize,
    id: ProcessId,
    group: &'a Group,
    world: &'a mut World<P, A, M, T, O>,
    /// Whether the client has to be asked for its next wish after the step.
    consult: bool,
}

impl<P, A, M, T, O> Host<P> for At<'_, P, A, M, T, O>
where
    P: Process,
    A: Application<P>,
    M: Monitor<P>,
    T: Meter<P>,
    O: Observer<P>,
{
    #[inline]
    fn perform(&mut self, effect: Effect<P>) {
        let world = &mut *self.world;
        let seen = world.observer.on_effect(world.now, self.id, &effect);
        match effect {
            Effect::Send { to, message } => world.send(self.id, to, message, seen, self.group),
            Effect::Indicate(indication) => {
                world.meter.on_indication(world.now, self.id, &indication);
                world.application.on_indication(self.id, &indication);
                let verdict = world.monitor.on_indication(self.id, &indication);
                world.note(verdict);
                self.consult = true;
            }
            Effect::SetTimer { timer, after } => {
                let rate = world.condition.rates.get(self.place).copied().unwrap_or(1.0);
                let ticks = (after.as_nanos() as f64 / world.nanos_per_tick / rate).round();
                let armed = world.timers.arm(self.place, timer);
                let what = Happening::Timer { timer, armed };
                let at = world.now + (ticks as Time).max(1);
                world.queue.push(at, Event { place: self.place as u32, what });
            }
            Effect::CancelTimer { timer } => world.timers.cancel(self.place, timer),
            Effect::Save(record) => world.condition.save(self.place, self.group.len(), record),
            Effect::Unexpected(what) => {
                let id = self.id;
                world.violate(Violation::new("expected inputs", format!("{id} met {what}")));
            }
        }
    }

    fn choose(&mut self, bound: u32) -> u32 {
        let drawn = self.world.rng.below(bound);
        self.world.observer.on_draw(drawn);
        drawn
    }
}

/// Which timers run, and which setting of each is the valid one.
struct Timers<N> {
    running: Vec<Vec<(N, u32)>>,
    settings: u32,
}

impl<N> Default for Timers<N> {
    fn default() -> Self {
        Self { running: Vec::new(), settings: 0 }
    }
}

impl<N: Copy + Eq> Timers<N> {
    fn arm(&mut self, place: usize, timer: N) -> u32 {
        if place >= self.running.len() {
            self.running.resize_with(place + 1, Vec::new);
        }
        self.settings = self.settings.wrapping_add(1);
        let running = &mut self.running[place];
        match running.iter_mut().find(|(t, _)| *t == timer) {
            Some((_, armed)) => *armed = self.settings,
            None => running.push((timer, self.settings)),
        }
        self.settings
    }

    fn cancel(&mut self, place: usize, timer: N) {
        if let Some(running) = self.running.get_mut(place) {
            running.retain(|(t, _)| *t != timer);
        }
    }

    /// Whether this setting of the timer is valid; if so, it is over now.
    fn expire(&mut self, place: usize, timer: N, armed: u32) -> bool {
        let Some(running) = self.running.get_mut(place) else { return false };
        let Some(i) = running.iter().position(|t| *t == (timer, armed)) else { return false };
        running.swap_remove(i);
        true
    }

    fn clear(&mut self, place: usize) {
        if let Some(running) = self.running.get_mut(place) {
            running.clear();
        }
    }
}

impl<P: Process, MT, OT> Condition<P, MT, OT> {
    fn incarnation(&self, place: usize) -> u32 {
        self.incarnations.get(place).copied().unwrap_or(0)
    }

    fn next_incarnation(&mut self, place: usize, n: usize) {
        self.incarnations.resize(n, 0);
        self.incarnations[place] += 1;
    }

    fn save(&mut self, place: usize, n: usize, record: P::Record) {
        self.saved.resize(n, None);
        self.saved[place] = Some(record);
    }
}

/// The pauses of clients, in ticks.
struct Pause {
    pace: Pace,
    /// For arrivals: when the next wish of each client comes.
    arrivals: Vec<f64>,
}

impl Pause {
    fn new(pace: Pace, n: usize) -> Self {
        let open = matches!(pace, Pace::Arrivals(_));
        Self { pace, arrivals: if open { vec![0.0; n] } else { Vec::new() } }
    }

    fn after(&mut self, now: Time, place: usize, rng: &mut Rng) -> Time {
        let unit = UNIT as f64;
        let pause = match self.pace {
            Pace::Constant(t) => t,
            Pace::Uniform(low, high) => low + (high - low) * rng.unit(),
            Pace::Exponential(mean) => mean * rng.exponential(),
            Pace::Arrivals(mean) => {
                self.arrivals[place] += mean * rng.exponential();
                return now.max((self.arrivals[place] * unit).round() as Time);
            }
        };
        now + (pause * unit).round() as Time
    }
}
