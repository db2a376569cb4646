//! Several locks at once: all or none.

use std::sync::Arc;
use std::time::Duration;

use crate::lock::{Guard, Handover, LockRequest};
use crate::{Error, Session};

/// A request for several locks.
#[derive(Clone, Debug)]
#[must_use]
pub struct LockAll {
    session: Session,
    names: Vec<String>,
    shared: bool,
    label: Option<Arc<str>>,
    handover: Handover,
    timeout: Option<Duration>,
}

impl LockAll {
    pub(crate) fn new<S: AsRef<str>>(session: Session, names: impl IntoIterator<Item = S>) -> Self {
        let mut names: Vec<String> = names.into_iter().map(|n| n.as_ref().to_owned()).collect();
        names.sort_unstable();
        names.dedup();
        let handover = Handover::default();
        Self { session, names, shared: false, label: None, handover, timeout: None }
    }

    /// Requests all of them shared.
    pub fn shared(mut self) -> Self {
        self.shared = true;
        self
    }

    /// A label for `status` and `why`, cut off after 255 bytes.
    pub fn label(mut self, label: impl Into<Arc<str>>) -> Self {
        self.label = Some(label.into());
        self
    }

    fn one(&self, name: &str) -> LockRequest {
        let mut request = self.session.lock(name).handover(self.handover);
        if self.shared {
            request = request.shared();
        }
        match &self.label {
            Some(label) => request.label(label.clone()),
            None => request,
        }
    }

    /// Gives up after this time, for all of them together.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// When the next requests are served if this node falls silent.
    pub fn handover(mut self, handover: Handover) -> Self {
        self.handover = handover;
        self
    }

    /// Waits for all of them.
    pub async fn acquire(self) -> Result<Guards, Error> {
        let clock = self.session.shared().clock.clone();
        let end = self.timeout.map(|timeout| clock.now().saturating_add(timeout));
        let mut guards = Vec::with_capacity(self.names.len());
        for name in &self.names {
            let mut request = self.one(name);
            if let Some(end) = end {
                request = request.timeout(end.saturating_sub(clock.now()));
            }
            guards.push(request.acquire().await?);
        }
        Guards::new(guards)
    }

    /// Takes all of them if every one is free.
    pub async fn try_acquire(self) -> Result<Guards, Error> {
        let mut guards = Vec::with_capacity(self.names.len());
        for name in &self.names {
            guards.push(self.one(name).try_acquire().await?);
        }
        Guards::new(guards)
    }
}

/// Several grants, held together.
#[derive(Debug)]
#[must_use = "locks are given back when their guards are dropped"]
pub struct Guards(Vec<Guard>);

impl Guards {
    fn new(guards: Vec<Guard>) -> Result<Self, Error> {
        // The first lock may have been lost while the last one was awaited.
        match guards.iter().find(|g| g.valid_for().is_zero()) {
            Some(lost) => Err(Error::Lost(lost.name().to_owned())),
            None => Ok(Self(guards)),
        }
    }

    /// The guards, ordered by name.
    pub fn iter(&self) -> impl Iterator<Item = &Guard> {
        self.0.iter()
    }

    /// How long all of them are certain.
    pub fn valid_for(&self) -> Duration {
        self.0.iter().map(Guard::valid_for).min().unwrap_or(Duration::MAX)
    }

    /// Returns when one of them is lost.
    pub async fn lost(&self) {
        let mut watches: Vec<_> = self.0.iter().map(|g| Box::pin(g.watch())).collect();
        std::future::poll_fn(|cx| {
            let mut polled = watches.iter_mut().map(|w| w.as_mut().poll(cx));
            if polled.any(|p| p.is_ready()) {
                std::task::Poll::Ready(())
            } else {
                std::task::Poll::Pending
            }
        })
        .await;
    }

    /// Releases all of them, the last one first.
    pub async fn release(self) -> Result<(), Error> {
        let mut result = Ok(());
        for guard in self.0.into_iter().rev() {
            let released = guard.release().await;
            result = result.and(released);
        }
        result
    }
}
