//! The rules of the virtual tree that a switch or a mistake changes.

use konklave_process::{Context, Port, ProcessId};

use super::VirtualTree;
use super::registry::Registry;
use super::sheet::SHEET;
use crate::{Mistake, Setup};

pub(super) const SLIDE_CONNECT: Mistake = Mistake {
    name: "slide-connect",
    what: "connect() as on the slide: a process without a parent has level -1 and seems nearer than the root, even to \
           the root; no process is asked, and an equal level counts as better",
    breaks: "acyclic parents",
    caught_by: "-n 2 --topology path --property tree",
};
pub(super) const NAIVE_RESELECT: Mistake = Mistake {
    name: "naive-reselect",
    what: "a process that loses its parent takes the nearest neighbour left, even its own child",
    breaks: "acyclic parents",
    caught_by: "-n 4 --topology path --initiators 0 --crash 1 --property tree",
};
pub(super) const ASK_ONCE: Mistake = Mistake {
    name: "ask-once",
    what: "with registry=ID, a process that got stale addresses only does not ask the registry again",
    breaks: "termination",
    caught_by: "",
};

/// The switches and the mistake of a process.
#[derive(Debug)]
pub(super) struct Rules {
    pub(super) registry: Registry,
    /// The process that answers as the registry, in the run-time form.
    pub(super) run_time: Option<ProcessId>,
    /// The highest level.
    pub(super) cap: u32,
    mistake: Option<&'static str>,
}

impl Rules {
    pub(super) fn of(setup: &Setup) -> Self {
        Self {
            registry: registry(setup).unwrap_or(Registry { first: 0 }),
            run_time: run_time(setup),
            cap: setup.chosen(&SHEET, "cap").number(),
            mistake: setup.mistake,
        }
    }

    fn makes(&self, mistake: &Mistake) -> bool {
        self.mistake == Some(mistake.name)
    }

    /// A process that a stale address left without a parent asks for others.
    pub(super) fn asks_again(&self) -> bool {
        !self.makes(&ASK_ONCE)
    }

    /// A root has a level and asks no neighbour for one.
    pub(super) fn connects(&self, is_root: bool) -> bool {
        !is_root || self.makes(&SLIDE_CONNECT)
    }
}

/// The process that is the registry; none if the addresses are fixed before the run.
pub(super) fn run_time(setup: &Setup) -> Option<ProcessId> {
    let registry = setup.chosen(&SHEET, "registry");
    (!registry.is("fixed")).then(|| ProcessId(registry.number()))
}

/// The order of the roots that `setup` chose; none if its first root is no member.
pub(super) fn registry(setup: &Setup) -> Option<Registry> {
    let root = setup.chosen(&SHEET, "root");
    let root = if root.is("first") { None } else { Some(ProcessId(root.number())) };
    Registry::new(root, &setup.group)
}

impl VirtualTree {
    /// Scenario: an orphan takes its own child for a parent. The two would be a cycle; so an orphan keeps its level, and
    /// asks only strictly nearer neighbours.
    pub(super) fn keeps_level_as_orphan(&self) -> bool {
        !self.rules.makes(&NAIVE_RESELECT)
    }

    /// The level for the answer to a greeting: that of an attached process only.
    pub(super) fn welcome_level(&self, to: Port) -> Option<u32> {
        let level = if self.rules.makes(&SLIDE_CONNECT) { self.level } else { self.offer() };
        level.filter(|_| self.parent != Some(to))
    }

    /// The sender of a welcome is one more neighbour to ask.
    pub(super) fn on_welcome(
        &mut self,
        from: Port,
        level: Option<u32>,
        ctx: &mut Context<'_, Self>,
    ) {
        self.greeted.remove(from);
        if self.rules.makes(&SLIDE_CONNECT) {
            return self.connect_as_on_slide(from, level);
        }
        self.edges[from] = level;
        self.seek(ctx);
    }

    /// The slide: the parent is a neighbour with a lower level, even if it has none.
    fn connect_as_on_slide(&mut self, port: Port, level: Option<u32>) {
        let number = |level: Option<u32>| level.map_or(-1, i64::from);
        if self.level.is_none() || number(self.level) > number(level) {
            self.level = Some(level.map_or(0, |level| level.saturating_add(1)));
            self.parent = port.into();
        }
    }
}
