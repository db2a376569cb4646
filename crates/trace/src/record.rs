//! Recording a run while it happens.

use std::collections::BTreeMap;
use std::io::{self, Write};

use konklave_process::{AnyData, AnyProcess, Data, EffectView, Input, InputView, ProcessId};
use serde::Serialize;
use serde_json::Value;

use crate::read::write_line;
use crate::{EffectRecord, Entry, Footer, Header, Incident, IncidentKind, InputRecord, Run, Step};

/// `value` as JSON; a value that JSON cannot express becomes a string with the reason.
pub(crate) fn json(value: &dyn erased_serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_else(|e| Value::String(format!("not JSON: {e}")))
}

impl InputRecord {
    /// `input` as data; `id` is the number of the message, if the input is a message.
    pub fn new(input: InputView<'_>, id: u64) -> Self {
        match input {
            InputView::Start => Self::Start,
            InputView::Recover(saved) => Self::Recover { saved: saved.map(|saved| json(saved)) },
            InputView::Request(request) => Self::Request(json(request)),
            InputView::Message(from, message) => {
                Self::Message { from: from.0, id, body: json(message) }
            }
            InputView::Timer(timer) => Self::Timer(json(timer)),
            InputView::Suspect(peer) => Self::Suspect(peer.0),
            InputView::Trust(peer) => Self::Trust(peer.0),
            InputView::Stamp(from, stamp) => Self::Stamp { from: from.0, id, stamp },
        }
    }

    /// The recorded input as an input of the algorithm of `process`.
    pub fn to_input(&self, process: &AnyProcess) -> serde_json::Result<Input<AnyProcess>> {
        Ok(match self {
            Self::Start => Input::Start,
            Self::Recover { saved } => {
                let read = |saved| process.read_record(saved);
                Input::Recover(saved.as_ref().map(read).transpose()?)
            }
            Self::Request(request) => Input::Request(process.read_request(request)?),
            Self::Message { from, body, .. } => {
                let message = process.read_message(body)?;
                Input::Message { from: ProcessId(*from), message }
            }
            Self::Timer(timer) => Input::Timer(process.read_timer(timer)?),
            Self::Suspect(peer) => Input::Suspect(ProcessId(*peer)),
            Self::Trust(peer) => Input::Trust(ProcessId(*peer)),
            Self::Stamp { from, stamp, .. } => {
                Input::Stamp { from: ProcessId(*from), stamp: *stamp }
            }
        })
    }
}

impl EffectRecord {
    /// `effect` as data; `id` is the number of the message, if the effect sends one.
    pub fn new(effect: EffectView<'_>, id: u64) -> Self {
        match effect {
            EffectView::Send(to, message) => Self::Send { to: to.0, id, body: json(message) },
            EffectView::SetTimer(timer, after) => Self::SetTimer {
                timer: json(timer),
                after_ns: u64::try_from(after.as_nanos()).unwrap_or(u64::MAX),
            },
            EffectView::CancelTimer(timer) => Self::Cancel { timer: json(timer) },
            EffectView::Indicate(indication) => Self::Indicate(json(indication)),
            EffectView::Save(record) => Self::Save(json(record)),
            EffectView::Unexpected(what) => Self::Unexpected(what.to_owned()),
        }
    }
}

/// The destination of a recorder.
pub trait Sink {
    /// The result of a finished recording.
    type Done;

    /// Takes the next entry.
    fn entry(&mut self, entry: Entry);

    /// Ends the recording; without a footer, the run counts as cut off.
    fn finish(self, footer: Option<Footer>) -> Self::Done;
}

/// A run in memory.
impl Sink for Run {
    type Done = Self;

    fn entry(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    fn finish(self, footer: Option<Footer>) -> Self {
        Self { footer, ..self }
    }
}

/// A run in a file, written entry by entry. After the first failure nothing more is written; `finish`
/// returns that failure.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    result: io::Result<()>,
}

impl<W: Write> Sink for Writer<W> {
    type Done = io::Result<W>;

    fn entry(&mut self, entry: Entry) {
        self.line(&entry);
    }

    fn finish(mut self, footer: Option<Footer>) -> io::Result<W> {
        if let Some(footer) = footer {
            self.line(&footer);
        }
        self.result?;
        self.out.flush()?;
        Ok(self.out)
    }
}

