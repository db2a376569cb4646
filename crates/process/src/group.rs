//! Groups of processes.

use std::sync::Arc;

use prefetch_index::prefetch_index;
use thiserror::Error;

use crate::{MAX_ID, ProcessId};

/// The members of a group, in *node order*: the order in which a topology places them.
#[derive(Clone, Eq, Debug)]
pub struct Group {
    members: Arc<[ProcessId]>,
    places: Places,
}

/// The map from ids to places, shared by all maps over the members.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Places {
    /// Ids are places.
    Same(u32),
    /// Indexed by id.
    Table(Arc<[u32]>),
}

impl Places {
    #[inline]
    pub(crate) fn of(&self, id: ProcessId) -> Option<usize> {
        match self {
            Self::Same(n) => (id.0 < *n).then_some(id.0 as usize),
            Self::Table(table) => {
                let place = *table.get(id.0 as usize)?;
                (place != NOWHERE).then_some(place as usize)
            }
        }
    }

    /// The places of these ids, which must differ.
    pub(crate) fn new(members: &[ProcessId]) -> Result<Self, GroupError> {
        let largest = members.iter().max().ok_or(GroupError::Empty)?;
        if largest.0 > MAX_ID {
            return Err(GroupError::TooLarge(largest.0));
        }
        if members.iter().enumerate().all(|(place, p)| p.0 as usize == place) {
            return Ok(Self::Same(members.len() as u32));
        }
        let mut places = vec![NOWHERE; largest.0 as usize + 1];
        for (place, p) in members.iter().enumerate() {
            let entry = &mut places[p.0 as usize];
            if *entry != NOWHERE {
                return Err(GroupError::Twice(p.0));
            }
            *entry = place as u32;
        }
        Ok(Self::Table(places.into()))
    }
}

/// Why a list of ids is not a group.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum GroupError {
    /// The list is empty.
    #[error("a group needs at least one node, not 0")]
    Empty,
    /// Two members have the same id.
    #[error("ids must be unique, but {0} is given twice")]
    Twice(u32),
    /// An id is larger than [`MAX_ID`].
    #[error("id {0} is too large: ids go from 0 to {MAX_ID}")]
    TooLarge(u32),
}

impl PartialEq for Group {
    // Most comparisons are of a group with itself.
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.members, &other.members) || self.members == other.members
    }
}

const NOWHERE: u32 = u32::MAX;

impl Group {
    /// The group of ids 0 to n − 1.
    pub fn of(n: usize) -> Self {
        assert!(n > 0 && n <= MAX_ID as usize + 1, "a group has 1 to 2^24 members");
        Self { members: (0..n as u32).map(ProcessId).collect(), places: Places::Same(n as u32) }
    }

    /// The group of these ids in this node order.
    pub fn new(members: Vec<ProcessId>) -> Result<Self, GroupError> {
        let places = Places::new(&members)?;
        Ok(Self { members: members.into(), places })
    }

    /// The number of members.
    #[inline]
    #[expect(clippy::len_without_is_empty, reason = "a group is never empty")]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// All members in node order.
    #[inline]
    pub fn members(&self) -> &[ProcessId] {
        &self.members
    }

    /// The id at `place` in node order.
    #[inline]
    pub fn id(&self, place: usize) -> ProcessId {
        match self.places {
            Places::Same(n) => {
                assert!(place < n as usize, "a place is below the number of members");
                ProcessId(place as u32)
            }
            Places::Table(_) => self.members[place],
        }
    }

    /// The place of `id` in node order.
    #[inline]
    pub fn place(&self, id: ProcessId) -> Option<usize> {
        self.places.of(id)
    }

    /// The place of `id`, tried first right after and right before `place`. On a ring it is there, which saves
    /// a lookup in the table of a large group.
    #[inline]
    pub fn place_near(&self, id: ProcessId, place: usize) -> Option<usize> {
        if let Places::Same(_) = self.places {
            return self.places.of(id);
        }
        let is_at = |place: usize| self.members.get(place) == Some(&id);
        if is_at(place + 1) {
            Some(place + 1)
        } else if is_at(place.wrapping_sub(1)) {
            Some(place - 1)
        } else {
            self.places.of(id)
        }
    }

    /// Prefetches the data that [`id`](Self::id) reads; returns the id at this place if no data is needed.
    #[inline]
    pub fn prefetch(&self, place: usize) -> Option<ProcessId> {
        if let Places::Same(_) = self.places {
            return Some(ProcessId(place as u32));
        }
        prefetch_index(&self.members, place);
        None
    }

    pub(crate) fn places(&self) -> &Places {
        &self.places
    }

    pub(crate) fn shared_members(&self) -> Arc<[ProcessId]> {
        self.members.clone()
    }

    /// Whether `id` is a member.
    pub fn contains(&self, id: ProcessId) -> bool {
        self.place(id).is_some()
    }

    /// The highest id.
    pub fn highest(&self) -> ProcessId {
        *self.members.iter().max().expect("a group is never empty")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(list: &[u32]) -> Vec<ProcessId> {
        list.iter().copied().map(ProcessId).collect()
    }

    #[test]
    fn ids_find_their_places_in_node_order() {
        let group = Group::new(ids(&[17, 4, 99])).unwrap();
        assert_eq!(group.place(ProcessId(99)), Some(2));
        assert_eq!(group.place(ProcessId(5)), None);
        assert_eq!(group.place(ProcessId(100)), None);
        assert_eq!(group.id(1), ProcessId(4));
        assert_eq!(group.highest(), ProcessId(99));
    }

    #[test]
    fn dense_ascending_ids_need_no_table() {
        assert_eq!(Group::new(ids(&[0, 1, 2])).unwrap(), Group::of(3));
        assert_eq!(Group::of(3).place(ProcessId(3)), None);
    }

    #[test]
    fn invalid_groups_are_refused() {
        assert_eq!(Group::new(vec![]), Err(GroupError::Empty));
        assert_eq!(Group::new(ids(&[3, 1, 3])), Err(GroupError::Twice(3)));
        assert_eq!(Group::new(ids(&[1 << 24])), Err(GroupError::TooLarge(1 << 24)));
    }
}
