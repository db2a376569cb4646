//! The laboratory's network: runs algorithms on real tasks, in real time.
//!
//! This crate is for experiments and tests, beside the simulator and the checker. The network of the
//! library that applications use is `konklave::net`; the two share no code.
//!
//! Each process is a task. Its messages travel through channels in memory ([`Transport::Threads`]), or
//! through sockets on the loopback interface: TCP ([`Transport::Tcp`]), UDP ([`Transport::Udp`]) or IP
//! multicast ([`Transport::Multicast`]). Clients, monitors and recorder are those of the simulator. Every
//! step is made under the lock of one *hub*. So the steps of a run have an order, and the monitors judge
//! exactly the run that is recorded.
//!
//! A [`Member`] is one process in an operating system process of its own, without a hub.
//!
//! Times are nanoseconds since the start of the run. Tokio's clock has a resolution of one millisecond:
//! shorter pauses and timers are rounded up, but those of length zero are not.

pub mod codec;
mod config;
mod hub;
mod member;
mod node;
mod outcome;
mod run;
mod run_state;
mod timers;
mod transport;

pub use config::{
    Departure, Fate, Fates, FaultKind, IsHold, NetConfig, NetFault, Parts, PauseContext, Pauses,
    Transport, no_message_faults, no_pause,
};
pub use member::{Member, MemberConfig, News, OnIndication, Sockets};
pub use outcome::{Counts, Ending, NetError, NetOutcome, Trouble, Warning};
pub use run::{Running, run_group, start_group};
