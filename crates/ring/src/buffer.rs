//! The one-slot buffer between two workers, with hand-over.
//!
//! A writer waits for the slot and then, if it wants, until the receiver has taken *its* message.
//! The printed code of the report has three faults here, which this one avoids:
//!
//! - a flag said "taken" of somebody else's message: here each message has a ticket;
//! - nothing limited the wait for the slot: here one deadline covers slot and hand-over;
//! - a message that timed out stayed in the slot and was taken later, while its sender had sent it
//!   elsewhere: here the sender withdraws it, and if it is gone by then, it was taken.

use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A buffer that holds at most one message.
pub struct Buffer<T> {
    inner: Mutex<Inner<T>>,
    /// The slot was filled, or there is nothing to wait for any more.
    filled: Condvar,
    /// The slot was emptied, or there is nothing to wait for any more.
    emptied: Condvar,
}

struct Inner<T> {
    slot: Option<(Ticket, T)>,
    next_ticket: Ticket,
    /// The receiver failed: nobody takes any more, and nobody is told.
    abandoned: bool,
    /// The receiver stopped in an orderly way: writers need not wait.
    closed: bool,
}

/// Names one stored message. No two messages of a buffer have the same.
type Ticket = u64;

/// How a message fared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum HandOver<T> {
    /// It was taken; or, for a plain [`Buffer::put`], it is in the slot.
    Taken,
    /// Time ran out. The receiver has not seen the message and never will: here it is again.
    TimedOut(T),
    /// The buffer was closed. The receiver has not seen the message and never will.
    Closed(T),
}

impl<T> Buffer<T> {
    /// An empty buffer.
    pub fn new() -> Self {
        Self {
            inner: Mutex::new(Inner {
                slot: None,
                next_ticket: 0,
                abandoned: false,
                closed: false,
            }),
            filled: Condvar::new(),
            emptied: Condvar::new(),
        }
    }

    /// Waits for the slot and stores `message` there.
    pub fn put(&self, message: T, timeout: Duration) -> HandOver<T> {
        match self.store(message, deadline(timeout)) {
            Ok(_) => HandOver::Taken,
            Err(refused) => refused,
        }
    }

    /// Waits for the slot, stores `message` and waits until the receiver has taken it.
    pub fn put_and_wait(&self, message: T, timeout: Duration) -> HandOver<T> {
        let deadline = deadline(timeout);
        let (mut inner, ticket) = match self.store(message, deadline) {
            Ok(stored) => stored,
            Err(refused) => return refused,
        };
        loop {
            // Nobody but us withdraws our message: if it is gone, it was taken.
            if inner.slot.as_ref().is_none_or(|(t, _)| *t != ticket) {
                return HandOver::Taken;
            }
            let closed = inner.closed;
            if closed || is_over(deadline) {
                let (_, message) = inner.slot.take().expect("our message is in the slot");
                self.emptied.notify_all();
                return if closed {
                    HandOver::Closed(message)
                } else {
                    HandOver::TimedOut(message)
                };
            }
            inner = wait(&self.emptied, inner, deadline);
        }
    }

    /// Waits for a message and takes it; none once the receiver is gone or the buffer is closed
    /// and empty.
    pub fn take(&self) -> Option<T> {
        let mut inner = self.lock();
        loop {
            if inner.abandoned {
                return None;
            }
            if let Some((_, message)) = inner.slot.take() {
                self.emptied.notify_all();
                return Some(message);
            }
            if inner.closed {
                return None;
            }
            inner = wait(&self.filled, inner, None);
        }
    }

    /// The receiver fails: from now on nothing is taken, and writers find out by waiting.
    pub fn abandon(&self) {
        self.lock().abandoned = true;
        self.filled.notify_all();
    }

