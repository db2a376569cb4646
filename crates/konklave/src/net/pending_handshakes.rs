//! Accepted connections whose handshake is not complete.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// The most pending handshakes.
const AT_A_TIME: usize = 64;

/// Hazard: clients that connect and send nothing keep members out. Rule: beyond the limit, the oldest
/// handshake is evicted; a member completes its own within moments.
#[derive(Default)]
pub(super) struct PendingHandshakes(Mutex<VecDeque<Arc<Notify>>>);

/// One pending handshake; it ends when dropped.
pub(super) struct PendingHandshake {
    all: Arc<PendingHandshakes>,
    go: Arc<Notify>,
}

impl PendingHandshakes {
    fn waiting(&self) -> MutexGuard<'_, VecDeque<Arc<Notify>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn enter(self: &Arc<Self>) -> PendingHandshake {
        let go = Arc::<Notify>::default();
        let mut waiting = self.waiting();
        if waiting.len() == AT_A_TIME
            && let Some(oldest) = waiting.pop_front()
        {
            oldest.notify_one();
        }
        waiting.push_back(go.clone());
        PendingHandshake { all: self.clone(), go }
    }
}

impl PendingHandshake {
    /// Returns when this handshake is evicted; never after its end.
    pub(super) fn evicted(&self) -> impl Future<Output = ()> + Send + use<> {
        let go = self.go.clone();
        async move { go.notified().await }
    }
}

impl Drop for PendingHandshake {
    fn drop(&mut self) {
        self.all.waiting().retain(|go| !Arc::ptr_eq(go, &self.go));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn oldest_handshake_is_evicted_beyond_limit() {
        let all = Arc::<PendingHandshakes>::default();
        let mut inside: Vec<PendingHandshake> = (0..AT_A_TIME).map(|_| all.enter()).collect();
        let goes = |stranger: &PendingHandshake| {
            let mut gone = std::pin::pin!(stranger.go.notified());
            gone.as_mut().enable()
        };
        assert!(!inside.iter().any(goes));
        drop(inside.remove(1));
        inside.push(all.enter());
        assert!(!inside.iter().any(goes), "one has introduced itself");
        inside.push(all.enter());
        let gone: Vec<usize> = (0..inside.len()).filter(|i| goes(&inside[*i])).collect();
        assert_eq!(gone, [0]);
        assert_eq!(all.waiting().len(), AT_A_TIME);
    }
}
