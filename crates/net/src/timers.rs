//! The timers of one process.

use tokio::time::Instant;

/// Which timers run, and when they run out. A process has a few, so a list will do.
#[derive(Debug)]
pub(crate) struct Timers<N>(Vec<(N, Instant)>);

impl<N> Default for Timers<N> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<N: Copy + Eq> Timers<N> {
    /// Starts `timer`, or starts it anew.
    pub(crate) fn set(&mut self, timer: N, due: Instant) {
        match self.0.iter_mut().find(|(running, _)| *running == timer) {
            Some(entry) => entry.1 = due,
            None => self.0.push((timer, due)),
        }
    }

    /// Stops `timer`.
    pub(crate) fn cancel(&mut self, timer: N) {
        self.0.retain(|(running, _)| *running != timer);
    }

    /// How many run.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The next one to run out, and when.
    pub(crate) fn next(&self) -> Option<(N, Instant)> {
        self.0.iter().copied().min_by_key(|(_, due)| *due)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn under_one_name_runs_one_timer() {
        let now = Instant::now();
        let after = |ms| now + Duration::from_millis(ms);
        let mut timers = Timers::default();
        timers.set('a', after(3));
        timers.set('b', after(2));
        assert_eq!(timers.next(), Some(('b', after(2))));
        timers.set('b', after(9));
        assert_eq!((timers.len(), timers.next()), (2, Some(('a', after(3)))));
        timers.cancel('a');
        timers.cancel('a');
        assert_eq!((timers.len(), timers.next()), (1, Some(('b', after(9)))));
    }
}
