//! The messages of a run: each with its sending, its receipts or its loss.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{EffectRecord, Entry, IncidentKind, InputRecord, Run, kind_of};

/// A message. Entries are named by their index in [`Run::entries`].
#[derive(Clone, PartialEq, Debug)]
pub struct Message<'a> {
    /// Its number.
    pub id: u64,
    /// The sender.
    pub from: u32,
    /// The receiver.
    pub to: u32,
    /// Its body; none for a message of the application.
    pub body: Option<&'a Value>,
    /// The entry that sent it.
    pub sent: usize,
    /// The entries that received it: several if it was duplicated.
    pub received: Vec<usize>,
    /// The entry that records its loss.
    pub lost: Option<usize>,
    /// Whether it was lost later than it was sent: the receiver was down or cut off when it arrived.
    pub lost_on_arrival: bool,
    /// The entry that records its duplication.
    pub duplicated: Option<usize>,
}

impl Message<'_> {
    /// The name of its kind.
    pub fn kind(&self) -> &str {
        self.body.map_or("application", kind_of)
    }

    /// The layer below the algorithm that it belongs to, and its kind there: `Group` and `Prepare`
    /// for `{"Group":{"Prepare":…}}`. None for a message of the algorithm itself.
    pub fn layer(&self) -> Option<(&str, &str)> {
        let (layer, inner) = variant(self.body?)?;
        // The layer may wrap the message as one field among others.
        let wrapped = variant(inner).or_else(|| variant(inner.get("message")?))?;
        let mut kind = wrapped;
        while let Some(deeper) = variant(kind.1) {
            kind = deeper;
        }
        Some((layer, kind.0))
    }

    /// The name of its kind, with its layer: `Group/Prepare`.
    pub fn full_name(&self) -> String {
        match self.layer() {
            Some((layer, kind)) => format!("{layer}/{kind}"),
            None => self.kind().to_owned(),
        }
    }
}

/// The name of a variant and its content. Names of variants begin with a capital, names of fields do not.
fn variant(value: &Value) -> Option<(&str, &Value)> {
    let fields = value.as_object().filter(|fields| fields.len() == 1)?;
    let (name, inner) = fields.iter().next()?;
    name.starts_with(|c: char| c.is_ascii_uppercase()).then_some((name.as_str(), inner))
}

/// All messages of `run`, by number. Receipts that name no message of the run are left out.
pub fn messages(run: &Run) -> BTreeMap<u64, Message<'_>> {
    let mut messages = BTreeMap::new();
    for (i, entry) in run.entries.iter().enumerate() {
        match entry {
            Entry::Step(step) => {
                if let InputRecord::Message { id, .. } | InputRecord::Stamp { id, .. } = &step.input
                    && let Some(Message { received, .. }) = messages.get_mut(id)
                {
                    received.push(i);
                }
                for effect in &step.effects {
                    if let EffectRecord::Send { to, id, body } = effect {
                        messages.insert(*id, sent(*id, step.node, *to, Some(body), i));
                    }
                }
            }
            Entry::Incident(incident) => match &incident.kind {
                IncidentKind::AppMessage { from, to, id } => {
                    messages.insert(*id, sent(*id, *from, *to, None, i));
                }
                IncidentKind::Lost(id) => {
                    if let Some(message) = messages.get_mut(id) {
                        message.lost = Some(i);
                        message.lost_on_arrival = incident.at > run.entries[message.sent].at();
                    }
                }
                IncidentKind::Duplicated(id) => {
                    if let Some(message) = messages.get_mut(id) {
                        message.duplicated = Some(i);
                    }
                }
                IncidentKind::Crash(_)
                | IncidentKind::Restart { .. }
                | IncidentKind::Pause(_)
                | IncidentKind::Resume(_)
                | IncidentKind::Cut(_)
                | IncidentKind::Heal(_)
                | IncidentKind::Violation { .. } => {}
            },
        }
    }
    messages
}

fn sent(id: u64, from: u32, to: u32, body: Option<&Value>, sent: usize) -> Message<'_> {
    let received = Vec::new();
    let (lost, lost_on_arrival, duplicated) = (None, false, None);
    Message { id, from, to, body, sent, received, lost, lost_on_arrival, duplicated }
}
