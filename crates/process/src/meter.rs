//! Measures of time.

use crate::{Process, ProcessId};

/// Measures a run, in the ticks of its host. The checker has no time and no meter.
pub trait Meter<P: Process> {
    /// The client at `at` makes a request.
    fn on_request(&mut self, now: u64, at: ProcessId, request: &P::Request);
    /// The client at `at` gets an indication.
    fn on_indication(&mut self, now: u64, at: ProcessId, indication: &P::Indication);
    /// A process crashed.
    fn on_crash(&mut self, _now: u64, _at: ProcessId) {}
    /// A process restarted.
    fn on_restart(&mut self, _at: ProcessId) {}
}

impl<P: Process> Meter<P> for () {
    fn on_request(&mut self, _: u64, _: ProcessId, _: &P::Request) {}
    fn on_indication(&mut self, _: u64, _: ProcessId, _: &P::Indication) {}
}
