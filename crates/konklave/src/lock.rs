//! Locks: how to ask for one, and what one has then.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::core::{Granted, LocalRequest, LossFlag};
use crate::error::Error;
use crate::session::Session;
use crate::shared::Shared;
use crate::status::Loss;
use crate::table::{Key, LockMode, Space};
use crate::token::Token;

/// The longest name, and the longest label.
pub(crate) const LONGEST: usize = 255;

pub(crate) fn check_name(name: impl Into<Arc<str>>) -> Result<Arc<str>, Error> {
    let name: Arc<str> = name.into();
    if name.is_empty() || name.len() > LONGEST || name.chars().any(char::is_control) {
        return Err(Error::BadName(name.chars().take(LONGEST).collect()));
    }
    Ok(name)
}

/// A label as others see it: what is too long is cut off, as it is for people only.
pub(crate) fn shortened(label: impl Into<Arc<str>>) -> Arc<str> {
    let label: Arc<str> = label.into();
    if label.len() <= LONGEST {
        return label;
    }
    let end = (0..=LONGEST).rev().find(|at| label.is_char_boundary(*at)).unwrap_or(0);
    label[..end].into()
}

/// What happens to a lock whose holder falls silent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Handover {
    /// The next gets it only when the holder's own clock has told it that it has lost it.
    #[default]
    LeaseSafe,
    /// The next gets it at once. The holder may not know yet: the resource must check tokens.
    Fast,
}

/// How sure a holder may be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// It is ours; a majority has said so lately.
    Held,
    /// A majority has been silent for a while. It is ours until the deadline; start nothing new.
    Doubtful,
    /// It is not ours any more.
    Lost,
}

/// A wish for a lock, a permit of a semaphore.
#[derive(Clone, Debug)]
#[must_use]
pub struct LockRequest {
    session: Session,
    space: Space,
    name: Arc<str>,
    mode: LockMode,
    handover: Handover,
    timeout: Option<Duration>,
    priority: i32,
    label: Option<Arc<str>>,
}

impl LockRequest {
    pub(crate) fn new(session: Session, space: Space, name: &str, mode: LockMode) -> Self {
        let (handover, timeout, label) = (Handover::default(), None, None);
        Self { session, space, name: name.into(), mode, handover, timeout, priority: 0, label }
    }

    /// Alone. This is the default.
    pub fn exclusive(mut self) -> Self {
        if self.space == Space::Lock {
            self.mode = LockMode::Exclusive;
        }
        self
    }

    /// Together with others who want it so. Who wants it alone and came before goes first.
    pub fn shared(mut self) -> Self {
        if self.space == Space::Lock {
            self.mode = LockMode::Shared;
        }
        self
    }

    /// Gives up after so long.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// What happens if we fall silent.
    pub fn handover(mut self, handover: Handover) -> Self {
        self.handover = handover;
        self
    }

    /// Who asks, for `status` and `why`. Of a label, others see 255 bytes at most.
    pub fn label(mut self, label: impl Into<Arc<str>>) -> Self {
        self.label = Some(shortened(label));
        self
    }

    pub(crate) fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// Waits for it. Dropped before it is done, it wants nothing more.
    pub async fn acquire(self) -> Result<Guard, Error> {
        self.ask(true).await
    }

    /// Takes it if nobody has it. Does not wait for others to let go, but for the group to say so.
    pub async fn try_acquire(self) -> Result<Guard, Error> {
        self.ask(false).await
    }

    async fn ask(self, wait: bool) -> Result<Guard, Error> {
        let key = Key { space: self.space, name: check_name(self.name)? };
        if let LockMode::Permit { of: 0 } = self.mode {
            return Err(Error::Config(format!(
                "{}: a semaphore has one permit at least",
                key.name
            )));
        }
        // A lock that is kept here is given without a wait: who takes it again and again must not keep
        // the runtime from hearing that others want it, too.
        let shared = self.session.shared().clone();
        shared.grant_budget.yield_if_spent().await;
        let (reply, mut answer) = oneshot::channel();
        let session = self.session.number();
        let number = shared.with(|core, now| {
            let label = self.label.unwrap_or_else(|| core.label(session));
            let wish = LocalRequest {
                session,
                key: key.clone(),
                mode: self.mode,
                wait,
                safe: self.handover == Handover::LeaseSafe,
                priority: self.priority,
                label,
                patience: self.timeout,
                reply,
            };
            core.acquire(wish, now)
        });
        // Whoever drops the future on the way leaves nothing behind.
        let mut abandon = AbandonOnDrop { shared: &shared, number: Some(number) };
        let answer = match answer.try_recv() {
            Ok(answer) => answer,
            Err(oneshot::error::TryRecvError::Empty) => answer.await.map_err(|_| Error::Left)?,
            Err(oneshot::error::TryRecvError::Closed) => return Err(Error::Left),
        };
        abandon.number = None;
        let granted = answer?;
        Ok(Guard { session: self.session, key, granted, released: false })
    }
}

