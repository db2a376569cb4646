//! The model and its plain rules: what each action does to a state.

use konklave_process::{
    AnyApplication, AnyMonitor, AnyProcess, Application, Context, Effect, Group, Host, Input,
    Inspect, Verdict,
};

use crate::draws::Draws;
use crate::state::{AnyLedger, Content, Flight, NO_TIME, Spent, State};
use crate::verdicts::{OFF_CLOCK, off_clock, outside_group, over, steps, unexpected};
use crate::witness::{WitnessRecorder, WorldEvent};
use crate::{Options, Timing};

/// A small group with its clients and its judges, to be explored.
#[derive(Debug)]
pub struct Model {
    /// The members.
    pub group: Group,
    /// The processes, in node order.
    pub processes: Vec<AnyProcess>,
    /// The clients.
    pub application: AnyApplication,
    /// The judges.
    pub monitor: AnyMonitor,
    /// The faults that may happen, and how far to search.
    pub options: Options,
}

/// An event that may happen next. Indices are those of the lists in the state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// The message at this index is delivered.
    Deliver(u32),
    /// The timer at this index fires.
    Fire(u32),
    /// The client at this place makes its next request.
    Ask(u32),
    /// The news of the detector at this index reach their process.
    Learn(u32),
    /// The application at this place sends a message past the algorithm, to that place.
    AppMessage(u32, u32),
    /// The process at this place crashes.
    Crash(u32),
    /// A channel is cut, from this place to that.
    Cut(u32, u32),
    /// The link between these places breaks.
    Break(u32, u32),
    /// The process at this place restarts.
    Restart(u32),
    /// The message at this index is lost.
    Lose(u32),
    /// The message at this index is duplicated.
    Duplicate(u32),
    /// A step of time passes.
    Pass,
}

impl Model {
    pub(crate) fn n(&self) -> u32 {
        self.processes.len() as u32
    }

    /// The state in which all members have started, but for those down from the start.
    pub(crate) fn initial(
        &self,
        draws: &mut Draws,
        log: &mut Option<&mut WitnessRecorder>,
    ) -> (State, Verdict) {
        let mut state = State {
            processes: self.processes.clone(),
            flight: Vec::new(),
            timers: Vec::new(),
            ledger: AnyLedger::new(self.application.clone(), self.monitor.clone(), ()),
            down: 0,
            saved: Vec::new(),
            news: Vec::new(),
            spent: Spent::default(),
            cut: 0,
            broken: 0,
            sent: 0,
        };
        for id in &self.options.down {
            let place = self.group.place(*id).expect("who is down is a member");
            state.down |= 1 << place;
            state.ledger.application.on_crash(*id);
        }
        let mut verdict = Ok(());
        for place in 0..self.n() {
            if !state.is_up(place) {
                continue;
            }
            let started = self.step(&mut state, place, Input::Start, 0, draws, log);
            verdict = verdict.and(started);
        }
        (state, verdict)
    }

    pub(crate) fn is_cut(&self, state: &State, from: u32, to: u32) -> bool {
        state.cut != 0 && state.cut >> (from * self.n() + to) & 1 == 1
    }

    /// Whether the link between these places broke.
    pub(crate) fn is_broken(&self, state: &State, from: u32, to: u32) -> bool {
        state.broken != 0 && state.broken >> (from * self.n() + to) & 1 == 1
    }

    /// Whether neither messages nor news are in flight.
    pub(crate) fn is_quiet(&self, state: &State) -> bool {
        state.flight.is_empty() && state.news.is_empty()
    }

    /// Whether a timer that fires now fires early.
    fn is_early(&self, state: &State) -> bool {
        self.options.timing == Timing::WhenQuiet && !self.is_quiet(state)
    }

    /// Whether a step of time may pass: a timer runs, and none has run out.
    pub(crate) fn may_pass(&self, state: &State) -> bool {
        let Some(clock) = self.options.clock else { return false };
        let waits = !state.timers.is_empty() && state.timers.iter().all(|(.., left)| *left > 0);
        let early = !self.is_early(state) || state.spent.early < self.options.early;
        waits && early && clock.limit.is_none_or(|limit| state.spent.time < limit)
    }

