//! Starts and ends faults.

use konklave_process::{Application, Input, Inspect, Meter, Monitor, ProcessId, ProcessSet};

use crate::event::{Event, EventKind, EventKindOf};
use crate::sim::Sim;
use crate::{Fault, Incident, Memory, Observer, Time, UNIT, What, When};

/// The faults to come.
pub(crate) struct Schedule {
    /// The changes at given times, the latest first.
    timed: Vec<(Time, Control)>,
    /// The changes after given steps, the latest first.
    stepped: Vec<(u64, Control)>,
    /// Whether there are restarts.
    pub(crate) restarts: bool,
}

/// A fault begins or ends.
#[derive(Clone, Debug)]
pub(crate) enum Control {
    /// The fault at this index of the configuration begins.
    Strike(usize, What),
    End(What),
}

/// The effect of a fault of the configuration.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Struck {
    /// It happened.
    Yes,
    /// The run ended before its time came.
    #[default]
    TooLate,
    /// It found nothing to change; the reason.
    InVain(&'static str),
    /// It was for one message of many, and only so many were sent.
    TooFew(u64),
}

const IS_DOWN: &str = "the process was down";
const IS_UP: &str = "the process was up";

impl Schedule {
    pub(crate) fn new(faults: &[Fault]) -> Self {
        let ticks = |t: f64| (t * UNIT as f64).round() as Time;
        let (mut timed, mut stepped, mut restarts) = (Vec::new(), Vec::new(), false);
        for (index, Fault { what, when, until }) in faults.iter().enumerate() {
            match what {
                // These are in effect from the start, in network and timers.
                What::Message(..) | What::Rate(..) => continue,
                What::Restart(..) => restarts = true,
                What::Crash(_)
                | What::Pause(_)
                | What::Cut(..)
                | What::Break(..)
                | What::Partition(_)
                | What::Suspect(..) => {}
            }
            match *when {
                When::Time(t) => timed.push((ticks(t), Control::Strike(index, what.clone()))),
                When::Step(k) => stepped.push((k, Control::Strike(index, what.clone()))),
            }
            if let Some(until) = until {
                timed.push((ticks(*until), Control::End(what.clone())));
            }
        }
        // Stable sorts: faults at the same time happen in the order given.
        timed.sort_by_key(|(at, _)| *at);
        timed.reverse();
        stepped.sort_by_key(|(step, _)| *step);
        stepped.reverse();
        Self { timed, stepped, restarts }
    }

    /// Whether no change is to come.
    pub(crate) fn is_empty(&self) -> bool {
        self.timed.is_empty() && self.stepped.is_empty()
    }

    /// The time of the next change by time.
    pub(crate) fn next_time(&self) -> Time {
        self.timed.last().map_or(Time::MAX, |(at, _)| *at)
    }

    /// The step of the next change by step.
    pub(crate) fn next_step(&self) -> u64 {
        self.stepped.last().map_or(u64::MAX, |(step, _)| *step)
    }

    /// Takes the next change by step, if it is due.
    pub(crate) fn take_stepped(&mut self, steps: u64) -> Option<Control> {
        self.stepped.pop_if(|(step, _)| *step <= steps).map(|(_, control)| control)
    }

    /// Takes the next change by time, if it is due by `limit`.
    pub(crate) fn take_timed(&mut self, limit: Time) -> Option<(Time, Control)> {
        self.timed.pop_if(|(at, _)| *at <= limit)
    }
}

