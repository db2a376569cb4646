//! The event queue: a timing wheel, exact in time and in the order of scheduling.

mod far;

use prefetch_index::prefetch_index;

use self::far::{Far, WINDOW};

/// Time in ticks of the simulation.
pub type Time = u64;

const SLOTS: usize = 4096;
const WORDS: usize = SLOTS / 64;
const _: () = assert!(SLOTS as u64 == 2 * WINDOW, "the wheel is two windows");
const NIL: u32 = u32::MAX;

/// Events ordered by time; those at the same time, in the order they were scheduled.
///
/// The wheel has one slot for each tick of the current window of time and the next one. Later events wait in
/// `far` until their window is the next one. The events of a slot are stored in chunks from one pool. So they
/// are read and written in order, and memory grows with the pending events, not with the fullest slots.
/// Finding the next event takes two bit scans.
#[derive(Debug)]
pub struct Wheel<E> {
    slots: Box<[Slot; SLOTS]>,
    /// A bit for each slot that holds events, and a bit for each word of these that is not zero.
    busy: [u64; WORDS],
    busy_words: u64,
    pool: Vec<Chunk<E>>,
    /// The first free chunk.
    free: u32,
    /// The current time: earlier events are gone, and all events in the wheel lie within one turn from it.
    now: Time,
    /// The end of the next window, and so of the wheel.
    end: Time,
    far: Far<E>,
    len: usize,
    scout: Scout,
}

/// How far [`Wheel::scout`] has looked.
#[derive(Clone, Copy, Debug)]
struct Scout {
    /// The time and the position of the last event shown.
    at: Time,
    place: u32,
    /// How many of the events up to it are still pending.
    lead: usize,
}

/// The positions of the first and the last event of a slot: chunk number times [`CHUNK`] plus index. In an
/// empty slot both are [`NIL`], which looks like the end of a chunk, so that a new one is taken.
#[derive(Clone, Copy, Debug)]
struct Slot {
    first: u32,
    last: u32,
}

const EMPTY: Slot = Slot { first: NIL, last: NIL };

/// From this many pending events on, chunks are prefetched ahead of their turn.
const MANY: usize = 1 << 13;

/// The bytes of a cache line.
const LINE: usize = 64;

/// The number of events in a chunk.
const CHUNK: u32 = 16;

// In this order, so that a chunk of one event takes one cache line.
#[repr(C)]
#[derive(Debug)]
struct Chunk<E> {
    /// The next chunk in its slot, or the next free chunk.
    next: u32,
    events: [Option<E>; CHUNK as usize],
}

impl<E> Default for Wheel<E> {
    fn default() -> Self {
        let slots: Box<[Slot]> = vec![EMPTY; SLOTS].into();
        Self {
            slots: slots.try_into().expect("there are as many slots as were made"),
            busy: [0; WORDS],
            busy_words: 0,
            pool: Vec::new(),
            free: NIL,
            now: 0,
            end: 2 * WINDOW,
            far: Far::new(2),
            len: 0,
            scout: Scout { at: 0, place: NIL, lead: 0 },
        }
    }
}

impl<E> Wheel<E> {
    /// Reserves memory for exactly `more` further events.
    pub fn reserve(&mut self, more: usize) {
        self.pool.reserve_exact(more.div_ceil(CHUNK as usize));
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
        self.push_with(at, || event);
    }

    /// Schedules the event that `event` returns, at a time that has not passed. It is built in place, since
    /// copying events is most of the cost of a queue.
    #[inline(always)]
    pub fn push_with(&mut self, at: Time, event: impl FnOnce() -> E) {
        debug_assert!(at >= self.now, "an event in the past");
        self.len += 1;
        if at < self.end {
            let place = self.place_at(at);
            self.pool[(place / CHUNK) as usize].events[(place % CHUNK) as usize] = Some(event());
        } else {
            self.far.push(at, event());
        }
    }

    /// The position of the next event scheduled for that time.
    #[inline]
    fn place_at(&mut self, at: Time) -> u32 {
        let index = at as usize % SLOTS;
        if at < self.scout.at {
            self.scout.lead += 1;
        }
        let mut place = self.slots[index].last.wrapping_add(1);
        if place.is_multiple_of(CHUNK) {
            place = self.extend(index);
        }
        self.slots[index].last = place;
        place
    }

