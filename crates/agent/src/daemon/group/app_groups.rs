//! The application's groups (`send`, `recv`). The agent is one member of each group for all its clients, as
//! long as it has clients there.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use konklave::{Error, Group, GroupEvent, Node};
use tokio::sync::{mpsc, oneshot};

use super::problem;
use crate::protocol::{Event, FailureKind, Payload};
use crate::service::Problem;

/// How long an unused membership is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the group may take to order a message or to let this agent enter. Shorter than the timeout of a
/// client, so that the client gets the reason.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(6);
/// How many bytes may wait for a client that does not read. Beyond that its subscription ends, so that it
/// neither delays others nor uses more memory.
const MAX_BACKLOG: usize = 32 << 20;
/// The approximate size of an event besides its payload.
const EVENT_OVERHEAD: usize = 128;
/// The pause before the agent tries to enter a group again.
const REJOIN_PAUSE: Duration = Duration::from_millis(200);

/// All groups in use.
#[derive(Default)]
pub(super) struct AppGroups(Arc<Mutex<BTreeMap<String, mpsc::UnboundedSender<GroupCommand>>>>);

/// A command for the task of a group.
enum GroupCommand {
    Send(Vec<u8>, oneshot::Sender<Result<(), Problem>>),
    Receive(Subscription),
}

/// A client that receives the messages of a group, and its queue.
struct Subscription {
    queue: mpsc::UnboundedSender<(Event, usize)>,
    backlog: Arc<AtomicUsize>,
    /// Signalled when the backlog exceeds [`MAX_BACKLOG`].
    overflow: Option<oneshot::Sender<()>>,
}

impl Subscription {
    /// Queues an event. Returns false if the client is gone or its backlog is full.
    fn tell(&mut self, event: &Event, weight: usize) -> bool {
        if self.backlog.fetch_add(weight, Ordering::Relaxed) > MAX_BACKLOG {
            self.overflow.take().map(|overflow| overflow.send(()));
            return false;
        }
        self.queue.send((event.clone(), weight)).is_ok()
    }

    fn is_gone(&self) -> bool {
        self.queue.is_closed()
    }
}

impl AppGroups {
    /// Sends a message. Completes when the position of the message in the order is fixed.
    pub(super) async fn send(
        &self,
        node: &Node,
        group: &str,
        bytes: Vec<u8>,
    ) -> Result<(), Problem> {
        let (done, sent) = oneshot::channel();
        self.tell(node, group, GroupCommand::Send(bytes, done));
        match tokio::time::timeout(ANSWER_TIMEOUT, sent).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => {
                let why = format!(
                    "group {group}: this agent lost its membership; the message may be lost"
                );
                Err((FailureKind::Unavailable, why))
            }
            Err(_) => {
                let timeout = ANSWER_TIMEOUT.as_secs();
                let why = format!("group {group}: the message was not ordered within {timeout} s");
                Err((FailureKind::Unavailable, why))
            }
        }
    }

    /// Forwards messages and views of the group until the client is gone.
    pub(super) async fn receive(
        &self,
        node: &Node,
        group: &str,
        to: mpsc::Sender<Event>,
    ) -> Result<(), Problem> {
        let (queue, mut events) = mpsc::unbounded_channel();
        let (overflow, overflowed) = oneshot::channel();
        let backlog = Arc::<AtomicUsize>::default();
        let subscription =
            Subscription { queue, backlog: Arc::clone(&backlog), overflow: Some(overflow) };
        self.tell(node, group, GroupCommand::Receive(subscription));
        let passing_on = async {
            while let Some((event, weight)) = events.recv().await {
                if to.send(event).await.is_err() {
                    return;
                }
                backlog.fetch_sub(weight, Ordering::Relaxed);
            }
            to.closed().await;
        };
        tokio::select! {
            () = passing_on => Ok(()),
            () = to.closed() => Ok(()),
            Ok(()) = overflowed => {
                let what = format!(
                    "group {group}: this client reads too slowly: {} MiB wait for it",
                    MAX_BACKLOG >> 20
                );
                Err((FailureKind::Unavailable, what))
            }
        }
    }

    fn tell(&self, node: &Node, group: &str, command: GroupCommand) {
        let mut groups = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let command = match groups.get(group) {
            Some(group_task) => match group_task.send(command) {
                Ok(()) => return,
                // The task has just ended.
                Err(mpsc::error::SendError(command)) => command,
            },
            None => command,
        };
        let (group_task, commands) = mpsc::unbounded_channel();
        let _ = group_task.send(command);
        groups.insert(group.to_owned(), group_task);
        let name = group.to_owned();
        let group_task = AppGroup {
            name,
            commands,
            subscriptions: Vec::new(),
            view: None,
            number: 0,
            lost: false,
        };
        tokio::spawn(group_task.run(node.clone()));
    }
}

