//! The order of the roots, and the distance of the others from the first.

use std::collections::VecDeque;

use konklave_process::{Group, ProcessId, ProcessSet};

use crate::Setup;

/// The order in which the members are root: one in each epoch, and round again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Registry {
    /// The place of the first root.
    pub(super) first: usize,
}

impl Registry {
    /// With `root` in epoch 0; none if that is no member. Without, the first in node order.
    pub(super) fn new(root: Option<ProcessId>, group: &Group) -> Option<Self> {
        let first = root.map_or(Some(0), |root| group.place(root))?;
        Some(Self { first })
    }

    /// The root of this epoch.
    pub(super) fn root(self, epoch: u32, group: &Group) -> ProcessId {
        group.id((self.first + epoch as usize % group.len()) % group.len())
    }

    /// The first epoch from this one on whose root is not suspected.
    pub(super) fn next(self, from: u32, suspects: Option<&ProcessSet>, group: &Group) -> u32 {
        let Some(suspects) = suspects else { return from };
        let up = |epoch: &u32| !suspects.contains(self.root(*epoch, group));
        (from..from.saturating_add(group.len() as u32)).find(up).unwrap_or(from)
    }

    /// The distance of the farthest process from the first root.
    pub(super) fn depth(self, setup: &Setup) -> usize {
        let mut depths = vec![None; setup.group.len()];
        depths[self.first] = Some(0);
        let mut queue = VecDeque::from([(self.first, 0)]);
        let mut deepest = 0;
        while let Some((place, depth)) = queue.pop_front() {
            deepest = depth;
            for next in setup.topology.adjacent(place) {
                if depths[next].is_none() {
                    depths[next] = Some(depth + 1);
                    queue.push_back((next, depth + 1));
                }
            }
        }
        deepest
    }
}
