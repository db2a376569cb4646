//! The state of a simulation without its processes: time, queue, network, clients, judges, measures.

use std::collections::BTreeMap;

use konklave_process::{
    Application, Effect, Group, Host, Inspect, Ledger, Meter, Monitor, Process, ProcessId, Rng,
    Verdict, Violation, Window,
};

use crate::condition::Condition;
use crate::event::{Event, EventKind, EventKindOf, EventOf, Stamp, StampOf};
use crate::kinds::Kinds;
use crate::network::{Fate, Network};
use crate::observer::Incident;
use crate::pause::Pause;
use crate::service::Service;
use crate::timers::Timers;
use crate::{Counts, Observer, Streams, Time, Wheel};

pub(crate) struct World<P: Process, A, M: Monitor<P>, T, O: Observer<P>> {
    pub(crate) now: Time,
    /// The time of the last step, lost message or fault: void events after it do not count.
    pub(crate) acted: Time,
    pub(crate) counts: Counts,
    pub(crate) queue: Wheel<EventOf<P, M, O>>,
    pub(crate) network: Network,
    /// The draws of processes (`choose`).
    pub(crate) choices: Rng,
    /// The streams of messages of the application; none without such messages.
    pub(crate) app_streams: Streams,
    pub(crate) kinds: Kinds,
    pub(crate) timers: Timers<P::Timer>,
    pub(crate) ledger: Ledger<P, A, M, T>,
    /// Whether the monitor sees every step; otherwise it sees every process once, at the end.
    pub(crate) every_step: bool,
    pub(crate) observer: O,
    pub(crate) violations: Vec<(Time, Violation)>,
    pub(crate) think: Pause,
    pub(crate) hold: Pause,
    /// The messages at busy nodes; none if handling a message takes no time.
    pub(crate) service: Option<Service<EventKindOf<P, M, O>>>,
    /// The size of a message in bytes.
    pub(crate) size_of: fn(&P::Message) -> usize,
    pub(crate) is_hold: fn(&P::Request) -> bool,
    /// The places whose clients have a request scheduled, as a bit set.
    pub(crate) pending: Vec<u64>,
    pub(crate) condition: Condition<P, M::Tag, O::Tag>,
    /// The messages of the application in flight, and how many were ever sent.
    pub(crate) stamps: (BTreeMap<u32, StampOf<P, M, O>>, u32),
    pub(crate) faulty: bool,
    /// How many messages had been sent when the measured part of the run began and ended; none if all of it is
    /// measured.
    pub(crate) measured: Option<Measured>,
    /// How many requests clients made and how many indications they got.
    pub(crate) client_events: u64,
    /// The last step with an indication to a client.
    pub(crate) last_told: u64,
    pub(crate) app_messages: u32,
    pub(crate) nanos_per_tick: f64,
}

/// The messages sent before the measured part of a run, and until its end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Measured {
    from: Option<u64>,
    until: u64,
    closed: bool,
}

impl Measured {
    fn note(&mut self, window: Window, sent: u64) {
        if window == Window::Open {
            self.from.get_or_insert(sent);
        }
        if self.from.is_some() && !self.closed {
            self.until = sent;
            self.closed = window == Window::Closed;
        }
    }

    /// The messages sent in between.
    pub(crate) fn messages(&self) -> u64 {
        self.from.map_or(0, |from| self.until - from)
    }
}

/// How many violations are kept; a bad run may have millions.
const MOST_VIOLATIONS: usize = 100;

