//! Who has a lock here can take it again without a message, and a task that does so again and again keeps
//! the runtime from looking at the network: requests of others would wait there unread.

use std::future::poll_fn;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};

/// How often those who were woken may pass something on while what is said waits for them.
const PASSES: u32 = 16;

/// How many times something was handed out here since others were last heard.
#[derive(Debug)]
pub(crate) struct Streak {
    count: AtomicU32,
    turns: u32,
    /// How many times in all.
    ever: AtomicU32,
}

impl Streak {
    pub(crate) fn new(turns: u32) -> Self {
        Self { count: AtomicU32::new(0), turns: turns.max(1), ever: AtomicU32::new(0) }
    }

    /// Something was handed out.
    pub(crate) fn one_more(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.ever.fetch_add(1, Ordering::Relaxed);
    }

    /// Lets those who were woken have their turn first, and those they pass something on to.
    pub(crate) async fn others_first(&self) {
        let mut others = OthersFirst::default();
        poll_fn(|task| others.poll(self, task)).await;
    }

    /// Others were heard.
    pub(crate) fn heard(&self) {
        self.count.store(0, Ordering::Relaxed);
    }

    fn is_long(&self) -> bool {
        self.count.load(Ordering::Relaxed) >= self.turns
    }

    /// Before something is asked for: after so many turns the network is looked at first.
    pub(crate) async fn pause(&self) {
        if self.is_long() {
            self.heard();
            tokio::task::yield_now().await;
        } else {
            tokio::task::coop::consume_budget().await;
        }
    }
}

/// Waits until those who were woken had their turn, and those they passed something on to. Unlike the
/// runtime's own way to do so, it does not look at the network in between: that is a system call.
#[derive(Default)]
pub(crate) struct OthersFirst {
    /// How often we went to the end of the queue, and how often in a row nothing was handed out meanwhile.
    passes: u32,
    quiet: u32,
    before: u32,
}

impl OthersFirst {
    pub(crate) fn poll(&mut self, streak: &Streak, task: &Context<'_>) -> Poll<()> {
        let ever = streak.ever.load(Ordering::Relaxed);
        if self.passes > 0 {
            self.quiet = if ever == self.before { self.quiet + 1 } else { 0 };
        }
        if self.quiet == 2 || self.passes == PASSES {
            return Poll::Ready(());
        }
        (self.passes, self.before) = (self.passes + 1, ever);
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
        let streak = Arc::new(Streak::new(8));
        let turns: Vec<Arc<Notify>> = (0..5).map(|_| Arc::default()).collect();
        for (mine, next) in turns.iter().zip(&turns[1..]) {
            let (streak, mine, next) = (streak.clone(), mine.clone(), next.clone());
            tokio::spawn(async move {
                mine.notified().await;
                streak.one_more();
                next.notify_one();
            });
        }
        tokio::task::yield_now().await;
        turns[0].notify_one();
        streak.others_first().await;
        let last = turns[4].notified();
        let mut last = std::pin::pin!(last);
        assert!(last.as_mut().enable(), "all four had their turn");
    }

    /// A task that takes turn after turn meets another, which runs only when the network was looked at.
    #[tokio::test]
    async fn after_so_many_turns_the_network_is_looked_at() {
        let streak = Streak::new(4);
        let (mut ours, theirs) = tokio::net::UnixStream::pair().unwrap();
        let other = tokio::spawn(async move {
            theirs.readable().await.unwrap();
        });
        tokio::task::yield_now().await;
        tokio::io::AsyncWriteExt::write_all(&mut ours, b"x").await.unwrap();
        let mut turns = 0;
        while !other.is_finished() {
            streak.pause().await;
            streak.one_more();
            turns += 1;
            assert!(turns < 100, "it is never looked at");
        }
        assert!(turns <= 3 * 4, "{turns}");
    }
}
