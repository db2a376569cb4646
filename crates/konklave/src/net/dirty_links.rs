//! Links that have got frames in a step, and the order in which their writers are woken.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::link::Link;

/// The links that have got frames in this step, in order.
#[derive(Default)]
pub(super) struct DirtyLinks(Mutex<Vec<Arc<Link>>>);

impl DirtyLinks {
    fn links(&self) -> MutexGuard<'_, Vec<Arc<Link>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn note(&self, to: &Arc<Link>) {
        let mut links = self.links();
        if !links.iter().any(|other| Arc::ptr_eq(other, to)) {
            links.push(to.clone());
        }
    }

    /// Wakes the writers at the end of a step, the last link first. A session that releases a lock and
    /// requests it again hands the lock over before it sends the request. If the lock's receiver ran first,
    /// it might take this processor and answer others before the request has left.
    pub(super) fn wake(&self) {
        self.links().drain(..).rev().for_each(|link| link.wake());
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use konklave_algorithms::group::ViewId;
    use konklave_process::ProcessId;

    use super::*;
    use crate::net::link::tests::hello;
    use crate::shared::Flush;
    use crate::wire::Frame;

    #[tokio::test]
    async fn last_link_is_woken_first() {
        let dirty_links = DirtyLinks::default();
        let written = Arc::new(Mutex::new(Vec::new()));
        let links: Vec<Arc<Link>> = (0..3).map(|_| Arc::new(Link::new())).collect();
        for (i, link) in links.iter().enumerate() {
            link.attach(&hello(7), None, ProcessId(0), Duration::from_secs(1));
            let (link, written) = (link.clone(), written.clone());
            tokio::spawn(async move {
                loop {
                    poll_fn(|task| link.poll_writable(1, task)).await;
                    written.lock().unwrap().push(i);
                }
            });
        }
        tokio::task::yield_now().await;
        written.lock().unwrap().clear();
        let frame = Frame::Ping { view: ViewId::default(), stamp: 0, lifted_sent: 0 };
        for i in [1, 2, 0, 1] {
            links[i].push(&frame, Flush::Now).unwrap();
            dirty_links.note(&links[i]);
        }
        dirty_links.wake();
        tokio::task::yield_now().await;
        assert_eq!(*written.lock().unwrap(), [0, 2, 1], "and everyone once");
        dirty_links.wake();
        tokio::task::yield_now().await;
        assert_eq!(written.lock().unwrap().len(), 3, "a step is over when it is over");
    }
}
