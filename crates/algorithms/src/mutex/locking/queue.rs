//! The queue of an arbiter.

use std::fmt;

use konklave_process::Timestamp;
use serde::{Serialize, Serializer};
use smallvec::SmallVec;

use super::search::{first_not, prefetch_search};

/// The requests that wait at an arbiter, youngest first: the oldest request comes and goes most often, and at the
/// end of a list no other element moves. Stories and recordings show them oldest first.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub(in crate::mutex) struct Queue {
    requests: SmallVec<[Timestamp; 3]>,
    /// The requests whose owners do not yet know that they must wait, oldest first. It is hardly ever another
    /// request than the oldest.
    untold: SmallVec<[Timestamp; 1]>,
}

/// A request that waits, as it is shown.
#[derive(Debug, Serialize)]
struct Waiting {
    request: Timestamp,
    /// Whether its owner was told that it has to wait.
    failed: bool,
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.waiting()).finish()
    }
}

impl Serialize for Queue {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.waiting())
    }
}

impl Queue {
    /// Lets `request` wait; returns how many go before it. None if it waits already.
    pub(in crate::mutex) fn insert(&mut self, request: Timestamp, failed: bool) -> Option<usize> {
        let index = self.find(request).err()?;
        let older = self.requests.len() - index;
        self.requests.insert(index, request);
        if !failed && let Err(i) = self.untold.binary_search(&request) {
            self.untold.insert(i, request);
        }
        Some(older)
    }

    /// Calls them up ahead of their use.
    pub(in crate::mutex) fn prefetch(&self) {
        prefetch_search(&self.requests);
    }

    /// The oldest request.
    pub(in crate::mutex) fn head(&self) -> Option<Timestamp> {
        self.requests.last().copied()
    }

    /// Takes the oldest request out.
    pub(in crate::mutex) fn pop(&mut self) -> Option<Timestamp> {
        let request = self.requests.pop()?;
        self.tell(request);
        Some(request)
    }

    /// Takes `request` out; false if it does not wait.
    pub(in crate::mutex) fn remove(&mut self, request: Timestamp) -> bool {
        let Ok(index) = self.find(request) else { return false };
        self.requests.remove(index);
        self.tell(request);
        true
    }

    /// The request behind `place` others, if its owner has yet to be told that it has to wait.
    /// From now on it was told.
    pub(in crate::mutex) fn fail(&mut self, place: usize) -> Option<Timestamp> {
        let index = self.requests.len().checked_sub(place + 1)?;
        let request = self.requests[index];
        self.tell(request).then_some(request)
    }

    pub(in crate::mutex) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Nobody has yet to be told of `request`; false if nobody had.
    fn tell(&mut self, request: Timestamp) -> bool {
        let found = self.untold.binary_search(&request);
        found.map(|i| self.untold.remove(i)).is_ok()
    }

    fn find(&self, request: Timestamp) -> Result<usize, usize> {
        let index = first_not(&self.requests, |waiting| *waiting > request);
        if self.requests.get(index) == Some(&request) { Ok(index) } else { Err(index) }
    }

    /// Oldest first.
    fn waiting(&self) -> impl Iterator<Item = Waiting> {
        self.requests.iter().rev().map(|&request| Waiting {
            request,
            failed: self.untold.binary_search(&request).is_err(),
        })
    }
}
