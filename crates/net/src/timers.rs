//! The timers of one process.

use konklave_process::AnyTimer;
use tokio::time::Instant;

/// The running timers and their due times. A process has only a few, so a list is enough.
#[derive(Debug, Default)]
pub(crate) struct Timers(Vec<(AnyTimer, Instant)>);

impl Timers {
    /// Starts or restarts `timer`.
    pub(crate) fn set(&mut self, timer: AnyTimer, due: Instant) {
        match self.0.iter_mut().find(|(running, _)| *running == timer) {
            Some(entry) => entry.1 = due,
            None => self.0.push((timer, due)),
        }
    }

    /// Stops `timer`.
    pub(crate) fn cancel(&mut self, timer: &AnyTimer) {
        self.0.retain(|(running, _)| running != timer);
    }

    /// How many timers run.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// When the next timer runs out.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.0.iter().map(|(_, due)| *due).min()
    }

    /// Removes the next timer, if it has run out by `now`.
    pub(crate) fn take_due(&mut self, now: Instant) -> Option<AnyTimer> {
        let due = self.due().filter(|due| *due <= now)?;
        let place = self.0.iter().position(|(_, at)| *at == due)?;
        Some(self.0.remove(place).0)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn setting_a_running_timer_restarts_it() {
        let now = Instant::now();
        let after = |ms| now + Duration::from_millis(ms);
        let [a, b] = ['a', 'b'].map(AnyTimer::new);
        let mut timers = Timers::default();
        timers.set(a.clone(), after(3));
        timers.set(b.clone(), after(2));
        assert_eq!((timers.len(), timers.due()), (2, Some(after(2))));
        timers.set(b.clone(), after(9));
        assert_eq!((timers.len(), timers.due()), (2, Some(after(3))));
        assert_eq!(timers.take_due(after(2)), None);
        assert_eq!(timers.take_due(after(3)), Some(a.clone()));
        timers.cancel(&a);
        assert_eq!((timers.len(), timers.due()), (1, Some(after(9))));
        timers.cancel(&b);
        assert_eq!((timers.len(), timers.due()), (0, None));
    }
}
