//! Conditions that last for a while: a client waits, is inside, leads. Problems define them; diagrams draw them.

/// The kind of a condition, which decides how it looks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Lasting {
    /// The client waits for what it has requested.
    Waiting,
    /// The client has it: it is in the critical section.
    Inside,
    /// The process leads.
    Leading,
    /// The process follows a leader.
    Following,
    /// The process is down after a crash.
    Down,
    /// The process is paused.
    Paused,
    /// A link or a part of the network is cut off.
    Cut,
}

/// An event between a client and its process, by the name of its variant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ClientEvent<'a> {
    /// The client makes this request.
    Request(&'a str),
    /// The process gives this indication.
    Indication(&'a str),
}

/// A condition of a client, and the events that begin and end it. A process has at most one of each kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Condition {
    /// Its kind.
    pub what: Lasting,
    /// Its name in diagrams. A part `{field}` at the end stands for this field of the event that begins it.
    pub name: &'static str,
    /// A shorter name, for a narrow bar; empty if there is none.
    pub short: &'static str,
    /// The events that begin it.
    pub begins: &'static [ClientEvent<'static>],
    /// The events that end it. An event may end one condition and begin another.
    pub ends: &'static [ClientEvent<'static>],
}

impl Condition {
    /// Its name without the field.
    pub fn plain_name(&self) -> &'static str {
        self.name.split('{').next().unwrap_or_default().trim_end()
    }

    /// The field in its name.
    pub fn field(&self) -> Option<&'static str> {
        self.name.split_once('{')?.1.strip_suffix('}')
    }
}
