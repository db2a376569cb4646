//! An election by a wave on a virtual tree: the tree is built first, then the wave runs on it.
//!
//! The layer below is [`VirtualTree`]. Everyone who gets its first parent is reported to the root,
//! hop by hop; once the root has heard of all, the tree is complete. Then explorers go down, and
//! whoever one reaches stays where it is; echoes bring the highest id up; the root spreads it.
//!
//! Until an explorer comes, processes still move nearer to the root. So a process waits only for
//! those who are its children now: who moves away before it is reached is reached by its new parent.

use konklave_process::topology::Shape;
use konklave_process::{Context, Fixed, NoTimer, Process, ProcessId};
use serde::{Deserialize, Serialize};

use super::edges::links;
use super::virtual_tree::{self, Reign, VirtualTree};
use super::{Election, Indication, Request};
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Mistake, Setup, SetupError,
    Winner,
};

const NO_FREEZE: Mistake = Mistake {
    name: "no-freeze",
    what: "who has been reached still moves to a nearer parent, and takes new children",
    breaks: "deadlock",
    caught_by: "-n 4 --topology random:4 --seed 2 --initiators 0",
};
const NO_COUNT: Mistake = Mistake {
    name: "no-count",
    what: "the wave starts when the root has its first child, not when the tree is complete",
    breaks: "termination",
    caught_by: "-n 3 --topology path --initiators 0",
};

const SHEET: DataSheet = DataSheet {
    name: "virtual-tree-wave",
    title: "Wave election on a virtual tree",
    idea: "Build a tree over all who are known, count until it is complete, then let a wave on it \
           gather the highest id and announce it.",
    source: "lecture \"Wahlalgorithmen\" (virtual tree at system start, then the wave on trees)",
    assumes: &[
        Assumption::Reliable,
        Assumption::NoDuplicates,
        Assumption::Fifo,
        Assumption::NoCrash,
        Assumption::KnownMembership,
        Assumption::UniqueIds,
    ],
    topologies: &[Shape::Connected],
    winner: Some(Winner::MaxAll),
    costs: &[Cost {
        metric: Metric::Messages,
        formula: "the tree's (virtual-tree), a report from everyone over at most n − 1 hops, and \
                  3(n − 1) for the wave",
        when: "always",
        bound: |f| {
            let (n, m) = (f.n(), links(f));
            let tree = 6.0 * m + 2.0 * n + 8.0 * m * n;
            Some(Bound::AtMost(if n == 1.0 { 0.0 } else { tree + (n - 1.0) * (n + 2.0) }))
        },
    }],
    guarantees: &[
        Guarantee::UniqueLeader,
        Guarantee::Agreement,
        Guarantee::Termination,
        Guarantee::AcyclicParents,
    ],
    fence: None,
    mistakes: &[NO_FREEZE, NO_COUNT],
    switches: VirtualTree::SHEET.switches,
};

/// One process of the algorithm.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
pub struct VirtualTreeWave {
    tree: VirtualTree,
    /// Whether the root has been told of us.
    reported: bool,
    /// At the root: how many have reported.
    reports: u32,
    wave: Wave,
    /// How many children have echoed; who has stays a child.
    echoes: u32,
    /// The highest id we know of.
    best: ProcessId,
    #[serde(skip)]
    no_freeze: Fixed<bool>,
    #[serde(skip)]
    no_count: Fixed<bool>,
}

/// How far the wave has come here.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
enum Wave {
    /// No explorer has come.
    Ahead,
    /// We wait for our children's echoes.
    Out,
    /// We have echoed.
    Back,
    /// We know the result.
    Over,
}

/// What the processes say to each other.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// A message of the tree.
    Tree(virtual_tree::Message),
    /// To the root: one more is attached.
    Report,
    /// The tree is complete: stay where you are.
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

