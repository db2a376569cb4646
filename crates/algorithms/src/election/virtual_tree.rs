//! A virtual tree over a mesh of known addresses, with the leader as its root.
//!
//! A process connects to all neighbours on its list, asks the one nearest to the root to be its parent, and moves
//! whenever it learns of a nearer one (`virtual_tree/parents.rs`). If the root crashes, the next process of the registry
//! is the root, in a new epoch.
//!
//! In another form, processes ask the registry for the root and for addresses (`virtual_tree/run_time.rs`).
//!
//! The tree needs a failure detector that suspects all crashed processes and no others. A broken link looks to both its
//! ends like a crash of the other. The tree survives one: some process is then suspected by none, and is the root in
//! the end.

mod parents;
mod registry;
mod rules;
mod run_time;
mod sheet;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use konklave_process::{
    CompactOption, Context, Fixed, NoTimer, Port, PortSet, Process, ProcessId, ProcessSet,
};
use serde::{Deserialize, Serialize};

use self::rules::Rules;
use self::run_time::Contacts;
pub use self::run_time::Reason;
pub(super) use self::sheet::TREE_SWITCHES;
use super::edges::Edges;
use super::{Indication, Request};

/// One process of the algorithm. Large graphs are built of these: it takes two cache lines.
#[repr(align(64))]
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct VirtualTree {
    /// The epoch, and so the root; none before the process comes up.
    epoch: Option<u32>,
    /// The distance from the root. A process without a parent keeps it, for the levels of its children are higher.
    level: Option<u32>,
    parent: CompactOption<Port>,
    children: PortSet,
    /// The edges, each with the level that the neighbour last named.
    #[serde(rename = "levels")]
    edges: Edges<Option<u32>, 1>,
    /// The neighbours whose welcome or greeting is missing. The others know nothing of a former life of this process.
    greeted: PortSet,
    /// The neighbour that was asked to be the parent.
    asked: CompactOption<Port>,
    /// The former parent, which waits for a Leave.
    owed: CompactOption<Port>,
    /// Whether the children have been told to leave.
    dissolving: bool,
    /// Whether the process keeps its place: the algorithm above has reached it.
    frozen: bool,
    /// The suspected processes. Boxed, because there are mostly none.
    suspects: Option<Box<ProcessSet>>,
    /// The addresses, in the run-time form of the registry.
    #[serde(skip_serializing_if = "Option::is_none")]
    contacts: Option<Box<Contacts>>,
    #[serde(skip)]
    rules: Fixed<Arc<Rules>>,
}

/// The last epoch of this process as the root, or as the registry, in stable storage.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Reign(pub u32);

/// The messages, each with its epoch first. A level is that of the sender.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// A greeting: the sender is new, and there are no ties to it.
    Connect(u32),
    /// The answer, with the level of an attached process.
    Welcome(u32, Option<u32>),
    /// The level of the sender has changed.
    Level(u32, Option<u32>),
    /// Asks the receiver to be the parent; with a level, if the sender must keep it.
    Join(u32, Option<u32>),
    /// The receiver is a child.
    JoinOk(u32, u32),
    /// The receiver is no child; with the level of an attached process.
    JoinNo(u32, Option<u32>),
    /// The receiver has to find another parent.
    Detach(u32),
    /// The sender is no child any more.
    Leave(u32),
    /// To the registry: the sender wants addresses. With its epoch, or 0.
    Ask(u32, Reason),
    /// The registry names the root of the epoch, and one or two addresses. The root gets its own.
    Answer(u32, ProcessId, [ProcessId; 2]),
}

impl Process for VirtualTree {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = Reign;

