//! What may be pending.

use konklave_process::{Monitor, Process, ProcessId};

use crate::Observer;

/// Something that will happen to the process at a place. Millions may be pending: every byte counts.
pub(crate) struct Event<P: Process, MT, OT> {
    pub(crate) place: u32,
    pub(crate) what: Happening<P, MT, OT>,
}

/// What will happen. `MT` and `OT` are what monitor and observer send along.
pub(crate) enum Happening<P: Process, MT, OT> {
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
    /// A message of the application, by its number: kept aside, for it is rare, and would make every
    /// event larger.
    Stamp(u32),
}

/// A message of the application.
pub(crate) struct Stamp<MT, OT> {
    pub(crate) from: ProcessId,
    pub(crate) stamp: u64,
    pub(crate) tags: (MT, OT),
}

/// What may be pending where monitor `M` judges and `O` watches.
pub(crate) type EventOf<P, M, O> = Event<P, <M as Monitor<P>>::Tag, <O as Observer<P>>::Tag>;
pub(crate) type HappeningOf<P, M, O> =
    Happening<P, <M as Monitor<P>>::Tag, <O as Observer<P>>::Tag>;
pub(crate) type StampOf<P, M, O> = Stamp<<M as Monitor<P>>::Tag, <O as Observer<P>>::Tag>;
/// What waits for a sleeper.
pub(crate) type Backlog<P, MT, OT> = Vec<Happening<P, MT, OT>>;
