//! A virtual tree over a mesh of known addresses, with the leader for its root.
//!
//! A process connects to all on its list, asks the one nearest to the root to be its parent, and
//! moves up whenever it hears of a nearer one. A child is always further from the root than its
//! parent, so parents never form a cycle: who loses its parent looks only for processes strictly
//! nearer than itself, which cannot be its own descendants, and where there is none, it lets its
//! children go before it takes any parent at all. When the root is lost, the next process in the
//! order of the registry is root, in a new epoch.
//!
//! It relies on a failure detector that suspects all who crash, and nobody else. A link that breaks
//! looks to both its ends like a crash of the other; the tree gets over one, for then someone is
//! suspected by nobody, and is root in the end.

mod message;
mod registry;
mod sheet;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use konklave_process::{
    CompactOption, Context, Fixed, NoTimer, Port, PortSet, Process, ProcessId, ProcessSet,
};
use registry::Registry;
use serde::{Deserialize, Serialize};

use self::sheet::{NAIVE_RESELECT, SHEET, SLIDE_CONNECT};
use super::edges::Edges;
use super::{Indication, Request};
use crate::{Mistake, Setup};
pub use message::Message;

/// One process of the algorithm. Graphs of many are built of these: it takes two lines of the cache.
#[repr(align(64))]
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct VirtualTree {
    /// Which root we follow; none before we come up.
    epoch: Option<u32>,
    /// Our distance from the root. We keep it while we look for a new parent, for our children's
    /// are larger.
    level: Option<u32>,
    parent: CompactOption<Port>,
    children: PortSet,
    /// Our edges, each with the level that the neighbour last named.
    #[serde(rename = "levels")]
    edges: Edges<Option<u32>, 1>,
    /// Who has neither welcomed nor greeted us yet. Who has knows nothing of our former lives.
    greeted: PortSet,
    /// Whom we asked to be our parent.
    asked: CompactOption<Port>,
    /// The former parent, which waits until we have let go.
    owed: CompactOption<Port>,
    /// Whether we have told our children to go.
    dissolving: bool,
    /// Whether we stay where we are: who uses the tree has reached us.
    frozen: bool,
    /// Whom the detector suspects. Boxed, for a large group has mostly none.
    suspects: Option<Box<ProcessSet>>,
    #[serde(skip)]
    rules: Fixed<Arc<Rules>>,
}

/// What a process was built with.
#[derive(Debug)]
struct Rules {
    registry: Registry,
    cap: u32,
    mistake: Option<&'static str>,
}

/// What outlives a crash: the epoch in which we were root.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub struct Reign(pub u32);

/// Which root: the registry names them in turn.
impl VirtualTree {
    fn root(&self, epoch: u32, ctx: &Context<'_, Self>) -> ProcessId {
        self.rules.registry.root(epoch, ctx.group())
    }

    fn next_epoch(&self, from: u32, ctx: &Context<'_, Self>) -> u32 {
        self.rules.registry.next(from, self.suspects.as_deref(), ctx.group())
    }

    fn suspects(&self, p: ProcessId) -> bool {
        self.suspects.as_deref().is_some_and(|suspects| suspects.contains(p))
    }

    /// Begins an epoch. All ties of earlier ones are void: whoever still has them comes after us.
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
            self.tell_all(Message::Level(epoch, Some(0)), ctx);
        }
        if !is_root || self.makes(SLIDE_CONNECT) {
            self.greeted = self.up().collect();
            self.tell_all(Message::Connect(epoch), ctx);
        }
    }
}

/// What the tree is to those who use it.
impl VirtualTree {
    /// Whether we are the root.
    pub(super) fn is_root(&self) -> bool {
        self.level == Some(0) && self.parent.is_none()
    }

    /// Our children, in the order of their ids.
    pub(super) fn children(&self) -> impl Iterator<Item = ProcessId> + '_ {
        self.children.iter().map(|port| self.edges.peer(port))
    }

    /// How many children we have.
    pub(super) fn child_count(&self) -> usize {
        self.children.len()
    }

    /// From now on we move no more, and take no new children.
    pub(super) fn freeze(&mut self) {
        self.frozen = true;
    }
}

/// How to find a parent, and to be one.
impl VirtualTree {
    fn is_attached(&self) -> bool {
        self.parent.is_some() || self.level == Some(0)
    }

    /// Our level, as others may count on it.
    fn offer(&self) -> Option<u32> {
        self.level.filter(|_| self.is_attached())
    }