    fn on_recover(&mut self, saved: Option<Reign>, ctx: &mut Context<'_, Self>) {
        if let Some(contacts) = &mut self.contacts {
            contacts.restore(saved);
            return self.ask(Reason::Up, ctx);
        }
        // Its next epoch as the root: one round of the registry later.
        let from = saved.map_or(0, |Reign(epoch)| epoch.saturating_add(ctx.group_size() as u32));
        let epoch = self.next_epoch(from, ctx);
        // A root asks no neighbour for a level. But if no process noticed the crash, a neighbour may wait for the welcome
        // of the former life, which never got its greeting.
        if self.root(epoch, ctx) == ctx.me() {
            self.tell_all(Message::Connect(epoch), ctx);
        }
        self.enter(epoch, ctx);
    }

    fn on_request(&mut self, Request::Elect: Request, ctx: &mut Context<'_, Self>) {
        match self.epoch {
            None if self.contacts.is_some() => self.ask(Reason::Up, ctx),
            None => self.enter(self.next_epoch(0, ctx), ctx),
            Some(epoch) if self.level == Some(0) => ctx.indicate(Indication::Leading { epoch }),
            Some(epoch) if self.is_attached() => {
                let leader = Some(self.root(epoch, ctx));
                ctx.indicate(Indication::Following { leader, epoch });
            }
            Some(_) => {}
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        let Some(port) = self.edges.port(from) else {
            return ctx.unexpected("a message from a stranger");
        };
        let Some(message) = self.on_registry_message(from, message, ctx) else { return };
        if let (Message::Connect(_), Some(contacts)) = (message, &mut self.contacts) {
            contacts.note(port);
        }
        let epoch = message.epoch();
        // A message from before the crash of its sender is void, but it wakes this process.
        if self.suspects(from) {
            if self.epoch.is_none() && self.contacts.is_none() {
                self.enter(self.next_epoch(0, ctx), ctx);
            }
            return;
        }
        if Some(epoch) > self.epoch && self.contacts.is_some() {
            return self.on_later_epoch(from, message, ctx);
        }
        if Some(epoch) > self.epoch {
            self.enter(self.next_epoch(epoch, ctx), ctx);
        }
        if let Some(ours) = self.epoch
            && epoch < ours
        {
            if let Message::Connect(_) | Message::Join(..) = message {
                ctx.send(from, Message::Welcome(ours, self.offer()));
            }
            return;
        }
        match message {
            Message::Connect(_) => {
                ctx.send(from, Message::Welcome(epoch, self.welcome_level(port)));
                self.forget(port, epoch, ctx);
            }
            Message::Welcome(_, level) => self.on_welcome(port, level, ctx),
            Message::Level(_, level) => self.on_level(port, level, epoch, ctx),
            Message::Join(_, level) => self.on_join(port, level, epoch, ctx),
            Message::JoinOk(_, level) => self.on_join_ok(port, level, epoch, ctx),
            Message::JoinNo(_, level) => {
                if self.asked == Some(port) {
                    self.asked = CompactOption::NONE;
                    self.edges[port] = level;
                    self.seek(ctx);
                }
            }
            Message::Detach(_) => {
                if self.parent == Some(port) {
                    self.owed = port.into();
                    self.edges[port] = None;
                    self.lose_parent(ctx);
                }
            }
            Message::Leave(_) => {
                self.children.remove(port);
                self.let_go_if_alone(epoch, ctx);
            }
            Message::Ask(..) | Message::Answer(..) => {}
        }
    }

    fn on_suspect(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.suspects.get_or_insert_default().insert(peer);
        let Some(epoch) = self.epoch else { return };
        if self.root(epoch, ctx) == peer && self.contacts.is_some() {
            self.ask(Reason::Over, ctx);
        } else if self.root(epoch, ctx) == peer {
            self.enter(self.next_epoch(epoch.saturating_add(1), ctx), ctx);
        } else if let Some(port) = self.edges.port(peer) {
            self.forget(port, epoch, ctx);
        }
    }

    fn on_trust(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        if let Some(suspects) = &mut self.suspects {
            suspects.remove(peer);
            if suspects.is_empty() {
                self.suspects = None;
            }
        }
        // Its greeting may have arrived while it was still suspected.
        let may_connect = |port: Port| match &self.contacts {
            Some(contacts) => contacts.knows(port) && self.epoch.is_some(),
            None => true,
        };
        if self.edges.port(peer).is_some_and(may_connect) {
            let epoch = self.epoch.unwrap_or_else(|| self.next_epoch(0, ctx));
            if self.epoch.is_none() {
                self.enter(epoch, ctx);
            } else {
                ctx.send(peer, Message::Connect(epoch));
            }
            ctx.send(peer, Message::Welcome(epoch, self.offer()));
        }
    }
}

impl VirtualTree {
    /// Begins an epoch. All ties of earlier epochs are void: a process that still has them enters this epoch later.
    fn enter(&mut self, epoch: u32, ctx: &mut Context<'_, Self>) {
        if self.is_attached() {
            ctx.indicate(Indication::Deposed);
        }
        self.epoch = Some(epoch);
        self.level = None;
        (self.parent, self.asked, self.owed) =
            (CompactOption::NONE, CompactOption::NONE, CompactOption::NONE);
        self.children.clear();
        self.edges.note_all(None);
        self.greeted.clear();
        self.dissolving = false;
        self.frozen = false;
        let is_root = self.root(epoch, ctx) == ctx.me();
        if is_root {
            self.level = Some(0);
            ctx.save(Reign(epoch));
            ctx.indicate(Indication::Leading { epoch });
            if self.contacts.is_some() {
                // A process of this epoch may wait for a welcome; its greeting came while it was still suspected.
                self.tell_all(Message::Connect(epoch), ctx);
            }
            self.tell_all(Message::Level(epoch, Some(0)), ctx);
        }
        if self.rules.connects(is_root) {
            self.greeted = self.up().collect();
            self.tell_all(Message::Connect(epoch), ctx);
        }
    }

