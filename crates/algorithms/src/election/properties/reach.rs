//! The processes that can still reach each other.
//!
//! On a graph, messages go along its links only. Crashes and broken links can split it, and then
//! no algorithm can do better than each part for itself: so each part is judged for itself.

use std::sync::Arc;

use konklave_process::topology::Shape;
use konklave_process::{Fixed, Group, ProcessId, ProcessSet, Topology};
use smallvec::SmallVec;

use crate::{DataSheet, Setup};

/// The part of a graph that is left after crashes and broken links.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct Reach {
    down: ProcessSet,
    /// A link that broke twice is here twice.
    broken: SmallVec<[(ProcessId, ProcessId); 1]>,
    graph: Fixed<Arc<(Group, Topology)>>,
}

impl Reach {
    /// Nothing is broken yet. None for algorithms that are not bound to the links of a graph: on
    /// rings and in complete groups, processes skip those that are down.
    pub(super) fn new(sheet: &DataSheet, setup: &Setup) -> Option<Self> {
        let bound = |shape: &Shape| matches!(shape, Shape::Tree | Shape::Connected);
        sheet.topologies.iter().all(bound).then(|| Self {
            down: setup.down.iter().copied().collect(),
            broken: SmallVec::new(),
            graph: Fixed(Arc::new((setup.group.clone(), setup.topology.clone()))),
        })
    }

    /// Returns whether the process was up.
    pub(super) fn on_crash(&mut self, at: ProcessId) -> bool {
        self.down.insert(at)
    }

    pub(super) fn on_restart(&mut self, at: ProcessId) {
        self.down.remove(at);
    }

    pub(super) fn on_break(&mut self, one: ProcessId, other: ProcessId) {
        self.broken.push((one.min(other), one.max(other)));
        self.broken.sort_unstable();
    }

    pub(super) fn on_mend(&mut self, one: ProcessId, other: ProcessId) {
        let link = (one.min(other), one.max(other));
        if let Some(i) = self.broken.iter().position(|broken| *broken == link) {
            self.broken.remove(i);
        }
    }

    /// Whether both are up and no way leads from one to the other.
    pub(super) fn are_apart(&self, one: ProcessId, other: ProcessId) -> bool {
        let is_whole = self.down.is_empty() && self.broken.is_empty();
        !is_whole
            && !self.down.contains(one)
            && !self.down.contains(other)
            && !self.part_of(one, |p| !self.down.contains(p)).contains(other)
    }

    /// The parts of what is up, if there is more than one.
    pub(super) fn parts(&self, alive: &ProcessSet) -> Option<Vec<ProcessSet>> {
        if self.broken.is_empty() && alive.len() == self.graph.0.0.len() {
            return None;
        }
        let mut left = alive.clone();
        let mut parts = Vec::new();
        while let Some(p) = left.lowest() {
            let part = self.part_of(p, |p| alive.contains(p));
            left = left.difference(&part);
            parts.push(part);
        }
        (parts.len() > 1).then_some(parts)
    }

    /// All processes that `p` can reach by way of live ones, itself included.
    fn part_of(&self, p: ProcessId, is_up: impl Fn(ProcessId) -> bool) -> ProcessSet {
        let (group, topology) = &**self.graph;
        let mut seen: ProcessSet = [p].into_iter().collect();
        let mut ahead = vec![p];
        while let Some(at) = ahead.pop() {
            let Some(place) = group.place(at) else { continue };
            for next in topology.adjacent(place).map(|place| group.id(place)) {
                let link = (at.min(next), at.max(next));
                if is_up(next) && !self.broken.contains(&link) && seen.insert(next) {
                    ahead.push(next);
                }
            }
        }
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Algorithm;
    use crate::election::chang_roberts::ChangRoberts;
    use crate::election::firewire::FireWire;

    /// Four in a row.
    fn row() -> Reach {
        let topology = Topology::from_edges("row", 4, [(0, 1), (1, 2), (2, 3)]).unwrap();
        Reach::new(&FireWire::SHEET, &Setup::new(Group::of(4), topology)).unwrap()
    }

    fn set(ids: &[u32]) -> ProcessSet {
        ids.iter().copied().map(ProcessId).collect()
    }

    #[test]
    fn a_broken_link_parts_a_row_until_it_is_mended() {
        let mut row = row();
        let [p0, p1, p2, p3] = [0, 1, 2, 3].map(ProcessId);
        assert!(!row.are_apart(p0, p3));
        row.on_break(p2, p1);
        row.on_break(p1, p2);
        assert!(row.are_apart(p0, p3) && !row.are_apart(p0, p1));
        assert_eq!(row.parts(&set(&[0, 1, 2, 3])), Some(vec![set(&[0, 1]), set(&[2, 3])]));
        row.on_mend(p1, p2);
        assert!(row.are_apart(p0, p3), "it broke twice");
        row.on_mend(p1, p2);
        assert!(!row.are_apart(p0, p3));
        assert_eq!(row.parts(&set(&[0, 1, 2, 3])), None);
    }

    #[test]
    fn a_crash_parts_a_row_but_who_is_down_is_nowhere() {
        let mut row = row();
        let [p0, p1, p3] = [0, 1, 3].map(ProcessId);
        row.on_crash(p1);
        assert!(row.are_apart(p0, p3) && !row.are_apart(p1, p3));
        assert_eq!(row.parts(&set(&[0, 2, 3])), Some(vec![set(&[0]), set(&[2, 3])]));
        row.on_restart(p1);
        assert!(!row.are_apart(p0, p3));
        // The end of a row connects no other processes.
        assert_eq!(row.parts(&set(&[0, 1, 2])), None);
    }

    #[test]
    fn ring_that_skips_crashed_processes_is_not_parted() {
        let setup = Setup::new(Group::of(4), Topology::directed_ring(4));
        assert_eq!(Reach::new(&ChangRoberts::SHEET, &setup), None);
    }
}
