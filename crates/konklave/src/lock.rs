//! Locks: requests and guards.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::builder::held_for;
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

/// Cuts off a label that is too long: labels are for people only.
pub(crate) fn shortened(label: impl Into<Arc<str>>) -> Arc<str> {
    let label: Arc<str> = label.into();
    if label.len() <= LONGEST {
        return label;
    }
    let end = (0..=LONGEST).rev().find(|at| label.is_char_boundary(*at)).unwrap_or(0);
    label[..end].into()
}

/// When the lock of a silent holder is granted to the next request.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Handover {
    /// When the holder's lease has expired. By its own clock, the holder has then noticed the loss.
    #[default]
    LeaseSafe,
    /// At once. The holder may not know that it lost the lock: the resource must check tokens.
    Fast,
}

/// How certain a grant is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// A majority has confirmed it lately.
    Held,
    /// No majority has answered for a while. The grant is valid until its deadline; start nothing new.
    Doubtful,
    /// The grant is lost.
    Lost,
}

/// A request for a lock or a permit of a semaphore.
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
    lease: Option<Duration>,
    resume: Option<Token>,
}

impl LockRequest {
    pub(crate) fn new(session: Session, space: Space, name: &str, mode: LockMode) -> Self {
        let (handover, timeout, label) = (Handover::default(), None, None);
        let (priority, lease, resume) = (0, None, None);
        let name = name.into();
        Self { session, space, name, mode, handover, timeout, priority, label, lease, resume }
    }

    /// Requests the lock exclusively. This is the default.
    pub fn exclusive(mut self) -> Self {
        if self.space == Space::Lock {
            self.mode = LockMode::Exclusive;
        }
        self
    }

    /// Requests the lock together with other shared holders. Earlier exclusive requests go first.
    pub fn shared(mut self) -> Self {
        if self.space == Space::Lock {
            self.mode = LockMode::Shared;
        }
        self
    }

    /// Gives up after this time.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// When the next request is served if this node falls silent.
    pub fn handover(mut self, handover: Handover) -> Self {
        self.handover = handover;
        self
    }

    /// How long the grant is valid without an answer of a majority, and how long others wait for it if this node
    /// falls silent. At least two heartbeats. Default: [`Timings::lease`](crate::Timings::lease), and only that
    /// with a [`LockAlgorithm`](crate::LockAlgorithm) other than `table`.
    pub fn lease(mut self, lease: Duration) -> Self {
        self.lease = Some(lease);
        self
    }

    /// Goes on with the grant of this token, which this node had before it was restarted or excluded. Such a
    /// grant is nobody else's until its lease is over. If it is over, the error is [`Error::Lost`].
    ///
    /// The caller must know that the holder has never stopped to hold it: its deadline has not passed, and it
    /// was not released.
    pub fn resume(mut self, token: Token) -> Self {
        self.resume = Some(token);
        self
    }

    /// A label for `status` and `why`, cut off after 255 bytes.
    pub fn label(mut self, label: impl Into<Arc<str>>) -> Self {
        self.label = Some(shortened(label));
        self
    }

    pub(crate) fn priority(mut self, priority: i32) -> Self {
        self.priority = priority;
        self
    }

    /// Waits for the grant. If the future is dropped, the request is withdrawn.
    pub async fn acquire(self) -> Result<Guard, Error> {
        self.ask(true).await
    }

    /// Takes the lock if it is free. Does not wait for a holder, but for the group's answer. Without a majority,
    /// which could give it, this fails at once with [`Error::NoGroup`].
    pub async fn try_acquire(self) -> Result<Guard, Error> {
        self.ask(false).await
    }