    /// The root of an epoch: the registry names the processes in turn, or answered with it.
    fn root(&self, epoch: u32, ctx: &Context<'_, Self>) -> ProcessId {
        if let Some(root) = self.contacts.as_deref().and_then(Contacts::root) {
            return root;
        }
        self.rules.registry.root(epoch, ctx.group())
    }

    fn next_epoch(&self, from: u32, ctx: &Context<'_, Self>) -> u32 {
        self.rules.registry.next(from, self.suspects.as_deref(), ctx.group())
    }

    fn suspects(&self, p: ProcessId) -> bool {
        self.suspects.as_deref().is_some_and(|suspects| suspects.contains(p))
    }

    /// The edges to known neighbours that are not suspected.
    fn up(&self) -> impl Iterator<Item = Port> + '_ {
        let knows = |port: &Port| self.contacts.as_deref().is_none_or(|c| c.knows(*port));
        self.edges.ports().filter(move |port| knows(port) && !self.suspects(self.edges.peer(*port)))
    }

    fn tell_all(&self, message: Message, ctx: &mut Context<'_, Self>) {
        for port in self.up() {
            ctx.send(self.edges.peer(port), message);
        }
    }
}

/// The tree, for the algorithm above.
impl VirtualTree {
    /// Whether this process is the root.
    pub(super) fn is_root(&self) -> bool {
        self.level == Some(0) && self.parent.is_none()
    }

    /// The children, in the order of their ids.
    pub(super) fn children(&self) -> impl Iterator<Item = ProcessId> + '_ {
        self.children.iter().map(|port| self.edges.peer(port))
    }

    /// The number of children.
    pub(super) fn child_count(&self) -> usize {
        self.children.len()
    }

    /// From now on the process keeps its place, and takes no new children.
    pub(super) fn freeze(&mut self) {
        self.frozen = true;
    }
}

impl Message {
    fn epoch(self) -> u32 {
        match self {
            Self::Connect(epoch)
            | Self::Welcome(epoch, _)
            | Self::Level(epoch, _)
            | Self::Join(epoch, _)
            | Self::JoinOk(epoch, _)
            | Self::JoinNo(epoch, _)
            | Self::Detach(epoch)
            | Self::Leave(epoch)
            | Self::Ask(epoch, _)
            | Self::Answer(epoch, ..) => epoch,
        }
    }
}
