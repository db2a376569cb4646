//! Inputs and effects: the vocabulary of every trace.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Process, ProcessId};

/// Something that happens to a process.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Input<P: Process> {
    /// It comes up for the first time.
    Start,
    /// It comes up after a crash, with what it saved last, if anything.
    Recover(Option<P::Record>),
    /// The application asks.
    Request(P::Request),
    /// A message arrives.
    Message {
        /// Who sent it.
        from: ProcessId,
        /// What it says.
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
        /// Who sent it.
        from: ProcessId,
        /// The sender's logical time.
        stamp: u64,
    },
}

/// Something that a process does.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Effect<P: Process> {
    /// It sends a message.
    Send {
        /// To whom.
        to: ProcessId,
        /// What.
        message: P::Message,
    },
    /// It starts a timer, or starts it anew.
    SetTimer {
        /// Which.
        timer: P::Timer,
        /// When it runs out.
        after: Duration,
    },
    /// It stops a timer.
    CancelTimer {
        /// Which.
        timer: P::Timer,
    },
    /// It tells the application.
    Indicate(P::Indication),
    /// It writes to stable storage, before any later effect of the same step.
    Save(P::Record),
    /// It met an input that its assumptions rule out: a fault to the simulator and the checker,
    /// a dropped frame and a warning to the network.
    Unexpected(&'static str),
}

/// The timers of an algorithm that has none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum NoTimer {}

/// The requests of an algorithm that nobody asks.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum NoRequest {}

/// The records of an algorithm that saves nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum NoRecord {}
