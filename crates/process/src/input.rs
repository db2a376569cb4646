//! Inputs and effects of processes.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Process, ProcessId};

/// An input that a process handles in one step.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Input<P: Process> {
    /// The process starts for the first time.
    Start,
    /// The process restarts after a crash, with the record it saved last, if any.
    Recover(Option<P::Record>),
    /// The client makes a request.
    Request(P::Request),
    /// A message arrives.
    Message {
        /// The sender.
        from: ProcessId,
        /// The message.
        message: P::Message,
    },
    /// A timer ran out.
    Timer(P::Timer),
    /// The failure detector suspects a peer.
    Suspect(ProcessId),
    /// The failure detector trusts a peer again.
    Trust(ProcessId),
    /// A message of the application arrives; the algorithm sees only the clock it carries.
    Stamp {
        /// The sender.
        from: ProcessId,
        /// The sender's logical time.
        stamp: u64,
    },
}

/// An effect of a step of a process.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Effect<P: Process> {
    /// It sends a message.
    Send {
        /// The receiver.
        to: ProcessId,
        /// The message.
        message: P::Message,
    },
    /// It starts or restarts a timer.
    SetTimer {
        /// The timer.
        timer: P::Timer,
        /// The time until it runs out.
        after: Duration,
    },
    /// It stops a timer.
    CancelTimer {
        /// The timer.
        timer: P::Timer,
    },
    /// It gives an indication to its client.
    Indicate(P::Indication),
    /// It writes a record to stable storage, before any later effect of the same step.
    Save(P::Record),
    /// It met an input that the algorithm's assumptions rule out. Every world reports a violation.
    Unexpected(&'static str),
}

/// The timers of an algorithm that has none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum NoTimer {}

/// The requests of an algorithm that has none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum NoRequest {}

/// The records of an algorithm that saves nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum NoRecord {}
