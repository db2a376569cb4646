//! What lies beyond one turn of the wheel.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::Time;

/// Ticks in a block.
pub(crate) const BLOCK: Time = 1024;

/// Blocks that are kept apart; what lies beyond all of them is in a heap.
const BLOCKS: usize = 1024;
const WINDOW: Time = BLOCK * BLOCKS as Time;

/// Events that are far off, by blocks of time: within a block in the order they were scheduled, which
/// is all that the wheel needs when it takes a block over. A heap alone would sort thousands of
/// messages on long ways only to have them sorted again.
#[derive(Debug)]
pub(crate) struct FarOff<E> {
    /// All events before this time are in the wheel; a multiple of [`BLOCK`].
    pub(crate) begin: Time,
    /// One for each block from there on, round and round; empty until the first is needed.
    blocks: Vec<Vec<(Time, E)>>,
    /// How many events are in blocks.
    kept: usize,
    beyond: BinaryHeap<Reverse<Beyond<E>>>,
    scheduled: u64,
}

#[derive(Debug)]
struct Beyond<E> {
    at: Time,
    sequence: u64,
    event: E,
}

impl<E> PartialEq for Beyond<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl<E> Eq for Beyond<E> {}
impl<E> PartialOrd for Beyond<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<E> Ord for Beyond<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

impl<E> FarOff<E> {
    pub(crate) fn new(begin: Time) -> Self {
        let beyond = BinaryHeap::new();
        Self { begin, blocks: Vec::new(), kept: 0, beyond, scheduled: 0 }
    }

    /// Keeps an event of a time that is not before [`begin`](Self::begin).
    #[inline(never)]
    pub(crate) fn push(&mut self, at: Time, event: E) {
        if at < self.begin.saturating_add(WINDOW) {
            return self.keep(at, event);
        }
        self.scheduled += 1;
        self.beyond.push(Reverse(Beyond { at, sequence: self.scheduled, event }));
    }

    fn keep(&mut self, at: Time, event: E) {
        if self.blocks.is_empty() {
            self.blocks.resize_with(BLOCKS, Vec::new);
        }
        self.blocks[block(at)].push((at, event));
        self.kept += 1;
    }

    /// The time of the first event.
    pub(crate) fn earliest(&self) -> Option<Time> {
        if self.kept == 0 {
            return self.beyond.peek().map(|first| first.0.at);
        }
        let mut blocks = (0..BLOCKS as Time).map(|i| &self.blocks[block(self.begin + i * BLOCK)]);
        blocks.find(|b| !b.is_empty())?.iter().map(|(at, _)| *at).min()
    }

    /// Begins later: hands out all events before `begin`, those of one time in their order.
    #[inline(never)]
    pub(crate) fn begin_at(&mut self, begin: Time, mut hand_out: impl FnMut(Time, E)) {
        while self.kept > 0 && self.begin < begin {
            let events = std::mem::take(&mut self.blocks[block(self.begin)]);
            self.kept -= events.len();
            events.into_iter().for_each(|(at, event)| hand_out(at, event));
            self.begin += BLOCK;
        }
        self.begin = begin;
        // What lay beyond must be in its block before anything else can be put there.
        while let Some(Reverse(first)) = self.beyond.peek()
            && first.at < begin.saturating_add(WINDOW)
        {
            let Reverse(Beyond { at, event, .. }) = self.beyond.pop().expect("it was just seen");
            match at < begin {
                true => hand_out(at, event),
                false => self.keep(at, event),
            }
        }
    }
}

fn block(at: Time) -> usize {
    (at / BLOCK) as usize % BLOCKS
}