    async fn ask(self, wait: bool) -> Result<Guard, Error> {
        let key = Key { space: self.space, name: check_name(self.name)? };
        if let LockMode::Permit { of: 0 } = self.mode {
            return Err(Error::Config(format!(
                "{}: a semaphore needs at least one permit",
                key.name
            )));
        }
        // A cached lock is granted without waiting. So a task in a loop must let the runtime poll the network
        // now and then.
        let shared = self.session.shared().clone();
        shared.grant_budget.yield_if_spent().await;
        let (reply, mut answer) = oneshot::channel();
        let session = self.session.number();
        let number = shared.with(|core, now| {
            let label = self.label.unwrap_or_else(|| core.label(session));
            let request = LocalRequest {
                session,
                key: key.clone(),
                mode: self.mode,
                wait,
                safe: self.handover == Handover::LeaseSafe,
                lease: self.lease.unwrap_or(shared.timings.lease),
                adopt: self.resume,
                priority: self.priority,
                label,
                patience: self.timeout,
                reply,
            };
            core.acquire(request, now)
        });
        // Withdraws the request if this future is dropped.
        let mut abandon = AbandonOnDrop { shared: &shared, number: Some(number) };
        let answer = match answer.try_recv() {
            Ok(answer) => answer,
            Err(oneshot::error::TryRecvError::Empty) => {
                let answer = async { answer.await.map_err(|_| Error::Left)? };
                if wait { answer.await } else { shared.answer_of_majority(answer).await }
            }
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

/// A grant. The lock is released when the guard is dropped.
///
/// A guard is a belief with a deadline, not a fact: the process may be stopped between a check of the guard
/// and the next action. An action that must not happen twice needs a check of the [`token`](Self::token) at
/// the resource (see [`fence`](crate::fence)).
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

    /// The fencing token, higher than that of every earlier holder.
    pub fn token(&self) -> Token {
        self.granted.token
    }

    fn shared(&self) -> &Shared {
        self.session.shared()
    }

    fn flag(&self) -> &Arc<LossFlag> {
        &self.granted.flag
    }

    /// How long the grant is certain without a further answer of a majority.
    pub fn valid_for(&self) -> Duration {
        if self.flag().is_lost() {
            return Duration::ZERO;
        }
        let shared = self.shared();
        match shared.lease_ends(self.granted.lease) {
            Some(until) => until.saturating_sub(shared.clock.now()),
            None => held_for(self.granted.lease),
        }
    }

    /// The end of that time, on the machine's clock `CLOCK_BOOTTIME`, which every process of this machine can
    /// read.
    pub fn deadline(&self) -> Duration {
        self.shared().clock.now() + self.valid_for()
    }

    /// How certain the grant is.
    pub fn state(&self) -> State {
        let left = self.valid_for();
        if left.is_zero() {
            return State::Lost;
        }
        let doubtful = left < self.granted.lease / 2;
        if doubtful { State::Doubtful } else { State::Held }
    }

    /// Returns when the grant is lost: revoked, or without a majority for too long. Cancel safe.
    pub async fn lost(&self) {
        self.flag().lost().await;
    }

    /// Why the grant is lost, once that is known. A lease may have run out a moment earlier:
    /// [`state`](Self::state) checks the clock.
    pub fn loss(&self) -> Option<Loss> {
        self.flag().loss()
    }

    /// A future that completes when the grant is lost, independent of the guard.
    pub fn watch(&self) -> impl Future<Output = ()> + Send + Sync + 'static + use<> {
        let flag = self.flag().clone();
        async move { flag.lost().await }
    }

    /// Releases the lock. An error means that the grant was lost before: revoked, or past its deadline.
    ///
    /// The release is sent after this returns. A process that exits right away should
    /// [leave](crate::Node::leave) first; otherwise others wait for its lease.
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
    fn label_is_cut_at_character_boundary() {
        assert_eq!(&*shortened("deploy 7"), "deploy 7");
        assert_eq!(*shortened("x".repeat(255)), *"x".repeat(255));
        assert_eq!(*shortened("x".repeat(256)), *"x".repeat(255));
        assert_eq!(*shortened("ä".repeat(500)), *"ä".repeat(127));
    }
}
