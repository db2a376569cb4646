//! The main loop: takes the next event until there is none.

use std::collections::{BTreeMap, VecDeque};

use konklave_process::{
    Application, Context, End, Group, Input, Inspect, Ledger, Meter, Monitor, Process, ProcessId,
    ProcessSet, Rng, Violation, Window, prefetch_whole,
};

use crate::condition::Condition;
use crate::control::{Schedule, Struck};
use crate::event::{Event, EventKind, EventKindOf, EventOf, Stamp};
use crate::kinds::Kinds;
use crate::network::Network;
use crate::pause::Pause;
use crate::service::Service;
use crate::stall::{Progress, Stall, StallWatch};
use crate::timers::Timers;
use crate::world::{Measured, StepHost, World};
use crate::{Config, Fault, Observer, Pace, Purpose, Streams, Time, UNIT, What, Wheel};

/// How many bytes of processes fit into the near caches of a processor.
const CACHE: usize = 1 << 18;

/// How many of the next events are prefetched ahead, and how many at a time. Several cache misses at a time
/// take as long as one. A process is prefetched in one round, and what it points to in the next.
const AHEAD: usize = 16;
const AT_A_TIME: usize = 8;

/// The clients' data is prefetched, too, if some client got an indication within this many steps. In long
/// phases of some runs, none does.
const LATELY: u64 = 64;

/// The processes, clients, judges, measures and observers of a run.
#[derive(Debug)]
pub struct Parts<P, A, M, T, O> {
    /// The processes, in node order.
    pub processes: Vec<P>,
    /// The clients.
    pub application: A,
    /// The judges.
    pub monitor: M,
    /// The measures.
    pub meter: T,
    /// The observer.
    pub observer: O,
}

/// A simulation in progress.
pub struct Sim<P: Process, A, M: Monitor<P>, T, O: Observer<P> = ()> {
    pub(crate) group: Group,
    pub(crate) processes: Vec<P>,
    /// Whether the processes outgrow the near caches, so that they are prefetched ahead of their turn.
    prefetching: bool,
    /// The places that were prefetched in the last round, and how many they are.
    prefetched: ([u32; AT_A_TIME], usize),
    pub(crate) world: World<P, A, M, T, O>,
    /// The processes in their initial states, if there are restarts.
    pub(crate) initial: Vec<P>,
    pub(crate) schedule: Schedule,
    /// The effect of each fault of the configuration that has a time or a step.
    pub(crate) struck: Vec<Struck>,
    /// The time of the last fault.
    pub(crate) struck_at: Time,
    /// How long after the last fault a run ends that has served all, if it ends then.
    until_served: Option<Time>,
    /// Whether all was served when clients had so many events.
    all_served: (u64, bool),
    /// Ends the run if no client learns anything new.
    stall_watch: StallWatch,
    stall: Option<Stall>,
    /// Events that waited for a paused process; they come before those of the queue.
    pub(crate) ready: VecDeque<EventOf<P, M, O>>,
    /// The first place whose client has not been asked for its first request yet.
    first_unasked: usize,
    time_limit: Time,
    step_limit: u64,
    pub(crate) detect_after: Option<Time>,
}

