//! The state of a run: clients, judges, measures, recorder, messages in flight, and which processes are up.

mod host;
mod in_flight;

use std::fmt::{self, Write};
use std::time::Duration;

use konklave_process::{
    AnyApplication, AnyData, AnyMeter, AnyMonitor, AnyProcess, Application, Context, End, Group,
    Input, Inspect, Ledger, ProcessId, ProcessSet, Verdict, Violation,
};
use konklave_trace::{IncidentKind, Memory, Recorder, Run};
use tokio::time::Instant;

use crate::node::{Event, Node};
use crate::transport::Link;
use crate::{
    Counts, Departure, Ending, Fate, Fates, IsHold, Parts, PauseContext, Pauses, Trouble, Warning,
};
use host::StepHost;
use in_flight::{MessageInFlight, MessagesInFlight};

/// How many violations and how many warnings are kept; a bad run may have millions.
const MOST_KEPT: usize = 100;

/// All durations are limited to this, so that adding them to a clock does not overflow.
pub(crate) const LONGEST: Duration = Duration::from_secs(1 << 30);

/// The state of a run, apart from the processes.
pub(crate) struct RunState {
    pub(crate) group: Group,
    pub(crate) ledger: Ledger<AnyProcess, AnyApplication, AnyMonitor, AnyMeter>,
    pub(crate) recorder: Option<Recorder<Run>>,
    pub(crate) counts: Counts,
    pub(crate) violations: Vec<(u64, Violation)>,
    pub(crate) warnings: Vec<(u64, Warning)>,
    pub(crate) faulty: bool,
    pause: Pauses,
    fates: Fates,
    is_hold: IsHold,
    tell_warning: fn(&Warning),
    /// How many messages of each kind were sent.
    pub(crate) kinds: Vec<(String, u64)>,
    start: Instant,
    clock: Instant,
    in_flight: MessagesInFlight,
    last_id: u64,
    places: Vec<Place>,
    /// How many timers, requests and news are pending at all places together.
    active: usize,
    /// How many faults and commands are planned.
    planned: usize,
}

/// The host's record of the process at a place.
struct Place {
    up: bool,
    incarnation: u32,
    /// How many timers and requests are pending.
    own: usize,
    /// How many news of the failure detector are pending.
    news: usize,
    /// The stable storage of the process.
    saved: Option<AnyData>,
}

impl RunState {
    pub(crate) fn new(
        group: Group,
        parts: Parts,
        is_hold: IsHold,
        recorder: Option<Recorder<Run>>,
        tell_warning: fn(&Warning),
        start: Instant,
    ) -> Self {
        let Parts { application, monitor, meter, pause, fates, .. } = parts;
        let place = || Place { up: true, incarnation: 0, own: 0, news: 0, saved: None };
        Self {
            places: (0..group.len()).map(|_| place()).collect(),
            group,
            ledger: Ledger::new(application, monitor, meter),
            recorder,
            pause,
            fates,
            is_hold,
            tell_warning,
            counts: Counts::default(),
            kinds: Vec::new(),
            violations: Vec::new(),
            warnings: Vec::new(),
            faulty: false,
            start,
            clock: start,
            in_flight: MessagesInFlight::default(),
            last_id: 0,
            active: 0,
            planned: 0,
        }
    }

    /// Reads the clock: all events until the next reading get this time.
    pub(crate) fn read_clock(&mut self) {
        self.clock = Instant::now();
    }

    /// The time since the start.
    pub(crate) fn elapsed(&self) -> Duration {
        self.clock - self.start
    }

