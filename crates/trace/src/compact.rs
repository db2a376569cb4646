//! The compact form of a recording, `.runz`: the same run in about a tenth of the bytes, written
//! while a simulation goes on. `book/en/reference/run-format.md` describes it.
//!
//! It leaves out everything that a reader can derive: a received message equals the sent one, numbers of
//! messages count up, each name is written once, and of a new state only its difference from the last
//! state is written.

mod bytes;
mod difference;
mod id;
mod read;
mod value;

use std::io::{self, Write};

use konklave_process::{Data, EffectView, InputView, ProcessId};
use rustc_hash::FxHashMap;

use crate::record::json;
use crate::{EffectRecord, Entry, Footer, Header, Incident, IncidentKind, InputRecord, Run};
use difference::put_difference;
use value::{Names, encode, put_varint, put_zigzag};

pub use read::salvage;

/// How a file in the compact form begins: with its version at the end.
pub const MAGIC: &[u8; 8] = b"konkrun\x03";

/// The version before had no check sum; it is read as well.
const UNSUMMED: u8 = 2;

// Records.
const END: u8 = 0;
const NAME: u8 = 1;
const INCIDENT: u8 = 2;
const LOST: u8 = 3;
const DUPLICATED: u8 = 4;
/// A step: the input in the four bits below, draws and state in two flags.
const STEP: u8 = 0x40;
const DREW: u8 = 0x20;
const CHANGED: u8 = 0x10;

// Inputs.
const START: u8 = 0;
const RECOVER: u8 = 1;
const RECOVER_SAVED: u8 = 2;
const REQUEST: u8 = 3;
const ARRIVAL: u8 = 4;
const MESSAGE: u8 = 5;
const TIMER: u8 = 6;
const SUSPECT: u8 = 7;
const TRUST: u8 = 8;
const STAMP: u8 = 9;

// Effects; 0 ends them.
const SEND: u8 = 1;
const SEND_SAME: u8 = 2;
const SET_TIMER: u8 = 3;
const CANCEL: u8 = 4;
const INDICATE: u8 = 5;
const SAVE: u8 = 6;
const UNEXPECTED: u8 = 7;
const SEND_NUMBERED: u8 = 8;

/// Bytes are handed on when there are so many.
const FULL: usize = 1 << 16;

/// Records a run in the compact form. It is used like a [`Recorder`](crate::Recorder).
#[derive(Debug)]
pub struct CompactRecorder<W> {
    out: W,
    result: io::Result<()>,
    /// The check sum of all bytes handed on.
    sum: crc32fast::Hasher,
    buffer: Vec<u8>,
    /// The place of each node in the header; empty if each place equals the id.
    places: FxHashMap<u32, usize>,
    names: Names,
    next_id: u64,
    /// The number that a reader gives to the next message, unless the recording has another.
    told_id: u64,
    last_at: u64,
    open: Option<Open>,
    draws: Vec<u32>,
    input: Vec<u8>,
    effects: Vec<u8>,
    /// The last message of this step.
    body: Vec<u8>,
    /// The buffer for new values.
    scratch: Vec<u8>,
    /// The buffer for differences of states.
    pieces: Vec<u8>,
    /// The state after each node's last step, by place.
    states: Vec<Vec<u8>>,
    waiting: Vec<Incident>,
}

/// A step that is not over.
#[derive(Clone, Copy, Debug)]
struct Open {
    at: u64,
    place: usize,
    input: u8,
}

