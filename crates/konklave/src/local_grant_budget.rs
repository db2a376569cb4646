//! Limit of consecutive local grants. A cached lock is granted without a message. A task that requests and
//! releases it in a loop keeps the runtime from polling the network, where requests of other nodes wait
//! unread.

use std::future::poll_fn;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};

/// How often woken tasks may hand a lock on while outgoing frames wait for them.
const PASSES: u32 = 16;

/// Counts the local grants since the last frame arrived.
#[derive(Debug)]
pub(crate) struct LocalGrantBudget {
    count: AtomicU32,
    limit: u32,
    /// All grants so far.
    total: AtomicU32,
}

impl LocalGrantBudget {
    pub(crate) fn new(limit: u32) -> Self {
        Self { count: AtomicU32::new(0), limit: limit.max(1), total: AtomicU32::new(0) }
    }

    /// A lock was granted locally.
    pub(crate) fn spend(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.total.fetch_add(1, Ordering::Relaxed);
    }

    /// Waits until woken tasks have run, and the tasks they wake by handing a lock on.
    pub(crate) async fn yield_to_woken(&self) {
        let mut others = YieldToWoken::default();
        poll_fn(|task| others.poll(self, task)).await;
    }

    /// A frame arrived, or the network was polled.
    pub(crate) fn reset(&self) {
        self.count.store(0, Ordering::Relaxed);
    }

    fn is_spent(&self) -> bool {
        self.count.load(Ordering::Relaxed) >= self.limit
    }

    /// Called before each request. When the budget is spent, lets the runtime poll the network first.
    pub(crate) async fn yield_if_spent(&self) {
        if self.is_spent() {
            self.reset();
            tokio::task::yield_now().await;
        } else {
            tokio::task::coop::consume_budget().await;
        }
    }
}

/// Waits until woken tasks have run, and the tasks they hand a lock to. Unlike the runtime's own `yield_now`,
/// it does not poll the network, which is a system call.
#[derive(Default)]
pub(crate) struct YieldToWoken {
    /// How often this task went to the end of the run queue; and how often in a row nothing was granted in
    /// between.
    passes: u32,
    quiet: u32,
    before: u32,
}

impl YieldToWoken {
    pub(crate) fn poll(&mut self, grant_budget: &LocalGrantBudget, task: &Context<'_>) -> Poll<()> {
        let total = grant_budget.total.load(Ordering::Relaxed);
        if self.passes > 0 {
            self.quiet = if total == self.before { self.quiet + 1 } else { 0 };
        }
        if self.quiet == 2 || self.passes == PASSES {
            return Poll::Ready(());
        }
        (self.passes, self.before) = (self.passes + 1, total);
        task.waker().wake_by_ref();
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::Notify;

    use super::*;

    #[tokio::test]
    async fn woken_tasks_run_before_yielding_task() {
        let grant_budget = Arc::new(LocalGrantBudget::new(8));
        let limit: Vec<Arc<Notify>> = (0..5).map(|_| Arc::default()).collect();
        for (mine, next) in limit.iter().zip(&limit[1..]) {
            let (grant_budget, mine, next) = (grant_budget.clone(), mine.clone(), next.clone());
            tokio::spawn(async move {
                mine.notified().await;
                grant_budget.spend();
                next.notify_one();
            });
        }
        tokio::task::yield_now().await;
        limit[0].notify_one();
        grant_budget.yield_to_woken().await;
        let last = limit[4].notified();
        let mut last = std::pin::pin!(last);
        assert!(last.as_mut().enable(), "all four had their turn");
    }

    #[tokio::test]
    async fn network_is_polled_when_budget_is_spent() {
        let grant_budget = LocalGrantBudget::new(4);
        let (mut ours, theirs) = tokio::net::UnixStream::pair().unwrap();
        let other = tokio::spawn(async move {
            theirs.readable().await.unwrap();
        });
        tokio::task::yield_now().await;
        tokio::io::AsyncWriteExt::write_all(&mut ours, b"x").await.unwrap();
        let mut limit = 0;
        while !other.is_finished() {
            grant_budget.yield_if_spent().await;
            grant_budget.spend();
            limit += 1;
            assert!(limit < 100, "it is never looked at");
        }
        assert!(limit <= 3 * 4, "{limit}");
    }
}