impl<P, A, M, T, O> World<P, A, M, T, O>
where
    P: Inspect,
    A: Application<P>,
    M: Monitor<P>,
    T: Meter<P>,
    O: Observer<P>,
{
    #[inline]
    pub(crate) fn note(&mut self, verdict: Verdict) {
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

    /// The next request of the client at `place` and its time; none if one is scheduled already, or the
    /// process is down.
    pub(crate) fn next_request(
        &mut self,
        place: usize,
        id: ProcessId,
    ) -> Option<(Time, P::Request)> {
        if self.pending[place / 64] >> (place % 64) & 1 == 1
            || !self.condition.all_well && self.condition.down().contains(id)
        {
            return None;
        }
        let request = self.ledger.application.next(id)?;
        let pause = if (self.is_hold)(&request) { &mut self.hold } else { &mut self.think };
        Some((pause.after(self.now, place), request))
    }

    /// Asks the client at `place` for its next request, and schedules it.
    pub(crate) fn ask_client(&mut self, place: usize, id: ProcessId) {
        if let Some((at, request)) = self.next_request(place, id) {
            self.schedule(at, place, request);
        }
    }

    /// Schedules a request of the client at `place`.
    pub(crate) fn schedule(&mut self, at: Time, place: usize, request: P::Request) {
        self.pending[place / 64] |= 1 << (place % 64);
        let incarnation = self.condition.incarnation(place);
        let kind = EventKind::Request { request, incarnation };
        self.queue.push(at, Event { place: place as u32, kind });
    }

    /// Notes that the client at `place` has no request scheduled.
    pub(crate) fn clear_pending_request(&mut self, place: usize) {
        self.pending[place / 64] &= !(1 << (place % 64));
    }

    /// The client makes a request.
    pub(crate) fn on_request(&mut self, place: usize, id: ProcessId, request: &P::Request) {
        self.client_events += 1;
        if let Some(arrived) = self.think.arrived(place)
            && !(self.is_hold)(request)
        {
            self.ledger.on_arrival(arrived, id);
        }
        let verdict = self.ledger.on_request(self.now, id, request);
        self.note(verdict);
    }

    #[inline(always)]
    fn send(
        &mut self,
        (from, place): (ProcessId, usize),
        to: ProcessId,
        message: P::Message,
        group: &Group,
    ) {
        let seen = self.observer.on_send(self.now, from, to, &message);
        self.counts.sent += 1;
        self.kinds.count(&message);
        let tag = self.ledger.on_send(from, Some(&message));
        let Some(receiver) = group.place_near(to, place) else {
            return self.violate(Violation::stranger(from, to));
        };
        let (sender, place, tags) = (place, receiver as u32, (tag, seen));
        if self.network.fault_free {
            let at = self.now + self.network.delay((from, sender), to);
            self.queue.push_with(at, || Event {
                place,
                kind: EventKind::Message { from, message, tags },
            });
        } else {
            let event = Event { place, kind: EventKind::Message { from, message, tags } };
            self.send_through_faults(sender, to, event, group);
        }
    }

    /// Sends a message through a network with faults.
    #[inline(never)]
    fn send_through_faults(
        &mut self,
        sender: usize,
        to: ProcessId,
        event: EventOf<P, M, O>,
        group: &Group,
    ) {
        let Event { place, kind: EventKind::Message { from, message, tags } } = event else {
            return;
        };
        let now = match self.network.is_slow() {
            true => {
                let size = (self.size_of)(&message);
                self.counts.bytes += size as u64;
                self.network.departure(self.now, sender, size)
            }
            false => self.now,
        };
        let kind = self.kinds.name(&message);
        let mut push = |at, message, tags| {
            self.queue.push(at, Event { place, kind: EventKind::Message { from, message, tags } });
        };
        match self.network.fate(now, (from, sender), to, kind, group) {
            Fate::Lost => self.lose(from, to, &message, &tags.1),
            Fate::Arrives(at) => push(at, message, tags),
            Fate::ArrivesTwice(first, second) => {
                self.faulty = true;
                self.counts.duplicated += 1;
                self.ledger.on_duplicated(&message);
                self.observer.on_duplicated(self.now, &tags.1);
                push(first, message.clone(), tags.clone());
                push(second, message, tags);
            }
        }
    }

    pub(crate) fn lose(
        &mut self,
        from: ProcessId,
        to: ProcessId,
        message: &P::Message,
        seen: &O::Tag,
    ) {
        self.faulty = true;
        self.counts.lost += 1;
        self.ledger.on_lost(message);
        self.observer.on_lost(self.now, from, to, seen);
    }

    /// Returns the event if its process can handle it now. If the process is down, the event is dropped; if it
    /// is paused, the event waits.
    #[inline]
    pub(crate) fn reach(
        &mut self,
        place: usize,
        id: ProcessId,
        kind: EventKindOf<P, M, O>,
    ) -> Option<EventKindOf<P, M, O>> {
        if self.condition.all_well {
            return Some(kind);
        }
        if self.condition.down().contains(id) {
            self.drop_for_crashed(id, kind);
            return None;
        }
        match self.condition.backlog(place) {
            Some(backlog) => {
                backlog.push(kind);
                None
            }
            None => self.serve(place, kind),
        }
    }

    /// Returns the event if its process handles it now. If handling messages takes time, they wait for their turn.
    fn serve(&mut self, place: usize, kind: EventKindOf<P, M, O>) -> Option<EventKindOf<P, M, O>> {
        let Some(service) = &mut self.service else { return Some(kind) };
        let incarnation = self.condition.incarnation(place);
        let (served, next) = match kind {
            EventKind::Message { .. } => (None, service.arrive(self.now, place, kind)),
            EventKind::Served { incarnation: of } if of != incarnation => return None,
            EventKind::Served { .. } => {
                let (message, next) = service.serve(self.now, place)?;
                (Some(message), next)
            }
            other => return Some(other),
        };
        if let Some(at) = next {
            let kind = EventKind::Served { incarnation };
            self.queue.push(at, Event { place: place as u32, kind });
        }
        served
    }

    /// Drops an event at a process that is down; a message counts as lost.
    pub(crate) fn drop_for_crashed(&mut self, to: ProcessId, kind: EventKindOf<P, M, O>) {
        match kind {
            EventKind::Message { from, message, tags } => {
                self.acted = self.now;
                self.lose(from, to, &message, &tags.1);
            }
            EventKind::Stamp(number) => {
                if let Some(Stamp { from, tags, .. }) = self.stamps.0.remove(&number) {
                    self.acted = self.now;
                    self.observer.on_lost(self.now, from, to, &tags.1);
                }
            }
            EventKind::Request { .. }
            | EventKind::Timer { .. }
            | EventKind::Served { .. }
            | EventKind::Suspect(_)
            | EventKind::Trust(_) => {}
        }
    }

    /// The application sends messages past the algorithm; they carry the algorithm's logical clock.
    #[inline(never)]
    pub(crate) fn send_app_messages(&mut self, from: ProcessId, stamp: u64, group: &Group) {
        for _ in 0..self.app_messages.min(group.len() as u32 - 1) {
            let own = group.place(from).expect("who asks is a member");
            let rng = self.app_streams.at(own);
            let other = rng.below(group.len() as u32 - 1) as usize;
            let place = if other >= own { other + 1 } else { other };
            let to = group.id(place);
            let at = self.now + self.network.delay_by(from, to, rng);
            let tag = self.ledger.on_send(from, None);
            let seen = self.observer.on_app_message(self.now, from, to);
            if self.network.is_separated(from, to, group) {
                self.observer.on_lost(self.now, from, to, &seen);
                continue;
            }
            self.stamps.1 = self.stamps.1.wrapping_add(1);
            self.stamps.0.insert(self.stamps.1, Stamp { from, stamp, tags: (tag, seen) });
            let kind = EventKind::Stamp(self.stamps.1);
            self.queue.push(at, Event { place: place as u32, kind });
        }
    }
}

/// The host of one step.
pub(crate) struct StepHost<'a, P: Process, A, M: Monitor<P>, T, O: Observer<P>> {
    pub(crate) place: usize,
    pub(crate) id: ProcessId,
    pub(crate) group: &'a Group,
    pub(crate) world: &'a mut World<P, A, M, T, O>,
    /// Whether the client must be asked for its next request after the step.
    pub(crate) ask_client: bool,
}

