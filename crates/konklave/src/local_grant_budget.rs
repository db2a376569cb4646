//! Who has a lock here can take it again without a message, and a task that does so again and again keeps
//! the runtime from looking at the network: requests of others would wait there unread.

use std::future::poll_fn;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};

/// How often those who were woken may pass something on while what is said waits for them.
const PASSES: u32 = 16;

/// How many times something was handed out here since others were last reset.
#[derive(Debug)]
pub(crate) struct LocalGrantBudget {
    count: AtomicU32,
    limit: u32,
    /// How many times in all.
    total: AtomicU32,
}

impl LocalGrantBudget {
    pub(crate) fn new(limit: u32) -> Self {
        Self { count: AtomicU32::new(0), limit: limit.max(1), total: AtomicU32::new(0) }
    }

    /// Something was handed out.
    pub(crate) fn spend(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.total.fetch_add(1, Ordering::Relaxed);
    }

    /// Lets those who were woken have their turn first, and those they pass something on to.
    pub(crate) async fn yield_to_woken(&self) {
        let mut others = YieldToWoken::default();
        poll_fn(|task| others.poll(self, task)).await;
    }

    /// Others were reset.
    pub(crate) fn reset(&self) {
        self.count.store(0, Ordering::Relaxed);
    }

    fn is_spent(&self) -> bool {
        self.count.load(Ordering::Relaxed) >= self.limit
    }

    /// Before something is asked for: after so many limit the network is looked at first.
    pub(crate) async fn yield_if_spent(&self) {
        if self.is_spent() {
            self.reset();
            tokio::task::yield_now().await;
        } else {
            tokio::task::coop::consume_budget().await;
        }
    }
}

/// Waits until those who were woken had their turn, and those they passed something on to. Unlike the
/// runtime's own way to do so, it does not look at the network in between: that is a system call.
#[derive(Default)]
pub(crate) struct YieldToWoken {
    /// How often we went to the end of the queue, and how often in a row nothing was handed out meanwhile.
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

    /// One passes it on to the next, who is woken by that; what is to be said waits for all of them.
    #[tokio::test]
    async fn those_who_were_woken_and_whom_they_pass_it_on_to_come_first() {
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

    /// A task that takes turn after turn meets another, which runs only when the network was looked at.
    #[tokio::test]
    async fn after_so_many_turns_the_network_is_looked_at() {
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
