//! Groups of the application: one membership at the agent for all its clients, as long as one is there.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use konklave::{Error, Group, GroupEvent, Node};
use tokio::sync::{mpsc, oneshot};

use super::problem;
use crate::protocol::{Event, Payload, Trouble};
use crate::service::Problem;

/// How long a membership that nobody uses is kept.
const IDLE: Duration = Duration::from_secs(10);
/// How long the group may take to agree on the place of a message, or of us. Less than a client waits
/// for an answer: it should hear why there is none.
const PROMPT: Duration = Duration::from_secs(6);
/// How many bytes may wait for a listener that does not read: then it is sent away, so that it costs the
/// others no time, and us no more memory.
const WAITING: usize = 32 << 20;
/// What an event takes besides its payload, about.
const EVENT: usize = 128;
/// A pause before we try to come back.
const PAUSE: Duration = Duration::from_millis(200);

/// All groups in use.
#[derive(Default)]
pub(super) struct Circles(Arc<Mutex<BTreeMap<String, mpsc::UnboundedSender<Word>>>>);

/// What a membership is told.
enum Word {
    Send(Vec<u8>, oneshot::Sender<Result<(), Problem>>),
    Receive(Listener),
}

/// One who listens, and what waits for it.
struct Listener {
    queue: mpsc::UnboundedSender<(Event, usize)>,
    waiting: Arc<AtomicUsize>,
    /// Told when too much waits.
    deaf: Option<oneshot::Sender<()>>,
}

impl Listener {
    /// Tells it, unless it is gone, or deaf: then it is false.
    fn tell(&mut self, event: &Event, weight: usize) -> bool {
        if self.waiting.fetch_add(weight, Ordering::Relaxed) > WAITING {
            self.deaf.take().map(|deaf| deaf.send(()));
            return false;
        }
        self.queue.send((event.clone(), weight)).is_ok()
    }

    fn is_gone(&self) -> bool {
        self.queue.is_closed()
    }
}

impl Circles {
    /// Sends a message; done when it has its place in the order.
    pub(super) async fn send(
        &self,
        node: &Node,
        group: &str,
        bytes: Vec<u8>,
    ) -> Result<(), Problem> {
        let (done, sent) = oneshot::channel();
        self.tell(node, group, Word::Send(bytes, done));
        match tokio::time::timeout(PROMPT, sent).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err((Trouble::Unavailable, format!("{group}: this agent is out"))),
            Err(_) => Err((Trouble::Unavailable, format!("{group}: the group does not answer"))),
        }
    }

    /// Tells what the group says until nobody listens.
    pub(super) async fn receive(
        &self,
        node: &Node,
        group: &str,
        to: mpsc::Sender<Event>,
    ) -> Result<(), Problem> {
        let (queue, mut events) = mpsc::unbounded_channel();
        let (deaf, is_deaf) = oneshot::channel();
        let waiting = Arc::<AtomicUsize>::default();
        let listener = Listener { queue, waiting: Arc::clone(&waiting), deaf: Some(deaf) };
        self.tell(node, group, Word::Receive(listener));
        let passing_on = async {
            while let Some((event, weight)) = events.recv().await {
                if to.send(event).await.is_err() {
                    return;
                }
                waiting.fetch_sub(weight, Ordering::Relaxed);
            }
            to.closed().await;
        };
        tokio::select! {
            () = passing_on => Ok(()),
            () = to.closed() => Ok(()),
            Ok(()) = is_deaf => {
                let what = format!("{group}: {} MiB wait to be read: too slow", WAITING >> 20);
                Err((Trouble::Unavailable, what))
            }
        }
    }

    fn tell(&self, node: &Node, group: &str, word: Word) {
        let mut circles = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let word = match circles.get(group) {
            Some(circle) => match circle.send(word) {
                Ok(()) => return,
                // It just ended.
                Err(mpsc::error::SendError(word)) => word,
            },
            None => word,
        };
        let (circle, words) = mpsc::unbounded_channel();
        let _ = circle.send(word);
        circles.insert(group.to_owned(), circle);
        let name = group.to_owned();
        let circle =
            Circle { name, words, listeners: Vec::new(), news: None, number: 0, lost: false };
        tokio::spawn(circle.run(node.clone()));
    }
}

