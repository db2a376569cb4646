//! A run as a table: one row for each thing that happened.

use konklave_tables::Table;
use serde_json::Value;

use crate::diagram::Options;
use crate::messages::messages;
use crate::record::json;
use crate::{EffectRecord, Entry, Extent, IncidentKind, InputRecord, Run, Step, View, kind_of};

/// The table of `run` as comma-separated values.
pub fn csv(run: &Run, options: &Options) -> String {
    table(run, options).to_csv()
}

/// The events of a run. A step has a row for its input, for each effect and for its new state; each
/// incident has a row.
///
/// `line` is the line of the run's file; `at` is in ticks, `time` in the run's unit; `body` is JSON.
pub fn table(run: &Run, options: &Options) -> Table {
    let messages = messages(run);
    let view = View::new(run, &messages, &options.only);
    let mut rows = Rows::default();
    for (i, entry) in run.entries.iter().enumerate() {
        let extent = view.extent(i);
        if extent == Extent::Nothing {
            continue;
        }
        let first = rows.rows.len();
        match entry {
            Entry::Step(step) => rows.step(step, &view, extent == Extent::All),
            Entry::Incident(incident) => rows.incident(&incident.kind, &messages),
        }
        for row in &mut rows.rows[first..] {
            (row.line, row.at) = (i + 2, entry.at());
        }
    }
    let rows = rows.rows;
    let int = |value: u64| i64::try_from(value).ok();
    let mut table = Table::default();
    table.ints("line", rows.iter().map(|row| int(row.line as u64)));
    table.ints("at", rows.iter().map(|row| int(row.at)));
    table.floats("time", rows.iter().map(|row| Some(run.header.time_of(row.at))));
    table.ints("node", rows.iter().map(|row| row.node.map(i64::from)));
    table.texts("event", rows.iter().map(|row| Some(row.event)));
    table.texts("kind", rows.iter().map(|row| row.kind.clone()));
    table.ints("peer", rows.iter().map(|row| row.peer.map(i64::from)));
    table.ints("message", rows.iter().map(|row| row.message.and_then(int)));
    table.texts("body", rows.into_iter().map(|row| row.body));
    table.about.push(("konklave.header".into(), json(&run.header).to_string()));
    if let Some(footer) = &run.footer {
        table.about.push(("konklave.end".into(), json(footer).to_string()));
    }
    table
}

#[derive(Default)]
struct Row {
    line: usize,
    at: u64,
    node: Option<u32>,
    event: &'static str,
    kind: Option<String>,
    peer: Option<u32>,
    message: Option<u64>,
    body: Option<String>,
}

#[derive(Default)]
struct Rows {
    rows: Vec<Row>,
}

impl Rows {
    fn put(&mut self, node: Option<u32>, event: &'static str) -> &mut Row {
        self.rows.push(Row { node, event, ..Row::default() });
        self.rows.last_mut().expect("one was just put there")
    }

    fn said(&mut self, node: u32, event: &'static str, body: &Value) -> &mut Row {
        let row = self.put(Some(node), event);
        row.kind = Some(kind_of(body)).filter(|_| !body.is_null()).map(str::to_owned);
        row.body = Some(body.to_string());
        row
    }

    /// `all` of a step, or only its messages; of those only what `view` shows.
    fn step(&mut self, step: &Step, view: &View<'_>, all: bool) {
        self.input(step, view, all);
        for drawn in step.draws.iter().filter(|_| all) {
            self.put(Some(step.node), "draw").body = Some(drawn.to_string());
        }
        for effect in &step.effects {
            match effect {
                EffectRecord::Send { to, id, body } if view.shows_id(*id) => {
                    let row = self.said(step.node, "send", body);
                    (row.peer, row.message) = (Some(*to), Some(*id));
                }
                EffectRecord::Send { .. } => {}
                _ if all => self.effect(step.node, effect),
                _ => {}
            }
        }
        if let Some(state) = step.state.as_ref().filter(|_| all) {
            self.put(Some(step.node), "state").body = Some(state.to_string());
        }
    }

    fn input(&mut self, step: &Step, view: &View<'_>, all: bool) {
        let node = step.node;
        match &step.input {
            InputRecord::Message { .. } | InputRecord::Stamp { .. } if !view.shows_input(step) => {}
            InputRecord::Message { from, id, body } => {
                let row = self.said(node, "receive", body);
                (row.peer, row.message) = (Some(*from), Some(*id));
            }
            InputRecord::Stamp { from, id, stamp } => {
                let row = self.put(Some(node), "stamp");
                (row.peer, row.message) = (Some(*from), Some(*id));
                row.body = Some(stamp.to_string());
            }
            _ if !all => {}
            InputRecord::Start => {
                self.put(Some(node), "start");
            }
            InputRecord::Recover { saved: None } => {
                self.put(Some(node), "recover");
            }
            InputRecord::Recover { saved: Some(saved) } => {
                self.said(node, "recover", saved);
            }
            InputRecord::Request(request) => {
                self.said(node, "request", request);
            }
            InputRecord::Timer(timer) => {
                self.said(node, "timer", timer);
            }
            InputRecord::Suspect(peer) => self.put(Some(node), "suspect").peer = Some(*peer),
            InputRecord::Trust(peer) => self.put(Some(node), "trust").peer = Some(*peer),
        }
    }

    /// The effects of a step except sends.
    fn effect(&mut self, node: u32, effect: &EffectRecord) {
        match effect {
            EffectRecord::Send { .. } => {}
            EffectRecord::SetTimer { timer, after_ns } => {
                let row = self.said(node, "set_timer", timer);
                row.body = Some(serde_json::json!([timer, after_ns]).to_string());
            }
            EffectRecord::Cancel { timer } => {
                self.said(node, "cancel", timer);
            }
            EffectRecord::Indicate(indication) => {
                self.said(node, "indicate", indication);
            }
            EffectRecord::Save(record) => {
                self.said(node, "save", record);
            }
            EffectRecord::Unexpected(what) => {
                self.put(Some(node), "unexpected").body = Some(json(what).to_string());
            }
        }
    }

    fn incident(
        &mut self,
        kind: &IncidentKind,
        messages: &std::collections::BTreeMap<u64, crate::messages::Message<'_>>,
    ) {
        let mut mishap = |event, id: &u64| {
            let message = messages.get(id);
            let row = self.put(message.map(|m| m.from), event);
            row.message = Some(*id);
            row.peer = message.map(|m| m.to);
            row.kind = message.map(|m| m.kind().to_owned());
        };
        match kind {
            IncidentKind::Lost(id) => mishap("lost", id),
            IncidentKind::Duplicated(id) => mishap("duplicated", id),
            IncidentKind::AppMessage { id, .. } => mishap("app_message", id),
            IncidentKind::Crash(node) => {
                self.put(Some(*node), "crash");
            }
            IncidentKind::Restart { node, memory } => {
                self.put(Some(*node), "restart").body = Some(json(memory).to_string());
            }
            IncidentKind::Pause(node) => {
                self.put(Some(*node), "pause");
            }
            IncidentKind::Resume(node) => {
                self.put(Some(*node), "resume");
            }
            IncidentKind::Cut(what) => {
                self.put(None, "cut").body = Some(json(what).to_string());
            }
            IncidentKind::Heal(what) => {
                self.put(None, "heal").body = Some(json(what).to_string());
            }
            IncidentKind::Violation { property, detail } => {
                let row = self.put(None, "violation");
                row.kind = Some(property.clone());
                row.body = Some(json(detail).to_string());
            }
        }
    }
}
