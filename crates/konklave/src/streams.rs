//! Streams of a node: its events, and whether a majority answers.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use tokio::sync::{broadcast, watch};

use crate::shared::Readiness;
use crate::status::Event;

/// The next item, and the receiver for later ones.
type Next<R, T> = Pin<Box<dyn Future<Output = (Option<T>, R)> + Send + Sync>>;

/// A receiver whose next item is awaited: its channel has only an `async` method, and a stream is polled.
struct Polled<R, T> {
    next: Option<Next<R, T>>,
}

impl<R: 'static, T: 'static> Polled<R, T> {
    fn poll<F>(&mut self, task: &mut Context<'_>, receive: fn(R) -> F) -> Poll<Option<T>>
    where
        F: Future<Output = (Option<T>, R)> + Send + Sync + 'static,
    {
        let Some(next) = &mut self.next else { return Poll::Ready(None) };
        let (item, receiver) = ready!(next.as_mut().poll(task));
        // After its end, a stream stays ended.
        self.next = item.is_some().then(|| Box::pin(receive(receiver)) as _);
        Poll::Ready(item)
    }
}

/// A stream of events.
pub struct Events(Polled<broadcast::Receiver<Event>, Event>);

impl Events {
    pub(crate) fn new(events: broadcast::Receiver<Event>) -> Self {
        Self(Polled { next: Some(Box::pin(receive_event(events))) })
    }

    /// The next event; `None` when the node has ended. A slow reader misses events, and gets
    /// [`Event::Missed`] with their number. Cancel safe.
    pub async fn next(&mut self) -> Option<Event> {
        std::future::poll_fn(|task| self.0.poll(task, receive_event)).await
    }
}

async fn receive_event(
    mut events: broadcast::Receiver<Event>,
) -> (Option<Event>, broadcast::Receiver<Event>) {
    let event = match events.recv().await {
        Ok(event) => Some(event),
        Err(broadcast::error::RecvError::Lagged(missed)) => Some(Event::Missed { missed }),
        Err(broadcast::error::RecvError::Closed) => None,
    };
    (event, events)
}

impl Stream for Events {
    type Item = Event;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Event>> {
        self.0.poll(task, receive_event)
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Events")
    }
}

/// A receiver, and the state it told last.
type Readings = (watch::Receiver<Readiness>, Option<Readiness>);

/// A stream that tells whether a majority answers.
pub struct QuorumWatch(Polled<Readings, bool>);

impl QuorumWatch {
    pub(crate) fn new(readiness: watch::Receiver<Readiness>) -> Self {
        Self(Polled { next: Some(Box::pin(receive_quorum((readiness, None)))) })
    }

    /// Whether a majority answers: the present state first, then each change. Short changes may be missed.
    /// `None`: the node has ended. Cancel safe.
    pub async fn next(&mut self) -> Option<bool> {
        std::future::poll_fn(|task| self.0.poll(task, receive_quorum)).await
    }
}

async fn receive_quorum((mut readiness, last): Readings) -> (Option<bool>, Readings) {
    let state = readiness.wait_for(|state| Some(*state) != last).await.ok().map(|state| *state);
    let answers = match state {
        Some(Readiness::Ready) => Some(true),
        Some(Readiness::Waiting) => Some(false),
        Some(Readiness::Left) | None => None,
    };
    (answers, (readiness, state))
}

impl Stream for QuorumWatch {
    type Item = bool;

    fn poll_next(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<bool>> {
        self.0.poll(task, receive_quorum)
    }
}

impl fmt::Debug for QuorumWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("QuorumWatch")
    }
}
