//! Connections that have a place for a short time only: clients that have not introduced themselves, and
//! requests over HTTP.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Hazard: clients that connect and send nothing take all descriptors of the agent. Rule: beyond the limit,
/// the oldest newcomer is sent away; a client is done within moments.
pub(crate) struct Newcomers {
    most: usize,
    waiting: Mutex<VecDeque<Arc<Notify>>>,
}

/// A newcomer, until it is dropped.
pub(crate) struct Newcomer {
    all: Arc<Newcomers>,
    go: Arc<Notify>,
}

impl Newcomers {
    /// At most this many at a time.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, waiting: Mutex::default() })
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Arc<Notify>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.waiting().len()
    }

    pub(crate) fn enter(self: &Arc<Self>) -> Newcomer {
        let go = Arc::<Notify>::default();
        let mut waiting = self.waiting();
        if waiting.len() >= self.most
            && let Some(oldest) = waiting.pop_front()
        {
            oldest.notify_one();
        }
        waiting.push_back(Arc::clone(&go));
        Newcomer { all: Arc::clone(self), go }
    }
}

impl Newcomer {
    /// Returns when it must go.
    pub(crate) fn evicted(&self) -> impl Future<Output = ()> + Send + use<> {
        let go = Arc::clone(&self.go);
        async move { go.notified().await }
    }
}

impl Drop for Newcomer {
    fn drop(&mut self) {
        self.all.waiting().retain(|go| !Arc::ptr_eq(go, &self.go));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn oldest_newcomer_goes_beyond_limit() {
        let all = Newcomers::new(20);
        let goes = |newcomer: &Newcomer| std::pin::pin!(newcomer.go.notified()).as_mut().enable();
        let mut inside: Vec<Newcomer> = (0..20).map(|_| all.enter()).collect();
        drop(inside.remove(3));
        inside.push(all.enter());
        assert!(!inside.iter().any(goes), "one has introduced itself");
        inside.push(all.enter());
        assert_eq!(inside.iter().position(goes), Some(0));
    }
}
