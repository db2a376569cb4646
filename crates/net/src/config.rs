//! The configuration and the parts of a run.

use std::fmt;
use std::time::Duration;

use konklave_process::{AnyApplication, AnyData, AnyMeter, AnyMonitor, AnyProcess, ProcessId};

use crate::Warning;

/// The configuration of a run.
#[derive(Clone, Debug)]
pub struct NetConfig {
    /// How messages travel.
    pub transport: Transport,
    /// The seed of the processes' random choices. The order of messages is real and does not depend on it.
    pub seed: u64,
    /// The faults to inject.
    pub faults: Vec<NetFault>,
    /// The time after which all processes know of a crash; none: they never do.
    pub detect_after: Option<Duration>,
    /// The run is cut off after this time.
    pub time_limit: Duration,
    /// The maximum length of a frame, in bytes.
    pub frame_limit: usize,
    /// Called with each warning, at once.
    pub warn: fn(&Warning),
}

impl Default for NetConfig {
    fn default() -> Self {
        Self {
            transport: Transport::Threads,
            seed: 1,
            faults: Vec::new(),
            detect_after: None,
            time_limit: Duration::from_secs(60),
            frame_limit: 1 << 20,
            warn: |_| {},
        }
    }
}

/// How messages travel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Transport {
    /// Through channels in memory.
    Threads,
    /// Through TCP on the loopback interface: each process listens on a port of its own.
    Tcp,
    /// Through UDP on the loopback interface, one datagram for each message; some may be lost.
    Udp,
    /// As UDP, but a message to several receivers is one datagram to an IP multicast address.
    Multicast,
}

impl Transport {
    /// Its name in recordings and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Threads => "threads",
            Self::Tcp => "tcp",
            Self::Udp => "udp",
            Self::Multicast => "multicast",
        }
    }
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A fault to inject.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NetFault {
    /// The time since the start.
    pub at: Duration,
    /// The process that fails.
    pub process: ProcessId,
    /// The kind of fault.
    pub kind: FaultKind,
}

/// The kinds of faults.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// The process stops: its sockets are closed and its state is gone. Messages it sent still arrive.
    Crash,
    /// The process restarts in its initial state, with the record it saved.
    Restart,
}

/// The processes, clients, judges and measures of a run.
pub struct Parts {
    /// The processes, in node order.
    pub processes: Vec<AnyProcess>,
    /// The clients.
    pub application: AnyApplication,
    /// The judges.
    pub monitor: AnyMonitor,
    /// The measures.
    pub meter: AnyMeter,
    /// The pauses of clients before their requests.
    pub pause: Pauses,
    /// The injected faults of messages.
    pub fates: Fates,
}

/// How long a client pauses before a request.
pub type Pauses = Box<dyn FnMut(PauseContext) -> Duration + Send>;

/// Whether the pause before this request is the holding time: the client holds something meanwhile.
pub type IsHold = Box<dyn Fn(&AnyData) -> bool + Send>;

/// The facts that decide how long a client pauses before a request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PauseContext {
    /// The process of the client.
    pub at: ProcessId,
    /// Whether this is the holding time; see [`IsHold`].
    pub hold: bool,
    /// The time since the start.
    pub now: Duration,
}

/// Clients that never pause.
pub fn no_pause() -> Pauses {
    Box::new(|_| Duration::ZERO)
}

/// Decides the fate of each message when it is sent. The real network still carries those that are not lost.
pub type Fates = Box<dyn FnMut(&Departure<'_>) -> Fate + Send>;

/// A message that is sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Departure<'a> {
    /// The sender.
    pub from: ProcessId,
    /// The receiver.
    pub to: ProcessId,
    /// The kind of message.
    pub kind: &'a str,
    /// The time since the start.
    pub now: Duration,
}

/// The fate of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// The transport gets it once.
    Arrives,
    /// The transport gets it twice.
    ArrivesTwice,
    /// The transport does not get it.
    Lost,
}

/// No injected faults of messages.
pub fn no_message_faults() -> Fates {
    Box::new(|_| Fate::Arrives)
}