impl<W: Write> Writer<W> {
    fn line(&mut self, line: &impl Serialize) {
        if self.result.is_ok() {
            self.result = write_line(&mut self.out, line);
        }
    }
}

/// Records a run, step by step.
///
/// A host calls [`begin`](Self::begin), then [`effect`](Self::effect) and [`draw`](Self::draw) as
/// they come, then [`end`](Self::end). Incidents may be recorded at any time; an incident during a
/// step is written after the step.
#[derive(Debug)]
pub struct Recorder<S> {
    sink: S,
    next_id: u64,
    open: Option<Step>,
    /// The incidents during the open step.
    waiting: Vec<Incident>,
    /// The state after each node's last step.
    states: BTreeMap<u32, AnyData>,
}

impl Recorder<Run> {
    /// Records to memory.
    pub fn new(header: Header) -> Self {
        Self::to(Run { header, entries: Vec::new(), footer: None })
    }
}

impl<W: Write> Recorder<Writer<W>> {
    /// Records to `out`, best a [`BufWriter`](io::BufWriter).
    pub fn writing(header: &Header, mut out: W) -> Self {
        let result = write_line(&mut out, header);
        Self::to(Writer { out, result })
    }
}

impl<S: Sink> Recorder<S> {
    /// Records to a sink that has its header.
    pub fn to(sink: S) -> Self {
        Self { sink, next_id: 1, open: None, waiting: Vec::new(), states: BTreeMap::new() }
    }

    /// Numbers messages from `first`: nodes with recordings of their own use disjoint ranges.
    pub fn number_from(self, first: u64) -> Self {
        Self { next_id: first.max(1), ..self }
    }

    /// Begins a step; `id` is the number of the message that arrives, or 0.
    pub fn begin(&mut self, at: u64, node: ProcessId, input: InputView<'_>, id: u64) {
        self.close(None);
        let input = InputRecord::new(input, id);
        let (draws, effects) = (Vec::new(), Vec::new());
        self.open = Some(Step { at, node: node.0, input, draws, effects, state: None });
    }

    /// Records an effect. Returns the number of the message if the process sends one, else 0.
    pub fn effect(&mut self, effect: EffectView<'_>) -> u64 {
        let id = if let EffectView::Send(..) = effect { self.take_id() } else { 0 };
        if let Some(step) = &mut self.open {
            step.effects.push(EffectRecord::new(effect, id));
        }
        id
    }

    /// Records an answer of `choose`.
    pub fn draw(&mut self, drawn: u32) {
        if let Some(step) = &mut self.open {
            step.draws.push(drawn);
        }
    }

    /// Ends the step; `process` is the state after it.
    pub fn end(&mut self, process: &dyn Data) {
        self.close(Some(process));
    }

    /// Records an incident.
    pub fn incident(&mut self, at: u64, kind: IncidentKind) {
        let incident = Incident { at, kind };
        match self.open {
            Some(_) => self.waiting.push(incident),
            None => self.sink.entry(Entry::Incident(incident)),
        }
    }

    /// Records that message `id` will not arrive.
    pub fn lost(&mut self, at: u64, id: u64) {
        self.incident(at, IncidentKind::Lost(id));
    }

    /// Records that message `id` will arrive twice.
    pub fn duplicated(&mut self, at: u64, id: u64) {
        self.incident(at, IncidentKind::Duplicated(id));
    }

    /// Records that the application sends a message. Returns the number of the message.
    pub fn app_message(&mut self, at: u64, from: ProcessId, to: ProcessId) -> u64 {
        let id = self.take_id();
        self.incident(at, IncidentKind::AppMessage { from: from.0, to: to.0, id });
        id
    }

    /// Ends the run; without a footer the run counts as cut off.
    pub fn finish(mut self, footer: Option<Footer>) -> S::Done {
        self.close(None);
        self.sink.finish(footer)
    }

    fn take_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id - 1
    }

    fn close(&mut self, process: Option<&dyn Data>) {
        let Some(mut step) = self.open.take() else { return };
        if let Some(process) = process
            && !self.states.get(&step.node).is_some_and(|before| before.is(process))
        {
            step.state = Some(json(process));
            self.states.insert(step.node, process.to_any());
        }
        self.sink.entry(Entry::Step(step));
        for incident in self.waiting.drain(..) {
            self.sink.entry(Entry::Incident(incident));
        }
    }
}
