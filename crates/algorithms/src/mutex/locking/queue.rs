//! Who waits at an arbiter.

use konklave_process::{Timestamp, call_up};
use serde::Serialize;
use smallvec::SmallVec;

/// The requests that wait at an arbiter, oldest first.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug, Serialize)]
#[serde(transparent)]
pub(in crate::mutex) struct Queue(SmallVec<[Waiting; 3]>);

/// A request that waits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize)]
struct Waiting {
    request: Timestamp,
    /// Whether its owner was told that it has to wait.
    failed: bool,
}

impl Queue {
    /// Lets `request` wait; returns how many go before it. None if it waits already.
    pub(in crate::mutex) fn insert(&mut self, request: Timestamp, failed: bool) -> Option<usize> {
        let place = self.find(request).err()?;
        self.0.insert(place, Waiting { request, failed });
        Some(place)
    }

    /// Calls them up ahead of their use.
    pub(in crate::mutex) fn call_up(&self) {
        call_up(&self.0);
    }

    /// The oldest request.
    pub(in crate::mutex) fn head(&self) -> Option<Timestamp> {
        self.0.first().map(|waiting| waiting.request)
    }

    /// Takes the oldest request out.
    pub(in crate::mutex) fn pop(&mut self) -> Option<Timestamp> {
        let head = self.head()?;
        self.0.remove(0);
        Some(head)
    }

    /// Takes `request` out; false if it does not wait.
    pub(in crate::mutex) fn remove(&mut self, request: Timestamp) -> bool {
        let found = self.find(request);
        found.map(|place| self.0.remove(place)).is_ok()
    }

    /// The request behind `place` others, if its owner has yet to be told that it has to wait.
    /// From now on it was told.
    pub(in crate::mutex) fn fail(&mut self, place: usize) -> Option<Timestamp> {
        let waiting = self.0.get_mut(place)?;
        let told = std::mem::replace(&mut waiting.failed, true);
        (!told).then_some(waiting.request)
    }

    pub(in crate::mutex) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn find(&self, request: Timestamp) -> Result<usize, usize> {
        self.0.binary_search_by_key(&request, |waiting| waiting.request)
    }
}
