//! All but the processes: the time, the queue, the network, clients, judges and measures.

use std::collections::BTreeMap;

use konklave_process::{
    Application, Effect, Group, Host, Inspect, Ledger, Meter, Monitor, Process, ProcessId, Rng,
    Verdict, Violation,
};

use crate::condition::Condition;
use crate::event::{Event, EventOf, Happening, HappeningOf, Stamp, StampOf};
use crate::kinds::Kinds;
use crate::network::{Fate, Network};
use crate::observer::Incident;
use crate::pause::Pause;
use crate::timers::Timers;
use crate::{Counts, Observer, Time, Wheel};

pub(crate) struct World<P: Process, A, M: Monitor<P>, T, O: Observer<P>> {
    pub(crate) now: Time,
    pub(crate) counts: Counts,
    pub(crate) queue: Wheel<EventOf<P, M, O>>,
    pub(crate) network: Network,
    pub(crate) rng: Rng,
    pub(crate) kinds: Kinds,
    pub(crate) timers: Timers<P::Timer>,
    pub(crate) ledger: Ledger<P, A, M, T>,
    /// Whether the monitor sees every step; otherwise it sees every process in the end.
    pub(crate) every_step: bool,
    pub(crate) observer: O,
    pub(crate) violations: Vec<(Time, Violation)>,
    pub(crate) think: Pause,
    pub(crate) hold: Pause,
    pub(crate) is_hold: fn(&P::Request) -> bool,
    /// Which places have a request of their client scheduled.
    pub(crate) pending: Vec<u64>,
    pub(crate) condition: Condition<P, M::Tag, O::Tag>,
    /// Messages of the application on their way, and how many there ever were.
    pub(crate) stamps: (BTreeMap<u32, StampOf<P, M, O>>, u32),
    pub(crate) faulty: bool,
    /// In which step a client was last told something.
    pub(crate) last_told: u64,
    pub(crate) app_messages: u32,
    pub(crate) nanos_per_tick: f64,
}

