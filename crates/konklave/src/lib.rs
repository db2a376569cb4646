//! Locks, leaders, barriers and ordered messages among your own processes. No server.
//!
//! Processes that know each other's addresses form a *group*; a majority of it decides. Every grant
//! carries a [`Token`] that only grows, so that a resource can refuse whoever held the lock in the
//! past and does not know it yet (see [`fence`]).
//!
//! ```
//! # fn main() -> Result<(), konklave::Error> {
//! // Three members in memory, with a clock that the test turns.
//! let cluster = konklave::testing::Cluster::new(3);
//! cluster.block_on(async {
//!     let guard = cluster.node(0).lock("reports").acquire().await?;
//!     println!("token {}, safe for {:?}", guard.token(), guard.valid_for());
//!     // … do it, and stop when `guard.lost().await` returns …
//!     guard.release().await
//! })
//! # }
//! ```
//!
//! In production the first line is
//!
//! ```no_run
//! # async fn example() -> Result<(), konklave::Error> {
//! let node = konklave::Node::builder()
//!     .name("a")
//!     .listen("10.0.0.1:7400")
//!     .seeds(["10.0.0.1:7400", "10.0.0.2:7400", "10.0.0.3:7400"])
//!     .pre_shared_key(std::fs::read("key")?)
//!     .data_dir("state/konklave")
//!     .join()
//!     .await?;
//! # Ok(()) }
//! ```
//!
//! # What is promised
//!
//! * At most one holder for each token, tokens of a lock only grow, first come first served.
//! * A minority grants nothing, and says so: its guards are [`Lost`](State::Lost) by their deadline.
//! * With [`Handover::LeaseSafe`] (the default) nobody else is granted a lock of a silent member before that
//!   member's guards have ended by its own clock; with [`Handover::Fast`] only the token protects.
//! * Neither can stop a process that was paused between looking at its guard and writing. The
//!   resource can: give it the token.
//!
//! # Features
//!
//! None is on by default.
//!
//! | feature | what it adds |
//! |---|---|
//! | `nats` | `Builder::nats`: members exchange messages over a NATS server |
//! | `tls` | `Builder::tls` and `Tls`: mutual TLS between members |
//! | `tower` | `fence::http`: a [`FenceGate`] as a layer in front of an HTTP service |

mod barrier;
mod builder;
mod campaign;
mod clock;
mod core;
mod error;
pub mod fence;
mod flight;
mod group;
mod lifted;
mod local_grant_budget;
mod lock;
mod lock_algorithm;
mod multi;
mod net;
mod node;
mod rate_limiter;
mod session;
mod shared;
mod status;
mod store;
mod table;
pub mod testing;
mod token;
mod wire;

pub use barrier::Barrier;
pub use builder::{Builder, Timings};
pub use campaign::{Campaign, Leader, Leadership, Observer};
pub use error::Error;
pub use fence::FenceGate;
pub use flight::RecordedMessage;
pub use group::{Group, GroupEvent, GroupMember, GroupView, Snapshot};
pub use lock::{Guard, Handover, LockRequest, State};
pub use lock_algorithm::LockAlgorithm;
pub use multi::{Guards, LockAll};
#[cfg(feature = "tls")]
pub use net::tls::Tls;
pub use node::{Events, Node};
#[doc(hidden)]
pub use rate_limiter::RateLimiter;
pub use session::Session;
pub use status::{
    Event, Holder, LockStatus, Loss, MemberStatus, Quorum, Status, Waiter, Why, WhyState,
};
pub use token::Token;
pub use wire::MAX_MESSAGE;

/// The id of a node: a small number, kept in its data directory.
pub type NodeId = u32;