struct Circle {
    name: String,
    words: mpsc::UnboundedReceiver<Word>,
    listeners: Vec<Listener>,
    /// Who belongs to it, for those who come to listen.
    news: Option<Event>,
    number: u64,
    /// Whether we were part of it and are not.
    lost: bool,
}

impl Circle {
    async fn run(mut self, node: Node) {
        let session = node.session(node.name());
        loop {
            let entered = tokio::time::timeout(PROMPT, session.group(&self.name)).await;
            match entered.unwrap_or(Err(Error::NoGroup("nobody answers".into()))) {
                Ok(group) => {
                    if std::mem::take(&mut self.lost) {
                        let gap = Event::Gap { group: self.name.clone() };
                        self.tell(&gap, EVENT);
                    }
                    if self.belong(group).await {
                        return;
                    }
                }
                Err(error) => {
                    let (kind, message) = problem(error);
                    // Who sends is told; who listens may wait.
                    while let Ok(word) = self.words.try_recv() {
                        match word {
                            Word::Send(_, done) => {
                                let _ = done.send(Err((kind, message.clone())));
                            }
                            Word::Receive(to) => self.listeners.push(to),
                        }
                    }
                    self.listeners.retain(|listener| !listener.is_gone());
                    if self.listeners.is_empty() {
                        return;
                    }
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// A membership, until it is lost or nobody needs it: then it is true.
    async fn belong(&mut self, mut group: Group) -> bool {
        let mut sent = VecDeque::new();
        let mut idle = tokio::time::interval(IDLE);
        idle.reset();
        loop {
            tokio::select! {
                word = self.words.recv() => match word {
                    Some(Word::Receive(mut listener)) => {
                        if let Some(news) = &self.news {
                            listener.tell(news, EVENT);
                        }
                        self.listeners.push(listener);
                    }
                    Some(Word::Send(bytes, done)) => match group.send(bytes).await {
                        Ok(()) => sent.push_back(done),
                        Err(error) => {
                            let _ = done.send(Err(problem(error)));
                        }
                    },
                    None => return true,
                },
                event = group.next() => match event {
                    Some(GroupEvent::Message { from, bytes }) => {
                        // Our own come back in the order in which they went.
                        if from.id == group.me().id
                            && let Some(done) = sent.pop_front()
                        {
                            let _ = done.send(Ok(()));
                        }
                        self.number += 1;
                        let (group, number) = (self.name.clone(), self.number);
                        let payload = Payload::new(bytes.to_vec());
                        let event = Event::Message { group, from: from.label, number, payload };
                        self.tell(&event, EVENT + bytes.len());
                    }
                    Some(GroupEvent::View(view)) => {
                        let members = view.members.into_iter().map(|m| m.label).collect();
                        let news = Event::View { group: self.name.clone(), members };
                        self.news = Some(news.clone());
                        self.tell(&news, EVENT);
                    }
                    Some(GroupEvent::Lost) => {
                        // What is said until we are back we do not hear.
                        self.lost = true;
                        return false;
                    }
                    // There is no state: whoever comes hears what is said from then on.
                    Some(_) => {}
                    None => return true,
                },
                _ = idle.tick() => {
                    self.listeners.retain(|listener| !listener.is_gone());
                    if self.listeners.is_empty() && sent.is_empty() && self.words.is_empty() {
                        // Whoever comes now finds a closed door, and opens another.
                        self.words.close();
                        if self.words.is_empty() {
                            return true;
                        }
                    }
                }
            }
        }
    }

    /// Tells everyone who listens. Nobody is waited for.
    fn tell(&mut self, event: &Event, weight: usize) {
        self.listeners.retain_mut(|listener| listener.tell(event, weight));
    }
}
