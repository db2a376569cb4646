//! Who has a lock here can take it again without a message, and a task that does so again and again keeps
//! the runtime from looking at the network: requests of others would wait there unread.

use std::sync::atomic::{AtomicU32, Ordering};

/// How many times something was handed out here since others were last heard.
#[derive(Debug)]
pub(crate) struct Streak {
    count: AtomicU32,
    turns: u32,
}

impl Streak {
    pub(crate) fn new(turns: u32) -> Self {
        Self { count: AtomicU32::new(0), turns: turns.max(1) }
    }

    /// Something was handed out.
    pub(crate) fn one_more(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
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

#[cfg(test)]
mod tests {
    use super::*;

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