/// Counts of messages and steps.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Messages sent.
    pub sent: u64,
    /// Messages delivered.
    pub delivered: u64,
    /// Messages lost in flight, or arrived at a crashed process.
    pub lost: u64,
    /// Messages duplicated in flight.
    pub duplicated: u64,
    /// Steps of processes.
    pub steps: u64,
    /// Bytes sent, if sending takes time.
    pub bytes: u64,
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// Nothing more can happen.
    Quiet,
    /// A limit of time or steps cut it off.
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
    /// A simulation in which all processes have started, and nothing else has happened yet. `is_hold` tells
    /// whether a request comes after the holding time (true) or after a pause.
    pub fn new(
        group: Group,
        parts: Parts<P, A, M, T, O>,
        config: &Config,
        is_hold: fn(&P::Request) -> bool,
    ) -> Self {
        Self::sized(group, parts, config, is_hold, |_| 1)
    }

    /// As [`new`](Self::new); `size_of` gives the size of a message in bytes, for nodes that need time to send.
    pub fn sized(
        group: Group,
        parts: Parts<P, A, M, T, O>,
        config: &Config,
        is_hold: fn(&P::Request) -> bool,
        size_of: fn(&P::Message) -> usize,
    ) -> Self {
        let n = parts.processes.len();
        assert_eq!(group.len(), n, "every member has a process");
        let schedule = Schedule::new(&config.faults);
        let measured = (parts.meter.window() != Window::Always).then_some(Measured::default());
        let (think, hold) = client_pauses(config, &group);
        let ticks = |t: f64| (t * UNIT as f64).round() as Time;
        let mut sim = Self {
            initial: if schedule.restarts { parts.processes.clone() } else { Vec::new() },
            prefetching: n * std::mem::size_of::<P>() > CACHE,
            prefetched: ([0; AT_A_TIME], 0),
            processes: parts.processes,
            schedule,
            struck_at: 0,
            until_served: config.until_served.map(ticks),
            all_served: (u64::MAX, false),
            stall_watch: StallWatch::new(config.patience.map(|p| (p.steps, ticks(p.time)))),
            stall: None,
            struck: config.faults.iter().map(struck_before).collect(),
            ready: VecDeque::new(),
            first_unasked: 0,
            time_limit: ticks(config.time_limit),
            step_limit: config.step_limit,
            detect_after: config.detect_after.map(|t| ticks(t).max(1)),
            world: World {
                now: 0,
                acted: 0,
                counts: Counts::default(),
                queue: Wheel::default(),
                network: Network::new(config, n),
                choices: Rng::new(config.seed),
                app_streams: app_streams(config, n),
                kinds: Kinds::default(),
                timers: Timers::default(),
                every_step: parts.monitor.judges_every_step(),
                ledger: Ledger::new(parts.application, parts.monitor, parts.meter),
                observer: parts.observer,
                violations: Vec::new(),
                think,
                hold,
                service: Service::new(config, n),
                size_of,
                is_hold,
                pending: vec![0; n.div_ceil(64)],
                condition: Condition::new(
                    &config.faults,
                    &group,
                    config.service != Pace::Constant(0.0),
                ),
                stamps: (BTreeMap::new(), 0),
                measured,
                faulty: false,
                last_told: 0,
                client_events: 0,
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

    /// Runs until nothing more can happen or a limit is reached.
    ///
    /// Faults at a time happen before all events of that time, in the order given. Faults after a step happen
    /// right after it. The starts of the processes are the first steps; a fault after one of them happens
    /// after all of them.
    pub fn run(&mut self) -> Ending {
        loop {
            let limit = self.time_limit.saturating_add(1).min(self.schedule.next_time());
            let stop = self.step_limit.min(self.schedule.next_step());
            let looks_after_each = self.until_served.is_some();
            let next = if looks_after_each { self.world.counts.steps + 1 } else { stop };
            let next = next.min(self.stall_watch.next());
            self.run_until(limit, next.min(stop));
            let steps = self.world.counts.steps;
            if steps >= self.step_limit || self.has_served_all() || self.has_stalled() {
                return Ending::CutOff;
            }
            if steps >= next && steps < stop {
                continue;
            }
            if let Some(control) = self.schedule.take_stepped(steps) {
                self.control(control);
            } else if let Some((at, control)) = self.schedule.take_timed(self.time_limit) {
                self.world.now = at.max(self.world.now);
                self.control(control);
            } else if !self.world.condition.is_awaited() && self.has_only_void_events() {
                // The last events may have been void, such as timers that were cancelled.
                self.world.now = self.world.acted;
                return Ending::Quiet;
            } else {
                self.world.now = self.time_limit;
                return Ending::CutOff;
            }
        }
    }

    /// Whether the run ends because all requests are served and no fault is to come.
    fn has_served_all(&mut self) -> bool {
        let Some(grace) = self.until_served else { return false };
        if !self.schedule.is_empty() || self.world.now < self.struck_at + grace {
            return false;
        }
        if self.all_served.0 != self.world.client_events {
            self.all_served = (self.world.client_events, self.is_served());
        }
        self.all_served.1
    }

    /// Whether the run ends because no client learns anything new.
    fn has_stalled(&mut self) -> bool {
        let world = &self.world;
        if world.counts.steps < self.stall_watch.next() {
            return false;
        }
        self.stall = self.stall_watch.look(&Progress {
            client_events: world.client_events,
            steps: world.counts.steps,
            now: world.now,
            kinds: &world.kinds,
            expects: !self.schedule.is_empty() || world.pending.iter().any(|places| *places != 0),
        });
        self.stall.is_some()
    }

    /// Whether no event is left that matters, at the end of a run that is cut off. A timer that was cancelled long
    /// before may still be in the queue, far beyond the limit.
    fn has_only_void_events(&mut self) -> bool {
        while let Some((_, Event { place, kind })) = self.world.queue.pop_before(Time::MAX) {
            let place = place as usize;
            let (condition, timers) = (&self.world.condition, &self.world.timers);
            let is_up = || !condition.down().contains(self.group.id(place));
            let matters = match kind {
                EventKind::Message { .. } | EventKind::Stamp(_) => true,
                EventKind::Request { incarnation, .. } | EventKind::Served { incarnation } => {
                    is_up() && condition.incarnation(place) == incarnation
                }
                EventKind::Timer { timer, armed } => timers.is_running(place, &timer, armed),
                EventKind::Suspect(_) | EventKind::Trust(_) => is_up(),
            };
            if matters {
                return false;
            }
        }
        true
    }

    /// Takes events before the time `limit`, as long as there are fewer steps than `stop`.
    fn run_until(&mut self, limit: Time, stop: u64) {
        while self.world.counts.steps < stop && limit > 0 && self.first_unasked < self.group.len() {
            self.first_unasked += 1;
            self.ask_client_first(self.first_unasked - 1);
        }
        while self.world.counts.steps < stop
            && let Some(Event { place, kind }) = self.next_event(limit)
        {
            let place = place as usize;
            let id = self.group.id(place);
            let Some(kind) = self.world.reach(place, id, kind) else { continue };
            // Most events are messages, so they have a short path of their own, inlined here only.
            match kind {
                EventKind::Message { from, message, tags } => {
                    let world = &mut self.world;
                    world.counts.delivered += 1;
                    let verdict = world.ledger.on_receive(id, Some(&message), &tags.0);
                    world.note(verdict);
                    world.observer.before_message(world.now, id, from, &message, &tags.1);
                    self.act(place, id, |process, ctx| process.on_message(from, message, ctx));
                }
                other => self.handle_other(place, id, other),
            }
        }
    }

    // Inlined, since otherwise every event would be copied once more.
    #[inline(always)]
    fn next_event(&mut self, limit: Time) -> Option<EventOf<P, M, O>> {
        if !self.ready.is_empty() {
            return self.ready.pop_front();
        }
        let (now, event) = self.world.queue.pop_before(limit)?;
        self.world.now = now;
        if self.prefetching && self.world.queue.pass() <= AHEAD {
            self.prefetch();
        }
        Some(event)
    }

    /// Prefetches the data that a step of a member reads.
    #[inline]
    fn prefetch_member(&self, place: usize) {
        if let Some(process) = self.processes.get(place) {
            prefetch_whole(process);
        }
        self.world.timers.prefetch(place);
        self.world.network.prefetch(place);
        // Data that is stored by id can be prefetched only if ids are places.
        let Some(id) = self.group.prefetch(place) else { return };
        let world = &self.world;
        let told = world.counts.steps - world.last_told < LATELY;
        world.ledger.prefetch(id, told);
    }

    /// Prefetches the data that the next events will read: in large groups it is in no near cache.
    #[inline(never)]
    fn prefetch(&mut self) {
        let (mut places, known) = self.prefetched;
        for process in places[..known].iter().filter_map(|p| self.processes.get(*p as usize)) {
            process.prefetch();
        }
        let mut found = 0;
        self.world.queue.scout(AT_A_TIME, |event| {
            places[found] = event.place;
            found += 1;
        });
        self.prefetched = (places, found);
        places[..found].iter().for_each(|&place| self.prefetch_member(place as usize));
    }

    /// Judges the end of the run. Call it once, after [`run`](Self::run).
    pub fn judge(&mut self, ending: Ending) {
        let world = &mut self.world;
        let down = world.condition.down();
        let quiet = ending == Ending::Quiet;
        let end = End::new(self.group.members(), down, world.faulty, quiet);
        let members = || self.group.members().iter().copied().zip(&self.processes);
        let unseen = if world.every_step { 0 } else { self.processes.len() };
        for (p, process) in members().take(unseen).filter(|(p, _)| end.alive.contains(*p)) {
            let verdict = world.ledger.after_step(p, process);
            world.note(verdict);
        }
        let verdict = world.ledger.judge_end(&end, members());
        world.note(verdict);
    }

    /// Asks the client at `place` for its first request. Most clients make it at once, and then it does not go
    /// through the queue.
    #[inline]
    fn ask_client_first(&mut self, place: usize) {
        let id = self.group.id(place);
        if !self.world.condition.all_well {
            return self.world.ask_client(place, id);
        }
        match self.world.next_request(place, id) {
            Some((at, request)) if at == self.world.now => self.request(place, id, request),
            Some((at, request)) => self.world.schedule(at, place, request),
            None => {}
        }
    }

    /// Handles an event other than a message, at a process that is up and not paused.
    #[inline(never)]
    fn handle_other(&mut self, place: usize, id: ProcessId, kind: EventKindOf<P, M, O>) {
        let world = &mut self.world;
        let nothing = O::Tag::default();
        match kind {
            EventKind::Request { request, incarnation } => {
                if world.condition.incarnation(place) != incarnation {
                    return;
                }
                world.clear_pending_request(place);
                if world.ledger.application.next(id).as_ref() != Some(&request) {
                    return world.ask_client(place, id);
                }
                self.request(place, id, request);
            }
            EventKind::Timer { timer, armed } => {
                if world.timers.expire(place, &timer, armed) {
                    self.step(place, id, Input::Timer(timer), &nothing);
                }
            }
            EventKind::Suspect(peer) => self.step(place, id, Input::Suspect(peer), &nothing),
            EventKind::Trust(peer) => self.step(place, id, Input::Trust(peer), &nothing),
            EventKind::Stamp(number) => {
                let Some(Stamp { from, stamp, tags }) = world.stamps.0.remove(&number) else {
                    return;
                };
                let verdict = world.ledger.on_receive(id, None, &tags.0);
                world.note(verdict);
                self.step(place, id, Input::Stamp { from, stamp }, &tags.1);
            }
            EventKind::Message { .. } | EventKind::Served { .. } => {}
        }
    }

    /// The client makes a request.
    #[inline]
    fn request(&mut self, place: usize, id: ProcessId, request: P::Request) {
        self.world.on_request(place, id, &request);
        self.step(place, id, Input::Request(request), &O::Tag::default());
        if self.world.app_messages > 0 {
            let stamp = self.processes[place].stamp();
            self.world.send_app_messages(id, stamp, &self.group);
        }
        self.world.ask_client(place, id);
    }

    /// Makes a step of a process on any input but a message.
    // Inlined at every caller, so that only the handler of that input remains.
    #[inline(always)]
    pub(crate) fn step(&mut self, place: usize, id: ProcessId, input: Input<P>, seen: &O::Tag) {
        self.world.observer.before_step(self.world.now, id, &input, seen);
        self.act(place, id, |process, ctx| process.handle(input, ctx));
    }

    /// Runs one handler of a process, and judges the step.
    #[inline(always)]
    fn act(&mut self, place: usize, id: ProcessId, act: impl FnOnce(&mut P, &mut Context<'_, P>)) {
        let world = &mut self.world;
        world.counts.steps += 1;
        world.acted = world.now;
        let process = &mut self.processes[place];
        let mut host = StepHost { place, id, group: &self.group, world, ask_client: false };
        act(process, &mut Context::new(id, &self.group, &mut host));
        let ask_client = host.ask_client;
        if world.every_step {
            let verdict = world.ledger.after_step(id, process);
            world.note(verdict);
        }
        world.observer.after_step(world.now, id, process);
        if ask_client {
            world.ask_client(place, id);
        }
    }

    /// The time, in ticks; at a quiet end, that of the last event that changed anything.
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

    /// Counts of messages and steps.
    pub fn counts(&self) -> &Counts {
        &self.world.counts
    }

    /// How many messages were sent in the measured part of the run; none if all of it is measured.
    pub fn measured_messages(&self) -> Option<u64> {
        self.world.measured.map(|measured| measured.messages())
    }

    /// The stall that ended the run, if one did.
    pub fn stall(&self) -> Option<&Stall> {
        self.stall.as_ref()
    }

    /// How many messages of each kind were sent.
    pub fn kinds(&self) -> impl Iterator<Item = (&str, u64)> {
        self.world.kinds.iter()
    }

    /// The violations, with their times.
    pub fn violations(&self) -> &[(Time, Violation)] {
        &self.world.violations
    }

    /// The processes whose clients wait.
    pub fn waiting(&self) -> Vec<ProcessId> {
        self.world.ledger.application.waiting()
    }

    /// Whether no client waits, and none at a process that is up has a further request.
    pub fn is_served(&self) -> bool {
        let members = self.group.members().iter().copied();
        self.world.ledger.is_served(members.filter(|p| !self.down().contains(*p)))
    }

    /// The processes that are down.
    pub fn down(&self) -> &ProcessSet {
        self.world.condition.down()
    }

    /// Whether there was a fault.
    pub fn faulty(&self) -> bool {
        self.world.faulty
    }

    /// The effect of each fault of the configuration, in order.
    pub fn struck(&self) -> Vec<Struck> {
        let mut struck = self.struck.clone();
        for (index, nth, seen) in self.world.network.mishaps() {
            struck[index] = if seen < nth { Struck::TooFew(seen) } else { Struck::Yes };
        }
        struck
    }

    /// The judges.
    pub fn monitor(&self) -> &M {
        self.world.ledger.monitor()
    }

    /// The measures.
    pub fn meter(&self) -> &T {
        self.world.ledger.meter()
    }

    /// The observer.
    pub fn into_observer(self) -> O {
        self.world.observer
    }

    /// The processes in node order, the measures and the judges.
    pub fn into_parts(self) -> (Vec<P>, T, M) {
        let (_, monitor, meter) = self.world.ledger.into_parts();
        (self.processes, meter, monitor)
    }
}

/// The effect of a fault that is known before the run: clock rates differ from the start.
fn struck_before(fault: &Fault) -> Struck {
    match fault.what {
        What::Rate(_, 1.0) => Struck::InVain("it changes no rate"),
        What::Rate(..) => Struck::Yes,
        _ => Struck::default(),
    }
}

/// The pauses of clients before requests, scripted requests first, and the times for which they hold.
fn client_pauses(config: &Config, group: &Group) -> (Pause, Pause) {
    let n = group.len();
    let place = |p| group.place(p).expect("a script names members");
    let script: Vec<(usize, f64)> = config.script.iter().map(|&(p, t)| (place(p), t)).collect();
    let think = Pause::new(config.think, Purpose::Think, config.seed, &config.weights, n);
    let hold = Pause::new(config.hold, Purpose::Hold, config.seed, &[], n);
    (think.scripted(&script, n), hold)
}

/// The random streams of the application's messages, for `n` nodes; none without such messages.
fn app_streams(config: &Config, n: usize) -> Streams {
    match config.app_messages {
        0 => Streams::none(),
        _ => Streams::new(config.seed, Purpose::AppMessage, n),
    }
}