impl<W: Write> CompactRecorder<W> {
    /// Records to `out`; no buffer is needed.
    pub fn new(header: &Header, out: W) -> Self {
        let mut buffer = Vec::with_capacity(2 * FULL);
        buffer.extend(MAGIC);
        put_json(&mut buffer, header);
        let places = header.nodes.iter().enumerate().map(|(place, &node)| (node, place));
        let plain = places.clone().all(|(node, place)| node as usize == place);
        let places = if plain { FxHashMap::default() } else { places.collect() };
        let states = vec![Vec::new(); header.nodes.len()];
        Self {
            out,
            result: Ok(()),
            sum: crc32fast::Hasher::new(),
            buffer,
            places,
            names: Names::new(&header.nodes),
            next_id: 1,
            told_id: 1,
            last_at: 0,
            open: None,
            draws: Vec::new(),
            input: Vec::new(),
            effects: Vec::new(),
            body: Vec::new(),
            scratch: Vec::new(),
            pieces: Vec::new(),
            states,
            waiting: Vec::new(),
        }
    }

    /// Begins a step; `id` is the number of the message that arrives, or 0.
    pub fn begin(&mut self, at: u64, node: ProcessId, input: InputView<'_>, id: u64) {
        self.close();
        self.clear();
        let known = (1..self.told_id).contains(&id);
        let kind = match input {
            InputView::Message(..) if known => {
                put_varint(&mut self.input, self.told_id - id);
                ARRIVAL
            }
            InputView::Start => START,
            InputView::Recover(None) => RECOVER,
            InputView::Recover(Some(saved)) => self.put_input(saved, RECOVER_SAVED),
            InputView::Request(request) => self.put_input(request, REQUEST),
            InputView::Message(from, message) => {
                put_varint(&mut self.input, u64::from(from.0));
                put_varint(&mut self.input, id);
                self.put_input(message, MESSAGE)
            }
            InputView::Timer(timer) => self.put_input(timer, TIMER),
            InputView::Suspect(peer) => self.put_peer(peer.0, SUSPECT),
            InputView::Trust(peer) => self.put_peer(peer.0, TRUST),
            InputView::Stamp(from, stamp) => self.put_stamp(from.0, id, stamp),
        };
        self.open = Some(Open { at, place: self.place(node.0), input: kind });
    }

    /// Records an effect. Returns the number of the message if the process sends one, else 0.
    pub fn effect(&mut self, effect: EffectView<'_>) -> u64 {
        match effect {
            EffectView::Send(to, message) => {
                let id = self.next_id;
                self.next_id += 1;
                self.put_send(to.0, id, message);
                return id;
            }
            EffectView::SetTimer(timer, after) => {
                let after = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
                self.put_timer(timer, after);
            }
            EffectView::CancelTimer(timer) => self.put_effect(CANCEL, timer),
            EffectView::Indicate(indication) => self.put_effect(INDICATE, indication),
            EffectView::Save(record) => self.put_effect(SAVE, record),
            EffectView::Unexpected(what) => self.put_effect(UNEXPECTED, &what),
        }
        0
    }

    /// Records an answer of `choose`.
    pub fn draw(&mut self, drawn: u32) {
        self.draws.push(drawn);
    }

    /// Ends the step; `process` is the state after it.
    pub fn end(&mut self, process: &dyn Data) {
        let Some(open) = self.open else { return };
        self.scratch.clear();
        encode(process, &mut self.scratch, &mut self.names);
        let changed = self.scratch != self.states[open.place];
        self.put_step(changed);
    }

    /// Records an incident.
    pub fn incident(&mut self, at: u64, kind: IncidentKind) {
        let incident = Incident { at, kind };
        match self.open {
            Some(_) => self.waiting.push(incident),
            None => self.put_incident(&incident),
        }
    }

