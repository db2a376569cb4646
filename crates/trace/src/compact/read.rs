//! Reading the compact form.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::bytes::{Bad, Bytes};
use super::difference::read_difference;
use super::{
    ARRIVAL, CANCEL, CHANGED, DREW, DUPLICATED, END, INCIDENT, INDICATE, LOST, MAGIC, MESSAGE,
    NAME, RECOVER, RECOVER_SAVED, REQUEST, SAVE, SEND, SEND_NUMBERED, SEND_SAME, SET_TIMER, STAMP,
    START, STEP, SUSPECT, TIMER, TRUST, UNEXPECTED, UNSUMMED,
};
use crate::{
    EffectRecord, Entry, Footer, Header, Incident, IncidentKind, InputRecord, ReadError, Run,
    Salvaged, Step, VERSION,
};

/// Reads a run in the compact form that may be cut off; `file` is its name in errors. Lines in
/// errors are those that the entries would have as JSON lines.
pub fn salvage(file: &str, bytes: &[u8]) -> Result<Salvaged, ReadError> {
    let plain = |line, problem: String, cut_off| ReadError {
        file: file.to_owned(),
        line,
        problem,
        cut_off,
    };
    let first = |problem: &str| plain(1, problem.to_owned(), false);
    if !bytes.starts_with(&MAGIC[..7]) {
        return Err(first("this is no run in the compact form"));
    }
    let summed = match bytes.get(7) {
        Some(version) if *version == MAGIC[7] => true,
        Some(&UNSUMMED) => false,
        _ => return Err(first("this version of the compact form is not known here")),
    };
    let whole = is_whole(bytes, summed);
    // If the check sum does not fit, it explains every other error.
    let error = |line, problem: String| match whole {
        true => plain(line, problem, false),
        false => {
            let why = "the file is damaged: its check sum does not fit";
            plain(line, format!("{why} ({problem})"), false)
        }
    };
    let cut_at = |line| plain(line, "cut off: the file should go on to its end".to_owned(), true);
    let mut bytes = Bytes::new(bytes);
    bytes.at = MAGIC.len();
    let header: Header = json(&mut bytes).map_err(|bad| match bad {
        Bad::CutOff => first("cut off within its header"),
        Bad::Nonsense(_) => error(1, "its header cannot be read".to_owned()),
    })?;
    if header.konklave != VERSION {
        return Err(error(1, "the header has a version that is not known here".to_owned()));
    }
    let mut reading = Reading {
        states: vec![Vec::new(); header.nodes.len()],
        run: Run { header, entries: Vec::new(), footer: None },
        bytes,
        names: Vec::new(),
        bodies: BTreeMap::new(),
        next_id: 1,
        at: 0,
    };
    let mut cut = None;
    while reading.run.footer.is_none() && cut.is_none() {
        let line = reading.run.entries.len() + 2;
        match reading.record() {
            Ok(()) => {}
            Err(Bad::CutOff) => cut = Some(cut_at(line)),
            Err(Bad::Nonsense(why)) => {
                let place = reading.bytes.at;
                return Err(error(line, format!("near byte {place}: {why}")));
            }
        }
    }
    if cut.is_none() {
        let line = reading.run.entries.len() + 3;
        let sum = if summed { SUM } else { 0 };
        if reading.bytes.left() > sum {
            return Err(error(line, "something comes after the end; nothing should".into()));
        } else if reading.bytes.left() < sum {
            reading.run.footer = None;
            cut = Some(cut_at(line));
        } else if !whole {
            return Err(error(line, "a byte is not what was written".into()));
        }
    }
    Ok(Salvaged { run: reading.run, cut })
}

/// Whether the check sum at the end fits, if the form has one.
fn is_whole(bytes: &[u8], summed: bool) -> bool {
    match bytes.split_last_chunk::<SUM>() {
        Some((rest, sum)) if summed => crc32fast::hash(rest) == u32::from_le_bytes(*sum),
        _ => !summed,
    }
}

/// The bytes of the check sum.
const SUM: usize = 4;

struct Reading<'a> {
    run: Run,
    bytes: Bytes<'a>,
    names: Vec<String>,
    /// Sender and body of each message, by its number.
    bodies: BTreeMap<u64, (u32, Value)>,
    states: Vec<Vec<u8>>,
    next_id: u64,
    at: u64,
}