    /// Whether we may be the child of one at `level`: we have no level to keep, or ours does not
    /// grow by it; and who has a parent moves only to be nearer than it is.
    fn suits(&self, level: u32) -> bool {
        if level >= self.rules.cap {
            return false;
        }
        match self.level {
            None => true,
            Some(_) if self.parent.is_none() && self.makes(NAIVE_RESELECT) => true,
            Some(ours) if self.parent.is_none() => level < ours,
            Some(ours) => level.saturating_add(1) < ours,
        }
    }

    /// Asks the nearest neighbour that suits us; an orphan whom nobody suits lets its children go.
    fn seek(&mut self, ctx: &mut Context<'_, Self>) {
        let Some(epoch) = self.epoch else { return };
        let busy = self.asked.is_some() || !self.greeted.is_empty();
        if self.level == Some(0) || busy || self.frozen {
            return;
        }
        let offers = self.edges.ports().filter_map(|port| Some((self.edges[port]?, port)));
        let is_orphan = self.parent.is_none() && self.level.is_some();
        match offers.filter(|(level, _)| self.suits(*level)).min() {
            Some((_, port)) => {
                self.asked = port.into();
                let naive = is_orphan && self.makes(NAIVE_RESELECT);
                let level = self.level.filter(|_| !naive);
                ctx.send(self.edges.peer(port), Message::Join(epoch, level));
            }
            None if is_orphan && !self.dissolving => {
                self.dissolving = true;
                for child in self.children.iter() {
                    ctx.send(self.edges.peer(child), Message::Detach(epoch));
                }
                self.let_go_if_alone(epoch, ctx);
            }
            None => {}
        }
    }

    /// Once all children have left, our level binds us no longer.
    fn let_go_if_alone(&mut self, epoch: u32, ctx: &mut Context<'_, Self>) {
        if !self.dissolving || !self.children.is_empty() {
            return;
        }
        self.dissolving = false;
        self.level = None;
        self.settle_debt(epoch, ctx);
        self.tell_all(Message::Level(epoch, None), ctx);
        self.seek(ctx);
    }

    fn settle_debt(&mut self, epoch: u32, ctx: &mut Context<'_, Self>) {
        if let Some(former) = self.owed.take() {
            ctx.send(self.edges.peer(former), Message::Leave(epoch));
        }
    }

    fn lose_parent(&mut self, ctx: &mut Context<'_, Self>) {
        self.parent = CompactOption::NONE;
        ctx.indicate(Indication::Deposed);
        self.seek(ctx);
    }

    fn attach(&mut self, parent: Port, level: u32, epoch: u32, ctx: &mut Context<'_, Self>) {
        match std::mem::replace(&mut self.parent, parent.into()).get() {
            Some(former) => self.owed = former.into(),
            None => {
                let leader = Some(self.root(epoch, ctx));
                ctx.indicate(Indication::Following { leader, epoch });
            }
        }
        // Who let us go and now takes us back need not be told.
        self.owed = self.owed.without(parent);
        self.settle_debt(epoch, ctx);
        self.level = Some(level);
        self.dissolving = false;
        self.tell_all(Message::Level(epoch, self.level), ctx);
    }

    /// What was between us and the neighbour behind `port` is void.
    fn forget(&mut self, port: Port, epoch: u32, ctx: &mut Context<'_, Self>) {
        self.note(port, None);
        self.children.remove(port);
        self.greeted.remove(port);
        self.asked = self.asked.without(port);
        self.owed = self.owed.without(port);
        if self.parent == Some(port) {
            self.lose_parent(ctx);
        } else {
            self.let_go_if_alone(epoch, ctx);
            self.seek(ctx);
        }
    }

    fn note(&mut self, port: Port, level: Option<u32>) {
        self.edges[port] = level;
    }

    fn on_join(&mut self, from: Port, level: Option<u32>, epoch: u32, ctx: &mut Context<'_, Self>) {
        if self.frozen {
            // No level: who is refused shall not ask again.
            return ctx.send(self.edges.peer(from), Message::JoinNo(epoch, None));
        }
        let suits =
            |ours: &u32| *ours < self.rules.cap && level.is_none_or(|theirs| *ours < theirs);
        let answer = match self.offer().filter(suits) {
            Some(ours) => {
                self.children.insert(from);
                Message::JoinOk(epoch, ours)
            }
            None => Message::JoinNo(epoch, self.offer()),
        };
        ctx.send(self.edges.peer(from), answer);
    }

    fn on_join_ok(&mut self, from: Port, level: u32, epoch: u32, ctx: &mut Context<'_, Self>) {
        let wanted = self.asked == Some(from) && self.suits(level) && !self.frozen;
        self.asked = self.asked.without(from);
        self.note(from, Some(level));
        if wanted {
            self.attach(from, level.saturating_add(1), epoch, ctx);
        } else {
            ctx.send(self.edges.peer(from), Message::Leave(epoch));
        }
        self.seek(ctx);
    }