    fn now(&self) -> u64 {
        u64::try_from(self.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Whether nothing more can happen.
    pub(crate) fn is_quiet(&self) -> bool {
        self.in_flight.is_empty() && self.active == 0 && self.planned == 0
    }

    /// Sets how many faults and commands are planned.
    pub(crate) fn plan(&mut self, planned: usize) {
        self.planned = planned;
    }

    /// Counts news sent to the process at `place`; returns false if it is down.
    pub(crate) fn expect_news(&mut self, place: usize) -> bool {
        let Place { up, news, .. } = &mut self.places[place];
        if *up {
            *news += 1;
            self.active += 1;
        }
        *up
    }

    /// Makes a step; returns false if the process makes no more steps.
    pub(crate) fn step(&mut self, node: &mut Node, event: Event) -> bool {
        let place = &mut self.places[node.place];
        if !place.up || place.incarnation != node.me.incarnation {
            return false;
        }
        let me = node.me.process;
        let mut message_id = 0;
        let input = match event {
            Event::Message { from, id, message } => {
                if !self.receive(from, me, id, &message) {
                    return true;
                }
                message_id = id;
                Input::Message { from, message }
            }
            Event::Request(request) => {
                if self.ledger.application.next(me).as_ref() != Some(&request) {
                    self.ask_client(node);
                    return true;
                }
                let verdict = self.ledger.on_request(self.now(), me, &request);
                self.note(verdict);
                Input::Request(request)
            }
            Event::Timer(timer) => Input::Timer(timer),
            Event::Start => Input::Start,
            Event::Recover => Input::Recover(place.saved.clone()),
            Event::Suspect(peer) => {
                self.take_news(node.place);
                Input::Suspect(peer)
            }
            Event::Trust(peer) => {
                self.take_news(node.place);
                Input::Trust(peer)
            }
        };
        self.counts.steps += 1;
        self.counts.timers += u64::from(matches!(input, Input::Timer(_)));
        let now = self.now();
        if let Some(recorder) = &mut self.recorder {
            recorder.begin(now, me, input.view(), message_id);
        }
        let asked = matches!(input, Input::Request(_));
        let Node { group, place, process, rng, timers, outbox, .. } = node;
        let mut host =
            StepHost { state: self, me, place: *place, rng, timers, outbox, ask_client: asked };
        process.handle(input, &mut Context::new(me, group, &mut host));
        let ask_client = host.ask_client;
        let verdict = self.ledger.after_step(me, process);
        self.note(verdict);
        if let Some(recorder) = &mut self.recorder {
            recorder.end(process);
        }
        if ask_client {
            self.ask_client(node);
        } else {
            self.count_active(node);
        }
        true
    }

    /// Asks the client for its next request, and schedules it after its pause.
    pub(crate) fn ask_client(&mut self, node: &mut Node) {
        let at = node.me.process;
        if node.next_request.is_none()
            && let Some(request) = self.ledger.application.next(at)
        {
            let hold = (self.is_hold)(&request);
            let context = PauseContext { at, hold, now: self.elapsed() };
            let pause = (self.pause)(context);
            node.next_request = Some((request, self.clock + pause.min(LONGEST)));
        }
        self.count_active(node);
    }

    /// Counts the pending timers and requests of a place.
    fn count_active(&mut self, node: &Node) {
        let own = node.timers.len() + usize::from(node.next_request.is_some());
        let place = &mut self.places[node.place];
        self.active = self.active - place.own + own;
        place.own = own;
    }

    fn take_news(&mut self, place: usize) {
        let news = &mut self.places[place].news;
        *news = news.saturating_sub(1);
        self.active = self.active.saturating_sub(1);
    }

    /// Receives a message; returns false if no such message is in flight.
    fn receive(&mut self, from: ProcessId, at: ProcessId, id: u64, message: &AnyData) -> bool {
        let Some(flight) = self.in_flight.arrive(from, at, id) else {
            self.counts.refused += 1;
            self.warn(Warning { at, trouble: Trouble::Refused { from, id } });
            return false;
        };
        let overtaken = self.in_flight.overtaken(from, at, id);
        self.lose_all(overtaken);
        self.counts.delivered += 1;
        let verdict = self.ledger.on_receive(at, Some(message), &flight.tag);
        self.note(verdict);
        if flight.message != *message {
            let detail = format!("{from} sent {:?}, {at} received {message:?}", flight.message);
            self.violate(Violation::new("faithful channels", detail));
        }
        true
    }

    /// Sends a message; returns the place of its receiver, and how many copies the transport gets.
    fn send(
        &mut self,
        from: ProcessId,
        to: ProcessId,
        message: &AnyData,
        id: u64,
    ) -> Option<(usize, u32)> {
        self.counts.sent += 1;
        let kind = self.count_kind(message);
        let tag = self.ledger.on_send(from, Some(message));
        let Some(place) = self.group.place(to) else {
            self.violate(Violation::stranger(from, to));
            return None;
        };
        let departure =
            Departure { from, to, kind: &self.kinds[kind].0, now: self.clock - self.start };
        let copies = match (self.fates)(&departure) {
            Fate::Lost => 0,
            Fate::Arrives => 1,
            Fate::ArrivesTwice => 2,
        };
        let flight = MessageInFlight { from, to, message: message.clone(), tag, copies };
        self.in_flight.depart(id, flight);
        if copies == 0 || !self.places[place].up {
            self.lose(id);
            return None;
        }
        if copies == 2 {
            self.note_duplicate(id, message);
        }
        Some((place, copies))
    }

    /// Counts a message, and returns the place of its kind in `kinds`.
    fn count_kind(&mut self, message: &AnyData) -> usize {
        let kind = name_of(message);
        let place = self.kinds.iter().position(|(name, _)| *name == kind).unwrap_or_else(|| {
            self.kinds.push((kind, 0));
            self.kinds.len() - 1
        });
        self.kinds[place].1 += 1;
        place
    }

    fn note_duplicate(&mut self, id: u64, message: &AnyData) {
        self.faulty = true;
        self.counts.duplicated += 1;
        self.ledger.on_duplicated(message);
        let now = self.now();
        if let Some(recorder) = &mut self.recorder {
            recorder.duplicated(now, id);
        }
    }

    /// Message `id` will not arrive.
    pub(crate) fn lose(&mut self, id: u64) {
        let Some(flight) = self.in_flight.remove(id) else { return };
        self.faulty = true;
        self.counts.lost += 1;
        self.ledger.on_lost(&flight.message);
        let now = self.now();
        if let Some(recorder) = &mut self.recorder {
            recorder.lost(now, id);
        }
    }

    fn lose_all(&mut self, lost: Vec<u64>) {
        lost.into_iter().for_each(|id| self.lose(id));
    }

    /// The sender closed `link`; message `last` was the last one written to it.
    pub(crate) fn closed(&mut self, link: Link, last: u64) {
        if self.is_current(link) {
            let lost = self.in_flight.closed(link, last);
            self.lose_all(lost);
        }
    }

    /// The receiver has handled all messages that came through `link`.
    pub(crate) fn drained(&mut self, link: Link) {
        if self.is_current(link) {
            let lost = self.in_flight.drained(link);
            self.lose_all(lost);
        }
    }

    /// Whether the receiver of `link` is still up, in the same incarnation.
    fn is_current(&self, link: Link) -> bool {
        let place = self.group.place(link.receiver.process).map(|place| &self.places[place]);
        place.is_some_and(|place| place.up && place.incarnation == link.receiver.incarnation)
    }

    /// The process at `place` crashes; returns false if it is down already.
    pub(crate) fn crash(&mut self, place: usize) -> bool {
        let Place { up, own, news, .. } = &mut self.places[place];
        if !std::mem::replace(up, false) {
            return false;
        }
        self.active -= std::mem::take(own) + std::mem::take(news);
        self.faulty = true;
        let (p, now) = (self.group.id(place), self.now());
        self.ledger.on_crash(now, p);
        if let Some(recorder) = &mut self.recorder {
            recorder.incident(now, IncidentKind::Crash(p.0));
        }
        // Messages in its sockets, or on the way to them, are lost with it.
        let lost = self.in_flight.cut_off(p);
        self.lose_all(lost);
        true
    }

    /// The number of the next incarnation at `place`; none if the process is up.
    pub(crate) fn next_incarnation(&self, place: usize) -> Option<u32> {
        let place = &self.places[place];
        (!place.up).then_some(place.incarnation + 1)
    }

    /// The process of `node` restarts, in its next incarnation.
    pub(crate) fn restart(&mut self, node: &mut Node) {
        let place = &mut self.places[node.place];
        place.up = true;
        place.incarnation = node.me.incarnation;
        let (p, now) = (node.me.process, self.now());
        self.ledger.on_restart(p);
        if let Some(recorder) = &mut self.recorder {
            let memory = Memory::Saved;
            recorder.incident(now, IncidentKind::Restart { node: p.0, memory });
        }
        self.step(node, Event::Recover);
        self.ask_client(node);
    }

    /// The processes that are down.
    pub(crate) fn down(&self) -> ProcessSet {
        let places = self.places.iter().enumerate().filter(|(_, place)| !place.up);
        places.map(|(place, _)| self.group.id(place)).collect()
    }

    /// Judges the end of the run; `processes` are in their last states, in node order.
    pub(crate) fn judge_end(&mut self, ending: Ending, processes: &[AnyProcess]) {
        let quiet = ending == Ending::Quiet;
        let end = End::new(self.group.members(), &self.down(), self.faulty, quiet);
        let members = self.group.members().iter().copied().zip(processes);
        let verdict = self.ledger.judge_end(&end, members);
        self.note(verdict);
    }

    fn note(&mut self, verdict: Verdict) {
        if let Err(violation) = verdict {
            self.violate(violation);
        }
    }

    #[cold]
    fn violate(&mut self, violation: Violation) {
        let now = self.now();
        if let Some(recorder) = &mut self.recorder {
            let Violation { property, detail } = violation.clone();
            recorder.incident(now, IncidentKind::Violation { property: property.into(), detail });
        }
        if self.violations.len() < MOST_KEPT {
            self.violations.push((now, violation));
        }
    }

    /// Reports a problem of the transport.
    #[cold]
    pub(crate) fn warn(&mut self, warning: Warning) {
        self.counts.warnings += 1;
        (self.tell_warning)(&warning);
        if self.warnings.len() < MOST_KEPT {
            self.warnings.push((self.now(), warning));
        }
    }
}

/// The kind of a message: the first word of its debug text.
fn name_of(message: &AnyData) -> String {
    let mut word = FirstWord(String::new());
    // Writing fails after the first word; the rest is not needed.
    let _ = write!(word, "{message:?}");
    let FirstWord(word) = word;
    if word.starts_with(|c: char| c.is_alphabetic() || c == '_') {
        word
    } else {
        "message".to_owned()
    }
}

/// Takes the first word that is written to it, and then fails.
struct FirstWord(String);

impl Write for FirstWord {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = text.find(|c: char| !c.is_alphanumeric() && c != '_');
        self.0.push_str(&text[..end.unwrap_or(text.len())]);
        if end.is_some() { Err(fmt::Error) } else { Ok(()) }
    }
}
