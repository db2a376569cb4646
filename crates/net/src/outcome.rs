//! What a run on the network came to.

use std::time::Duration;

use konklave_process::{
    AnyApplication, AnyMeter, AnyMonitor, AnyProcess, ProcessId, ProcessSet, Violation,
};
use konklave_trace::{Recorder, Run};
use thiserror::Error;

use crate::codec::CodecError;

/// A run that is over. Times are nanoseconds since the start.
#[derive(Debug)]
pub struct NetOutcome {
    /// How it ended.
    pub ending: Ending,
    /// How long it took.
    pub elapsed: Duration,
    /// How many messages there were.
    pub counts: Counts,
    /// How many of each kind were sent.
    pub kinds: Vec<(String, u64)>,
    /// What broke, and when.
    pub violations: Vec<(u64, Violation)>,
    /// What went wrong below the processes, and when. The first hundred are kept.
    pub warnings: Vec<(u64, Warning)>,
    /// Who waits for an answer.
    pub waiting: Vec<ProcessId>,
    /// Who is down.
    pub down: ProcessSet,
    /// Whether a fault struck.
    pub faulty: bool,
    /// The last state of each process, in node order.
    pub processes: Vec<AnyProcess>,
    /// The clients.
    pub application: AnyApplication,
    /// The judges.
    pub monitor: AnyMonitor,
    /// The measures.
    pub meter: AnyMeter,
    /// The recorder, to be finished with a footer.
    pub recorder: Option<Recorder<Run>>,
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// Nothing more can happen: no message is on its way, no timer runs, nobody will ask.
    Quiet,
    /// It was cut off.
    CutOff,
}

/// How many messages there were.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Handed to the network.
    pub sent: u64,
    /// Handed to a process.
    pub delivered: u64,
    /// Lost on the way, or sent to a crashed process.
    pub lost: u64,
    /// Frames that belong to no message on its way: late ones, or forged ones.
    pub refused: u64,
    /// Steps of processes.
    pub steps: u64,
    /// Those of them that a timer caused: where there is none, time had no part in what happened.
    pub timers: u64,
    /// Warnings, also those that were not kept.
    pub warnings: u64,
}

/// Why there was no run, or none to the end.
#[derive(Debug, Error)]
pub enum NetError {
    /// Not every member has one process.
    #[error("{processes} processes for a group of {members}")]
    Size {
        /// How many processes were given.
        processes: usize,
        /// How many members the group has.
        members: usize,
    },
    /// A fault names nobody.
    #[error("a fault names {0}, which is no member")]
    Stranger(ProcessId),
    /// There is no network of the kind that was asked for.
    #[error("no such network on this machine: {0}")]
    Network(std::io::Error),
    /// A process found no port to listen on.
    #[error("{process} cannot listen on the loopback interface: {error}")]
    Listen {
        /// Who.
        process: ProcessId,
        /// Why.
        error: std::io::Error,
    },
    /// A process panicked: a mistake of ours.
    #[error("{process} panicked: {message}")]
    Panicked {
        /// Who.
        process: ProcessId,
        /// What it said.
        message: String,
    },
}

/// Something that went wrong below the processes, and was dealt with.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{at}: {trouble}")]
pub struct Warning {
    /// Who noticed.
    pub at: ProcessId,
    /// What it was.
    pub trouble: Trouble,
}

/// What can go wrong below the processes.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Trouble {
    /// A connection opened with something else than a hello.
    #[error("closed a connection that did not open as ours do: {0}")]
    Hello(CodecError),
    /// A connection opened, and said nothing.
    #[error("closed a connection that never said hello")]
    Silence,
    /// A hello from another group.
    #[error("closed a connection from another group")]
    OtherGroup,
    /// A hello from someone who is no member.
    #[error("closed a connection from {0}, which is no member")]
    Stranger(ProcessId),
    /// A hello for another process, or for what this one was before a restart.
    #[error("closed a connection from {0} that was meant for another")]
    NotForUs(ProcessId),
    /// More connections than the group needs.
    #[error("closed a connection: there are too many")]
    Crowd,
    /// No connection could be taken.
    #[error("cannot take a connection: {0}")]
    Accept(String),
    /// A frame that cannot be read.
    #[error("closed the connection from {from}: {error}")]
    Frame {
        /// Who sent it.
        from: ProcessId,
        /// What is wrong with it.
        error: CodecError,
    },
    /// A connection broke in the middle of a frame.
    #[error("the connection from {0} ended within a frame")]
    Truncated(ProcessId),
    /// A frame that belongs to no message on its way.
    #[error("dropped a frame from {from}: no message {id} is on its way")]
    Refused {
        /// Who sent it.
        from: ProcessId,
        /// The number it carries.
        id: u64,
    },
    /// A message that makes no frame.
    #[error("cannot send to {to}: {error}")]
    Unsendable {
        /// To whom.
        to: ProcessId,
        /// Why not.
        error: CodecError,
    },
    /// A connection could not be made; it is tried again.
    #[error("cannot connect to {to}, trying again: {error}")]
    Connect {
        /// To whom.
        to: ProcessId,
        /// Why not.
        error: String,
    },
    /// A connection broke.
    #[error("lost the connection to {to}: {error}")]
    Write {
        /// To whom.
        to: ProcessId,
        /// How.
        error: String,
    },
}
