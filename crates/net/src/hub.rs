//! The one place where all steps of a run meet.

use std::sync::{Mutex, PoisonError};

use konklave_process::{Application, Meter, Monitor, Process};
use konklave_trace::Sink;
use tokio::sync::Notify;

use crate::judge::Judge;
use crate::node::{Event, Node, Stage};
use crate::transport::{Fates, Link};
use crate::{NetProcess, Warning};

/// Lets processes make their steps one after the other, each with all that is to be judged,
/// measured and written down about it. A step takes microseconds; all that takes time (waiting,
/// encoding, sending) happens outside the lock.
pub(crate) struct Hub<P: Process, A, M: Monitor<P>, T, S> {
    /// None when the run is over.
    judge: Mutex<Closable<P, A, M, T, S>>,
    /// Something happened after which nothing more can.
    pub(crate) quiet: Notify,
}

type Closable<P, A, M, T, S> = Option<Judge<P, A, M, T, S>>;

impl<P, A, M, T, S> Hub<P, A, M, T, S>
where
    P: NetProcess,
    A: Application<P>,
    M: Monitor<P>,
    T: Meter<P>,
    S: Sink,
{
    pub(crate) fn new(judge: Judge<P, A, M, T, S>) -> Self {
        Self { judge: Mutex::new(Some(judge)), quiet: Notify::new() }
    }

    /// Does something to the run; none when it is over.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut Judge<P, A, M, T, S>) -> R) -> Option<R> {
        // A step that panicked ends the run anyway; until then the others may go on.
        let mut guard = self.judge.lock().unwrap_or_else(PoisonError::into_inner);
        let judge = guard.as_mut()?;
        judge.look_at_the_clock();
        let result = act(judge);
        if judge.is_quiet() {
            self.quiet.notify_one();
        }
        Some(result)
    }

    /// Ends the run: no step is made after this one call that gets the judge.
    pub(crate) fn close(&self) -> Option<Judge<P, A, M, T, S>> {
        let mut judge = self.judge.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        judge.look_at_the_clock();
        Some(judge)
    }
}

impl<P, A, M, T, S> Stage<P> for Hub<P, A, M, T, S>
where
    P: NetProcess,
    A: Application<P> + Send,
    M: Monitor<P, Tag: Send> + Send,
    T: Meter<P> + Send,
    S: Sink + Send,
{
    fn step(&self, node: &mut Node<P>, event: Event<P>) -> bool {
        self.with(|judge| judge.step(node, event)).unwrap_or(false)
    }

    fn drained(&self, link: Link) {
        self.with(|judge| judge.drained(link));
    }
}

impl<P, A, M, T, S> Fates for Hub<P, A, M, T, S>
where
    P: NetProcess,
    A: Application<P> + Send,
    M: Monitor<P, Tag: Send> + Send,
    T: Meter<P> + Send,
    S: Sink + Send,
{
    fn lost(&self, id: u64) {
        self.with(|judge| judge.lose(id));
    }

    fn closed(&self, link: Link, last: u64) {
        self.with(|judge| judge.closed(link, last));
    }

    fn warn(&self, warning: Warning) {
        self.with(|judge| judge.warn(warning));
    }
}