    /// Records that the application sends a message. Returns the number of the message.
    pub fn app_message(&mut self, at: u64, from: ProcessId, to: ProcessId) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.incident(at, IncidentKind::AppMessage { from: from.0, to: to.0, id });
        id
    }

    /// Ends the run; without a footer it counts as cut off. Returns the first failure to write, after which
    /// nothing more was written.
    pub fn finish(mut self, footer: Option<&Footer>) -> io::Result<W> {
        self.close();
        if let Some(footer) = footer {
            self.buffer.push(END);
            put_json(&mut self.buffer, footer);
            self.hand_on();
            self.buffer.extend(self.sum.clone().finalize().to_le_bytes());
        }
        self.hand_on();
        self.result?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn place(&self, node: u32) -> usize {
        self.places.get(&node).copied().unwrap_or(node as usize)
    }

    fn clear(&mut self) {
        self.input.clear();
        self.effects.clear();
        self.draws.clear();
        self.body.clear();
    }

    fn put_input(&mut self, value: &dyn erased_serde::Serialize, kind: u8) -> u8 {
        encode(value, &mut self.input, &mut self.names);
        kind
    }

    fn put_peer(&mut self, peer: u32, kind: u8) -> u8 {
        put_varint(&mut self.input, u64::from(peer));
        kind
    }

    fn put_stamp(&mut self, from: u32, id: u64, stamp: u64) -> u8 {
        [u64::from(from), id, stamp].into_iter().for_each(|n| put_varint(&mut self.input, n));
        STAMP
    }

    fn put_send(&mut self, to: u32, id: u64, body: &dyn erased_serde::Serialize) {
        let next = id == self.told_id;
        self.told_id = self.told_id.max(id + 1);
        // The application sent a message within this step; its incident follows the step and has the number.
        if !next {
            self.effects.push(SEND_NUMBERED);
            put_varint(&mut self.effects, u64::from(to));
            put_varint(&mut self.effects, id);
            return encode(body, &mut self.effects, &mut self.names);
        }
        self.scratch.clear();
        encode(body, &mut self.scratch, &mut self.names);
        // A broadcast sends the same body to all: write it once.
        let same = !self.body.is_empty() && self.scratch == self.body;
        self.effects.push(if same { SEND_SAME } else { SEND });
        put_varint(&mut self.effects, u64::from(to));
        if !same {
            self.effects.extend_from_slice(&self.scratch);
            std::mem::swap(&mut self.body, &mut self.scratch);
        }
    }

    fn put_timer(&mut self, timer: &dyn erased_serde::Serialize, after_ns: u64) {
        self.effects.push(SET_TIMER);
        put_varint(&mut self.effects, after_ns);
        encode(timer, &mut self.effects, &mut self.names);
    }

    fn put_effect(&mut self, kind: u8, value: &dyn erased_serde::Serialize) {
        self.effects.push(kind);
        encode(value, &mut self.effects, &mut self.names);
    }

    fn put_time(&mut self, at: u64) {
        put_zigzag(&mut self.buffer, at.wrapping_sub(self.last_at) as i64);
        self.last_at = at;
    }

    fn put_names(&mut self) {
        for name in self.names.fresh.drain(..) {
            self.buffer.push(NAME);
            put_varint(&mut self.buffer, name.len() as u64);
            self.buffer.extend(name.as_bytes());
        }
    }

    /// Closes a step that the host did not end.
    fn close(&mut self) {
        if self.open.is_some() {
            self.put_step(false);
        }
    }

    /// Writes the open step; its state, if it is new, is in `scratch`.
    fn put_step(&mut self, changed: bool) {
        let Some(open) = self.open.take() else { return };
        self.put_names();
        let drew = if self.draws.is_empty() { 0 } else { DREW };
        let state = if changed { CHANGED } else { 0 };
        self.buffer.push(STEP | drew | state | open.input);
        self.put_time(open.at);
        put_varint(&mut self.buffer, open.place as u64);
        self.buffer.extend_from_slice(&self.input);
        if drew != 0 {
            put_varint(&mut self.buffer, self.draws.len() as u64);
            self.draws.iter().for_each(|&drawn| put_varint(&mut self.buffer, u64::from(drawn)));
        }
        self.buffer.extend_from_slice(&self.effects);
        self.buffer.push(0);
        if changed {
            let last = &mut self.states[open.place];
            put_difference(&mut self.buffer, last, &self.scratch, &mut self.pieces);
            std::mem::swap(last, &mut self.scratch);
        }
        for incident in std::mem::take(&mut self.waiting) {
            self.put_incident(&incident);
        }
        if self.buffer.len() >= FULL {
            self.hand_on();
        }
    }

    fn put_incident(&mut self, incident: &Incident) {
        match &incident.kind {
            IncidentKind::Lost(id) | IncidentKind::Duplicated(id) => {
                let lost = matches!(incident.kind, IncidentKind::Lost(_));
                self.buffer.push(if lost { LOST } else { DUPLICATED });
                self.put_time(incident.at);
                put_zigzag(&mut self.buffer, self.told_id.wrapping_sub(*id) as i64);
            }
            IncidentKind::Crash(_)
            | IncidentKind::Restart { .. }
            | IncidentKind::Pause(_)
            | IncidentKind::Resume(_)
            | IncidentKind::Cut(_)
            | IncidentKind::Heal(_)
            | IncidentKind::AppMessage { .. }
            | IncidentKind::Violation { .. } => {
                if let IncidentKind::AppMessage { id, .. } = incident.kind {
                    self.told_id = self.told_id.max(id + 1);
                }
                self.buffer.push(INCIDENT);
                self.put_time(incident.at);
                put_json(&mut self.buffer, &incident.kind);
            }
        }
    }

    fn hand_on(&mut self) {
        if self.result.is_ok() {
            self.sum.update(&self.buffer);
            self.result = self.out.write_all(&self.buffer);
        }
        self.buffer.clear();
    }
}

