//! What lies beyond the wheel: windows of time, and a heap for what lies beyond these.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Time;

/// How many ticks a window has.
pub(super) const WINDOW: Time = 2048;
/// How many windows there are: two thousand message delays, which is more than most timers take.
const WINDOWS: usize = 1024;
const WORDS: usize = WINDOWS / 64;
/// A heap of more events than this costs more than windows do; of fewer, less.
const CROWD: usize = 512;
/// How many windows that are empty keep their room for others.
const SPARE: usize = 32;

/// Events that are too late for the wheel.
///
/// A few are kept in a heap. Where there are many, those of one window stand in the order in which
/// they were scheduled; the wheel, which takes a window as a whole, puts each at its tick. So an event
/// costs no comparison with any other, however many wait. Only what is later than all windows stays
/// in the heap.
#[derive(Debug)]
pub(super) struct Far<E> {
    windows: Vec<Vec<(Time, E)>>,
    /// Which windows hold events.
    busy: [u64; WORDS],
    /// Whether windows are used: if not, all are empty.
    crowded: bool,
    /// The first window that is here; those before it are in the wheel or gone.
    base: u64,
    beyond: BinaryHeap<Reverse<Late<E>>>,
    scheduled: u64,
    /// Empty windows that have room: memory grows with the events pending, not with the windows.
    spare: Vec<Vec<(Time, E)>>,
}

#[derive(Debug)]
struct Late<E> {
    at: Time,
    sequence: u64,
    event: E,
}

impl<E> PartialEq for Late<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl<E> Eq for Late<E> {}
impl<E> PartialOrd for Late<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<E> Ord for Late<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

impl<E> Far<E> {
    /// Nothing yet; the windows before `base` are the wheel's.
    pub(super) fn new(base: u64) -> Self {
        Self {
            windows: Vec::new(),
            busy: [0; WORDS],
            crowded: false,
            base,
            beyond: BinaryHeap::new(),
            scheduled: 0,
            spare: Vec::new(),
        }
    }

    /// Keeps an event of a window that is not the wheel's.
    pub(super) fn push(&mut self, at: Time, event: E) {
        debug_assert!(at / WINDOW >= self.base, "the wheel would have taken it");
        if self.crowded && self.has_window(at) {
            return self.put(at, event);
        }
        self.scheduled += 1;
        self.beyond.push(Reverse(Late { at, sequence: self.scheduled, event }));
        if !self.crowded && self.beyond.len() > CROWD {
            self.open_windows();
        }
    }

    fn has_window(&self, at: Time) -> bool {
        at / WINDOW < self.base + WINDOWS as u64
    }

    /// There are too many for a heap: all that have a window go there.
    #[cold]
    fn open_windows(&mut self) {
        self.crowded = true;
        self.windows.resize_with(WINDOWS, Vec::new);
        self.fill_windows();
    }

    /// Moves those from the heap to the windows that have one, the earliest first. Whatever a window
    /// gets in this way was scheduled before all that it gets directly.
    fn fill_windows(&mut self) {
        while let Some(Reverse(late)) = self.beyond.peek()
            && self.has_window(late.at)
        {
            let Some(Reverse(Late { at, event, .. })) = self.beyond.pop() else { break };
            self.put(at, event);
        }
    }

    /// Takes the first event if it comes before `end` and no window is used; nothing before `end`
    /// is left here then.
    pub(super) fn pop_before(&mut self, end: Time) -> Option<(Time, E)> {
        debug_assert!(!self.crowded, "it might stand in a window");
        if self.beyond.peek().is_some_and(|Reverse(late)| late.at < end) {
            return self.beyond.pop().map(|Reverse(Late { at, event, .. })| (at, event));
        }
        self.base = end / WINDOW;
        None
    }

    pub(super) fn is_crowded(&self) -> bool {
        self.crowded
    }

    fn put(&mut self, at: Time, event: E) {
        let index = (at / WINDOW) as usize % WINDOWS;
        let window = &mut self.windows[index];
        if window.is_empty() {
            self.busy[index / 64] |= 1 << (index % 64);
            if window.capacity() == 0 {
                *window = self.spare.pop().unwrap_or_default();
            }
        }
        window.push((at, event));
    }

    /// The time of the first event.
    pub(super) fn first(&self) -> Option<Time> {
        match self.next_busy() {
            Some(window) => {
                let window = &self.windows[window as usize % WINDOWS];
                window.iter().map(|(at, _)| *at).min()
            }
            None => self.beyond.peek().map(|Reverse(late)| late.at),
        }
    }

    /// The first window, counted from the beginning of time, that holds an event.
    fn next_busy(&self) -> Option<u64> {
        if !self.crowded {
            return None;
        }
        let from = self.base as usize % WINDOWS;
        let (word, bit) = (from / 64, from % 64);
        let found = |word: usize, mask: u64| {
            let bits = self.busy[word] & mask;
            (bits != 0).then(|| word * 64 + bits.trailing_zeros() as usize)
        };
        let index = found(word, !0 << bit)
            .or_else(|| (1..WORDS).find_map(|i| found((word + i) % WORDS, !0)))
            .or_else(|| found(word, !(!0 << bit)))?;
        Some(self.base + ((index + WINDOWS - from) % WINDOWS) as u64)
    }

    /// Gives all events of the windows before `base`, which are the wheel's from now on: those of
    /// one tick in the order in which they were scheduled.
    pub(super) fn hand_out(&mut self, base: u64, mut take: impl FnMut(Time, E)) {
        while let Some(window) = self.next_busy()
            && window < base
        {
            let index = window as usize % WINDOWS;
            self.busy[index / 64] &= !(1 << (index % 64));
            let mut events = std::mem::take(&mut self.windows[index]);
            events.drain(..).for_each(|(at, event)| take(at, event));
            if self.spare.len() < SPARE {
                self.spare.push(events);
            }
        }
        self.base = base;
        while let Some(Reverse(late)) = self.beyond.peek()
            && late.at / WINDOW < base
        {
            let Some(Reverse(Late { at, event, .. })) = self.beyond.pop() else { break };
            take(at, event);
        }
        self.fill_windows();
        self.crowded = self.busy.iter().any(|word| *word != 0);
    }
}
