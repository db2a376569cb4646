//! The network: the algorithms on real tasks, in real time.
//!
//! Each process is a task of its own. Its messages travel through channels in memory
//! ([`Transport::Threads`]) or through sockets on the loopback interface, one listener for each
//! process ([`Transport::Tcp`]). The same clients ask, the same monitors judge and the same recorder
//! writes down as in the simulator: every step is made under the lock of one *hub*, so the steps of
//! a run have an order, and what was judged is what happened.
//!
//! Times are nanoseconds since the start of the run. Tokio's clock has a resolution of one
//! millisecond: shorter pauses and timers are rounded up, those of length zero are not.

pub mod codec;
mod config;
mod hub;
mod judge;
mod member;
mod node;
mod outcome;
mod run;
mod timers;
mod transport;

pub use config::{
    FaultKind, IsHold, NetConfig, NetFault, Parts, Pauses, Transport, Wish, no_pause,
};
pub use member::{Member, MemberConfig, News, Sockets, Tell};
pub use outcome::{Counts, Ending, NetError, NetOutcome, Trouble, Warning};
pub use run::{Running, run_group, start_group};
