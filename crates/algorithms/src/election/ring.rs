//! The common parts of elections on rings: the two directions, the successor past suspected processes, the outcome.

use std::time::Duration;

use konklave_process::{Context, Fixed, Group, Process, ProcessId, ProcessSet};
use serde::{Deserialize, Serialize};

use super::Indication;
use crate::{Assumption, DataSheet, Setup, Switch, Winner};

/// The direction of a message. On a ring of two both directions lead to the same peer, so every
/// message names it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum Direction {
    /// To the next process.
    Clockwise,
    /// To the previous process.
    Counterclockwise,
}

impl Direction {
    /// Both directions, clockwise first.
    pub const BOTH: [Self; 2] = [Self::Clockwise, Self::Counterclockwise];

    /// The direction of the answer.
    pub fn back(self) -> Self {
        match self {
            Self::Clockwise => Self::Counterclockwise,
            Self::Counterclockwise => Self::Clockwise,
        }
    }
}

/// The neighbours of a process on an undirected ring.
#[derive(Clone, Copy, Debug)]
pub struct Sides {
    next: ProcessId,
    previous: ProcessId,
}

impl Sides {
    /// The neighbours of `me`.
    pub fn new(me: ProcessId, setup: &Setup) -> Fixed<Self> {
        Fixed(Self { next: setup.successor(me), previous: setup.predecessor(me) })
    }

    /// The neighbour in that direction.
    pub fn towards(&self, direction: Direction) -> ProcessId {
        match direction {
            Direction::Clockwise => self.next,
            Direction::Counterclockwise => self.previous,
        }
    }
}

/// The processes that the detector suspects. On a large ring most processes suspect nobody, and pay a word for it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(transparent)]
pub struct Suspects(Option<Box<ProcessSet>>);

impl Suspects {
    /// The processes that are down from the beginning.
    pub fn new(me: ProcessId, setup: &Setup) -> Self {
        let down: ProcessSet = setup.down.iter().copied().filter(|p| *p != me).collect();
        Self(Some(down).filter(|d| !d.is_empty()).map(Box::new))
    }

    /// The detector suspects `peer`.
    pub fn insert(&mut self, peer: ProcessId) {
        self.0.get_or_insert_default().insert(peer);
    }

    /// The detector trusts `peer` again.
    pub fn remove(&mut self, peer: ProcessId) {
        if let Some(suspects) = &mut self.0 {
            suspects.remove(peer);
        }
        self.0.take_if(|suspects| suspects.is_empty());
    }

    /// Whether `peer` is suspected.
    pub fn contains(&self, peer: ProcessId) -> bool {
        self.0.as_ref().is_some_and(|suspects| suspects.contains(peer))
    }

    /// The successor of `me` in the beginning. The topology knows it, without a search for the place of `me`.
    pub fn successor(&self, me: ProcessId, setup: &Setup) -> ProcessId {
        match self.0 {
            None => setup.successor(me),
            Some(_) => self.next_alive(me, &setup.group),
        }
    }

    /// The first process after `me` that is not suspected; `me` itself if there is no other.
    pub fn next_alive(&self, me: ProcessId, group: &Group) -> ProcessId {
        let place = group.place(me).expect("we are a member");
        let mut after = (1..group.len()).map(|i| group.id((place + i) % group.len()));
        after.find(|p| !self.contains(*p)).unwrap_or(me)
    }
}

/// The assumptions of the hardened forms of ring elections.
pub(super) const HARDENED_ASSUMES: &[Assumption] = &[
    Assumption::Synchronous,
    Assumption::StableStorage,
    Assumption::UniqueIds,
    Assumption::KnownMembership,
];

/// The time after which an election counts as failed: 3n hops, each twice as long as the mean.
pub fn patience(setup: &Setup) -> Duration {
    setup.unit * ROUNDS * setup.group.len() as u32
}

/// The rounds of the ring, each hop T, after which an election counts as failed.
const ROUNDS: u32 = 6;

/// The longest delay that lets an election end in that time: it goes round three times at most.
pub fn longest_delay() -> f64 {
    f64::from(ROUNDS) / 3.0
}

/// Tells the application that `leader` has won.
pub fn announce<P>(leader: ProcessId, epoch: u32, ctx: &mut Context<'_, P>)
where
    P: Process<Indication = Indication>,
{
    ctx.indicate(if leader == ctx.me() {
        Indication::Leading { epoch }
    } else {
        Indication::Following { leader: Some(leader), epoch }
    });
}

/// The switch of algorithms that elect among their initiators.
pub const JOIN: Switch = Switch {
    name: "join",
    values: &["false", "true"],
    what: "a process woken by a message starts, too; so the highest id of all wins",
};

/// Whether a process that a message wakes starts, too.
pub fn joins(sheet: &DataSheet, setup: &Setup) -> bool {
    setup.chosen(sheet, JOIN.name).is("true")
}

/// The data sheet of an algorithm with the switch: a process that joins may win.
pub fn sheet_with_join(sheet: DataSheet, setup: &Setup) -> DataSheet {
    let winner = if joins(&sheet, setup) { Some(Winner::MaxAll) } else { sheet.winner };
    DataSheet { winner, ..sheet }
}

/// ⌊log₂ k⌋ for k processes that start; if they join, all start that are woken.
pub fn log_of_starters(sheet: &DataSheet, f: &crate::Facts<'_>) -> f64 {
    let k = if joins(sheet, f.setup) { f.n() } else { f.k() };
    k.max(1.0).log2().floor()
}
