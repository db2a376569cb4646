//! Checks a recording for consistency, in whatever world it was made: time does not go back, each
//! message that arrives was sent, a crashed process makes no step, each timer that fires was set.
//!
//! A [replay](crate::replay()) checks the processes; an audit checks the world.

mod node;

use std::collections::BTreeMap;

use serde_json::Value;

use self::node::Node;
use crate::record::json;
use crate::{
    Difference, EffectRecord, Entry, Header, Incident, IncidentKind, InputRecord, Place, Step,
};

/// The worlds of this project. Each numbers its messages from 1 on, in the order they leave.
const WORLDS: [&str; 6] = ["sim", "check", "threads", "tcp", "udp", "multicast"];

/// An audit under way, entry by entry.
#[derive(Debug)]
pub struct Audit<'a> {
    header: &'a Header,
    /// The number of entries audited so far.
    entries: usize,
    /// The number of starts before all other entries: the checker counts steps from there.
    starts: usize,
    now: u64,
    nodes: BTreeMap<u32, Node<'a>>,
    messages: BTreeMap<u64, Message<'a>>,
}

/// A message that was sent.
#[derive(Debug)]
struct Message<'a> {
    from: u32,
    to: u32,
    /// Its body; none for a message of the application.
    body: Option<&'a Value>,
    /// The number of times that it can still arrive.
    left: u32,
}

/// The rule that is broken, the recorded value, and the expected value.
type Wrong = (String, String, String);

fn wrong(what: impl Into<String>, recorded: impl ToString, expected: impl ToString) -> Wrong {
    (what.into(), recorded.to_string(), expected.to_string())
}

impl<'a> Audit<'a> {
    /// An audit of a run with this header.
    pub fn new(header: &'a Header) -> Self {
        let nodes = header.nodes.iter().map(|&node| (node, Node::default())).collect();
        Self { header, entries: 0, starts: 0, now: 0, nodes, messages: BTreeMap::new() }
    }

    /// Audits the next entry.
    pub fn entry(&mut self, entry: &'a Entry) -> Result<(), Difference> {
        let place = Place::Entry(self.entries);
        self.entries += 1;
        let found = self.time(entry).and_then(|()| match entry {
            Entry::Step(step) => self.step(step),
            Entry::Incident(incident) => self.incident(incident),
        });
        found.map_err(|(what, recorded, expected)| Difference { place, what, recorded, expected })
    }

    /// Whether something can still happen by itself: a message is on its way, or a timer runs.
    pub fn is_pending(&self) -> bool {
        self.messages.values().any(|m| m.left > 0 && self.nodes.get(&m.to).is_some_and(|n| n.up))
            || self.nodes.values().any(Node::has_timers)
    }

    fn time(&mut self, entry: &Entry) -> Result<(), Wrong> {
        let at = entry.at();
        if at < self.now {
            return Err(wrong("time goes back", at, format!("{} or later", self.now)));
        }
        if self.header.world == "check" {
            let start = matches!(entry, Entry::Step(step) if step.input == InputRecord::Start);
            if start && self.starts + 1 == self.entries {
                self.starts += 1;
            }
            // The verdict belongs to the last step.
            let verdict = matches!(entry, Entry::Incident(i) if matches!(i.kind, IncidentKind::Violation { .. }));
            let steps = if verdict { self.now } else { (self.entries - self.starts) as u64 };
            if at != steps {
                return Err(wrong("the checker counts steps", at, steps));
            }
        }
        self.now = at;
        Ok(())
    }

    fn step(&mut self, step: &'a Step) -> Result<(), Wrong> {
        let me = step.node;
        let header = self.header;
        self.node(me)?.input(me, step, header)?;
        match &step.input {
            InputRecord::Message { from, id, body } => self.arrive(me, *from, *id, Some(body))?,
            InputRecord::Stamp { from, id, .. } => self.arrive(me, *from, *id, None)?,
            InputRecord::Suspect(peer) | InputRecord::Trust(peer) => self.hear(me, *peer)?,
            _ => {}
        }
        for effect in &step.effects {
            match effect {
                EffectRecord::Send { to, id, body } => self.depart(me, *to, *id, Some(body))?,
                _ => self.node(me)?.effect(step.at, effect),
            }
        }
        Ok(())
    }