    /// The receiver stops: writers are sent away, what a plain `put` left may still be taken.
    pub fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_all();
        self.emptied.notify_all();
    }

    /// Whether a message waits in the slot.
    pub fn is_full(&self) -> bool {
        self.lock().slot.is_some()
    }

    /// Whether the receiver has failed.
    pub fn is_abandoned(&self) -> bool {
        self.lock().abandoned
    }

    fn store(
        &self,
        message: T,
        deadline: Option<Instant>,
    ) -> Result<(MutexGuard<'_, Inner<T>>, Ticket), HandOver<T>> {
        let mut inner = self.lock();
        loop {
            if inner.closed {
                return Err(HandOver::Closed(message));
            }
            if inner.slot.is_none() {
                break;
            }
            if is_over(deadline) {
                return Err(HandOver::TimedOut(message));
            }
            inner = wait(&self.emptied, inner, deadline);
        }
        let ticket = inner.next_ticket;
        inner.next_ticket += 1;
        inner.slot = Some((ticket, message));
        self.filled.notify_all();
        Ok((inner, ticket))
    }

    fn lock(&self) -> MutexGuard<'_, Inner<T>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> Default for Buffer<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffer").field("full", &self.is_full()).finish_non_exhaustive()
    }
}

/// When `timeout` from now is over; none where that is beyond all clocks.
pub(crate) fn deadline(timeout: Duration) -> Option<Instant> {
    Instant::now().checked_add(timeout)
}

pub(crate) fn is_over(deadline: Option<Instant>) -> bool {
    deadline.is_some_and(|d| Instant::now() >= d)
}