impl Reading<'_> {
    /// Reads one record. A record that is cut off does not change the run.
    fn record(&mut self) -> Result<(), Bad> {
        match self.bytes.byte()? {
            END => self.run.footer = Some(json::<Footer>(&mut self.bytes)?),
            NAME => self.names.push(self.bytes.text()?.to_owned()),
            INCIDENT => {
                let at = self.time()?;
                let kind: IncidentKind = json(&mut self.bytes)?;
                if let IncidentKind::AppMessage { id, .. } = kind {
                    self.next_id = self.next_id.max(id.saturating_add(1));
                }
                self.run.entries.push(Entry::Incident(Incident { at, kind }));
            }
            kind @ (LOST | DUPLICATED) => {
                let at = self.time()?;
                let id = self.next_id.wrapping_sub(self.bytes.zigzag()? as u64);
                let kind = if kind == LOST {
                    IncidentKind::Lost(id)
                } else {
                    IncidentKind::Duplicated(id)
                };
                self.run.entries.push(Entry::Incident(Incident { at, kind }));
            }
            step if step & STEP != 0 => {
                let step = self.step(step)?;
                self.run.entries.push(Entry::Step(step));
            }
            _ => return Err(Bad::Nonsense("a record is of no known kind")),
        }
        Ok(())
    }

    fn time(&mut self) -> Result<u64, Bad> {
        self.at = self.at.wrapping_add(self.bytes.zigzag()? as u64);
        Ok(self.at)
    }

    fn value(&mut self) -> Result<Value, Bad> {
        self.bytes.value(&self.names, &self.run.header.nodes)
    }

    fn id(&mut self) -> Result<u32, Bad> {
        u32::try_from(self.bytes.varint()?).map_err(|_| Bad::Nonsense("an id is too large"))
    }

    fn step(&mut self, flags: u8) -> Result<Step, Bad> {
        let at = self.time()?;
        let place = self.bytes.varint()?;
        let place = usize::try_from(place).ok().filter(|place| *place < self.states.len());
        let place = place.ok_or(Bad::Nonsense("a step of a node that is not in the header"))?;
        let node = self.run.header.nodes[place];
        let input = self.input(flags & 0x0f)?;
        let mut draws = Vec::new();
        if flags & DREW != 0 {
            for _ in 0..self.bytes.count()? {
                draws.push(self.id()?);
            }
        }
        let effects = self.effects(node)?;
        let mut state = None;
        if flags & CHANGED != 0 {
            let new = read_difference(&mut self.bytes, &self.states[place])?;
            let mut bytes = Bytes::new(&new);
            let read = bytes.value(&self.names, &self.run.header.nodes);
            let whole = read.ok().filter(|_| bytes.is_empty());
            state = Some(whole.ok_or(Bad::Nonsense("a state is no value"))?);
            self.states[place] = new;
        }
        Ok(Step { at, node, input, draws, effects, state })
    }

    fn input(&mut self, kind: u8) -> Result<InputRecord, Bad> {
        Ok(match kind {
            START => InputRecord::Start,
            RECOVER => InputRecord::Recover { saved: None },
            RECOVER_SAVED => InputRecord::Recover { saved: Some(self.value()?) },
            REQUEST => InputRecord::Request(self.value()?),
            ARRIVAL => {
                let id = self.next_id.wrapping_sub(self.bytes.varint()?);
                let sent = self.bodies.get(&id);
                let (from, body) =
                    sent.cloned().ok_or(Bad::Nonsense("a message arrives that was never sent"))?;
                InputRecord::Message { from, id, body }
            }
            MESSAGE => {
                let (from, id) = (self.id()?, self.bytes.varint()?);
                InputRecord::Message { from, id, body: self.value()? }
            }
            TIMER => InputRecord::Timer(self.value()?),
            SUSPECT => InputRecord::Suspect(self.id()?),
            TRUST => InputRecord::Trust(self.id()?),
            STAMP => {
                let (from, id) = (self.id()?, self.bytes.varint()?);
                InputRecord::Stamp { from, id, stamp: self.bytes.varint()? }
            }
            _ => return Err(Bad::Nonsense("an input is of no known kind")),
        })
    }

    fn effects(&mut self, node: u32) -> Result<Vec<EffectRecord>, Bad> {
        let mut effects = Vec::new();
        let mut last: Option<Value> = None;
        loop {
            let effect = match self.bytes.byte()? {
                0 => return Ok(effects),
                kind @ (SEND | SEND_SAME) => {
                    let to = self.id()?;
                    let body = match (kind, last.take()) {
                        (SEND_SAME, Some(body)) => body,
                        (SEND_SAME, None) => return Err(Bad::Nonsense("the same as nothing")),
                        _ => self.value()?,
                    };
                    last = Some(body.clone());
                    let id = self.next_id;
                    self.next_id = self.next_id.saturating_add(1);
                    self.bodies.insert(id, (node, body.clone()));
                    EffectRecord::Send { to, id, body }
                }
                SEND_NUMBERED => {
                    let (to, id) = (self.id()?, self.bytes.varint()?);
                    let body = self.value()?;
                    self.next_id = self.next_id.max(id.saturating_add(1));
                    self.bodies.insert(id, (node, body.clone()));
                    EffectRecord::Send { to, id, body }
                }
                SET_TIMER => {
                    let after_ns = self.bytes.varint()?;
                    EffectRecord::SetTimer { timer: self.value()?, after_ns }
                }
                CANCEL => EffectRecord::Cancel { timer: self.value()? },
                INDICATE => EffectRecord::Indicate(self.value()?),
                SAVE => EffectRecord::Save(self.value()?),
                UNEXPECTED => match self.value()? {
                    Value::String(what) => EffectRecord::Unexpected(what),
                    _ => return Err(Bad::Nonsense("what was met should be words")),
                },
                _ => return Err(Bad::Nonsense("an effect is of no known kind")),
            };
            effects.push(effect);
        }
    }
}

fn json<T: DeserializeOwned>(bytes: &mut Bytes<'_>) -> Result<T, Bad> {
    let text = bytes.text()?;
    serde_json::from_str(text).map_err(|_| Bad::Nonsense("this is no JSON of the right kind"))
}