    /// The failure detector suspects or trusts `peer`. Only that of the simulator can be made to err.
    fn hear(&mut self, me: u32, peer: u32) -> Result<(), Wrong> {
        let errs = !WORLDS[1..].contains(&&*self.header.world);
        let said = format!("p{me} hears of p{peer}");
        if peer == me {
            return Err(wrong("a process suspects or trusts itself", said, "another one"));
        }
        if errs || self.node(peer)?.is_notable() {
            return Ok(());
        }
        Err(wrong(format!("p{peer} did not crash"), said, "one that did"))
    }

    fn depart(
        &mut self,
        from: u32,
        to: u32,
        id: u64,
        body: Option<&'a Value>,
    ) -> Result<(), Wrong> {
        let next = self.messages.last_key_value().map_or(1, |(last, _)| last + 1);
        if id == 0 || self.messages.contains_key(&id) {
            return Err(wrong("the number of a message is its own", id, format!("such as {next}")));
        }
        if id != next && WORLDS.contains(&&*self.header.world) {
            return Err(wrong("messages are numbered as they leave", id, next));
        }
        self.messages.insert(id, Message { from, to, body, left: 1 });
        Ok(())
    }

    fn arrive(
        &mut self,
        to: u32,
        from: u32,
        id: u64,
        body: Option<&'a Value>,
    ) -> Result<(), Wrong> {
        // Others may not know the numbers of messages.
        if id == 0 && !WORLDS.contains(&&*self.header.world) {
            return Ok(());
        }
        let Some(message) = self.messages.get_mut(&id) else {
            let sent = self.messages.last_key_value().map_or(0, |(last, _)| *last);
            let known = format!("a message that was sent: 1 to {sent}");
            return Err(wrong("a message arrives that was never sent", id, known));
        };
        let way = |from, to| format!("message {id} from p{from} to p{to}");
        if (message.from, message.to) != (from, to) {
            let sent = way(message.from, message.to);
            return Err(wrong("a message arrives by another way", way(from, to), sent));
        }
        if message.body != body {
            let [received, sent] =
                [body, message.body].map(|b| b.map_or("nothing".into(), Value::to_string));
            return Err(wrong(format!("message {id} was sent with other words"), received, sent));
        }
        if message.left == 0 {
            let times = "no more: it arrived, or was lost, before";
            return Err(wrong(
                format!("message {id} arrives once too often"),
                way(from, to),
                times,
            ));
        }
        message.left -= 1;
        Ok(())
    }

    fn node(&mut self, p: u32) -> Result<&mut Node<'a>, Wrong> {
        let members = self.header;
        let none = || wrong("no such member", format!("p{p}"), json(&members.nodes));
        self.nodes.get_mut(&p).ok_or_else(none)
    }

    fn incident(&mut self, incident: &'a Incident) -> Result<(), Wrong> {
        match &incident.kind {
            IncidentKind::Crash(p) => self.node(*p)?.crash(*p),
            IncidentKind::Restart { node: p, memory } => self.node(*p)?.restart(*p, *memory),
            IncidentKind::Pause(p) => self.node(*p)?.pause(*p, true),
            IncidentKind::Resume(p) => self.node(*p)?.pause(*p, false),
            IncidentKind::AppMessage { from, to, id } => {
                self.node(*from)?;
                self.node(*to)?;
                self.depart(*from, *to, *id, None)
            }
            IncidentKind::Lost(id) | IncidentKind::Duplicated(id) => {
                let lost = matches!(incident.kind, IncidentKind::Lost(_));
                match self.messages.get_mut(id) {
                    Some(message) if message.left > 0 => {
                        message.left = if lost { message.left - 1 } else { message.left + 1 };
                        Ok(())
                    }
                    _ => {
                        let what = if lost { "lost" } else { "doubled" };
                        let what = format!("a message is {what} that is not on its way");
                        Err(wrong(what, id, "a message that was sent and has not arrived"))
                    }
                }
            }
            IncidentKind::Cut(_) | IncidentKind::Heal(_) | IncidentKind::Violation { .. } => Ok(()),
        }
    }
}
