//! The data sheet of Raymond's tree: what it assumes, costs and promises, and its mistake switches.

use std::collections::VecDeque;

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Inspect, ProcessId};

use super::{Holder, Message, Phase, Raymond};
use crate::mutex::Mutex;
use crate::{
    Algorithm, Assumption, Bound, Cost, DataSheet, Guarantee, Metric, Mistake, Setup, Switch,
};

pub(super) const NO_ASKED_FLAG: Mistake = Mistake {
    name: "no-asked-flag",
    what: "a process asks again for everyone who joins its queue: its holder queues it twice",
    breaks: "expected inputs",
    caught_by: "-n 3 --topology path --requests 0,1,1",
};
pub(super) const FORGETS_SELF: Mistake = Mistake {
    name: "forgets-self",
    what: "the token goes on to the first of the queue, as on the slide: if that is the process \
           itself, its entry is gone and it never enters",
    breaks: "deadlock",
    caught_by: "-n 2 --topology path --requests 0,1",
};
pub(super) const FORGETS_REST: Mistake = Mistake {
    name: "forgets-rest",
    what: "who passes the token on does not ask the new holder for the rest of its queue",
    breaks: "deadlock",
    caught_by: "-n 3 --topology path --requests 0,1,1",
};
pub(super) const UNBOUNDED_GREEDY: Mistake = Mistake {
    name: "unbounded-greedy",
    what: "who leaves keeps the token for its own next wish, however many others wait",
    breaks: "deadlock",
    caught_by: "-n 2 --topology path --requests 1,1",
};

const SHEET: DataSheet = DataSheet {
    name: "raymond",
    title: "Raymond's tree",
    idea: "Pointers along a tree lead to the token; requests go that way, the token comes back.",
    source: "K. Raymond, TOCS 7(1), 1989; lecture \"Gegenseitiger Ausschluss\" 5.5.4",
    assumes: &[
        Assumption::Reliable,
        Assumption::NoDuplicates,
        Assumption::NoCrash,
        Assumption::UniqueIds,
    ],
    topologies: &[Shape::Tree, Shape::Connected, Shape::Complete],
    winner: None,
    costs: &[
        Cost {
            metric: Metric::MessagesPerEntry,
            formula: "2D, D = diameter of the tree; about 4 when all want",
            when: "always",
            bound: |f| Some(Bound::AtMost(2.0 * f.setup.tree_diameter() as f64)),
        },
        Cost {
            metric: Metric::SyncDelay,
            formula: "D·T, or 2D·T while the next one's request is on its way",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(2.0 * f.setup.tree_diameter() as f64 * t)),
        },
        Cost {
            metric: Metric::EntryDelay,
            formula: "2D·T, or 0 where the token is",
            when: "delays have a limit",
            bound: |f| f.delay_max.map(|t| Bound::AtMost(2.0 * f.setup.tree_diameter() as f64 * t)),
        },
    ],
    guarantees: &[Guarantee::MutualExclusion, Guarantee::DeadlockFree, Guarantee::StarvationFree],
    fence: Some("the token's count of entries"),
    mistakes: &[NO_ASKED_FLAG, FORGETS_SELF, FORGETS_REST, UNBOUNDED_GREEDY],
    switches: &[Switch {
        name: "greedy",
        values: &["0", "<number>"],
        what: "how many wishes in a row a process may serve itself before those who queue first",
    }],
};

impl Inspect for Raymond {
    fn at_rest(&self) -> bool {
        self.phase == Phase::Idle && self.queue.is_empty()
    }

    fn tokens(&self) -> usize {
        matches!(self.holder, Holder::Us { .. }).into()
    }

    fn tokens_in(message: &Message) -> usize {
        matches!(message, Message::Token { .. }).into()
    }
}

impl Algorithm for Raymond {
    type Problem = Mutex;
    const SHEET: DataSheet = SHEET;

    fn new(me: ProcessId, setup: &Setup) -> Self {
        Self {
            holder: setup.parent(me).map_or(Holder::Us { entries: 0 }, Holder::Neighbour),
            queue: VecDeque::new(),
            asked: false,
            phase: Phase::Idle,
            ahead: 0,
            greedy: Fixed(setup.chosen(&SHEET, "greedy").number()),
            mistake: Fixed(setup.mistake),
        }
    }
}
