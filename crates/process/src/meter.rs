//! What is measured in time.

use crate::{Process, ProcessId};

/// Measures a run in time, in the ticks of its host; the checker has none.
pub trait Meter<P: Process> {
    /// The application at `at` asks.
    fn on_request(&mut self, now: u64, at: ProcessId, request: &P::Request);
    /// The application at `at` is told.
    fn on_indication(&mut self, now: u64, at: ProcessId, indication: &P::Indication);
    /// A process has stopped.
    fn on_crash(&mut self, _now: u64, _at: ProcessId) {}
}

impl<P: Process> Meter<P> for () {
    fn on_request(&mut self, _: u64, _: ProcessId, _: &P::Request) {}
    fn on_indication(&mut self, _: u64, _: ProcessId, _: &P::Indication) {}
}