struct AbandonOnDrop<'a> {
    shared: &'a Shared,
    number: Option<u64>,
}

impl Drop for AbandonOnDrop<'_> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.shared.with(|core, _| core.abandon(number));
        }
    }
}

/// A lock that is ours, or was. It is given back when this is dropped.
///
/// A guard is a belief with a deadline, not a fact: the machine may stop between a look at it and
/// what is done next. What must not happen twice has to check the [`token`](Self::token) where
/// it happens (see [`fence`](crate::fence)).
#[derive(Debug)]
#[must_use = "a lock is given back when its guard is dropped"]
pub struct Guard {
    session: Session,
    key: Key,
    granted: Granted,
    released: bool,
}

impl Guard {
    /// The name of the lock.
    pub fn name(&self) -> &str {
        &self.key.name
    }

    /// Higher than that of every holder before us.
    pub fn token(&self) -> Token {
        self.granted.token
    }

    fn shared(&self) -> &Shared {
        self.session.shared()
    }

    fn flag(&self) -> &Arc<LossFlag> {
        &self.granted.flag
    }

    /// For how long it is surely ours, without a further sign of life of a majority.
    pub fn valid_for(&self) -> Duration {
        if self.flag().is_lost() {
            return Duration::ZERO;
        }
        let shared = self.shared();
        match shared.lease() {
            Some(until) => until.saturating_sub(shared.clock.now()),
            None => shared.timings.held_for(),
        }
    }

    /// When that ends, on the clock that counts since the machine was started, asleep or awake
    /// (`CLOCK_BOOTTIME`): any process of this machine can look at it.
    pub fn deadline(&self) -> Duration {
        self.shared().clock.now() + self.valid_for()
    }

    /// How sure we may be.
    pub fn state(&self) -> State {
        let left = self.valid_for();
        if left.is_zero() {
            return State::Lost;
        }
        let doubtful = left < self.shared().timings.lease / 2;
        if doubtful { State::Doubtful } else { State::Held }
    }

    /// Returns when it is lost: revoked, or a majority has been silent for too long. Safe to cancel.
    pub async fn lost(&self) {
        self.flag().lost().await;
    }

    /// Why it is lost, once it is told. A lease may have run out a moment earlier: [`state`](Self::state)
    /// looks at the clock.
    pub fn loss(&self) -> Option<Loss> {
        self.flag().loss()
    }

    /// Something to wait for the loss with, where the guard itself cannot go.
    pub fn watch(&self) -> impl Future<Output = ()> + Send + Sync + 'static + use<> {
        let flag = self.flag().clone();
        async move { flag.lost().await }
    }

    /// Gives it back. An error says that it was lost before: taken away, or its deadline has passed. The
    /// others hear of it a moment later: a process that ends right after should [leave](crate::Node::leave)
    /// first, or they wait for its lease.
    pub async fn release(mut self) -> Result<(), Error> {
        self.released = true;
        let number = self.granted.number;
        let lost = self.valid_for().is_zero();
        let held = self.shared().with(|core, _| core.release(number));
        if held && !lost { Ok(()) } else { Err(Error::Lost(self.key.name.to_string())) }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if !self.released {
            let number = self.granted.number;
            self.shared().with(|core, _| core.release(number));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_ends_with_a_whole_character() {
        assert_eq!(&*shortened("deploy 7"), "deploy 7");
        assert_eq!(*shortened("x".repeat(255)), *"x".repeat(255));
        assert_eq!(*shortened("x".repeat(256)), *"x".repeat(255));
        assert_eq!(*shortened("ä".repeat(500)), *"ä".repeat(127));
    }
}