impl<P, A, M, T, O> Sim<P, A, M, T, O>
where
    P: Inspect,
    A: Application<P>,
    M: Monitor<P>,
    T: Meter<P>,
    O: Observer<P>,
{
    /// Begins or ends a fault.
    pub(crate) fn control(&mut self, control: Control) {
        let changed = match control {
            Control::Strike(index, what) => {
                let struck = self.strike(what);
                if let Some(known) = self.struck.get_mut(index) {
                    *known = struck;
                }
                struck == Struck::Yes
            }
            Control::End(what) => self.end(what),
        };
        if changed {
            self.world.acted = self.world.now;
            self.struck_at = self.world.now;
            // A crash may leave nothing to be served.
            self.world.client_events += 1;
        }
    }

    /// Begins a fault.
    fn strike(&mut self, what: What) -> Struck {
        let world = &mut self.world;
        let place = |p: ProcessId| self.group.place(p).expect("faults name members");
        match what {
            What::Crash(p) => {
                if !self.crash(p) {
                    return Struck::InVain(IS_DOWN);
                }
            }
            What::Restart(p, memory) => {
                if !self.restart(p, memory) {
                    return Struck::InVain(IS_UP);
                }
            }
            What::Pause(p) => {
                if !world.condition.pause(p, place(p)) {
                    return Struck::InVain(IS_DOWN);
                }
                world.observer.on_incident(world.now, &Incident::Pause(p));
            }
            What::Cut(from, to) => {
                world.faulty = true;
                world.network.cut(from, to);
                world.observer.on_incident(world.now, &Incident::Cut(format!("{from} → {to}")));
            }
            What::Break(one, other) => {
                world.faulty = true;
                world.network.break_link(one, other);
                world.ledger.on_break(one, other);
                world.observer.on_incident(world.now, &Incident::Cut(format!("{one} – {other}")));
                self.notify(one, other, EventKind::Suspect);
                self.notify(other, one, EventKind::Suspect);
            }
            What::Partition(sides) => {
                world.faulty = true;
                let incident = Incident::Cut(format!("partition {sides:?}"));
                world.network.partition(sides, &self.group);
                world.observer.on_incident(world.now, &incident);
            }
            What::Suspect(who, whom) => {
                if world.condition.down().contains(who) {
                    return Struck::InVain(IS_DOWN);
                }
                world.faulty = true;
                let event = Event { place: place(who) as u32, kind: EventKind::Suspect(whom) };
                self.ready.push_back(event);
            }
            What::Message(..) | What::Rate(..) => {}
        }
        Struck::Yes
    }

    /// Ends a fault; returns whether that changed anything.
    fn end(&mut self, what: What) -> bool {
        let world = &mut self.world;
        let place = |p: ProcessId| self.group.place(p).expect("faults name members");
        match what {
            What::Pause(p) => {
                let place = place(p);
                let Some(backlog) = world.condition.wake(place) else { return false };
                world.observer.on_incident(world.now, &Incident::Resume(p));
                self.ready
                    .extend(backlog.into_iter().map(|kind| Event { place: place as u32, kind }));
            }
            What::Cut(from, to) => {
                if !world.network.heal_cut(from, to) {
                    return false;
                }
                let incident = Incident::Heal(format!("{from} → {to}"));
                world.observer.on_incident(world.now, &incident);
            }
            What::Break(one, other) => {
                if !world.network.mend_link(one, other) {
                    return false;
                }
                world.ledger.on_mend(one, other);
                let incident = Incident::Heal(format!("{one} – {other}"));
                world.observer.on_incident(world.now, &incident);
                // A process that is down stays suspected because of its crash.
                let is_up = |p: ProcessId| !self.world.condition.down().contains(p);
                if is_up(one) && is_up(other) && !self.world.network.is_broken(one, other) {
                    self.notify(one, other, EventKind::Trust);
                    self.notify(other, one, EventKind::Trust);
                }
            }
            What::Partition(sides) => {
                if !world.network.heal_partition(&sides) {
                    return false;
                }
                world.observer.on_incident(world.now, &Incident::Heal("partition".into()));
            }
            What::Suspect(who, whom) => {
                let event = Event { place: place(who) as u32, kind: EventKind::Trust(whom) };
                self.ready.push_back(event);
            }
            What::Crash(_) | What::Restart(..) | What::Message(..) | What::Rate(..) => {
                return false;
            }
        }
        true
    }

    /// Crashes a process; returns false if it was down already.
    fn crash(&mut self, p: ProcessId) -> bool {
        let world = &mut self.world;
        let place = self.group.place(p).expect("faults name members");
        let Some(backlog) = world.condition.crash(p, place, self.group.len()) else {
            return false;
        };
        world.faulty = true;
        world.timers.clear(place);
        world.clear_pending_request(place);
        world.ledger.on_crash(world.now, p);
        world.observer.on_incident(world.now, &Incident::Crash(p));
        let waiting = world.service.as_mut().map(|service| service.clear(place));
        for kind in backlog.into_iter().chain(waiting.into_iter().flatten()) {
            world.drop_for_crashed(p, kind);
        }
        self.notify_others(p, EventKind::Suspect, &ProcessSet::new());
        true
    }

    /// Restarts a process; returns false if it was not down.
    fn restart(&mut self, p: ProcessId, memory: Memory) -> bool {
        let world = &mut self.world;
        if !world.condition.restart(p) {
            return false;
        }
        let place = self.group.place(p).expect("faults name members");
        match memory {
            Memory::Everything => {}
            Memory::Saved => self.processes[place] = self.initial[place].clone(),
            Memory::Nothing => {
                self.processes[place] = self.initial[place].clone();
                world.condition.forget(place);
            }
        }
        world.ledger.on_restart(p);
        world.observer.on_incident(world.now, &Incident::Restart(p, memory));
        let saved = world.condition.saved(place);
        self.step(place, p, Input::Recover(saved), &O::Tag::default());
        self.world.ask_client(place, p);
        // Peers with a broken link to the process do not notice its restart.
        let broken: ProcessSet = self.world.network.broken_at(p).into_iter().collect();
        self.notify_others(p, EventKind::Trust, &broken);
        // The detector of the restarted process starts afresh: it reports peers that are down or cut off.
        if let Some(after) = self.detect_after {
            let broken = self.world.network.broken_at(p);
            for peer in self.world.condition.down().iter().chain(broken) {
                let event = Event { place: place as u32, kind: EventKind::Suspect(peer) };
                self.world.queue.push(self.world.now + after, event);
            }
        }
        true
    }

    /// Lets the detector of one process report a peer, after the detection time; without a detector, never.
    fn notify(
        &mut self,
        to: ProcessId,
        about: ProcessId,
        kind: fn(ProcessId) -> EventKindOf<P, M, O>,
    ) {
        let place = self.group.place(to).expect("faults name members") as u32;
        if let Some(after) = self.detect_after {
            let event = Event { place, kind: kind(about) };
            self.world.queue.push(self.world.now + after, event);
        }
    }

    /// As [`Sim::notify`], for all processes except `p` itself and those in `but`.
    fn notify_others(
        &mut self,
        p: ProcessId,
        kind: impl Fn(ProcessId) -> EventKindOf<P, M, O>,
        but: &ProcessSet,
    ) {
        let Some(after) = self.detect_after else { return };
        let at = self.world.now + after;
        for place in 0..self.group.len() {
            if self.group.id(place) != p && !but.contains(self.group.id(place)) {
                self.world.queue.push(at, Event { place: place as u32, kind: kind(p) });
            }
        }
    }
}
