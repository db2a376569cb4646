//! What a session asked for and holds. Each claim is a task: it waits, holds, and gives back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use super::Counts;
use super::session::failed;
use crate::clock::Moment;
use crate::protocol::{Answer, Event, Refusal, Reply, Trouble};
use crate::service::{Denied, Hold, Service, Wish};

/// How long a session's claims may take to be given back.
const FAREWELL: Duration = Duration::from_secs(5);

/// The claims of a session.
pub(super) struct Claims {
    claims: BTreeMap<u64, Entry>,
    outbox: mpsc::Sender<Reply>,
    counts: Arc<Counts>,
    /// How many are not over.
    living: Arc<AtomicUsize>,
}

struct Entry {
    words: mpsc::UnboundedSender<Word>,
    task: JoinHandle<()>,
}

/// What a claim is told.
enum Word {
    /// Until when are you safe?
    Until(oneshot::Sender<Moment>),
    /// You are no longer wanted; this call wants to know when you are gone.
    Over(Option<u64>),
    /// Nobody shows a sign of life any more: this is what happened.
    Expired(String),
}

impl Claims {
    pub(super) fn new(outbox: mpsc::Sender<Reply>, counts: Arc<Counts>) -> Self {
        Self { claims: BTreeMap::new(), outbox, counts, living: Arc::default() }
    }

    /// Whether nothing is waited for or held.
    pub(super) fn is_empty(&self) -> bool {
        self.living.load(Ordering::Acquire) == 0
    }

    /// Asks for something; call `id` is answered when it is granted or refused.
    pub(super) fn ask(
        &mut self,
        id: u64,
        wish: Wish,
        service: Arc<dyn Service>,
        expires: watch::Receiver<Moment>,
    ) {
        if self.claims.len() > 64 + 2 * self.living.load(Ordering::Acquire) {
            self.claims.retain(|_, entry| !entry.task.is_finished());
        }
        if self.claims.get(&id).is_some_and(|entry| !entry.task.is_finished()) {
            let answer = failed((Trouble::Usage, format!("call {id} has asked already")));
            let outbox = self.outbox.clone();
            tokio::spawn(async move { outbox.send(Reply::Answer { id, answer }).await });
            return;
        }
        let (words, mailbox) = mpsc::unbounded_channel();
        let counts = Arc::clone(&self.counts);
        let living = Living::new(&self.living);
        let claim = Claim { id, outbox: self.outbox.clone(), mailbox, counts, expires };
        let task = tokio::spawn(async move {
            let _living = living;
            claim.run(wish, service).await;
        });
        self.claims.insert(id, Entry { words, task });
    }

    /// Gives back, or takes back, the claim of call `claim`; call `id` is answered when it is done.
    pub(super) fn release(&mut self, claim: u64, id: u64) {
        let told = self
            .claims
            .remove(&claim)
            .is_some_and(|entry| entry.words.send(Word::Over(Some(id))).is_ok());
        if !told {
            let answer = failed((Trouble::Unknown, format!("call {claim} holds nothing")));
            let outbox = self.outbox.clone();
            tokio::spawn(async move { outbox.send(Reply::Answer { id, answer }).await });
        }
    }

    /// Until when each claim is safe, in a session that ends at `expires`.
    pub(super) async fn until(&self, expires: Moment) -> Vec<(u64, Moment)> {
        let mut all = Vec::new();
        for (&id, entry) in &self.claims {
            let (answer, told) = oneshot::channel();
            if entry.words.send(Word::Until(answer)).is_ok()
                && let Ok(until) = told.await
            {
                all.push((id, until.min(expires)));
            }
        }
        all
    }

    /// Gives back everything; what is held is lost if the client has `expired`.
    pub(super) async fn give_back(self, expired: Option<&str>) {
        for entry in self.claims.values() {
            let word = expired.map_or(Word::Over(None), |why| Word::Expired(why.to_owned()));
            let _ = entry.words.send(word);
        }
        let all = async {
            for (_, entry) in self.claims {
                let _ = entry.task.await;
            }
        };
        if tokio::time::timeout(FAREWELL, all).await.is_err() {
            tracing::warn!("claims of a session could not be given back in time");
        }
    }
}

/// Counts a claim as long as it lives.
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

struct Claim {
    id: u64,
    outbox: mpsc::Sender<Reply>,
    mailbox: mpsc::UnboundedReceiver<Word>,
    counts: Arc<Counts>,
    expires: watch::Receiver<Moment>,
}

impl Claim {
    async fn run(mut self, wish: Wish, service: Arc<dyn Service>) {
        match self.wait(wish, &*service).await {
            Ok(hold) => self.hold(hold).await,
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
        wish: Wish,
        service: &dyn Service,
    ) -> Result<Box<dyn Hold>, (Answer, Option<u64>)> {
        let mut granted = service.acquire(wish);
        loop {
            tokio::select! {
                // A grant that is there is told, also to one who does not want it any more.
                biased;
                granted = &mut granted => return granted.map_err(|denied| (refusal(denied), None)),
                word = self.mailbox.recv() => match word {
                    // Not safe at all: it is not ours.
                    Some(Word::Until(_)) => {}
                    Some(Word::Over(asked)) => {
                        let why = Refusal::Cancelled;
                        return Err((Answer::Refused { why, message: "taken back".into() }, asked));
                    }
                    Some(Word::Expired(_)) | None => {
                        let why = Refusal::Cancelled;
                        return Err((Answer::Refused { why, message: "gone".into() }, None));
                    }
                },
            }
        }
    }

    async fn hold(mut self, mut hold: Box<dyn Hold>) {
        self.counts.granted.fetch_add(1, Ordering::Relaxed);
        let until = hold.until().min(*self.expires.borrow());
        self.answer(self.id, Answer::Granted { token: hold.token(), until }).await;
        loop {
            tokio::select! {
                word = self.mailbox.recv() => match word {
                    Some(Word::Until(answer)) => {
                        let _ = answer.send(hold.until());
                    }
                    Some(Word::Over(asked)) => {
                        let answer = match hold.release().await {
                            Ok(()) => Answer::Done,
                            Err(problem) => failed(problem),
                        };
                        if let Some(id) = asked {
                            self.answer(id, answer).await;
                        }
                        return;
                    }
                    Some(Word::Expired(why)) => {
                        self.counts.lost.fetch_add(1, Ordering::Relaxed);
                        return hold.forfeit(why).await;
                    }
                    None => return,
                },
                why = hold.lost() => {
                    self.counts.lost.fetch_add(1, Ordering::Relaxed);
                    let lost = Event::Lost { claim: self.id, why };
                    let _ = self.outbox.send(Reply::Event(lost)).await;
                    return self.let_go(hold).await;
                }
            }
        }
    }

    /// What is lost is let go when the client says that it is, or is gone: the next one waits for that.
    async fn let_go(mut self, hold: Box<dyn Hold>) {
        while let Some(word) = self.mailbox.recv().await {
            match word {
                // It is good for nothing any more, so nobody is told until when.
                Word::Until(_) => {}
                Word::Over(asked) => {
                    let _ = hold.release().await;
                    return self.done(asked).await;
                }
                // Counted and told before.
                Word::Expired(_) => return drop(hold.release().await),
            }
        }
    }
}

fn refusal(denied: Denied) -> Answer {
    match denied {
        Denied::Refused(why, message) => Answer::Refused { why, message },
        Denied::Failed(kind, message) => Answer::Failed { kind, message },
    }
}
