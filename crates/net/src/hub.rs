//! The one place where all steps of a run meet.

use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use crate::Warning;
use crate::judge::Judge;
use crate::node::{Event, Node};
use crate::transport::{Fates, Link};

/// Lets processes make their steps one after the other, each with all that is to be judged,
/// measured and written down about it. A step takes microseconds; all that takes time (waiting,
/// encoding, sending) happens outside the lock.
pub(crate) struct Hub {
    /// None when the run is over.
    judge: Mutex<Option<Judge>>,
    /// Something happened after which nothing more can.
    pub(crate) quiet: Notify,
}

impl Hub {
    pub(crate) fn new(judge: Judge) -> Self {
        Self { judge: Mutex::new(Some(judge)), quiet: Notify::new() }
    }

    /// Does something to the run; none when it is over.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut Judge) -> R) -> Option<R> {
        // A step that panicked ends the run anyway; until then the others may go on.
        let mut guard = self.judge.lock().unwrap_or_else(PoisonError::into_inner);
        let judge = guard.as_mut()?;
        judge.look_at_the_clock();
        let result = act(judge);
        if judge.is_quiet() {
            self.quiet.notify_one();
        }
        Some(result)
    }

    /// Ends the run: no step is made after this one call that gets the judge.
    pub(crate) fn close(&self) -> Option<Judge> {
        let mut judge = self.judge.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        judge.look_at_the_clock();
        Some(judge)
    }

    /// Makes a step; false when this process makes no more: it has crashed, or the run is over.
    pub(crate) fn step(&self, node: &mut Node, event: Event) -> bool {
        self.with(|judge| judge.step(node, event)).unwrap_or(false)
    }

    /// All that came through `link` has been handled, and no more will come.
    pub(crate) fn drained(&self, link: Link) {
        self.with(|judge| judge.drained(link));
    }
}

impl Fates for Hub {
    fn lost(&self, id: u64) {
        self.with(|judge| judge.lose(id));
    }

    fn closed(&self, link: Link, last: u64) {
        self.with(|judge| judge.closed(link, last));
    }

    fn warn(&self, warning: Warning) {
        self.with(|judge| judge.warn(warning));
    }
}
