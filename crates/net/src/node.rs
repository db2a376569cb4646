//! One process on one task.

use std::future::pending;
use std::pin::{Pin, pin};
use std::sync::Arc;

use konklave_process::{Group, Process, ProcessId, Rng};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::NetProcess;
use crate::codec::End;
use crate::timers::Timers;
use crate::transport::{Arrival, Inbox, Link, Outlet};

/// A process with all that its task keeps for it.
pub(crate) struct Node<P: Process> {
    pub(crate) group: Group,
    pub(crate) place: usize,
    pub(crate) me: End,
    pub(crate) process: P,
    pub(crate) rng: Rng,
    pub(crate) timers: Timers<P::Timer>,
    /// What its client will ask, and when.
    pub(crate) wish: Option<(P::Request, Instant)>,
    /// What the last step sent.
    pub(crate) outbox: Vec<Parcel<P::Message>>,
}

/// A message on its way to a place.
pub(crate) struct Parcel<M> {
    pub(crate) to: usize,
    pub(crate) id: u64,
    pub(crate) message: M,
}

/// What makes a process take a step.
pub(crate) enum Event<P: Process> {
    Start,
    Recover,
    Message { from: ProcessId, id: u64, message: P::Message },
    Timer(P::Timer),
    Wish(P::Request),
    Suspect(ProcessId),
    Trust(ProcessId),
}

/// What a task is told from outside.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Order {
    Suspect(ProcessId),
    Trust(ProcessId),
    Stop,
}

/// Where steps are made.
pub(crate) trait Stage<P: Process>: Send + Sync {
    /// Makes a step; false when this process makes no more: it has crashed, or the run is over.
    fn step(&self, node: &mut Node<P>, event: Event<P>) -> bool;
    /// All that came through `link` has been handled, and no more will come.
    fn drained(&self, link: Link);
}

impl<P: NetProcess> Node<P> {
    pub(crate) fn new(group: Group, me: End, process: P, seed: u64) -> Self {
        let place = group.place(me.process).expect("nodes are members");
        let stream = u64::from(me.incarnation) << 32 | place as u64;
        Self {
            group,
            place,
            me,
            process,
            rng: Rng::new(seed).fork(stream),
            timers: Timers::default(),
            wish: None,
            outbox: Vec::new(),
        }
    }

    /// Runs the process until it is stopped: its last state.
    pub(crate) async fn run(
        mut self,
        stage: Arc<dyn Stage<P>>,
        mut inbox: Inbox<P::Message>,
        mut outlet: Outlet<P::Message>,
        mut orders: UnboundedReceiver<Order>,
    ) -> P {
        let mut alarm = pin!(sleep_until(Instant::now()));
        loop {
            for parcel in self.outbox.drain(..) {
                outlet.send(parcel);
            }
            outlet.flush();
            let due = self.due();
            let event = tokio::select! {
                order = orders.recv() => match order {
                    Some(Order::Suspect(peer)) => Event::Suspect(peer),
                    Some(Order::Trust(peer)) => Event::Trust(peer),
                    Some(Order::Stop) | None => break,
                },
                Some(arrival) = inbox.next() => match arrival {
                    Arrival::Message { from, id, message } => Event::Message { from, id, message },
                    Arrival::End(link) => {
                        stage.drained(link);
                        continue;
                    }
                },
                () = wait(due, alarm.as_mut()) => match self.take_due() {
                    Some(event) => event,
                    None => continue,
                },
            };
            if !stage.step(&mut self, event) {
                break;
            }
        }
        self.process
    }

    /// When something happens here by itself.
    fn due(&self) -> Option<Instant> {
        let timer = self.timers.next().map(|(_, due)| due);
        let wish = self.wish.as_ref().map(|(_, due)| *due);
        [timer, wish].into_iter().flatten().min()
    }

    /// What is due next, if it is due.
    pub(crate) fn take_due(&mut self) -> Option<Event<P>> {
        let due = self.due().filter(|due| *due <= Instant::now())?;
        if let Some((timer, _)) = self.timers.next().filter(|(_, at)| *at == due) {
            self.timers.cancel(timer);
            return Some(Event::Timer(timer));
        }
        self.wish.take().map(|(request, _)| Event::Wish(request))
    }
}

/// Waits until `due`. What is due at once does not wait for the next tick of the clock; other tasks
/// still get their turn.
async fn wait(due: Option<Instant>, mut alarm: Pin<&mut Sleep>) {
    match due {
        None => pending().await,
        Some(due) if due <= Instant::now() => tokio::task::coop::consume_budget().await,
        Some(due) => {
            if alarm.deadline() != due {
                alarm.as_mut().reset(due);
            }
            alarm.await;
        }
    }
}
