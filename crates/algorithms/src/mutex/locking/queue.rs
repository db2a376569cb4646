//! Who waits at an arbiter.

use std::fmt;

use konklave_process::{Timestamp, call_up};
use serde::{Serialize, Serializer};
use smallvec::SmallVec;

/// The requests that wait at an arbiter. They stand youngest first: the oldest comes and goes most
/// often, and at the end of a list nothing has to make room. Shown and recorded oldest first.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(in crate::mutex) struct Queue(SmallVec<[Waiting; 3]>);

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().rev()).finish()
    }
}

impl Serialize for Queue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().rev())
    }
}

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
        let index = self.find(request).err()?;
        let older = self.0.len() - index;
        self.0.insert(index, Waiting { request, failed });
        Some(older)
    }

    /// Calls them up ahead of their use.
    pub(in crate::mutex) fn call_up(&self) {
        call_up(&self.0);
    }

    /// The oldest request.
    pub(in crate::mutex) fn head(&self) -> Option<Timestamp> {
        self.0.last().map(|waiting| waiting.request)
    }

    /// Takes the oldest request out.
    pub(in crate::mutex) fn pop(&mut self) -> Option<Timestamp> {
        self.0.pop().map(|waiting| waiting.request)
    }

    /// Takes `request` out; false if it does not wait.
    pub(in crate::mutex) fn remove(&mut self, request: Timestamp) -> bool {
        let found = self.find(request);
        found.map(|index| self.0.remove(index)).is_ok()
    }

    /// The request behind `place` others, if its owner has yet to be told that it has to wait.
    /// From now on it was told.
    pub(in crate::mutex) fn fail(&mut self, place: usize) -> Option<Timestamp> {
        let index = self.0.len().checked_sub(place + 1)?;
        let waiting = self.0.get_mut(index)?;
        let told = std::mem::replace(&mut waiting.failed, true);
        (!told).then_some(waiting.request)
    }

    pub(in crate::mutex) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn find(&self, request: Timestamp) -> Result<usize, usize> {
        self.0.binary_search_by(|waiting| request.cmp(&waiting.request))
    }
}
