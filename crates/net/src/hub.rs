//! The lock under which all steps of a run are made.

use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;

use crate::Warning;
use crate::node::{Event, Node};
use crate::run_state::RunState;
use crate::transport::{Link, TransportEvents};

/// Serialises the steps of all processes, each with its judging, measuring and recording. A step takes
/// microseconds; waiting, encoding and sending happen outside the lock.
pub(crate) struct Hub {
    /// None after the run is over.
    state: Mutex<Option<RunState>>,
    /// Notified when the run becomes quiet: nothing more can happen by itself.
    pub(crate) quiet: Notify,
}

impl Hub {
    pub(crate) fn new(state: RunState) -> Self {
        Self { state: Mutex::new(Some(state)), quiet: Notify::new() }
    }

    /// Calls `act` with the state of the run; returns none if the run is over.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut RunState) -> R) -> Option<R> {
        // If a step panics, the run ends anyway; until then the other processes may go on.
        let mut guard = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let state = guard.as_mut()?;
        state.read_clock();
        let result = act(state);
        if state.is_quiet() {
            self.quiet.notify_one();
        }
        Some(result)
    }

    /// Ends the run and returns its state; no step is made afterwards. Only the first call gets it.
    pub(crate) fn close(&self) -> Option<RunState> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        state.read_clock();
        Some(state)
    }

    /// Makes a step; returns false if this process makes no more steps: it has crashed, or the run is over.
    pub(crate) fn step(&self, node: &mut Node, event: Event) -> bool {
        self.with(|state| state.step(node, event)).unwrap_or(false)
    }

    /// The receiver has handled all messages that came through `link`, which has ended.
    pub(crate) fn drained(&self, link: Link) {
        self.with(|state| state.drained(link));
    }
}

impl TransportEvents for Hub {
    fn lost(&self, id: u64) {
        self.with(|state| state.lose(id));
    }

    fn closed(&self, link: Link, last: u64) {
        self.with(|state| state.closed(link, last));
    }

    fn warn(&self, warning: Warning) {
        self.with(|state| state.warn(warning));
    }
}