fn put_json(out: &mut Vec<u8>, value: &dyn erased_serde::Serialize) {
    let text = json(value).to_string();
    put_varint(out, text.len() as u64);
    out.extend(text.as_bytes());
}

/// Writes a run that is in memory.
pub fn write<W: Write>(run: &Run, out: W) -> io::Result<W> {
    let mut recorder = CompactRecorder::new(&run.header, out);
    for entry in &run.entries {
        recorder.entry(entry);
    }
    recorder.finish(run.footer.as_ref())
}

impl<W: Write> CompactRecorder<W> {
    /// Writes an entry of a run that was recorded before.
    fn entry(&mut self, entry: &Entry) {
        let step = match entry {
            Entry::Step(step) => step,
            Entry::Incident(incident) => return self.put_incident(incident),
        };
        self.clear();
        let kind = match &step.input {
            InputRecord::Start => START,
            InputRecord::Recover { saved: None } => RECOVER,
            InputRecord::Recover { saved: Some(saved) } => self.put_input(saved, RECOVER_SAVED),
            InputRecord::Request(request) => self.put_input(request, REQUEST),
            // The sent body is not at hand to compare with, so the body is written in full.
            InputRecord::Message { from, id, body } => {
                put_varint(&mut self.input, u64::from(*from));
                put_varint(&mut self.input, *id);
                self.put_input(body, MESSAGE)
            }
            InputRecord::Timer(timer) => self.put_input(timer, TIMER),
            InputRecord::Suspect(peer) => self.put_peer(*peer, SUSPECT),
            InputRecord::Trust(peer) => self.put_peer(*peer, TRUST),
            InputRecord::Stamp { from, id, stamp } => self.put_stamp(*from, *id, *stamp),
        };
        self.open = Some(Open { at: step.at, place: self.place(step.node), input: kind });
        self.draws.extend(&step.draws);
        for effect in &step.effects {
            match effect {
                EffectRecord::Send { to, id, body } => self.put_send(*to, *id, body),
                EffectRecord::SetTimer { timer, after_ns } => self.put_timer(timer, *after_ns),
                EffectRecord::Cancel { timer } => self.put_effect(CANCEL, timer),
                EffectRecord::Indicate(indication) => self.put_effect(INDICATE, indication),
                EffectRecord::Save(record) => self.put_effect(SAVE, record),
                EffectRecord::Unexpected(what) => self.put_effect(UNEXPECTED, what),
            }
        }
        self.scratch.clear();
        if let Some(state) = &step.state {
            encode(state, &mut self.scratch, &mut self.names);
        }
        self.put_step(step.state.is_some());
    }
}
