//! Who uses the algorithm.

use std::fmt::Debug;
use std::hash::Hash;

use crate::{Process, ProcessId};

/// The application at all processes, without time: what may be asked next, and when it is content.
///
/// The checker tries each permitted request at every moment, the simulator and the network after a
/// pause; so the same clients drive all three worlds.
pub trait Application<P: Process>: Clone + Eq + Hash + Debug {
    /// What the application at `at` may ask now.
    fn next(&self, at: ProcessId) -> Option<P::Request>;

    /// It has asked.
    fn on_request(&mut self, at: ProcessId, request: &P::Request);

    /// It was told.
    fn on_indication(&mut self, at: ProcessId, indication: &P::Indication);

    /// Its process has stopped.
    fn on_crash(&mut self, _at: ProcessId) {}

    /// Its process is up again.
    fn on_restart(&mut self, _at: ProcessId) {}

    /// Something will happen at `at` soon: a chance to prefetch what is kept for it, in large groups.
    #[inline]
    fn prefetch(&self, _at: ProcessId) {}

    /// Whether the application at `at` has been granted something that it has not given back.
    fn holds(&self, _at: ProcessId) -> bool {
        false
    }

    /// Who still waits for an answer: nobody may when nothing more can happen.
    fn waiting(&self) -> Vec<ProcessId>;
}
