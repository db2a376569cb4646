//! The setup that an algorithm is built from.

use std::any::Any;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use konklave_process::{Fixed, Group, ProcessId, Topology};

use crate::{DataSheet, Mistake};

/// All facts about its surroundings that an algorithm may know.
#[derive(Clone, PartialEq, Debug)]
pub struct Setup {
    /// The processes that take part, in node order.
    pub group: Group,
    /// The links between them.
    pub topology: Topology,
    /// The mistake to make, if any.
    pub mistake: Option<&'static str>,
    /// The values of switches (`--set`), checked against the data sheet.
    pub chosen: BTreeMap<&'static str, String>,
    /// T: the mean delay of a message. Timeouts are multiples of it.
    pub unit: Duration,
    /// The processes that are known to be down from the start.
    pub down: Vec<ProcessId>,
    /// The part of the run that is measured. Algorithms do not see it.
    pub measuring: Measuring,
    /// A cache that all processes of this setup share.
    pub shared: Shared,
}

/// The part of a run that is measured.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Measuring {
    /// Leave out this many entries of all clients together, the first ones, and all entries after the first client
    /// made its last: before, the run is not in its steady state, and after, fewer clients compete. 0: leave out
    /// nothing.
    pub warm_up: u64,
    /// The requests of each client, in node order.
    pub requests: Vec<u32>,
    /// Record the state of the clients in such distances, in ticks. 0: do not.
    pub sample: u64,
}

/// A cache for the last value that was built for all processes of a setup, with its origin. A clone is
/// empty. The cache never changes the behaviour of an algorithm.
#[derive(Default)]
pub struct Shared(Mutex<Option<(Origin, Arc<dyn Any + Send + Sync>)>>);

/// The parts of a setup that a cached value was built from.
struct Origin {
    name: String,
    group: Group,
    down: Vec<ProcessId>,
    mistake: Option<&'static str>,
    chosen: BTreeMap<&'static str, String>,
    unit: Duration,
}

impl Origin {
    fn is(&self, name: &str, setup: &Setup) -> bool {
        self.name == name
            && self.group == setup.group
            && self.down == setup.down
            && (self.mistake, self.unit) == (setup.mistake, setup.unit)
            && self.chosen == setup.chosen
    }
}

impl Clone for Shared {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl PartialEq for Shared {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// The reason why an algorithm cannot be built.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SetupError(pub String);

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for SetupError {}

impl Setup {
    /// The members `group` on `topology`, with all switches at their defaults and T = 1 ms.
    pub fn new(group: Group, topology: Topology) -> Self {
        assert_eq!(group.len(), topology.len(), "a topology places every member");
        Self {
            group,
            topology,
            mistake: None,
            chosen: BTreeMap::new(),
            unit: Duration::from_millis(1),
            down: Vec::new(),
            measuring: Measuring::default(),
            shared: Shared::default(),
        }
    }

    /// The cached value `name` of this setup, built once for all processes.
    pub fn share<T: Send + Sync + 'static>(&self, name: &str, build: impl FnOnce() -> T) -> Arc<T> {
        let last = || self.shared.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((origin, part)) = &*last()
            && origin.is(name, self)
            && let Ok(part) = part.clone().downcast()
        {
            return part;
        }
        let part = Arc::new(build());
        let origin = Origin {
            name: name.to_owned(),
            group: self.group.clone(),
            down: self.down.clone(),
            mistake: self.mistake,
            chosen: self.chosen.clone(),
            unit: self.unit,
        };
        *last() = Some((origin, part.clone()));
        part
    }

    /// The index of `me` in node order.
    pub fn place(&self, me: ProcessId) -> usize {
        self.group.place(me).expect("a process is a member of its group")
    }

    /// The next process on the ring.
    pub fn successor(&self, me: ProcessId) -> ProcessId {
        self.group.id(self.topology.successor(self.place(me)))
    }

    /// The previous process on the ring.
    pub fn predecessor(&self, me: ProcessId) -> ProcessId {
        self.group.id(self.topology.predecessor(self.place(me)))
    }

    /// The neighbours of `me`, lowest id first: port i leads to the i-th.
    pub fn neighbours(&self, me: ProcessId) -> Vec<ProcessId> {
        self.topology.neighbour_ids(self.place(me), &self.group)
    }

    /// The parent of `me` in the tree whose root is the first process of the group: the topology itself
    /// if it is a tree, else its tree of shortest paths. None for the root.
    pub fn parent(&self, me: ProcessId) -> Option<ProcessId> {
        self.topology.parent(self.place(me)).map(|place| self.group.id(place))
    }

    /// The diameter of that tree.
    pub fn tree_diameter(&self) -> usize {
        if self.topology.is_tree() {
            return self.topology.diameter();
        }
        self.topology.spanning_tree(0).diameter()
    }

    /// Whether the algorithm makes `mistake`.
    pub fn makes(&self, mistake: &Mistake) -> Fixed<bool> {
        Fixed(self.mistake == Some(mistake.name))
    }

    /// Refuses values of these switches below `least`. A value such as `auto`, not a number, is accepted.
    pub fn need(&self, sheet: &DataSheet, least: u32, names: &[&str]) -> Result<(), SetupError> {
        let low = |name: &&&str| self.chosen(sheet, name).0.parse().is_ok_and(|n: u32| n < least);
        match names.iter().find(low) {
            Some(name) => Err(SetupError(format!("{name} must be at least {least}"))),
            None => Ok(()),
        }
    }

    /// Refuses values of these switches above `most`.
    pub fn limit(&self, sheet: &DataSheet, most: u32, names: &[&str]) -> Result<(), SetupError> {
        let high = |name: &&&str| self.chosen(sheet, name).0.parse().is_ok_and(|n: u32| n > most);
        match names.iter().find(high) {
            Some(name) => Err(SetupError(format!("{name} must be at most {most}"))),
            None => Ok(()),
        }
    }

    /// The value of switch `name`, or its default.
    pub fn chosen(&self, sheet: &DataSheet, name: &str) -> Chosen<'_> {
        let switch = sheet.switches.iter().find(|s| s.name == name);
        let switch = switch.expect("an algorithm asks for its own switches");
        let value = self.chosen.get(name).map_or(switch.values[0], String::as_str);
        Chosen(value)
    }
}

/// The value of a switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chosen<'a>(pub &'a str);

impl Chosen<'_> {
    /// Whether it is `value`.
    pub fn is(self, value: &str) -> bool {
        self.0 == value
    }

    /// The value as a number. Values are checked when they are set.
    pub fn number(self) -> u32 {
        self.0.parse().unwrap_or(0)
    }
}