    /// Applies `action` with one series of draws; the caller advances `draws` to the next series.
    pub(crate) fn apply(
        &self,
        state: &mut State,
        action: Action,
        draws: &mut Draws,
        log: &mut Option<&mut WitnessRecorder>,
    ) -> Verdict {
        match action {
            Action::Deliver(i) => self.deliver(state, i as usize, draws, log),
            Action::Fire(i) => {
                if self.options.clock.is_none() {
                    state.spent.early += u8::from(self.is_early(state));
                }
                let (place, timer, _) = state.timers.remove(i as usize);
                self.step(state, place, Input::Timer(timer), 0, draws, log)
            }
            Action::Learn(i) => {
                let (place, peer, up) = state.news.remove(i as usize);
                let input = if up { Input::Trust(peer) } else { Input::Suspect(peer) };
                self.step(state, place, input, 0, draws, log)
            }
            Action::Ask(place) => {
                let id = self.group.id(place as usize);
                let request = state.ledger.application.next(id).expect("it was asked for just now");
                let asked = state.ledger.on_request(NO_TIME, id, &request);
                asked.and(self.step(state, place, Input::Request(request), 0, draws, log))
            }
            Action::Restart(place) => self.restart(state, place, draws, log),
            Action::AppMessage(..)
            | Action::Crash(_)
            | Action::Cut(..)
            | Action::Break(..)
            | Action::Lose(_)
            | Action::Duplicate(_)
            | Action::Pass => {
                self.apply_without_handler(state, action, log);
                Ok(())
            }
        }
    }

    /// Delivers the message at `i`; it is lost if its receiver is down or its channel is cut.
    fn deliver(
        &self,
        state: &mut State,
        i: usize,
        draws: &mut Draws,
        log: &mut Option<&mut WitnessRecorder>,
    ) -> Verdict {
        let Flight { channel: (from, to), content, tag, id } = state.flight.remove(i);
        if !state.is_up(to) || self.is_cut(state, from, to) {
            if let Content::Message(message) = &content {
                state.ledger.on_lost(message);
            }
            if let Some(log) = log {
                log.lost(id);
            }
            return Ok(());
        }
        let (me, from) = (self.group.id(to as usize), self.group.id(from as usize));
        let (message, input) = match content {
            Content::Message(message) => (Some(message.clone()), Input::Message { from, message }),
            Content::Stamp(stamp) => (None, Input::Stamp { from, stamp }),
        };
        let received = state.ledger.on_receive(me, message.as_ref(), &tag);
        received.and(self.step(state, to, input, id, draws, log))
    }

    /// Applies an action that no handler of a process runs for: most faults, time, and messages of the application.
    fn apply_without_handler(
        &self,
        state: &mut State,
        action: Action,
        log: &mut Option<&mut WitnessRecorder>,
    ) {
        let id = |place: u32| self.group.id(place as usize);
        match action {
            Action::AppMessage(from, to) => {
                state.spent.app_messages += 1;
                let tag = state.ledger.on_send(id(from), None);
                let content = Content::Stamp(state.processes[from as usize].stamp());
                let happened = WorldEvent::AppMessage(id(from), id(to));
                let id = log.as_mut().map_or(0, |log| log.happened(happened));
                insert(state, Flight { channel: (from, to), content, tag, id });
            }
            Action::Crash(place) => self.crash(state, place, log),
            Action::Cut(from, to) => {
                state.spent.cuts += 1;
                state.cut |= 1 << (from * self.n() + to);
                if let Some(log) = log {
                    log.happened(WorldEvent::Cut(id(from), id(to)));
                }
            }
            Action::Break(one, other) => {
                if let Some(log) = log {
                    log.happened(WorldEvent::Break(id(one), id(other)));
                }
                self.break_link(state, one, other);
                state.ledger.on_break(id(one), id(other));
            }
            Action::Lose(i) => {
                state.spent.losses += 1;
                let flight = state.flight.remove(i as usize);
                if let Content::Message(message) = &flight.content {
                    state.ledger.on_lost(message);
                }
                if let Some(log) = log {
                    log.lost(flight.id);
                }
            }
            Action::Duplicate(i) => {
                state.spent.duplicates += 1;
                let copy = state.flight[i as usize].clone();
                if let Content::Message(message) = &copy.content {
                    state.ledger.on_duplicated(message);
                }
                if let Some(log) = log {
                    log.duplicated(copy.id);
                }
                // Right behind the original: a later position results from a later duplication.
                state.flight.insert(i as usize + 1, copy);
            }
            Action::Pass => {
                state.spent.early += u8::from(self.is_early(state));
                let limit = self.options.clock.and_then(|clock| clock.limit);
                state.spent.time += u16::from(limit.is_some());
                state.timers.iter_mut().for_each(|(.., left)| *left -= 1);
                if let Some(log) = log {
                    log.happened(WorldEvent::Pass);
                }
            }
            Action::Deliver(_)
            | Action::Fire(_)
            | Action::Learn(_)
            | Action::Ask(_)
            | Action::Restart(_) => unreachable!("`apply` runs the handlers of these"),
        }
    }

