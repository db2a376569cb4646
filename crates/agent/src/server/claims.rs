//! The claims of a session: requests that wait, and grants that are held. Each claim is a task.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use super::Counts;
use super::session::failed;
use crate::clock::Moment;
use crate::protocol::{Answer, Event, FailureKind, Refusal, Reply};
use crate::service::{AcquireRequest, Denied, HeldClaim, Resumed, Service};

/// How long the claims of a session that ended may take to be released.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(5);

/// The claims of a session.
pub(super) struct Claims {
    claims: BTreeMap<u64, Entry>,
    outbox: mpsc::Sender<Reply>,
    counts: Arc<Counts>,
    /// How many claims have not ended.
    living: Arc<AtomicUsize>,
}

struct Entry {
    commands: mpsc::UnboundedSender<ClaimCommand>,
    task: JoinHandle<()>,
}

/// A command for the task of a claim.
enum ClaimCommand {
    /// Report the deadline of the grant.
    Until(oneshot::Sender<Moment>),
    /// Cancel the request or release the grant, then answer this call, if there is one.
    Over(Option<u64>),
    /// The session has expired, for this reason: release the grant as lost.
    Expired(String),
}

impl Claims {
    pub(super) fn new(outbox: mpsc::Sender<Reply>, counts: Arc<Counts>) -> Self {
        Self { claims: BTreeMap::new(), outbox, counts, living: Arc::default() }
    }

    /// Whether no request waits and no grant is held.
    pub(super) fn is_empty(&self) -> bool {
        self.living.load(Ordering::Acquire) == 0
    }

    /// Starts a claim. Call `id` is answered when the request is granted or refused.
    pub(super) fn ask(
        &mut self,
        id: u64,
        request: AcquireRequest,
        service: Arc<dyn Service>,
        expires: watch::Receiver<Moment>,
    ) {
        if self.claims.len() > 64 + 2 * self.living.load(Ordering::Acquire) {
            self.claims.retain(|_, entry| !entry.task.is_finished());
        }
        if self.claims.get(&id).is_some_and(|entry| !entry.task.is_finished()) {
            let answer =
                failed((FailureKind::Usage, format!("the id {id} is in use by another claim")));
            let outbox = self.outbox.clone();
            tokio::spawn(async move { outbox.send(Reply::Answer { id, answer }).await });
            return;
        }
        let (commands, inbox) = mpsc::unbounded_channel();
        let counts = Arc::clone(&self.counts);
        let living = Living::new(&self.living);
        let claim = ClaimTask { id, outbox: self.outbox.clone(), inbox, counts, expires };
        let task = tokio::spawn(async move {
            let _living = living;
            claim.run(request, service).await;
        });
        self.claims.insert(id, Entry { commands, task });
    }

    /// Ends the claim of call `claim`. Call `id` is answered when that is done.
    pub(super) fn release(&mut self, claim: u64, id: u64) {
        let told = self
            .claims
            .remove(&claim)
            .is_some_and(|entry| entry.commands.send(ClaimCommand::Over(Some(id))).is_ok());
        if !told {
            let answer =
                failed((FailureKind::Unknown, format!("call {claim} has no claim to release")));
            let outbox = self.outbox.clone();
            tokio::spawn(async move { outbox.send(Reply::Answer { id, answer }).await });
        }
    }

    /// The deadline of each grant, at most that of the session, `expires`.
    pub(super) async fn until(&self, expires: Moment) -> Vec<(u64, Moment)> {
        let mut all = Vec::new();
        for (&id, entry) in &self.claims {
            let (answer, told) = oneshot::channel();
            if entry.commands.send(ClaimCommand::Until(answer)).is_ok()
                && let Ok(until) = told.await
            {
                all.push((id, until.min(expires)));
            }
        }
        all
    }

    /// Ends all claims. If the session has `expired`, grants are released as lost, for that reason.
    pub(super) async fn give_back(self, expired: Option<&str>) {
        for entry in self.claims.values() {
            let command = expired
                .map_or(ClaimCommand::Over(None), |why| ClaimCommand::Expired(why.to_owned()));
            let _ = entry.commands.send(command);
        }
        let all = async {
            for (_, entry) in self.claims {
                let _ = entry.task.await;
            }
        };
        if tokio::time::timeout(RELEASE_TIMEOUT, all).await.is_err() {
            tracing::warn!(
                "grants of a client were not released within {} s; they are released when the group answers",
                RELEASE_TIMEOUT.as_secs()
            );
        }
    }
}

/// Counts a claim until it is dropped.
struct Living(Arc<AtomicUsize>);

impl Living {
    fn new(living: &Arc<AtomicUsize>) -> Self {
        living.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(living))
    }
}

impl Drop for Living {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

struct ClaimTask {
    id: u64,
    outbox: mpsc::Sender<Reply>,
    inbox: mpsc::UnboundedReceiver<ClaimCommand>,
    counts: Arc<Counts>,
    expires: watch::Receiver<Moment>,
}

impl ClaimTask {
    async fn run(mut self, request: AcquireRequest, service: Arc<dyn Service>) {
        match self.wait(request.clone(), &*service).await {
            Ok(hold) => self.hold(hold, request, &*service).await,
            Err((answer, asked)) => {
                self.counts.refused.fetch_add(1, Ordering::Relaxed);
                self.answer(self.id, answer).await;
                self.done(asked).await;
            }
        }
    }

