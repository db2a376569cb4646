//! How a process finds a parent, and becomes one.
//!
//! A child is always further from the root than its parent, so parents never form a cycle. A process that has lost its
//! parent keeps its level and asks only strictly nearer neighbours: none of them is its descendant. If there is none, it
//! detaches its children before it asks any neighbour.

use konklave_process::{CompactOption, Context, Port};

use super::{Message, VirtualTree};
use crate::election::Indication;

impl VirtualTree {
    pub(super) fn is_attached(&self) -> bool {
        self.parent.is_some() || self.level == Some(0)
    }

    /// The level, if other processes may rely on it.
    pub(super) fn offer(&self) -> Option<u32> {
        self.level.filter(|_| self.is_attached())
    }

    /// Whether a process at `level` may be the parent. A process with a level must not move away from the root, and a
    /// process with a parent moves only to come nearer.
    fn suits(&self, level: u32) -> bool {
        if level >= self.rules.cap {
            return false;
        }
        match self.level {
            None => true,
            Some(_) if self.parent.is_none() && !self.keeps_level_as_orphan() => true,
            Some(ours) if self.parent.is_none() => level < ours,
            Some(ours) => level.saturating_add(1) < ours,
        }
    }

    /// Asks the nearest suitable neighbour. An orphan without one detaches its children.
    pub(super) fn seek(&mut self, ctx: &mut Context<'_, Self>) {
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
                let level = self.level.filter(|_| !is_orphan || self.keeps_level_as_orphan());
                ctx.send(self.edges.peer(port), Message::Join(epoch, level));
            }
            None if is_orphan && !self.dissolving => {
                self.dissolving = true;
                for child in self.children.iter() {
                    ctx.send(self.edges.peer(child), Message::Detach(epoch));
                }
                self.let_go_if_alone(epoch, ctx);
            }
            None => self.ask_again_if_stale(ctx),
        }
    }

    /// After all children have left, the level does not bind the process any more.
    pub(super) fn let_go_if_alone(&mut self, epoch: u32, ctx: &mut Context<'_, Self>) {
        if !self.dissolving || !self.children.is_empty() {
            return;
        }
        self.dissolving = false;
        self.level = None;
        self.leave_former_parent(epoch, ctx);
        self.tell_all(Message::Level(epoch, None), ctx);
        self.seek(ctx);
    }

    fn leave_former_parent(&mut self, epoch: u32, ctx: &mut Context<'_, Self>) {
        if let Some(former) = self.owed.take() {
            ctx.send(self.edges.peer(former), Message::Leave(epoch));
        }
    }

    pub(super) fn lose_parent(&mut self, ctx: &mut Context<'_, Self>) {
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
        // A former parent that is the new one waits for no Leave.
        self.owed = self.owed.without(parent);
        self.leave_former_parent(epoch, ctx);
        self.level = Some(level);
        self.dissolving = false;
        self.tell_all(Message::Level(epoch, self.level), ctx);
    }

    pub(super) fn on_join(
        &mut self,
        from: Port,
        level: Option<u32>,
        epoch: u32,
        ctx: &mut Context<'_, Self>,
    ) {
        if self.frozen {
            // Without a level: the sender must not ask again.
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

    pub(super) fn on_join_ok(
        &mut self,
        from: Port,
        level: u32,
        epoch: u32,
        ctx: &mut Context<'_, Self>,
    ) {
        let wanted = self.asked == Some(from) && self.suits(level) && !self.frozen;
        self.asked = self.asked.without(from);
        self.edges[from] = Some(level);
        if wanted {
            self.attach(from, level.saturating_add(1), epoch, ctx);
        } else {
            ctx.send(self.edges.peer(from), Message::Leave(epoch));
        }
        self.seek(ctx);
    }

    pub(super) fn on_level(
        &mut self,
        from: Port,
        level: Option<u32>,
        epoch: u32,
        ctx: &mut Context<'_, Self>,
    ) {
        self.edges[from] = level;
        let Some(theirs) = level else { return };
        if self.parent == Some(from) && Some(theirs.saturating_add(1)) < self.level {
            self.level = Some(theirs.saturating_add(1));
            self.tell_all(Message::Level(epoch, self.level), ctx);
        } else if self.suits(theirs) {
            self.seek(ctx);
        }
    }

    /// All ties to the neighbour behind `port` are void.
    pub(super) fn forget(&mut self, port: Port, epoch: u32, ctx: &mut Context<'_, Self>) {
        self.edges[port] = None;
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
}