/// Waits for a change or until `deadline`; the caller looks which it was.
pub(crate) fn wait<'a, T>(
    changed: &Condvar,
    guard: MutexGuard<'a, T>,
    deadline: Option<Instant>,
) -> MutexGuard<'a, T> {
    match deadline {
        None => changed.wait(guard).unwrap_or_else(PoisonError::into_inner),
        Some(deadline) => {
            let left = deadline.saturating_duration_since(Instant::now());
            changed.wait_timeout(guard, left).unwrap_or_else(PoisonError::into_inner).0
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;

    const LONG: Duration = Duration::from_secs(20);
    const SHORT: Duration = Duration::from_millis(20);

    #[test]
    fn a_plain_put_does_not_wait_for_the_receiver() {
        let buffer = Buffer::new();
        assert_eq!(buffer.put("start", LONG), HandOver::Taken);
        assert_eq!(buffer.take(), Some("start"));
    }

    #[test]
    fn a_hand_over_ends_when_the_receiver_has_taken() {
        let buffer = Buffer::new();
        thread::scope(|s| {
            let sender = s.spawn(|| buffer.put_and_wait(7, LONG));
            assert_eq!(buffer.take(), Some(7));
            assert_eq!(sender.join().unwrap(), HandOver::Taken);
        });
    }

    /// R1: the neighbour waits for the slot while the controller's message is taken from it.
    #[test]
    fn the_taking_of_another_message_does_not_end_a_hand_over() {
        let buffer = Buffer::new();
        let told = AtomicBool::new(false);
        assert_eq!(buffer.put("controller", LONG), HandOver::Taken);
        thread::scope(|s| {
            let neighbour = s.spawn(|| {
                let fate = buffer.put_and_wait("neighbour", LONG);
                told.store(true, Ordering::SeqCst);
                fate
            });
            thread::sleep(SHORT);
            assert_eq!(buffer.take(), Some("controller"));
            while !buffer.is_full() {
                thread::yield_now();
            }
            thread::sleep(SHORT);
            assert!(!told.load(Ordering::SeqCst), "told taken while the message is in the slot");
            assert_eq!(buffer.take(), Some("neighbour"));
            assert_eq!(neighbour.join().unwrap(), HandOver::Taken);
        });
    }

    /// Rule R1 with several senders: when `put` reports "taken", the slot has no message of this sender any more.
    #[test]
    fn nobody_is_told_taken_before_the_own_message_was_taken() {
        let buffer = Buffer::new();
        thread::scope(|s| {
            for sender in 0..4 {
                let buffer = &buffer;
                s.spawn(move || {
                    for i in 0..500 {
                        let message = sender * 1000 + i;
                        if i % 3 == 0 {
                            assert_eq!(buffer.put(message, LONG), HandOver::Taken);
                        } else {
                            assert_eq!(buffer.put_and_wait(message, LONG), HandOver::Taken);
                            let inner = buffer.lock();
                            assert!(inner.slot.as_ref().is_none_or(|(_, m)| *m != message));
                        }
                    }
                });
            }
            let received: BTreeSet<u32> = (0..2000).map(|_| buffer.take().unwrap()).collect();
            assert_eq!(received.len(), 2000);
        });
    }

    /// R2: the receiver is dead and its slot full.
    #[test]
    fn the_deadline_also_covers_the_wait_for_the_slot() {
        let buffer = Buffer::new();
        buffer.abandon();
        assert_eq!(buffer.put("left behind", LONG), HandOver::Taken);
        let began = Instant::now();
        assert_eq!(buffer.put("stop", SHORT), HandOver::TimedOut("stop"));
        assert_eq!(buffer.put_and_wait("propose", SHORT), HandOver::TimedOut("propose"));
        assert!(began.elapsed() >= 2 * SHORT && began.elapsed() < LONG);
    }

    /// R2: what timed out does not block the slot for the next one.
    #[test]
    fn a_message_that_timed_out_leaves_the_slot() {
        let buffer = Buffer::new();
        assert_eq!(buffer.put_and_wait(1, SHORT), HandOver::TimedOut(1));
        assert!(!buffer.is_full());
        assert_eq!(buffer.put(2, Duration::ZERO), HandOver::Taken);
        assert_eq!(buffer.take(), Some(2));
    }

    /// R3: receiver and deadline race, thousands of times.
    #[test]
    fn message_after_its_timeout_is_never_taken_and_none_is_taken_twice() {
        let buffer = Buffer::new();
        let (told_taken, timed_out, received) = thread::scope(|s| {
            let receiver = s.spawn(|| {
                let mut received = Vec::new();
                while let Some(message) = buffer.take() {
                    received.push(message);
                    // About as slow as the senders are patient.
                    thread::sleep(Duration::from_micros(u64::from(message % 7) * 20));
                }
                received
            });
            let senders: Vec<_> = (0..3u32)
                .map(|sender| {
                    let buffer = &buffer;
                    s.spawn(move || {
                        let (mut taken, mut timed_out) = (vec![], vec![]);
                        for i in 0..800u32 {
                            let message = sender * 10_000 + i;
                            let patience = Duration::from_micros(u64::from(i % 11) * 20);
                            match buffer.put_and_wait(message, patience) {
                                HandOver::Taken => taken.push(message),
                                HandOver::TimedOut(back) => timed_out.push(back),
                                HandOver::Closed(_) => unreachable!("nobody closes it yet"),
                            }
                        }
                        (taken, timed_out)
                    })
                })
                .collect();
            let (mut taken, mut timed_out) = (vec![], vec![]);
            for sender in senders {
                let (mut a, mut b) = sender.join().unwrap();
                taken.append(&mut a);
                timed_out.append(&mut b);
            }
            buffer.close();
            (taken, timed_out, receiver.join().unwrap())
        });
        assert_eq!(told_taken.len() + timed_out.len(), 2400);
        let mut received = received;
        let mut told_taken = told_taken;
        received.sort_unstable();
        told_taken.sort_unstable();
        assert_eq!(received, told_taken);
    }

    #[test]
    fn a_failed_receiver_takes_nothing_more_and_its_writers_wait_in_vain() {
        let buffer = Buffer::new();
        thread::scope(|s| {
            let receiver = s.spawn(|| buffer.take());
            thread::sleep(Duration::from_millis(5));
            buffer.abandon();
            assert_eq!(receiver.join().unwrap(), None);
        });
        assert_eq!(buffer.put_and_wait('x', SHORT), HandOver::TimedOut('x'));
    }

    #[test]
    fn closing_sends_waiting_writers_away_at_once() {
        let buffer = Buffer::new();
        thread::scope(|s| {
            let in_the_slot = s.spawn(|| buffer.put_and_wait('x', LONG));
            while !buffer.is_full() {
                thread::yield_now();
            }
            let before_the_slot = s.spawn(|| buffer.put('y', LONG));
            thread::sleep(Duration::from_millis(5));
            buffer.close();
            assert_eq!(in_the_slot.join().unwrap(), HandOver::Closed('x'));
            assert_eq!(before_the_slot.join().unwrap(), HandOver::Closed('y'));
        });
        assert_eq!(buffer.take(), None);
    }

    #[test]
    fn message_put_before_closing_can_still_be_taken() {
        let buffer = Buffer::new();
        buffer.put("stop", LONG);
        buffer.close();
        assert_eq!(buffer.take(), Some("stop"));
        assert_eq!(buffer.take(), None);
    }
}
