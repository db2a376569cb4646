//! The tasks that a worker has accepted and not handled yet.
//!
//! A worker accepts messages even while it hands one over or sleeps. Otherwise all workers that start at
//! once would wait for each other, and each would regard its neighbour as failed.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::buffer::{deadline, is_over, wait};

/// A bounded queue between the accepting and the handling side of one worker.
pub(crate) struct Queue<T> {
    inner: Mutex<Inner<T>>,
    changed: Condvar,
    bound: usize,
}

struct Inner<T> {
    tasks: VecDeque<T>,
    ended: bool,
}

impl<T> Queue<T> {
    /// An empty queue for at most `bound` tasks.
    pub(crate) fn new(bound: usize) -> Self {
        let inner = Inner { tasks: VecDeque::new(), ended: false };
        Self { inner: Mutex::new(inner), changed: Condvar::new(), bound }
    }

    /// Waits for room and appends `task`. Returns the number of waiting tasks, or the task if the worker has ended.
    pub(crate) fn push(&self, task: T) -> Result<usize, T> {
        let mut inner = self.lock();
        while inner.tasks.len() >= self.bound && !inner.ended {
            inner = wait(&self.changed, inner, None);
        }
        if inner.ended {
            return Err(task);
        }
        inner.tasks.push_back(task);
        self.changed.notify_all();
        Ok(inner.tasks.len())
    }

    /// Waits for the next task; none after the end.
    pub(crate) fn next(&self) -> Option<T> {
        let mut inner = self.lock();
        loop {
            if inner.ended {
                return None;
            }
            if let Some(task) = inner.tasks.pop_front() {
                self.changed.notify_all();
                return Some(task);
            }
            inner = wait(&self.changed, inner, None);
        }
    }

    /// Rests for `pause`, or until the end.
    pub(crate) fn rest(&self, pause: Duration) {
        let deadline = deadline(pause);
        let mut inner = self.lock();
        while !inner.ended && !is_over(deadline) {
            inner = wait(&self.changed, inner, deadline);
        }
    }

    /// Ends the queue: no further task is handled. Returns the number of lost tasks.
    pub(crate) fn end(&self) -> usize {
        let mut inner = self.lock();
        inner.ended = true;
        self.changed.notify_all();
        std::mem::take(&mut inner.tasks).len()
    }

    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Instant;

    use super::*;

    #[test]
    fn tasks_come_out_in_the_order_they_went_in() {
        let queue = Queue::new(3);
        assert_eq!([1, 2, 3].map(|t| queue.push(t)), [Ok(1), Ok(2), Ok(3)]);
        assert_eq!([queue.next(), queue.next(), queue.next()], [Some(1), Some(2), Some(3)]);
    }

    #[test]
    fn a_full_queue_takes_the_next_task_when_one_is_handled() {
        let queue = Queue::new(1);
        assert_eq!(queue.push('a'), Ok(1));
        thread::scope(|s| {
            let accepting = s.spawn(|| queue.push('b'));
            assert_eq!(queue.next(), Some('a'));
            assert_eq!(accepting.join().unwrap(), Ok(1));
        });
        assert_eq!(queue.next(), Some('b'));
    }

    #[test]
    fn the_end_wakes_everyone_and_counts_the_lost() {
        let queue = Queue::new(2);
        assert_eq!([queue.push(1), queue.push(2)], [Ok(1), Ok(2)]);
        thread::scope(|s| {
            let accepting = s.spawn(|| queue.push(3));
            let resting = s.spawn(|| queue.rest(Duration::from_secs(20)));
            thread::sleep(Duration::from_millis(5));
            let began = Instant::now();
            assert_eq!(queue.end(), 2);
            assert_eq!(accepting.join().unwrap(), Err(3));
            resting.join().unwrap();
            assert!(began.elapsed() < Duration::from_secs(10));
        });
        assert_eq!(queue.next(), None);
        assert_eq!(queue.push(4), Err(4));
    }
}
