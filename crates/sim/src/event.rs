//! Pending events.

use konklave_process::{Monitor, Process, ProcessId};

use crate::Observer;

/// An event at the process at `place`. Millions may be pending, so every byte counts.
pub(crate) struct Event<P: Process, MT, OT> {
    pub(crate) place: u32,
    pub(crate) kind: EventKind<P, MT, OT>,
}

/// The kinds of events. `MT` and `OT` are the tags that monitor and observer attach to messages.
pub(crate) enum EventKind<P: Process, MT, OT> {
    Message {
        from: ProcessId,
        message: P::Message,
        tags: (MT, OT),
    },
    Request {
        request: P::Request,
        incarnation: u32,
    },
    Timer {
        timer: P::Timer,
        armed: u32,
    },
    Suspect(ProcessId),
    Trust(ProcessId),
    /// A message of the application, by its number. It is stored elsewhere: it is rare, and would make every
    /// event larger.
    Stamp(u32),
    /// The node has handled the first message that waits at it.
    Served {
        incarnation: u32,
    },
}

/// A message of the application.
pub(crate) struct Stamp<MT, OT> {
    pub(crate) from: ProcessId,
    pub(crate) stamp: u64,
    pub(crate) tags: (MT, OT),
}

/// Events with the tags of monitor `M` and observer `O`.
pub(crate) type EventOf<P, M, O> = Event<P, <M as Monitor<P>>::Tag, <O as Observer<P>>::Tag>;
pub(crate) type EventKindOf<P, M, O> =
    EventKind<P, <M as Monitor<P>>::Tag, <O as Observer<P>>::Tag>;
pub(crate) type StampOf<P, M, O> = Stamp<<M as Monitor<P>>::Tag, <O as Observer<P>>::Tag>;
/// The events that wait for a paused process.
pub(crate) type Backlog<P, MT, OT> = Vec<EventKind<P, MT, OT>>;
