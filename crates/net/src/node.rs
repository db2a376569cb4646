//! A process on a task.

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

/// A process, with what its task keeps for it.
pub(crate) struct Node {
    pub(crate) group: Group,
    pub(crate) place: usize,
    pub(crate) me: End,
    pub(crate) process: AnyProcess,
    pub(crate) rng: Rng,
    pub(crate) timers: Timers,
    /// The next request of its client, and when it will be made.
    pub(crate) next_request: Option<(AnyData, Instant)>,
    /// The messages sent by the last step.
    pub(crate) outbox: Vec<OutgoingMessage>,
}

/// A message to the process at place `to`.
pub(crate) struct OutgoingMessage {
    pub(crate) to: usize,
    pub(crate) id: u64,
    pub(crate) message: AnyData,
}

/// An event that makes a process take a step.
pub(crate) enum Event {
    Start,
    Recover,
    Message { from: ProcessId, id: u64, message: AnyData },
    Timer(AnyTimer),
    Request(AnyData),
    Suspect(ProcessId),
    Trust(ProcessId),
}

/// A command from the run to a task.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NodeCommand {
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
            next_request: None,
            outbox: Vec::new(),
        }
    }

    /// Runs the process until it is stopped; returns its last state.
    pub(crate) async fn run(
        mut self,
        hub: Arc<Hub>,
        mut inbox: Inbox,
        mut outlet: Outlet,
        mut commands: UnboundedReceiver<NodeCommand>,
    ) -> AnyProcess {
        let mut alarm = pin!(sleep_until(Instant::now()));
        loop {
            for parcel in self.outbox.drain(..) {
                outlet.send(parcel);
            }
            outlet.flush();
            let due = self.due();
            let event = tokio::select! {
                command = commands.recv() => match command {
                    Some(NodeCommand::Suspect(peer)) => Event::Suspect(peer),
                    Some(NodeCommand::Trust(peer)) => Event::Trust(peer),
                    Some(NodeCommand::Stop) | None => break,
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

    /// When the next timer or request is due.
    fn due(&self) -> Option<Instant> {
        let next_request = self.next_request.as_ref().map(|(_, due)| *due);
        [self.timers.due(), next_request].into_iter().flatten().min()
    }

    /// Takes the next timer or request, if it is due.
    pub(crate) fn take_due(&mut self) -> Option<Event> {
        let due = self.due().filter(|due| *due <= Instant::now())?;
        match self.timers.take_due(due) {
            Some(timer) => Some(Event::Timer(timer)),
            None => self.next_request.take().map(|(request, _)| Event::Request(request)),
        }
    }
}

/// Waits until `due`. If that is now, it does not wait for the next tick of the clock, but other tasks still
/// get their turn.
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