    fn on_level(
        &mut self,
        from: Port,
        level: Option<u32>,
        epoch: u32,
        ctx: &mut Context<'_, Self>,
    ) {
        self.note(from, level);
        let Some(theirs) = level else { return };
        if self.parent == Some(from) && Some(theirs.saturating_add(1)) < self.level {
            self.level = Some(theirs.saturating_add(1));
            self.tell_all(Message::Level(epoch, self.level), ctx);
        } else if self.suits(theirs) {
            self.seek(ctx);
        }
    }

    /// A neighbour on the slide: the parent is whoever has the lower level, even if it has none.
    fn connect_as_on_the_slide(&mut self, port: Port, level: Option<u32>) {
        let number = |level: Option<u32>| level.map_or(-1, i64::from);
        if self.level.is_none() || number(self.level) > number(level) {
            self.level = Some(level.map_or(0, |level| level.saturating_add(1)));
            self.parent = port.into();
        }
    }

    fn up(&self) -> impl Iterator<Item = Port> + '_ {
        self.edges.ports().filter(|port| !self.suspects(self.edges.peer(*port)))
    }

    fn tell_all(&self, message: Message, ctx: &mut Context<'_, Self>) {
        for port in self.up() {
            ctx.send(self.edges.peer(port), message);
        }
    }

    fn makes(&self, mistake: Mistake) -> bool {
        self.rules.mistake == Some(mistake.name)
    }
}

impl Process for VirtualTree {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = Reign;

    fn on_recover(&mut self, saved: Option<Reign>, ctx: &mut Context<'_, Self>) {
        // Once round the registry: the next epoch that is ours.
        let from = saved.map_or(0, |Reign(epoch)| epoch.saturating_add(ctx.group_size() as u32));
        let epoch = self.next_epoch(from, ctx);
        // A root asks nobody for its level. But if nobody noticed that we were gone, some may wait for
        // the welcome of our former self, which never got their greeting.
        if self.root(epoch, ctx) == ctx.me() {
            self.tell_all(Message::Connect(epoch), ctx);
        }
        self.enter(epoch, ctx);
    }

    fn on_request(&mut self, Request::Elect: Request, ctx: &mut Context<'_, Self>) {
        match self.epoch {
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
        let epoch = message.epoch();
        // What a process sent before it crashed is void, but it shows that we are to come up.
        if self.suspects(from) {
            if self.epoch.is_none() {
                self.enter(self.next_epoch(0, ctx), ctx);
            }
            return;
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
                let level = if self.makes(SLIDE_CONNECT) { self.level } else { self.offer() };
                ctx.send(
                    from,
                    Message::Welcome(epoch, level.filter(|_| self.parent != Some(port))),
                );
                self.forget(port, epoch, ctx);
            }
            Message::Welcome(_, level) => {
                self.greeted.remove(port);
                if self.makes(SLIDE_CONNECT) {
                    return self.connect_as_on_the_slide(port, level);
                }
                self.note(port, level);
                self.seek(ctx);
            }
            Message::Level(_, level) => self.on_level(port, level, epoch, ctx),
            Message::Join(_, level) => self.on_join(port, level, epoch, ctx),
            Message::JoinOk(_, level) => self.on_join_ok(port, level, epoch, ctx),
            Message::JoinNo(_, level) => {
                if self.asked == Some(port) {
                    self.asked = CompactOption::NONE;
                    self.note(port, level);
                    self.seek(ctx);
                }
            }
            Message::Detach(_) => {
                if self.parent == Some(port) {
                    self.owed = port.into();
                    self.note(port, None);
                    self.lose_parent(ctx);
                }
            }
            Message::Leave(_) => {
                self.children.remove(port);
                self.let_go_if_alone(epoch, ctx);
            }
        }
    }

    fn on_suspect(&mut self, peer: ProcessId, ctx: &mut Context<'_, Self>) {
        self.suspects.get_or_insert_default().insert(peer);
        let Some(epoch) = self.epoch else { return };
        if self.root(epoch, ctx) == peer {
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
        // It may have greeted us before we knew that it is back.
        if self.edges.port(peer).is_some() {
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

/// Who is root when, as chosen.
fn registry(setup: &Setup) -> Option<Registry> {
    let root = setup.chosen(&SHEET, "root");
    let root = if root.is("first") { None } else { Some(ProcessId(root.number())) };
    Registry::new(root, &setup.group)
}
