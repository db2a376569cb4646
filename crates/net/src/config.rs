//! What a run on the network is made of.

use std::fmt;
use std::time::Duration;

use konklave_process::{AnyApplication, AnyData, AnyMeter, AnyMonitor, AnyProcess, ProcessId};

use crate::Warning;

/// The world of a run, as data.
#[derive(Clone, Debug)]
pub struct NetConfig {
    /// How messages travel.
    pub transport: Transport,
    /// Where the draws of the processes come from. Their order is real, and so not the seed's.
    pub seed: u64,
    /// What goes wrong.
    pub faults: Vec<NetFault>,
    /// After how long a crash is known to all; none: never.
    pub detect_after: Option<Duration>,
    /// The run is cut off after this time.
    pub time_limit: Duration,
    /// No frame is longer than this, in bytes.
    pub frame_limit: usize,
    /// Told of each warning, as it comes.
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
    /// Through UDP on the loopback interface, a datagram for each message: some may be lost.
    Udp,
    /// The same, but what one says to many at once is one datagram to an IP multicast address.
    Multicast,
}

impl Transport {
    /// Its name, as in recordings and on the command line.
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

/// Something that goes wrong.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NetFault {
    /// How long after the start.
    pub at: Duration,
    /// To whom.
    pub process: ProcessId,
    /// What.
    pub kind: FaultKind,
}

/// What goes wrong with a process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FaultKind {
    /// It stops: its sockets are closed and its state is gone. What it had sent still arrives.
    Crash,
    /// It comes up again, newly built, with what it had saved.
    Restart,
}

/// What comes from outside: processes, clients, judges, measures.
pub struct Parts {
    /// In node order.
    pub processes: Vec<AnyProcess>,
    /// Who asks.
    pub application: AnyApplication,
    /// Who judges.
    pub monitor: AnyMonitor,
    /// Who measures.
    pub meter: AnyMeter,
    /// How long clients pause before they ask.
    pub pause: Pauses,
}

/// How long a client pauses before a wish.
pub type Pauses = Box<dyn FnMut(Wish) -> Duration + Send>;

/// Whether the pause before a request is the pause inside.
pub type IsHold = Box<dyn Fn(&AnyData) -> bool + Send>;

/// What a client is about to ask, as far as its pause depends on it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wish {
    /// Whose wish it is.
    pub at: ProcessId,
    /// Whether this is the pause inside.
    pub hold: bool,
    /// The time since the start.
    pub now: Duration,
}

/// Clients that ask at once.
pub fn no_pause() -> Pauses {
    Box::new(|_| Duration::ZERO)
}