impl VirtualTreeWave {
    /// A step of the tree. What it tells is about its root, who need not win.
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
        let awaited = if *self.no_count { 1 } else { ctx.group_size() as u32 - 1 };
        let complete = self.reports >= awaited.min(ctx.group_size() as u32 - 1);
        if self.wave == Wave::Ahead && self.tree.is_root() && complete {
            self.explore(ctx);
        }
    }

    fn explore(&mut self, ctx: &mut Context<'_, Self>) {
        self.wave = Wave::Out;
        if !*self.no_freeze {
            self.tree.freeze();
        }
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
            // Who is not our parent any more, or not yet, learns that from the tree.
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

    #[inline]
    fn call_up(&self) {
        self.tree.call_up();
    }

    fn at_rest(&self) -> bool {
        self.tree.at_rest() && matches!(self.wave, Wave::Ahead | Wave::Over)
    }

    fn parent(&self) -> Option<ProcessId> {
        self.tree.parent()
    }
}

impl Algorithm for VirtualTreeWave {
    type Problem = Election;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        Self {
            tree: VirtualTree::new(me, setup),
            reported: false,
            reports: 0,
            wave: Wave::Ahead,
            echoes: 0,
            best: me,
            no_freeze: setup.makes(&NO_FREEZE),
            no_count: setup.makes(&NO_COUNT),
        }
    }

    fn check_setup(setup: &Setup) -> Result<(), SetupError> {
        VirtualTree::check_setup(setup)
    }
}

#[cfg(test)]
mod tests {
    use konklave_process::{Group, Topology};
    use konklave_testkit::{Bench, send, tell};

    use super::*;
    use crate::election::virtual_tree::Message as Tree;

    fn process(me: u32, graph: Topology) -> Bench<VirtualTreeWave> {
        let setup = Setup::new(Group::of(graph.len()), graph);
        Bench::new(VirtualTreeWave::new(ProcessId(me), &setup), ProcessId(me), &setup.group)
    }

    /// Process 1 of the path 0 – 1 – 2, the child of 0 and the parent of 2.
    fn inner() -> Bench<VirtualTreeWave> {
        let mut p1 = process(1, Topology::path(3));
        p1.ask(Request::Elect);
        p1.hear(2, Message::Tree(Tree::Welcome(0, None)));
        p1.hear(0, Message::Tree(Tree::Welcome(0, Some(0))));
        let attached = p1.hear(0, Message::Tree(Tree::JoinOk(0, 0)));
        assert!(attached.contains(&send(0, Message::Report)), "{attached:?}");
        p1.hear(2, Message::Tree(Tree::Join(0, None)));
        p1
    }

    #[test]
    fn one_alone_leads_at_once() {
        let told = process(0, Topology::path(1)).ask(Request::Elect);
        assert!(told.contains(&tell(Indication::Leading { epoch: 0 })), "{told:?}");
    }

    #[test]
    fn reports_travel_to_the_root_which_waits_for_all() {
        assert_eq!(inner().hear(2, Message::Report), [send(0, Message::Report)]);
        let mut p0 = process(0, Topology::path(3));
        p0.ask(Request::Elect);
        p0.hear(1, Message::Tree(Tree::Join(0, None)));
        assert_eq!(p0.hear(1, Message::Report), []);
        assert_eq!(p0.hear(1, Message::Report), [send(1, Message::Explore)]);
    }

    #[test]
    fn who_is_reached_waits_for_its_children() {
        let mut p1 = inner();
        assert_eq!(p1.hear(2, Message::Explore), []);
        assert_eq!(p1.hear(0, Message::Explore), [send(2, Message::Explore)]);
        let p2 = ProcessId(2);
        assert_eq!(p1.hear(2, Message::Echo(p2)), [send(0, Message::Echo(p2))]);
        let leader = Some(p2);
        assert_eq!(
            p1.hear(0, Message::Info(p2)),
            [tell(Indication::Following { leader, epoch: 0 }), send(2, Message::Info(p2))]
        );
    }

    #[test]
    fn a_child_that_leaves_is_not_waited_for() {
        let mut p1 = inner();
        p1.hear(0, Message::Explore);
        let left = p1.hear(2, Message::Tree(Tree::Leave(0)));
        assert_eq!(left, [send(0, Message::Echo(ProcessId(1)))]);
    }

    #[test]
    fn who_is_reached_takes_no_new_child() {
        let mut p1 = inner();
        p1.hear(0, Message::Explore);
        let refused = p1.hear(2, Message::Tree(Tree::Join(0, None)));
        assert_eq!(refused, [send(2, Message::Tree(Tree::JoinNo(0, None)))]);
    }
}
