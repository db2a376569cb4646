//! Writing a simulated run down.

use std::io::Write;

use konklave_process::{Data, EffectView, InputView, ProcessId};
use konklave_sim::{AnyObserver, Incident, Time};
use konklave_trace::compact::CompactRecorder;
use konklave_trace::{
    Comparison, Difference, Entry, Footer, Header, IncidentKind, Recorder, Run, Sink,
};

/// The contents and form of a recording.
#[expect(clippy::large_enum_variant, reason = "there is one for each run")]
pub(super) enum Recording<'a> {
    /// Nothing.
    Off,
    /// In memory, or against a recording that is there.
    Whole(Recorder<Book<'a>>),
    /// In the compact form, while the run goes on.
    Compact(CompactRecorder<&'a mut dyn Write>),
}

/// The target of a recording, or the recording to compare with.
#[expect(clippy::large_enum_variant, reason = "there is one for each run")]
pub(super) enum Book<'a> {
    /// Pages that are filled.
    Written(Run),
    /// Pages that are filled already.
    Compared(Comparison<'a>),
}

/// The result of a [`Book`].
#[expect(clippy::large_enum_variant, reason = "there is one for each run")]
pub(super) enum Closed {
    Written(Run),
    Compared(Option<Difference>),
}

impl Book<'_> {
    pub(super) fn blank(header: Header) -> Self {
        Self::Written(Run { header, entries: Vec::new(), footer: None })
    }
}

impl Closed {
    pub(super) fn written(self) -> Option<Run> {
        match self {
            Self::Written(run) => Some(run),
            Self::Compared(_) => None,
        }
    }

    pub(super) fn difference(self) -> Option<Difference> {
        match self {
            Self::Written(_) => None,
            Self::Compared(difference) => difference,
        }
    }
}

impl Sink for Book<'_> {
    type Done = Closed;

    fn entry(&mut self, entry: Entry) {
        match self {
            Self::Written(run) => run.entry(entry),
            Self::Compared(comparison) => comparison.entry(entry),
        }
    }

    fn finish(self, footer: Option<Footer>) -> Closed {
        match self {
            Self::Written(run) => Closed::Written(run.finish(footer)),
            Self::Compared(comparison) => Closed::Compared(comparison.finish(footer)),
        }
    }
}

impl AnyObserver for Recording<'_> {
    fn before_step(&mut self, now: Time, at: ProcessId, input: InputView<'_>, id: u64) {
        match self {
            Self::Off => {}
            Self::Whole(recorder) => recorder.begin(now, at, input, id),
            Self::Compact(recorder) => recorder.begin(now, at, input, id),
        }
    }
    fn on_effect(&mut self, _now: Time, _at: ProcessId, effect: EffectView<'_>) -> u64 {
        match self {
            Self::Off => 0,
            Self::Whole(recorder) => recorder.effect(effect),
            Self::Compact(recorder) => recorder.effect(effect),
        }
    }
    fn on_draw(&mut self, drawn: u32) {
        match self {
            Self::Off => {}
            Self::Whole(recorder) => recorder.draw(drawn),
            Self::Compact(recorder) => recorder.draw(drawn),
        }
    }
    fn after_step(&mut self, _now: Time, _at: ProcessId, process: &dyn Data) {
        match self {
            Self::Off => {}
            Self::Whole(recorder) => recorder.end(process),
            Self::Compact(recorder) => recorder.end(process),
        }
    }
    fn on_lost(&mut self, now: Time, id: u64) {
        self.incident(now, IncidentKind::Lost(id));
    }
    fn on_duplicated(&mut self, now: Time, id: u64) {
        self.incident(now, IncidentKind::Duplicated(id));
    }
    fn on_app_message(&mut self, now: Time, from: ProcessId, to: ProcessId) -> u64 {
        match self {
            Self::Off => 0,
            Self::Whole(recorder) => recorder.app_message(now, from, to),
            Self::Compact(recorder) => recorder.app_message(now, from, to),
        }
    }
    fn on_incident(&mut self, now: Time, incident: &Incident) {
        self.incident(now, incident_kind(incident));
    }
}

impl Recording<'_> {
    fn incident(&mut self, now: Time, kind: IncidentKind) {
        match self {
            Self::Off => {}
            Self::Whole(recorder) => recorder.incident(now, kind),
            Self::Compact(recorder) => recorder.incident(now, kind),
        }
    }
}

fn incident_kind(incident: &Incident) -> IncidentKind {
    match incident {
        Incident::Crash(p) => IncidentKind::Crash(p.0),
        Incident::Restart(p, memory) => IncidentKind::Restart {
            node: p.0,
            memory: match memory {
                konklave_sim::Memory::Saved => konklave_trace::Memory::Saved,
                konklave_sim::Memory::Nothing => konklave_trace::Memory::Nothing,
                konklave_sim::Memory::Everything => konklave_trace::Memory::Everything,
            },
        },
        Incident::Pause(p) => IncidentKind::Pause(p.0),
        Incident::Resume(p) => IncidentKind::Resume(p.0),
        Incident::Cut(what) => IncidentKind::Cut(what.clone()),
        Incident::Heal(what) => IncidentKind::Heal(what.clone()),
        Incident::Violation { property, detail } => {
            IncidentKind::Violation { property: (*property).into(), detail: detail.clone() }
        }
    }
}