    /// Breaks a link in both directions. With a detector, each end comes to suspect the other.
    fn break_link(&self, state: &mut State, one: u32, other: u32) {
        state.spent.breaks += 1;
        let both = 1 << (one * self.n() + other) | 1 << (other * self.n() + one);
        (state.cut, state.broken) = (state.cut | both, state.broken | both);
        for (to, peer) in [(one, other), (other, one)] {
            // If the peer is down, the news of its crash makes the process suspect it.
            if self.options.detector && state.is_up(to) && state.is_up(peer) {
                self.enqueue_news(state, to, peer, false);
            }
        }
    }

    fn crash(&self, state: &mut State, place: u32, log: &mut Option<&mut WitnessRecorder>) {
        let id = self.group.id(place as usize);
        state.spent.crashes += 1;
        state.down |= 1 << place;
        state.timers.retain(|(p, ..)| *p != place);
        state.news.retain(|(to, ..)| *to != place);
        state.ledger.on_crash(NO_TIME, id);
        state.processes[place as usize] = self.processes[place as usize].clone();
        if let Some(log) = log {
            log.happened(WorldEvent::Crash(id));
        }
        self.broadcast_news(state, place, false);
    }

    fn restart(
        &self,
        state: &mut State,
        place: u32,
        draws: &mut Draws,
        log: &mut Option<&mut WitnessRecorder>,
    ) -> Verdict {
        let id = self.group.id(place as usize);
        state.spent.restarts += 1;
        state.down &= !(1 << place);
        state.ledger.on_restart(id);
        if let Some(log) = log {
            log.happened(WorldEvent::Restart(id));
        }
        let saved = state.saved.get(place as usize).cloned().flatten();
        let saved = saved.filter(|_| self.options.stable_storage);
        let verdict = self.step(state, place, Input::Recover(saved), 0, draws, log);
        self.broadcast_news(state, place, true);
        if self.options.detector {
            let gone = |p: &u32| state.down >> p & 1 == 1 || self.is_broken(state, place, *p);
            let gone: Vec<u32> = (0..self.n()).filter(gone).collect();
            for peer in gone {
                self.enqueue_news(state, place, peer, false);
            }
        }
        verdict
    }

    /// Sends news of `place` to every process that is up and linked with it.
    ///
    /// A process may restart before its peers know of its crash. They get both news all the same, a suspicion
    /// and then trust: its memory is gone, and only the suspicion tells them so.
    fn broadcast_news(&self, state: &mut State, place: u32, up: bool) {
        if !self.options.detector {
            return;
        }
        for to in (0..self.n()).filter(|&to| to != place) {
            if state.is_up(to) && !self.is_broken(state, place, to) {
                self.enqueue_news(state, to, place, up);
            }
        }
    }

