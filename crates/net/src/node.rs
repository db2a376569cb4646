//! One process on one task.

use std::future::pending;
use std::pin::{Pin, pin};
use std::sync::Arc;

use konklave_process::{AnyData, AnyProcess, AnyTimer, Group, ProcessId, Rng};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::codec::End;
use crate::hub::Hub;
use crate::timers::Timers;
use crate::transport::{Arrival, Inbox, Outlet};

/// A process with all that its task keeps for it.
pub(crate) struct Node {
    pub(crate) group: Group,
    pub(crate) place: usize,
    pub(crate) me: End,
    pub(crate) process: AnyProcess,
    pub(crate) rng: Rng,
    pub(crate) timers: Timers,
    /// What its client will ask, and when.
    pub(crate) wish: Option<(AnyData, Instant)>,
    /// What the last step sent.
    pub(crate) outbox: Vec<Parcel>,
}

/// A message on its way to a place.
pub(crate) struct Parcel {
    pub(crate) to: usize,
    pub(crate) id: u64,
    pub(crate) message: AnyData,
}

/// What makes a process take a step.
pub(crate) enum Event {
    Start,
    Recover,
    Message { from: ProcessId, id: u64, message: AnyData },
    Timer(AnyTimer),
    Wish(AnyData),
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

impl Node {
    pub(crate) fn new(group: Group, me: End, process: AnyProcess, seed: u64) -> Self {
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
        hub: Arc<Hub>,
        mut inbox: Inbox,
        mut outlet: Outlet,
        mut orders: UnboundedReceiver<Order>,
    ) -> AnyProcess {
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
                        hub.drained(link);
                        continue;
                    }
                },
                () = wait(due, alarm.as_mut()) => match self.take_due() {
                    Some(event) => event,
                    None => continue,
                },
            };
            if !hub.step(&mut self, event) {
                break;
            }
        }
        self.process
    }

    /// When something happens here by itself.
    fn due(&self) -> Option<Instant> {
        let wish = self.wish.as_ref().map(|(_, due)| *due);
        [self.timers.due(), wish].into_iter().flatten().min()
    }

    /// What is due next, if it is due.
    pub(crate) fn take_due(&mut self) -> Option<Event> {
        let due = self.due().filter(|due| *due <= Instant::now())?;
        match self.timers.take_due(due) {
            Some(timer) => Some(Event::Timer(timer)),
            None => self.wish.take().map(|(request, _)| Event::Wish(request)),
        }
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