impl<P, A, M, T, O> Host<P> for StepHost<'_, P, A, M, T, O>
where
    P: Inspect,
    A: Application<P>,
    M: Monitor<P>,
    T: Meter<P>,
    O: Observer<P>,
{
    fn perform(&mut self, effect: Effect<P>) {
        let effect = match effect {
            Effect::Send { to, message } => return self.send(to, message),
            other => other,
        };
        let world = &mut *self.world;
        world.observer.on_effect(world.now, self.id, &effect);
        match effect {
            Effect::Send { .. } => {}
            Effect::Indicate(indication) => {
                let verdict = world.ledger.on_indication(world.now, self.id, &indication);
                world.note(verdict);
                if let Some(measured) = &mut world.measured {
                    measured.note(world.ledger.meter().window(), world.counts.sent);
                }
                world.last_told = world.counts.steps;
                world.client_events += 1;
                self.ask_client = true;
            }
            Effect::SetTimer { timer, after } => {
                let rate = world.condition.rate(self.place);
                // No timer runs for six hundred years, and dividing a smaller number is faster.
                let nanos = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
                let ticks = (nanos as f64 / world.nanos_per_tick / rate).round();
                let armed = world.timers.arm(self.place, timer.clone());
                let kind = EventKind::Timer { timer, armed };
                let at = world.now + (ticks as Time).max(1);
                world.queue.push(at, Event { place: self.place as u32, kind });
            }
            Effect::CancelTimer { timer } => world.timers.cancel(self.place, &timer),
            Effect::Save(record) => world.condition.save(self.place, self.group.len(), record),
            Effect::Unexpected(what) => {
                world.violate(Violation::unexpected(self.id, what));
            }
        }
    }

    // Inlined into the handler, so that a message goes straight to the queue without a copy in between.
    #[inline(always)]
    fn send(&mut self, to: ProcessId, message: P::Message) {
        self.world.send((self.id, self.place), to, message, self.group);
    }

    fn choose(&mut self, bound: u32) -> u32 {
        let drawn = self.world.choices.below(bound);
        self.world.observer.on_draw(drawn);
        drawn
    }
}
