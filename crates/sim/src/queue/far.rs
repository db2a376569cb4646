//! The events beyond the wheel: windows of time, and a heap for events beyond these.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Time;

/// How many ticks a window has.
pub(super) const WINDOW: Time = 2048;
/// The number of windows. Together they span two thousand message delays, more than most timers take.
const WINDOWS: usize = 1024;
const WORDS: usize = WINDOWS / 64;
/// From this many events on, windows are faster than a heap.
const CROWD: usize = 512;
/// How many empty windows keep their memory for reuse.
const SPARE: usize = 32;

/// Events that are too late for the wheel.
///
/// A few events are kept in a heap. If there are many, the events of a window are kept in the order in which
/// they were scheduled. The wheel takes a window as a whole and puts each event at its tick, so events are
/// never compared with each other. Only events later than all windows stay in the heap.
#[derive(Debug)]
pub(super) struct Far<E> {
    windows: Vec<Vec<(Time, E)>>,
    /// Which windows hold events.
    busy: [u64; WORDS],
    /// Whether windows are used; if not, all are empty.
    crowded: bool,
    /// The first window kept here; earlier ones are in the wheel or gone.
    base: u64,
    beyond: BinaryHeap<Reverse<Late<E>>>,
    scheduled: u64,
    /// Empty windows with memory for reuse, so that memory grows with the pending events, not with the windows.
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
    /// No events; the windows before `base` are the wheel's.
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

    /// Starts to use windows, since the heap has become too large.
    #[cold]
    fn open_windows(&mut self) {
        self.crowded = true;
        self.windows.resize_with(WINDOWS, Vec::new);
        self.fill_windows();
    }

    /// Moves events from the heap to their windows, the earliest first. They were scheduled before all events
    /// that a window gets directly.
    fn fill_windows(&mut self) {
        while let Some(Reverse(late)) = self.beyond.peek()
            && self.has_window(late.at)
        {
            let Some(Reverse(Late { at, event, .. })) = self.beyond.pop() else { break };
            self.put(at, event);
        }
    }

    /// Takes the first event if it comes before `end`. Only for use without windows.
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

    /// The number of the first window that holds an event, counted from time 0.
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

    /// Hands out all events of the windows before `base`, which are the wheel's from now on. Events of the same
    /// tick come in the order in which they were scheduled.
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
