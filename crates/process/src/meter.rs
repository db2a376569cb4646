//! Measures of time.

use crate::{Process, ProcessId};

/// Measures a run, in the ticks of its host. The checker has no time and no meter.
pub trait Meter<P: Process> {
    /// The client at `at` makes a request.
    fn on_request(&mut self, now: u64, at: ProcessId, request: &P::Request);
    /// The client at `at` gets an indication.
    fn on_indication(&mut self, now: u64, at: ProcessId, indication: &P::Indication);
    /// The request that the client at `at` makes next arrived at this time. With open load it may have arrived
    /// while its client was still busy with earlier ones.
    fn on_arrival(&mut self, _arrived: u64, _at: ProcessId) {}
    /// Whether what happens now is measured: a meter may leave out a warm-up, and the end.
    fn window(&self) -> Window {
        Window::Always
    }
    /// A process crashed.
    fn on_crash(&mut self, _now: u64, _at: ProcessId) {}
    /// A process restarted.
    fn on_restart(&mut self, _at: ProcessId) {}
}

/// The part of a run that is measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Window {
    /// The whole run.
    #[default]
    Always,
    /// The run is still warming up.
    Before,
    /// This part.
    Open,
    /// An earlier part.
    Closed,
}

impl<P: Process> Meter<P> for () {
    fn on_request(&mut self, _: u64, _: ProcessId, _: &P::Request) {}
    fn on_indication(&mut self, _: u64, _: ProcessId, _: &P::Indication) {}
}