    async fn answer(&self, id: u64, answer: Answer) {
        let _ = self.outbox.send(Reply::Answer { id, answer }).await;
    }

    async fn done(&self, asked: Option<u64>) {
        if let Some(id) = asked {
            self.answer(id, Answer::Done).await;
        }
    }

    async fn wait(
        &mut self,
        request: AcquireRequest,
        service: &dyn Service,
    ) -> Result<Box<dyn HeldClaim>, (Answer, Option<u64>)> {
        let mut granted = service.acquire(request);
        loop {
            tokio::select! {
                // A grant that has arrived is reported even if the client cancels at the same time.
                biased;
                granted = &mut granted => return granted.map_err(|denied| (refusal(denied), None)),
                command = self.inbox.recv() => match command {
                    // There is no grant yet, hence no deadline.
                    Some(ClaimCommand::Until(_)) => {}
                    Some(ClaimCommand::Over(asked)) => {
                        let why = Refusal::Cancelled;
                        let message = "the client cancelled the request".into();
                        return Err((Answer::Refused { why, message }, asked));
                    }
                    // The client may be back a moment later: this is no answer about the lock.
                    Some(ClaimCommand::Expired(why)) => {
                        return Err((failed((FailureKind::Unavailable, why)), None));
                    }
                    None => {
                        let why = "the session of the client ended".into();
                        return Err((failed((FailureKind::Unavailable, why)), None));
                    }
                },
            }
        }
    }

    async fn hold(
        mut self,
        mut hold: Box<dyn HeldClaim>,
        request: AcquireRequest,
        service: &dyn Service,
    ) {
        self.counts.granted.fetch_add(1, Ordering::Relaxed);
        let token = hold.token();
        // The last deadline that the client may know.
        let mut until = hold.until().min(*self.expires.borrow());
        self.answer(self.id, Answer::Granted { token: token.clone(), until }).await;
        loop {
            tokio::select! {
                command = self.inbox.recv() => match command {
                    Some(ClaimCommand::Until(answer)) => {
                        until = until.max(hold.until());
                        let _ = answer.send(until);
                    }
                    Some(ClaimCommand::Over(asked)) => {
                        let answer = match hold.release().await {
                            Ok(()) => Answer::Done,
                            Err(problem) => failed(problem),
                        };
                        if let Some(id) = asked {
                            self.answer(id, answer).await;
                        }
                        return;
                    }
                    Some(ClaimCommand::Expired(why)) => {
                        self.counts.lost.fetch_add(1, Ordering::Relaxed);
                        return hold.forfeit(why).await;
                    }
                    None => return,
                },
                lost = hold.lost() => {
                    if lost.resumable && !until.passed() {
                        let resume = Some(Resumed { token: token.clone(), until });
                        let again = AcquireRequest { resume, ..request.clone() };
                        match self.resume(again, until, service).await {
                            Resumption::Held(again) => {
                                hold = again;
                                continue;
                            }
                            Resumption::Over => return,
                            Resumption::Lost => {}
                        }
                    }
                    self.counts.lost.fetch_add(1, Ordering::Relaxed);
                    let lost = Event::Lost { claim: self.id, why: lost.why };
                    let _ = self.outbox.send(Reply::Event(lost)).await;
                    return self.let_go(hold).await;
                }
            }
        }
    }

    /// The group has excluded this agent, which comes back. The grant is nobody else's before its deadline. So the
    /// client goes on meanwhile, with the deadline that it has.
    async fn resume(
        &mut self,
        request: AcquireRequest,
        until: Moment,
        service: &dyn Service,
    ) -> Resumption {
        let mut granted = service.acquire(request);
        loop {
            tokio::select! {
                biased;
                granted = &mut granted => return match granted {
                    Ok(hold) => Resumption::Held(hold),
                    Err(_) => Resumption::Lost,
                },
                command = self.inbox.recv() => match command {
                    Some(ClaimCommand::Until(answer)) => {
                        let _ = answer.send(until);
                    }
                    Some(ClaimCommand::Over(asked)) => {
                        drop(granted);
                        self.done(asked).await;
                        return Resumption::Over;
                    }
                    Some(ClaimCommand::Expired(_)) | None => return Resumption::Over,
                },
            }
        }
    }

    /// Releases a lost grant when the client confirms the loss, or its session ends. The next holder waits for
    /// that, because the client's command may still run.
    async fn let_go(mut self, hold: Box<dyn HeldClaim>) {
        while let Some(command) = self.inbox.recv().await {
            match command {
                // A lost grant has no deadline.
                ClaimCommand::Until(_) => {}
                ClaimCommand::Over(asked) => {
                    let _ = hold.release().await;
                    return self.done(asked).await;
                }
                // The loss has been counted and reported.
                ClaimCommand::Expired(_) => return drop(hold.release().await),
            }
        }
    }
}

/// The outcome for a grant whose agent was excluded.
enum Resumption {
    /// It goes on.
    Held(Box<dyn HeldClaim>),
    /// The client has released it meanwhile, or is gone.
    Over,
    /// It is lost.
    Lost,
}

fn refusal(denied: Denied) -> Answer {
    match denied {
        Denied::Refused(why, message) => Answer::Refused { why, message },
        Denied::Failed(kind, message) => Answer::Failed { kind, message },
    }
}
