//! An election by a wave on a virtual tree: the tree is built first, then the wave runs on it.
//!
//! The layer below is [`VirtualTree`]. A process that gets its first parent reports to the root, hop by hop; after the
//! reports of all processes the tree is complete. Then explorers go down, echoes bring the highest id up, and the root
//! spreads it.
//!
//! Until the explorer reaches it, a process may still move nearer to the root. So a process waits only for its present
//! children: a child that moved away before is reached by its new parent.

mod rules;
mod sheet;
#[cfg(test)]
mod tests;

use konklave_process::{Context, Fixed, Inspect, NoTimer, Process, ProcessId};
use serde::{Deserialize, Serialize};

use self::rules::Rules;
use super::virtual_tree::{Reign, VirtualTree};
use super::{Indication, Request, virtual_tree};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct VirtualTreeWave {
    tree: VirtualTree,
    /// Whether this process has reported to the root.
    reported: bool,
    /// At the root: the number of reports.
    reports: u32,
    wave: Wave,
    /// The number of children that have echoed; such a child stays.
    echoes: u32,
    /// The highest known id.
    best: ProcessId,
    #[serde(skip)]
    rules: Fixed<Rules>,
}

/// The progress of the wave at this process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
enum Wave {
    /// No explorer has arrived.
    Ahead,
    /// The process waits for the echoes of its children.
    Out,
    /// It has echoed.
    Back,
    /// It knows the result.
    Over,
}

/// The messages of the tree and of the wave.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// A message of the tree.
    Tree(virtual_tree::Message),
    /// To the root: one more process is attached.
    Report,
    /// The tree is complete: the receiver keeps its place.
    Explore,
    /// The highest id below.
    Echo(ProcessId),
    /// The highest id of all.
    Info(ProcessId),
}

impl From<virtual_tree::Message> for Message {
    fn from(message: virtual_tree::Message) -> Self {
        Self::Tree(message)
    }
}

impl Process for VirtualTreeWave {
    type Message = Message;
    type Timer = NoTimer;
    type Request = Request;
    type Indication = Indication;
    type Record = Reign;

    fn on_request(&mut self, request: Request, ctx: &mut Context<'_, Self>) {
        match self.wave {
            Wave::Over => ctx.indicate(Indication::outcome(self.best, ctx.me())),
            Wave::Ahead | Wave::Out | Wave::Back => {
                self.tree(ctx, |tree, ctx| tree.on_request(request, ctx));
            }
        }
    }

    fn on_message(&mut self, from: ProcessId, message: Message, ctx: &mut Context<'_, Self>) {
        match message {
            Message::Tree(message) => {
                self.tree(ctx, |tree, ctx| tree.on_message(from, message, ctx));
            }
            Message::Report => match self.tree.parent() {
                Some(parent) => ctx.send(parent, Message::Report),
                None if self.tree.is_root() => {
                    self.reports = self.reports.saturating_add(1);
                    self.begin_if_complete(ctx);
                }
                None => ctx.unexpected("a report from a child of one without a parent"),
            },
            // A sender that is not the parent any more, or not yet, learns that from the tree.
            Message::Explore => {
                if self.wave == Wave::Ahead && self.tree.parent() == Some(from) {
                    self.explore(ctx);
                }
            }
            Message::Echo(best) => {
                self.best = self.best.max(best);
                self.echoes = self.echoes.saturating_add(1);
                self.echo_if_ready(ctx);
            }
            Message::Info(best) => {
                if self.wave == Wave::Back {
                    self.best = best;
                    self.decide(ctx);
                }
            }
        }
    }
}

impl VirtualTreeWave {
    /// A step of the tree. Its indications are about the root, which need not win.
    fn tree(
        &mut self,
        ctx: &mut Context<'_, Self>,
        step: impl FnOnce(&mut VirtualTree, &mut Context<'_, VirtualTree>),
    ) {
        let tree = &mut self.tree;
        ctx.below(|ctx| step(tree, ctx));
        if !self.reported
            && let Some(parent) = self.tree.parent()
        {
            self.reported = true;
            ctx.send(parent, Message::Report);
        }
        self.begin_if_complete(ctx);
        // A child may have left.
        self.echo_if_ready(ctx);
    }

    fn begin_if_complete(&mut self, ctx: &mut Context<'_, Self>) {
        let complete = self.rules.is_complete(self.reports, ctx.group_size());
        if self.wave == Wave::Ahead && self.tree.is_root() && complete {
            self.explore(ctx);
        }
    }

    fn explore(&mut self, ctx: &mut Context<'_, Self>) {
        self.wave = Wave::Out;
        self.freeze();
        self.tree.children().for_each(|child| ctx.send(child, Message::Explore));
        self.echo_if_ready(ctx);
    }

    fn echo_if_ready(&mut self, ctx: &mut Context<'_, Self>) {
        if self.wave != Wave::Out || (self.echoes as usize) < self.tree.child_count() {
            return;
        }
        match self.tree.parent() {
            Some(parent) => {
                self.wave = Wave::Back;
                ctx.send(parent, Message::Echo(self.best));
            }
            None => self.decide(ctx),
        }
    }

    fn decide(&mut self, ctx: &mut Context<'_, Self>) {
        self.wave = Wave::Over;
        ctx.indicate(Indication::outcome(self.best, ctx.me()));
        self.tree.children().for_each(|child| ctx.send(child, Message::Info(self.best)));
    }
}
