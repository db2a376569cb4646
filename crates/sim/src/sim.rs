//! The loop: the next thing happens, until nothing more can.

use std::collections::{BTreeMap, VecDeque};

use konklave_process::{
    Application, Context, End, Group, Input, Inspect, Ledger, Meter, Monitor, Process, ProcessId,
    ProcessSet, Rng, Violation, prefetch_whole,
};

use crate::condition::Condition;
use crate::control::Schedule;
use crate::event::{Event, EventOf, Happening, HappeningOf, Stamp};
use crate::kinds::Kinds;
use crate::network::Network;
use crate::pause::Pause;
use crate::timers::Timers;
use crate::world::{At, World};
use crate::{Config, Observer, Time, UNIT, Wheel};

/// Bytes of processes that stay near the processor.
const CACHE: usize = 1 << 18;

/// So many of the next events are looked at ahead, so many at a time: what several of them wait for
/// comes as quickly as what one does. A process is prefetched in one look, what it refers to in the
/// next, when that has come.
const AHEAD: usize = 16;
const AT_A_TIME: usize = 8;

/// What clients keep of every member is prefetched, too, if one of them was told something within so
/// many steps: there are times when nobody is.
const LATELY: u64 = 64;

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
    pub(crate) group: Group,
    pub(crate) processes: Vec<P>,
    /// Whether the processes outgrow the near caches: then they are prefetched ahead of their turn.
    crowded: bool,
    /// The places that were prefetched in the last look ahead, as many as these.
    called: ([u32; AT_A_TIME], usize),
    pub(crate) world: World<P, A, M, T, O>,
    /// As newly built, where a restart may need them.
    pub(crate) newborn: Vec<P>,
    pub(crate) schedule: Schedule,
    /// What waited for a sleeper and comes now, before anything of the queue.
    pub(crate) ready: VecDeque<EventOf<P, M, O>>,
    /// From this place on, clients have not been asked yet what they want first.
    unasked: usize,
    time_limit: Time,
    step_limit: u64,
    pub(crate) detect_after: Option<Time>,
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
    P: Inspect,
    A: Application<P>,
    M: Monitor<P>,
    T: Meter<P>,
    O: Observer<P>,
{
    /// A simulation in which all have started and nothing else has happened yet. `is_hold` says
    /// which pause goes before a request: true for the pause inside.
    pub fn new(
        group: Group,
        parts: Parts<P, A, M, T, O>,
        config: &Config,
        is_hold: fn(&P::Request) -> bool,
    ) -> Self {
        let n = parts.processes.len();
        assert_eq!(group.len(), n, "every member has a process");
        let schedule = Schedule::new(&config.faults);
        let place = |p| group.place(p).expect("a script names members");
        let script: Vec<(usize, f64)> = config.script.iter().map(|&(p, t)| (place(p), t)).collect();
        let mut sim = Self {
            newborn: if schedule.restarts { parts.processes.clone() } else { Vec::new() },
            crowded: n * size_of::<P>() > CACHE,
            called: ([0; AT_A_TIME], 0),
            processes: parts.processes,
            schedule,
            ready: VecDeque::new(),
            unasked: 0,
            time_limit: (config.time_limit * UNIT as f64).round() as Time,
            step_limit: config.step_limit,
            detect_after: config.detect_after.map(|t| ((t * UNIT as f64).round() as Time).max(1)),
            world: World {
                now: 0,
                counts: Counts::default(),
                queue: Wheel::default(),
                network: Network::new(config),
                rng: Rng::new(config.seed),
                kinds: Kinds::default(),
                timers: Timers::default(),
                every_step: parts.monitor.judges_every_step(),
                ledger: Ledger::new(parts.application, parts.monitor, parts.meter),
                observer: parts.observer,
                violations: Vec::new(),
                think: Pause::scripted(&script, config.think, n),
                hold: Pause::new(config.hold, n),
                is_hold,
                pending: vec![0; n.div_ceil(64)],
                condition: Condition::new(&config.faults, &group),
                stamps: (BTreeMap::new(), 0),
                faulty: false,
                last_told: 0,
                app_messages: config.app_messages,
                nanos_per_tick: config.unit.as_nanos() as f64 / UNIT as f64,
            },
            group,
        };
        for place in 0..n {
            sim.step(place, sim.group.id(place), Input::Start, &O::Tag::default());
        }
        sim
    }

    /// Lets everything happen until nothing more can, or a limit is reached.
    ///
    /// Faults of a time strike before all else of that time, in the order they were given; faults
    /// of a step strike right after it. The starts of all processes are the first steps, and what
    /// strikes by step before the last of them strikes after it.
    pub fn run(&mut self) -> Ending {
        loop {
            let limit = self.time_limit.saturating_add(1).min(self.schedule.next_time());
            let stop = self.step_limit.min(self.schedule.next_step());
            self.run_until(limit, stop);
            let steps = self.world.counts.steps;
            if steps >= self.step_limit {
                return Ending::CutOff;
            }
            if let Some(control) = self.schedule.take_stepped(steps) {
                self.control(control);
            } else if let Some((at, control)) = self.schedule.take_timed(self.time_limit) {
                self.world.now = at.max(self.world.now);
                self.control(control);
            } else if self.world.queue.is_empty() && !self.world.condition.is_awaited() {
                return Ending::Quiet;
            } else {
                self.world.now = self.time_limit;
                return Ending::CutOff;
            }
        }
    }

    /// Lets happen what comes before the time `limit`, as long as there are fewer steps than `stop`.
    fn run_until(&mut self, limit: Time, stop: u64) {
        while self.world.counts.steps < stop && limit > 0 && self.unasked < self.group.len() {
            self.unasked += 1;
            self.ask_first(self.unasked - 1);
        }
        while self.world.counts.steps < stop
            && let Some(Event { place, what }) = self.next_event(limit)
        {
            let place = place as usize;
            let id = self.group.id(place);
            let Some(what) = self.world.reach(place, id, what) else { continue };
            // Messages are what a run consists of: their way is short, and there is only this one.
            match what {
                Happening::Message { from, message, tags } => {
                    let world = &mut self.world;
                    world.counts.delivered += 1;
                    let verdict = world.ledger.monitor.on_receive(id, Some(&message), &tags.0);
                    world.note(verdict);
                    world.observer.before_message(world.now, id, from, &message, &tags.1);
                    self.act(place, id, |process, ctx| process.on_message(from, message, ctx));
                }
                other => self.happen(place, id, other),
            }
        }
    }

    // Not inlined, every event would be copied once more.
    #[inline(always)]
    fn next_event(&mut self, limit: Time) -> Option<EventOf<P, M, O>> {
        if !self.ready.is_empty() {
            return self.ready.pop_front();
        }
        let (now, event) = self.world.queue.pop_before(limit)?;
        self.world.now = now;
        if self.crowded && self.world.queue.pass() <= AHEAD {
            self.prefetch();
        }
        Some(event)
    }

    /// Prefetches what the step of a member looks at.
    #[inline]
    fn prefetch_member(&self, place: usize) {
        if let Some(process) = self.processes.get(place) {
            prefetch_whole(process);
        }
        self.world.timers.prefetch(place);
        // What is kept by id stands in no order that could be prefetched, unless ids are places.
        let Some(id) = self.group.prefetch(place) else { return };
        let world = &self.world;
        let told = world.counts.steps - world.last_told < LATELY;
        world.ledger.monitor.prefetch(id, told);
        if told {
            world.ledger.application.prefetch(id);
        }
    }

    /// Prefetches what the next events will look at: in large groups that is in no near cache.
    #[inline(never)]
    fn prefetch(&mut self) {
        let (mut places, known) = self.called;
        for process in places[..known].iter().filter_map(|p| self.processes.get(*p as usize)) {
            process.prefetch();
        }
        let mut found = 0;
        self.world.queue.scout(AT_A_TIME, |event| {
            places[found] = event.place;
            found += 1;
        });
        self.called = (places, found);
        places[..found].iter().for_each(|&place| self.prefetch_member(place as usize));
    }

    /// Judges the end of the run; to be called once, after [`run`](Self::run).
    pub fn judge(&mut self, ending: Ending) {
        let world = &mut self.world;
        let down = world.condition.down();
        let alive = self.group.members().iter().copied().filter(|p| !down.contains(*p)).collect();
        let end = End { alive, faulty: world.faulty, quiet: ending == Ending::Quiet };
        let members = || self.group.members().iter().copied().zip(&self.processes);
        let unseen = if world.every_step { 0 } else { self.processes.len() };
        for (p, process) in members().take(unseen).filter(|(p, _)| end.alive.contains(*p)) {
            let verdict = world.ledger.monitor.after_step(p, process);
            world.note(verdict);
        }
        let verdict = world.ledger.judge_end(&end, members());
        world.note(verdict);
    }

    /// Asks the client at `place` for its first wish. That of most comes at once: a queue of them
    /// all would only be filled to be emptied.
    #[inline]
    fn ask_first(&mut self, place: usize) {
        let id = self.group.id(place);
        if !self.world.condition.all_well {
            return self.world.consult(place, id);
        }
        match self.world.wish(place, id) {
            Some((at, request)) if at == self.world.now => self.request(place, id, request),
            Some((at, request)) => self.world.schedule(at, place, request),
            None => {}
        }
    }

    /// Something other than a message happens to a process that is up and awake.
    #[inline(never)]
    fn happen(&mut self, place: usize, id: ProcessId, what: HappeningOf<P, M, O>) {
        let world = &mut self.world;
        let nothing = O::Tag::default();
        match what {
            Happening::Request { request, incarnation } => {
                if world.condition.incarnation(place) != incarnation {
                    return;
                }
                world.forget_wish(place);
                if world.ledger.application.next(id).as_ref() != Some(&request) {
                    return world.consult(place, id);
                }
                self.request(place, id, request);
            }
            Happening::Timer { timer, armed } => {
                if world.timers.expire(place, &timer, armed) {
                    self.step(place, id, Input::Timer(timer), &nothing);
                }
            }
            Happening::Suspect(peer) => self.step(place, id, Input::Suspect(peer), &nothing),
            Happening::Trust(peer) => self.step(place, id, Input::Trust(peer), &nothing),
            Happening::Stamp(number) => {
                let Some(Stamp { from, stamp, tags }) = world.stamps.0.remove(&number) else {
                    return;
                };
                let verdict = world.ledger.monitor.on_receive(id, None, &tags.0);
                world.note(verdict);
                self.step(place, id, Input::Stamp { from, stamp }, &tags.1);
            }
            Happening::Message { .. } => {}
        }
    }

    /// The client asks.
    #[inline]
    fn request(&mut self, place: usize, id: ProcessId, request: P::Request) {
        self.world.on_request(id, &request);
        self.step(place, id, Input::Request(request), &O::Tag::default());
        if self.world.app_messages > 0 {
            let stamp = self.processes[place].stamp();
            self.world.send_app_messages(id, stamp, &self.group);
        }
        self.world.consult(place, id);
    }

    /// One step of one process, other than the receipt of a message.
    // Inlined wherever an input is made, it leaves of the process only what meets that input.
    #[inline(always)]
    pub(crate) fn step(&mut self, place: usize, id: ProcessId, input: Input<P>, seen: &O::Tag) {
        self.world.observer.before_step(self.world.now, id, &input, seen);
        self.act(place, id, |process, ctx| process.handle(input, ctx));
    }

    /// A process acts, and is judged by what it did.
    #[inline(always)]
    fn act(&mut self, place: usize, id: ProcessId, act: impl FnOnce(&mut P, &mut Context<'_, P>)) {
        let world = &mut self.world;
        world.counts.steps += 1;
        let process = &mut self.processes[place];
        let mut host = At { place, id, group: &self.group, world, consult: false };
        act(process, &mut Context::new(id, &self.group, &mut host));
        let consult = host.consult;
        if world.every_step {
            let verdict = world.ledger.monitor.after_step(id, process);
            world.note(verdict);
        }
        world.observer.after_step(world.now, id, process);
        if consult {
            world.consult(place, id);
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
        self.world.kinds.iter()
    }

    /// What broke, and when.
    pub fn violations(&self) -> &[(Time, Violation)] {
        &self.world.violations
    }

    /// Who waits for an answer.
    pub fn waiting(&self) -> Vec<ProcessId> {
        self.world.ledger.application.waiting()
    }

    /// Whether nobody who is up waits for an answer or has anything more to ask.
    pub fn is_served(&self) -> bool {
        let members = self.group.members().iter().copied();
        self.world.ledger.is_served(members.filter(|p| !self.down().contains(*p)))
    }

    /// Who is down.
    pub fn down(&self) -> &ProcessSet {
        self.world.condition.down()
    }

    /// Whether a fault struck.
    pub fn faulty(&self) -> bool {
        self.world.faulty
    }

    /// The judges.
    pub fn monitor(&self) -> &M {
        &self.world.ledger.monitor
    }

    /// The measures.
    pub fn meter(&self) -> &T {
        &self.world.ledger.meter
    }

    /// The watcher.
    pub fn into_observer(self) -> O {
        self.world.observer
    }

    /// The processes in node order, the measures and the judges.
    pub fn into_parts(self) -> (Vec<P>, T, M) {
        let Ledger { meter, monitor, .. } = self.world.ledger;
        (self.processes, meter, monitor)
    }
}
