//! The numbers that an active process has received from each side and not compared yet.

use konklave_process::ProcessId;
use serde::{Serialize, Serializer};
use smallvec::SmallVec;

use crate::election::Direction;

/// A received number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
pub(super) struct Heard {
    pub(super) round: u32,
    pub(super) id: ProcessId,
}

/// The numbers from each side that were not compared yet, by round. In most processes, and soon in all but a few,
/// there are none.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(super) struct Queues(Option<Box<[Queue; 2]>>);

type Queue = SmallVec<[Heard; 2]>;

impl Queues {
    pub(super) fn push(&mut self, heard: Heard, way: Direction) {
        let queue = &mut self.0.get_or_insert_default()[way as usize];
        let place = queue.partition_point(|earlier| earlier.round <= heard.round);
        queue.insert(place, heard);
    }

    /// The first of each side, if they are of this round; they leave the queues.
    pub(super) fn take_both(&mut self, round: u32) -> Option<[ProcessId; 2]> {
        let queues = self.0.as_mut()?;
        let of_round = |queue: &Queue| queue.first().filter(|h| h.round == round).map(|h| h.id);
        let [Some(a), Some(b)] = [of_round(&queues[0]), of_round(&queues[1])] else { return None };
        for queue in queues.iter_mut() {
            queue.remove(0);
        }
        // Equal states are equal values.
        if queues.iter().all(|queue| queue.is_empty()) {
            self.0 = None;
        }
        Some([a, b])
    }

    /// All numbers, with the direction in which each goes on.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = (Heard, Direction)> + use<> {
        let queues = self.0.take().map_or_else(Default::default, |queues| *queues);
        let sides = queues.into_iter().zip(Direction::BOTH);
        sides.flat_map(|(queue, way)| queue.into_iter().map(move |heard| (heard, way)))
    }
}

impl Serialize for Queues {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Some(queues) => queues.serialize(serializer),
            None => <[[Heard; 0]; 2]>::default().serialize(serializer),
        }
    }
}
