//! The event queue: a timing wheel, exact in time and in the order of scheduling.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Time in ticks of the simulation.
pub type Time = u64;

const SLOTS: usize = 4096;
const WORDS: usize = SLOTS / 64;
const NIL: u32 = u32::MAX;

/// Events by time; at one time, in the order they were scheduled.
///
/// One slot for each tick of the next 4096; what lies beyond waits in a heap. All events near are
/// kept in one pool, linked slot by slot: memory grows with the events pending, not with the
/// fullest slots, and finding the next event is two bit scans.
#[derive(Debug)]
pub struct Wheel<E> {
    /// First and last event of each slot.
    slots: Box<[(u32, u32)]>,
    /// Which slots hold events, and which words of that hold any.
    busy: [u64; WORDS],
    busy_words: u64,
    pool: Vec<Node<E>>,
    free: u32,
    /// All events before this time are gone, all in the wheel lie within one turn from here.
    now: Time,
    far: BinaryHeap<Reverse<Far<E>>>,
    scheduled: u64,
    len: usize,
}

#[derive(Debug)]
struct Node<E> {
    event: Option<E>,
    next: u32,
}

#[derive(Debug)]
struct Far<E> {
    at: Time,
    sequence: u64,
    event: E,
}

impl<E> PartialEq for Far<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl<E> Eq for Far<E> {}
impl<E> PartialOrd for Far<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<E> Ord for Far<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

impl<E> Default for Wheel<E> {
    fn default() -> Self {
        Self {
            slots: vec![(NIL, NIL); SLOTS].into(),
            busy: [0; WORDS],
            busy_words: 0,
            pool: Vec::new(),
            free: NIL,
            now: 0,
            far: BinaryHeap::new(),
            scheduled: 0,
            len: 0,
        }
    }
}

impl<E> Wheel<E> {
    /// Makes room for `more` events at once, no more and no less.
    pub fn reserve(&mut self, more: usize) {
        self.pool.reserve_exact(more);
    }

    /// How many events are pending.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether no event is pending.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Schedules `event` at a time that has not passed.
    #[inline]
    pub fn push(&mut self, at: Time, event: E) {
        debug_assert!(at >= self.now, "an event in the past");
        self.len += 1;
        if at - self.now < SLOTS as u64 {
            self.put(at, event);
        } else {
            self.scheduled += 1;
            self.far.push(Reverse(Far { at, sequence: self.scheduled, event }));
        }
    }

    #[inline]
    fn put(&mut self, at: Time, event: E) {
        let node = if self.free == NIL {
            self.pool.push(Node { event: Some(event), next: NIL });
            (self.pool.len() - 1) as u32
        } else {
            let node = self.free;
            let place = &mut self.pool[node as usize];
            self.free = place.next;
            *place = Node { event: Some(event), next: NIL };
            node
        };
        let slot = at as usize % SLOTS;
        let (first, last) = &mut self.slots[slot];
        if *first == NIL {
            *first = node;
            self.busy[slot / 64] |= 1 << (slot % 64);
            self.busy_words |= 1 << (slot / 64);
        } else {
            self.pool[*last as usize].next = node;
        }
        self.slots[slot].1 = node;
    }

    /// The slot of the next event in the wheel, searching from `now` once round.
    #[inline]
    fn next_busy(&self) -> Option<usize> {
        let from = self.now as usize % SLOTS;
        let (word, bit) = (from / 64, from % 64);
        let here = self.busy[word] & (!0 << bit);
        if here != 0 {
            return Some(word * 64 + here.trailing_zeros() as usize);
        }
        // Words after this one; failing that, those before it, and last this one's lower bits.
        let after = self.busy_words & (!0u64).checked_shl(word as u32 + 1).unwrap_or(0);
        let words = if after != 0 { after } else { self.busy_words };
        if words == 0 {
            return None;
        }
        let word = words.trailing_zeros() as usize;
        Some(word * 64 + self.busy[word].trailing_zeros() as usize)
    }

    /// Takes the next event, if it comes before `limit`.
    #[inline]
    pub fn pop_before(&mut self, limit: Time) -> Option<(Time, E)> {
        let slot = match self.next_busy() {
            Some(slot) => slot,
            None => {
                // Nothing near: jump to what lies beyond.
                let at = self.far.peek()?.0.at;
                if at >= limit {
                    return None;
                }
                self.now = at;
                self.bring_near();
                at as usize % SLOTS
            }
        };
        let from = self.now as usize % SLOTS;
        let at = self.now + ((slot + SLOTS - from) % SLOTS) as u64;
        if at >= limit {
            return None;
        }
        if at > self.now {
            self.now = at;
            if !self.far.is_empty() {
                self.bring_near();
            }
        }
        let node = self.slots[slot].0;
        let place = &mut self.pool[node as usize];
        let event = place.event.take().expect("a linked node has an event");
        let next = std::mem::replace(&mut place.next, self.free);
        self.free = node;
        self.slots[slot].0 = next;
        if next == NIL {
            self.busy[slot / 64] &= !(1 << (slot % 64));
            if self.busy[slot / 64] == 0 {
                self.busy_words &= !(1 << (slot / 64));
            }
        }
        self.len -= 1;
        Some((at, event))
    }

    /// Brings what the turn has reached into the wheel. Done whenever time moves, so that nothing
    /// scheduled later for the same tick can come before it.
    fn bring_near(&mut self) {
        while let Some(Reverse(far)) = self.far.peek()
            && far.at - self.now < SLOTS as u64
        {
            let Reverse(Far { at, event, .. }) = self.far.pop().expect("it was just seen");
            self.put(at, event);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever is scheduled when, the wheel agrees with a sorted list.
        #[test]
        fn the_wheel_agrees_with_a_sorted_list(steps in prop::collection::vec(
            prop_oneof![(0u64..20).prop_map(Some), (0u64..5000).prop_map(Some), (4090u64..4100).prop_map(Some), (0u64..100_000).prop_map(Some), Just(None), Just(None)], 0..300))
        {
            let (mut wheel, mut model, mut now) = (Wheel::default(), Vec::new(), 0);
            for (sequence, step) in steps.into_iter().enumerate() {
                if let Some(delay) = step {
                    wheel.push(now + delay, sequence);
                    model.push((now + delay, sequence));
                    model.sort_unstable();
                } else if model.is_empty() {
                    prop_assert_eq!(wheel.pop_before(Time::MAX), None);
                } else {
                    let (at, _) = model[0];
                    prop_assert_eq!(wheel.pop_before(at), None, "the limit is exclusive");
                    let expected = model.remove(0);
                    prop_assert_eq!(wheel.pop_before(at + 1), Some(expected));
                    now = at;
                }
                prop_assert_eq!(wheel.len(), model.len());
            }
        }
    }
}
