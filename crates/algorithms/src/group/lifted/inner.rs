//! The algorithms that can be lifted.

use konklave_process::{Inspect, NoRecord, NoTimer, Process, ProcessId};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{Algorithm, Setup, mutex};

/// An algorithm that can be lifted: one of mutual exclusion, without timers and storage.
pub trait Inner:
    Inspect<
        Message: Serialize + DeserializeOwned + Send,
        Timer = NoTimer,
        Request = mutex::Request,
        Indication = mutex::Indication,
        Record = NoRecord,
    > + Serialize
    + Send
    + 'static
{
    /// The process `me` of the group that `setup` describes.
    fn build(me: ProcessId, setup: &Setup) -> Self;
}

impl<A> Inner for A
where
    A: Algorithm<Problem = mutex::Mutex>
        + Process<
            Message: Serialize + DeserializeOwned + Send,
            Timer = NoTimer,
            Request = mutex::Request,
            Indication = mutex::Indication,
            Record = NoRecord,
        > + Serialize
        + Send
        + 'static,
{
    fn build(me: ProcessId, setup: &Setup) -> Self {
        A::new(me, setup)
    }
}
