//! The timers of all processes.

use prefetch_index::prefetch_index;
use smallvec::SmallVec;

/// The running timers. Each start of a timer has a number; events of earlier starts are void.
pub(crate) struct Timers<N> {
    /// For each place, its timers and the numbers of their starts. Most processes run at most two.
    running: Vec<SmallVec<[(N, u32); 2]>>,
    settings: u32,
}

impl<N> Default for Timers<N> {
    fn default() -> Self {
        Self { running: Vec::new(), settings: 0 }
    }
}

impl<N: Eq> Timers<N> {
    /// Starts or restarts `timer`; returns the number of this start.
    pub(crate) fn arm(&mut self, place: usize, timer: N) -> u32 {
        if place >= self.running.len() {
            self.running.resize_with(place + 1, SmallVec::new);
        }
        self.settings = self.settings.wrapping_add(1);
        let running = &mut self.running[place];
        match running.iter_mut().find(|(t, _)| *t == timer) {
            Some((_, armed)) => *armed = self.settings,
            None => running.push((timer, self.settings)),
        }
        self.settings
    }

    /// Stops `timer`.
    pub(crate) fn cancel(&mut self, place: usize, timer: &N) {
        if let Some(running) = self.running.get_mut(place) {
            running.retain(|(t, _)| t != timer);
        }
    }

    /// Removes the timer if this start is still valid; returns whether it was.
    pub(crate) fn expire(&mut self, place: usize, timer: &N, armed: u32) -> bool {
        let Some(running) = self.running.get_mut(place) else { return false };
        let Some(i) = running.iter().position(|(t, setting)| (t, *setting) == (timer, armed))
        else {
            return false;
        };
        running.swap_remove(i);
        true
    }

    /// Whether this start of the timer is still valid.
    pub(crate) fn is_running(&self, place: usize, timer: &N, armed: u32) -> bool {
        let running = self.running.get(place);
        running.is_some_and(|running| running.iter().any(|(t, a)| (t, *a) == (timer, armed)))
    }

    /// Prefetches the timers of a process that will act soon.
    #[inline]
    pub(crate) fn prefetch(&self, place: usize) {
        prefetch_index(self.running.as_slice(), place);
    }

    /// Stops all timers of a process.
    pub(crate) fn clear(&mut self, place: usize) {
        if let Some(running) = self.running.get_mut(place) {
            running.clear();
        }
    }
}