    /// Gives the slot one more chunk; returns the position at which it begins.
    #[inline]
    fn extend(&mut self, index: usize) -> u32 {
        let chunk = self.new_chunk();
        let slot = &mut self.slots[index];
        if slot.first == NIL {
            slot.first = chunk * CHUNK;
            self.busy[index / 64] |= 1 << (index % 64);
            self.busy_words |= 1 << (index / 64);
        } else {
            self.pool[(slot.last / CHUNK) as usize].next = chunk;
        }
        chunk * CHUNK
    }

    #[inline]
    fn new_chunk(&mut self) -> u32 {
        let chunk = self.free;
        match self.pool.get(chunk as usize) {
            Some(free) => self.free = free.next,
            None => return self.grow(),
        }
        chunk
    }

    #[cold]
    fn grow(&mut self) -> u32 {
        self.pool.push(Chunk { next: NIL, events: [const { None }; CHUNK as usize] });
        self.pool.len() as u32 - 1
    }

    /// Takes the next event, if it comes before `limit`.
    #[inline(always)]
    pub fn pop_before(&mut self, limit: Time) -> Option<(Time, E)> {
        if self.slots[self.now as usize % SLOTS].first == NIL || self.now >= limit {
            self.advance(limit)?;
        }
        let index = self.now as usize % SLOTS;
        let Slot { first, last } = self.slots[index];
        let event = self.pool[(first / CHUNK) as usize].events[(first % CHUNK) as usize].take()?;
        self.slots[index].first = first + 1;
        if first == last || (first + 1).is_multiple_of(CHUNK) {
            self.leave_chunk(index, first, last);
        }
        self.len -= 1;
        Some((self.now, event))
    }

    /// Notes that an event was taken; returns how many of the next events [`scout`](Self::scout) has shown
    /// already. Callers of `scout` must call it after each event.
    #[inline]
    pub fn pass(&mut self) -> usize {
        self.scout.lead = self.scout.lead.saturating_sub(1);
        self.scout.lead
    }

    /// Shows up to `most` of the next events that were not shown yet. An event scheduled before one already
    /// shown is never shown.
    #[inline]
    pub fn scout(&mut self, most: usize, mut show: impl FnMut(&E)) {
        let Scout { mut at, mut place, mut lead } = self.scout;
        if lead == 0 {
            // All events shown are gone: start at the current time.
            (at, place) = (self.now, NIL);
        }
        let mut last = self.slots[at as usize % SLOTS].last;
        for _ in 0..most {
            if place == last {
                let Some(next) = self.first_after(at) else { break };
                (at, place) = next;
                last = self.slots[at as usize % SLOTS].last;
            } else if place == NIL {
                place = self.slots[at as usize % SLOTS].first;
            } else if (place + 1).is_multiple_of(CHUNK) {
                let next = self.pool[(place / CHUNK) as usize].next;
                self.prefetch_after(next);
                place = next * CHUNK;
            } else {
                place += 1;
            }
            let event = &self.pool[(place / CHUNK) as usize].events[(place % CHUNK) as usize];
            event.iter().for_each(&mut show);
            lead += 1;
        }
        if lead > 0 {
            self.scout = Scout { at, place, lead };
        }
    }

    /// The time and the position of the first event in the wheel after `at`.
    #[inline]
    fn first_after(&self, at: Time) -> Option<(Time, u32)> {
        let slot = self.next_busy(at + 1)?;
        let found = self.time_of(slot, at + 1);
        // The search may wrap around and find an earlier event.
        (found - self.now < SLOTS as Time).then(|| (found, self.slots[slot].first))
    }

    /// Moves on to the time of the next event, if that comes before `limit`.
    #[inline(never)]
    fn advance(&mut self, limit: Time) -> Option<()> {
        let at = match self.next_busy(self.now) {
            Some(slot) => self.time_of(slot, self.now),
            // The wheel is empty: jump to the first event beyond it.
            None => self.far.first()?,
        };
        if at >= limit {
            return None;
        }
        self.now = at;
        if self.now + WINDOW >= self.end {
            self.bring_near();
        }
        Some(())
    }