struct AppGroup {
    name: String,
    commands: mpsc::UnboundedReceiver<GroupCommand>,
    subscriptions: Vec<Subscription>,
    /// The current members, for new subscriptions.
    view: Option<Event>,
    number: u64,
    /// Whether this agent has lost its membership and not entered again.
    lost: bool,
}

impl AppGroup {
    async fn run(mut self, node: Node) {
        let session = node.session(node.name());
        loop {
            let entered = tokio::time::timeout(ANSWER_TIMEOUT, session.group(&self.name)).await;
            match entered.unwrap_or(Err(Error::NoGroup("no majority has answered in time".into())))
            {
                Ok(group) => {
                    if std::mem::take(&mut self.lost) {
                        let gap = Event::Gap { group: self.name.clone() };
                        self.tell(&gap, EVENT_OVERHEAD);
                    }
                    if self.serve_membership(group).await {
                        return;
                    }
                }
                Err(error) => {
                    let (kind, message) = problem(error);
                    // Senders get the error. Receivers wait until the agent can enter.
                    while let Ok(command) = self.commands.try_recv() {
                        match command {
                            GroupCommand::Send(_, done) => {
                                let _ = done.send(Err((kind, message.clone())));
                            }
                            GroupCommand::Receive(to) => self.subscriptions.push(to),
                        }
                    }
                    self.subscriptions.retain(|subscription| !subscription.is_gone());
                    if self.subscriptions.is_empty() {
                        return;
                    }
                }
            }
            tokio::time::sleep(REJOIN_PAUSE).await;
        }
    }

    /// Serves a membership until it is lost (false), or no client needs it (true).
    async fn serve_membership(&mut self, mut group: Group) -> bool {
        let mut sent = VecDeque::new();
        let mut idle = tokio::time::interval(IDLE_TIMEOUT);
        idle.reset();
        loop {
            tokio::select! {
                command = self.commands.recv() => match command {
                    Some(GroupCommand::Receive(mut subscription)) => {
                        if let Some(view) = &self.view {
                            subscription.tell(view, EVENT_OVERHEAD);
                        }
                        self.subscriptions.push(subscription);
                    }
                    Some(GroupCommand::Send(bytes, done)) => match group.send(bytes).await {
                        Ok(()) => sent.push_back(done),
                        Err(error) => {
                            let _ = done.send(Err(problem(error)));
                        }
                    },
                    None => return true,
                },
                event = group.next() => match event {
                    Some(GroupEvent::Message { from, bytes }) => {
                        // Messages of this agent are delivered in the order in which they were sent.
                        if from.id == group.me().id
                            && let Some(done) = sent.pop_front()
                        {
                            let _ = done.send(Ok(()));
                        }
                        self.number += 1;
                        let (group, number) = (self.name.clone(), self.number);
                        let payload = Payload::new(bytes.to_vec());
                        let event = Event::Message { group, from: from.label, number, payload };
                        self.tell(&event, EVENT_OVERHEAD + bytes.len());
                    }
                    Some(GroupEvent::View(view)) => {
                        let members = view.members.into_iter().map(|m| m.label).collect();
                        let view = Event::View { group: self.name.clone(), members };
                        self.view = Some(view.clone());
                        self.tell(&view, EVENT_OVERHEAD);
                    }
                    Some(GroupEvent::Lost(why)) => {
                        tracing::warn!(group = %self.name, %why, "the agent has lost its place in the group");
                        // Messages until the agent enters again are missed.
                        self.lost = true;
                        return false;
                    }
                    // A new member gets later messages only: the state is empty.
                    Some(GroupEvent::Snapshot(wanted)) => {
                        let _ = wanted.give([]);
                    }
                    Some(_) => {}
                    None => return true,
                },
                _ = idle.tick() => {
                    self.subscriptions.retain(|subscription| !subscription.is_gone());
                    if self.subscriptions.is_empty() && sent.is_empty() && self.commands.is_empty() {
                        // A command sent from now on fails, and its sender starts a new task.
                        self.commands.close();
                        if self.commands.is_empty() {
                            return true;
                        }
                    }
                }
            }
        }
    }

    /// Queues an event for all receivers, without waiting.
    fn tell(&mut self, event: &Event, weight: usize) {
        self.subscriptions.retain_mut(|subscription| subscription.tell(event, weight));
    }
}