/// As many violations are kept; a broken run may have millions.
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

    /// What the client at `place` wants next, and when; none if that is scheduled already, or its
    /// process is down.
    pub(crate) fn wish(&mut self, place: usize, id: ProcessId) -> Option<(Time, P::Request)> {
        if self.pending[place / 64] >> (place % 64) & 1 == 1
            || !self.condition.all_well && self.condition.down().contains(id)
        {
            return None;
        }
        let request = self.ledger.application.next(id)?;
        let pause = if (self.is_hold)(&request) { &mut self.hold } else { &mut self.think };
        Some((pause.after(self.now, place, &mut self.rng), request))
    }

    /// Asks the client at `place` whether it wants something, and when.
    pub(crate) fn consult(&mut self, place: usize, id: ProcessId) {
        if let Some((at, request)) = self.wish(place, id) {
            self.schedule(at, place, request);
        }
    }

    /// The client at `place` will ask at that time.
    pub(crate) fn schedule(&mut self, at: Time, place: usize, request: P::Request) {
        self.pending[place / 64] |= 1 << (place % 64);
        let incarnation = self.condition.incarnation(place);
        let what = Happening::Request { request, incarnation };
        self.queue.push(at, Event { place: place as u32, what });
    }

    /// Takes note that nothing of the client at `place` is scheduled.
    pub(crate) fn forget_wish(&mut self, place: usize) {
        self.pending[place / 64] &= !(1 << (place % 64));
    }

    /// The client asks.
    pub(crate) fn on_request(&mut self, id: ProcessId, request: &P::Request) {
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
        let tag = self.ledger.monitor.on_send(from, Some(&message));
        let Some(place) = group.place_near(to, place) else {
            return self.violate(Violation::stranger(from, to));
        };
        let (place, tags) = (place as u32, (tag, seen));
        if self.network.calm {
            let at = self.now + self.network.delay(from, to, &mut self.rng);
            self.queue.push_with(at, || Event {
                place,
                what: Happening::Message { from, message, tags },
            });
        } else {
            let event = Event { place, what: Happening::Message { from, message, tags } };
            self.brave(to, event, group);
        }
    }

    /// A message leaves through a network in which something may happen to it.
    #[inline(never)]
    fn brave(&mut self, to: ProcessId, event: EventOf<P, M, O>, group: &Group) {
        let Event { place, what: Happening::Message { from, message, tags } } = event else {
            return;
        };
        let kind = self.kinds.name(&message);
        let mut push = |at, message, tags| {
            self.queue.push(at, Event { place, what: Happening::Message { from, message, tags } });
        };
        match self.network.fate(self.now, (from, to), kind, group, &mut self.rng) {
            Fate::Lost => self.lose(from, to, &message, &tags.1),
            Fate::Arrives(at) => push(at, message, tags),
            Fate::ArrivesTwice(first, second) => {
                self.faulty = true;
                self.counts.duplicated += 1;
                self.ledger.monitor.on_duplicated(&message);
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
        self.ledger.monitor.on_lost(message);
        self.observer.on_lost(self.now, from, to, seen);
    }

    /// What reaches a process: what is for one that is down is gone, for a sleeper it waits.
    #[inline]
    pub(crate) fn reach(
        &mut self,
        place: usize,
        id: ProcessId,
        what: HappeningOf<P, M, O>,
    ) -> Option<HappeningOf<P, M, O>> {
        if self.condition.all_well {
            return Some(what);
        }
        if self.condition.down().contains(id) {
            self.waste(id, what);
            return None;
        }
        match self.condition.backlog(place) {
            Some(backlog) => {
                backlog.push(what);
                None
            }
            None => Some(what),
        }
    }

    /// What was on its way to a process that is down is gone.
    pub(crate) fn waste(&mut self, to: ProcessId, what: HappeningOf<P, M, O>) {
        match what {
            Happening::Message { from, message, tags } => self.lose(from, to, &message, &tags.1),
            Happening::Stamp(number) => {
                if let Some(Stamp { from, tags, .. }) = self.stamps.0.remove(&number) {
                    self.observer.on_lost(self.now, from, to, &tags.1);
                }
            }
            Happening::Request { .. }
            | Happening::Timer { .. }
            | Happening::Suspect(_)
            | Happening::Trust(_) => {}
        }
    }

    /// The application talks past the algorithm; its messages carry the algorithm's clock.
    #[inline(never)]
    pub(crate) fn send_app_messages(&mut self, from: ProcessId, stamp: u64, group: &Group) {
        for _ in 0..self.app_messages.min(group.len() as u32 - 1) {
            let other = self.rng.below(group.len() as u32 - 1) as usize;
            let own = group.place(from).expect("who asks is a member");
            let place = if other >= own { other + 1 } else { other };
            let to = group.id(place);
            let tag = self.ledger.monitor.on_send(from, None);
            let seen = self.observer.on_app_message(self.now, from, to);
            let at = self.now + self.network.delay(from, to, &mut self.rng);
            if self.network.parts(from, to, group) {
                self.observer.on_lost(self.now, from, to, &seen);
                continue;
            }
            self.stamps.1 = self.stamps.1.wrapping_add(1);
            self.stamps.0.insert(self.stamps.1, Stamp { from, stamp, tags: (tag, seen) });
            let what = Happening::Stamp(self.stamps.1);
            self.queue.push(at, Event { place: place as u32, what });
        }
    }
}

/// The world as seen from one process.
pub(crate) struct At<'a, P: Process, A, M: Monitor<P>, T, O: Observer<P>> {
    pub(crate) place: usize,
    pub(crate) id: ProcessId,
    pub(crate) group: &'a Group,
    pub(crate) world: &'a mut World<P, A, M, T, O>,
    /// Whether the client has to be asked for its next wish after the step.
    pub(crate) consult: bool,
}

impl<P, A, M, T, O> Host<P> for At<'_, P, A, M, T, O>
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
                world.last_told = world.counts.steps;
                self.consult = true;
            }
            Effect::SetTimer { timer, after } => {
                let rate = world.condition.rate(self.place);
                // No timer waits for six hundred years, and a smaller number is sooner divided.
                let nanos = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
                let ticks = (nanos as f64 / world.nanos_per_tick / rate).round();
                let armed = world.timers.arm(self.place, timer.clone());
                let what = Happening::Timer { timer, armed };
                let at = world.now + (ticks as Time).max(1);
                world.queue.push(at, Event { place: self.place as u32, what });
            }
            Effect::CancelTimer { timer } => world.timers.cancel(self.place, &timer),
            Effect::Save(record) => world.condition.save(self.place, self.group.len(), record),
            Effect::Unexpected(what) => {
                world.violate(Violation::unexpected(self.id, what));
            }
        }
    }

    // Inlined where the process is, a message goes from its hands to the queue without being put down.
    #[inline(always)]
    fn send(&mut self, to: ProcessId, message: P::Message) {
        self.world.send((self.id, self.place), to, message, self.group);
    }

    fn choose(&mut self, bound: u32) -> u32 {
        let drawn = self.world.rng.below(bound);
        self.world.observer.on_draw(drawn);
        drawn
    }
}