    /// The time of this slot in the turn that begins at `from`.
    #[inline]
    fn time_of(&self, slot: usize, from: Time) -> Time {
        from + ((slot + SLOTS - from as usize % SLOTS) % SLOTS) as Time
    }

    /// The slot of the next event in the wheel, searching one turn from that time.
    #[inline]
    fn next_busy(&self, from: Time) -> Option<usize> {
        let from = from as usize % SLOTS;
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

    /// Frees a chunk after its last event was taken, and moves on to the next one, if there is one.
    #[inline]
    fn leave_chunk(&mut self, index: usize, first: u32, last: u32) {
        let chunk = &mut self.pool[(first / CHUNK) as usize];
        let next = std::mem::replace(&mut chunk.next, self.free);
        self.free = first / CHUNK;
        if first != last {
            self.slots[index].first = next * CHUNK;
            return self.prefetch_after(next);
        }
        self.slots[index] = EMPTY;
        self.busy[index / 64] &= !(1 << (index % 64));
        if self.busy[index / 64] == 0 {
            self.busy_words &= !(1 << (index / 64));
        }
    }

    /// Prefetches the chunk after this one, if so many events are pending that no near cache holds it.
    #[inline]
    fn prefetch_after(&self, chunk: u32) {
        if self.len >= MANY
            && let Some(after) = self.pool.get(self.pool[chunk as usize].next as usize)
        {
            for line in 0..size_of_val(&after.events).div_ceil(LINE) {
                prefetch_index(after.events.as_slice(), line * LINE / size_of::<Option<E>>());
            }
        }
    }

    /// Brings the next window into the wheel after a window has begun. This comes before any other scheduling,
    /// so that an event scheduled later for the same tick comes after them.
    fn bring_near(&mut self) {
        let base = self.now / WINDOW + 2;
        self.end = base * WINDOW;
        if !self.far.is_crowded() {
            while let Some((at, event)) = self.far.pop_before(self.end) {
                let place = self.place_at(at);
                self.pool[(place / CHUNK) as usize].events[(place % CHUNK) as usize] = Some(event);
            }
            return;
        }
        // `far` is taken out, so that both parts can be borrowed.
        let mut far = std::mem::replace(&mut self.far, Far::new(base));
        far.hand_out(base, |at, event| {
            let place = self.place_at(at);
            self.pool[(place / CHUNK) as usize].events[(place % CHUNK) as usize] = Some(event);
        });
        self.far = far;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The wheel yields events in the order of a stable sort by time.
        #[test]
        fn the_wheel_agrees_with_a_sorted_list(steps in prop::collection::vec(
            prop_oneof![(0u64..20).prop_map(Some), (0u64..5000).prop_map(Some), (4090u64..4100).prop_map(Some), (2040u64..2060).prop_map(Some), (0u64..100_000).prop_map(Some), (0u64..10_000_000).prop_map(Some), Just(None), Just(None)], 0..300), prefetching: bool)
        {
            // In half of the cases many events lie beyond the wheel.
            let (mut wheel, mut model, mut now) = (Wheel::default(), Vec::new(), 0);
            for far in 0..if prefetching { 1500 } else { 0 } {
                let at = (far as u64 * 7919) % 5_000_000;
                wheel.push(at, far);
                model.push((at, far));
            }
            model.sort_unstable();
            for (sequence, step) in steps.into_iter().enumerate() {
                let sequence = sequence + 1500;
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
                    wheel.pass();
                    now = at;
                }
                prop_assert_eq!(wheel.len(), model.len());
                // `scout` shows each event of the wheel in its order.
                for _ in 0..sequence % 3 {
                    let near = |(at, _): &&(Time, usize)| *at < wheel.end;
                    let next = model.get(wheel.scout.lead).filter(near).map(|(_, event)| *event);
                    let mut shown = None;
                    wheel.scout(1, |event| shown = Some(*event));
                    prop_assert_eq!(shown, next);
                }
            }
        }
    }
}
