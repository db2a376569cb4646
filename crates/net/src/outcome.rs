//! The outcome of a run.

use std::time::Duration;

use konklave_process::{
    AnyApplication, AnyMeter, AnyMonitor, AnyProcess, ProcessId, ProcessSet, Violation,
};
use konklave_trace::{Recorder, Run};
use thiserror::Error;

use crate::codec::CodecError;

/// The outcome of a run. Times are nanoseconds since the start.
#[derive(Debug)]
pub struct NetOutcome {
    /// How the run ended.
    pub ending: Ending,
    /// How long the run took.
    pub elapsed: Duration,
    /// Counts of messages and steps.
    pub counts: Counts,
    /// How many messages of each kind were sent.
    pub kinds: Vec<(String, u64)>,
    /// The violations, with their times. The first hundred are kept.
    pub violations: Vec<(u64, Violation)>,
    /// The problems of the transport, with their times. The first hundred are kept.
    pub warnings: Vec<(u64, Warning)>,
    /// The processes whose clients wait.
    pub waiting: Vec<ProcessId>,
    /// The processes that are down.
    pub down: ProcessSet,
    /// Whether there was a fault.
    pub faulty: bool,
    /// The last state of each process, in node order.
    pub processes: Vec<AnyProcess>,
    /// The clients.
    pub application: AnyApplication,
    /// The judges.
    pub monitor: AnyMonitor,
    /// The measures.
    pub meter: AnyMeter,
    /// The recorder; the caller finishes it with a footer.
    pub recorder: Option<Recorder<Run>>,
}

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// Nothing more can happen: no message is in flight, no timer runs, no client will ask.
    Quiet,
    /// The time limit cut it off.
    CutOff,
}

/// Counts of messages and steps.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// Messages sent.
    pub sent: u64,
    /// Messages delivered.
    pub delivered: u64,
    /// Messages lost in flight, or sent to a crashed process.
    pub lost: u64,
    /// Messages duplicated by a fault.
    pub duplicated: u64,
    /// Frames dropped because no such message is in flight: they are late or forged.
    pub refused: u64,
    /// Steps of processes.
    pub steps: u64,
    /// Steps caused by a timer. Without any, the outcome does not depend on time.
    pub timers: u64,
    /// Warnings, also those that were not kept.
    pub warnings: u64,
}

/// Why a run could not start, or not finish.
#[derive(Debug, Error)]
pub enum NetError {
    /// The number of processes is not that of the members.
    #[error("{processes} processes for a group of {members}")]
    Size {
        /// How many processes were given.
        processes: usize,
        /// How many members the group has.
        members: usize,
    },
    /// A fault names a process that is not a member.
    #[error("a fault names {0}, which is not a member")]
    Stranger(ProcessId),
    /// The transport is not available.
    #[error("this transport is not available on this machine: {0}")]
    Network(std::io::Error),
    /// A process cannot listen for connections.
    #[error("{process} cannot listen on the loopback interface: {error}")]
    Listen {
        /// The process.
        process: ProcessId,
        /// The error of the system.
        error: std::io::Error,
    },
    /// A process panicked: its code has a bug.
    #[error("{process} panicked: {message}")]
    Panicked {
        /// The process.
        process: ProcessId,
        /// The message of the panic.
        message: String,
    },
}

/// A problem of the transport that the run survived.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{at}: {trouble}")]
pub struct Warning {
    /// The process that noticed it.
    pub at: ProcessId,
    /// The problem.
    pub trouble: Trouble,
}

/// The problems of a transport.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Trouble {
    /// A connection did not begin with a valid hello.
    #[error("closed a connection without a valid hello: {0}")]
    Hello(CodecError),
    /// A connection sent no hello in time.
    #[error("closed a connection that sent no hello in time")]
    Silence,
    /// A hello from another group.
    #[error("closed a connection from another group")]
    OtherGroup,
    /// A hello from a process that is not a member.
    #[error("closed a connection from {0}, which is not a member")]
    Stranger(ProcessId),
    /// A hello for another process, or for an earlier incarnation of this one.
    #[error("closed a connection from {0} that was for another process or an earlier incarnation")]
    NotForUs(ProcessId),
    /// More connections than the group needs.
    #[error("closed a connection: there are too many")]
    TooManyConnections,
    /// Accepting a connection failed.
    #[error("cannot accept a connection: {0}")]
    Accept(String),
    /// A frame could not be read.
    #[error("closed the connection from {from}: {error}")]
    Frame {
        /// The sender.
        from: ProcessId,
        /// The reason why the frame cannot be decoded.
        error: CodecError,
    },
    /// A connection ended in the middle of a frame.
    #[error("the connection from {0} ended within a frame")]
    Truncated(ProcessId),
    /// A frame with a message that is not in flight.
    #[error("dropped a frame from {from}: message {id} is not in flight")]
    Refused {
        /// The sender.
        from: ProcessId,
        /// The number of the message.
        id: u64,
    },
    /// A message could not be encoded.
    #[error("cannot send to {to}: {error}")]
    Unsendable {
        /// The receiver.
        to: ProcessId,
        /// Why the message cannot be encoded.
        error: CodecError,
    },
    /// Connecting failed; the writer tries again.
    #[error("cannot connect to {to}, trying again: {error}")]
    Connect {
        /// The receiver.
        to: ProcessId,
        /// The error of the system.
        error: String,
    },
    /// A connection broke.
    #[error("lost the connection to {to}: {error}")]
    Write {
        /// The receiver.
        to: ProcessId,
        /// The error of the system.
        error: String,
    },
}