    /// Sends news of `place` to `to`, behind older news of it.
    ///
    /// In the synchronous model a process that is up must not be suspected. So if older news of `place` are
    /// still in flight, both cancel out.
    fn enqueue_news(&self, state: &mut State, to: u32, place: u32, up: bool) {
        let id = self.group.id(place as usize);
        if self.options.is_synchronous()
            && let Some(older) = state.news.iter().position(|(t, p, _)| (*t, *p) == (to, id))
        {
            state.news.remove(older);
            return;
        }
        let end = state.news.partition_point(|(t, p, _)| (*t, *p) <= (to, id));
        state.news.insert(end, (to, id, up));
    }

    /// Makes one step of one process and carries out its effects.
    fn step(
        &self,
        state: &mut State,
        place: u32,
        input: Input<AnyProcess>,
        message: u64,
        draws: &mut Draws,
        log: &mut Option<&mut WitnessRecorder>,
    ) -> Verdict {
        let me = self.group.id(place as usize);
        let recorded = log.is_some().then(|| input.clone());
        let mut host = Recorder { effects: Vec::new(), draws };
        let process = &mut state.processes[place as usize];
        process.handle(input, &mut Context::new(me, &self.group, &mut host));
        let Recorder { effects, draws } = host;
        let mut ids = Vec::new();
        if let (Some(log), Some(input)) = (log, recorded) {
            let process = &state.processes[place as usize];
            ids = log.step(me, input, message, draws.values(), &effects, process);
        }
        let mut verdict = Ok(());
        for (i, effect) in effects.into_iter().enumerate() {
            let id = ids.get(i).copied().unwrap_or(0);
            verdict = verdict.and(self.perform(state, place, effect, id));
        }
        let process = &state.processes[place as usize];
        let judged = verdict.and(state.ledger.after_step(me, process));
        judged.and(over(state.sent, &self.options))
    }

    fn perform(
        &self,
        state: &mut State,
        place: u32,
        effect: Effect<AnyProcess>,
        id: u64,
    ) -> Verdict {
        let me = self.group.id(place as usize);
        match effect {
            Effect::Send { to, message } => {
                let Some(to) = self.group.place(to) else {
                    return outside_group(me, to);
                };
                state.sent += u32::from(self.options.counts());
                let tag = state.ledger.on_send(me, Some(&message));
                let content = Content::Message(message);
                insert(state, Flight { channel: (place, to as u32), content, tag, id });
            }
            Effect::SetTimer { timer, after } => {
                let (left, whole) = steps(after, &self.options);
                match state.timers.binary_search_by(|t| (t.0, &t.1).cmp(&(place, &timer))) {
                    Ok(i) => state.timers[i].2 = left,
                    Err(i) => state.timers.insert(i, (place, timer, left)),
                }
                return if whole { Ok(()) } else { off_clock(me, after) };
            }
            Effect::CancelTimer { timer } => {
                state.timers.retain(|(p, t, _)| (*p, t) != (place, &timer));
            }
            Effect::Indicate(indication) => {
                return state.ledger.on_indication(NO_TIME, me, &indication);
            }
            Effect::Save(record) => {
                state.saved.resize(self.processes.len(), None);
                state.saved[place as usize] = Some(record);
            }
            Effect::Unexpected(what) => {
                return unexpected(me, what);
            }
        }
        Ok(())
    }

    /// Drops violations of properties that are not judged.
    pub(crate) fn filter(&self, verdict: Verdict) -> Verdict {
        verdict.or_else(|violation| {
            let judged = self.options.judges(violation.property);
            if judged || violation.property == OFF_CLOCK { Err(violation) } else { Ok(()) }
        })
    }
}

/// Puts a message at the end of its channel.
fn insert(state: &mut State, flight: Flight) {
    let end = state.flight.partition_point(|f| f.channel <= flight.channel);
    state.flight.insert(end, flight);
}

struct Recorder<'a> {
    effects: Vec<Effect<AnyProcess>>,
    draws: &'a mut Draws,
}

impl Host<AnyProcess> for Recorder<'_> {
    fn perform(&mut self, effect: Effect<AnyProcess>) {
        self.effects.push(effect);
    }
    fn choose(&mut self, bound: u32) -> u32 {
        self.draws.draw(bound)
    }
}
