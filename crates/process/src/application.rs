//! The clients of an algorithm.

use std::fmt::Debug;
use std::hash::Hash;

use crate::{Process, ProcessId};

/// The clients at all processes, without time: which request each may make next, and which of them wait.
///
/// The checker tries each permitted request in every state, the simulator and the network make it after a
/// pause. So the same clients drive all three worlds.
pub trait Application<P: Process>: Clone + Eq + Hash + Debug {
    /// The request that the client at `at` may make now, if any.
    fn next(&self, at: ProcessId) -> Option<P::Request>;

    /// The client at `at` made a request.
    fn on_request(&mut self, at: ProcessId, request: &P::Request);

    /// The client at `at` got an indication.
    fn on_indication(&mut self, at: ProcessId, indication: &P::Indication);

    /// The process `at` crashed.
    fn on_crash(&mut self, _at: ProcessId) {}

    /// The process `at` restarted.
    fn on_restart(&mut self, _at: ProcessId) {}

    /// An event at `at` comes soon: a chance to prefetch the data of its client, in large groups.
    #[inline]
    fn prefetch(&self, _at: ProcessId) {}

    /// Whether the client at `at` has been granted something and has not released it.
    fn holds(&self, _at: ProcessId) -> bool {
        false
    }

    /// Whether the client at `at` must make its next request some day, as a holder must release. No client has to
    /// ask for anything: a state in which only such requests are left may be the end of a run.
    fn must_request(&self, at: ProcessId) -> bool {
        self.holds(at)
    }

    /// The processes whose clients wait for an indication. At the end of a run no client may wait.
    fn waiting(&self) -> Vec<ProcessId>;
}
