//! Locks, leaders, barriers and ordered messages among your own processes. No server.
//!
//! Processes that know each other's addresses form a *group*; a majority of it decides. Every grant
//! carries a fencing [`Token`]. Tokens only grow, so a resource can refuse a former holder that does not know
//! yet that it lost the lock (see [`fence`]).
//!
//! ```
//! # fn main() -> Result<(), konklave::Error> {
//! // Three members in memory, with a simulated clock.
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
//! # Guarantees
//!
//! * Each token has at most one holder, the tokens of a lock only grow, and requests are served in order.
//! * A minority grants nothing, and its guards are [`Lost`](State::Lost) by their deadline.
//! * With [`Handover::LeaseSafe`] (the default), a silent member's lock is granted to nobody else before the
//!   member's own clock has ended its guards. With [`Handover::Fast`], only the token protects.
//! * A process may be paused between a check of its guard and a write. No lock service can prevent that
//!   write. The resource can: give it the token.
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
mod streams;
pub mod testing;
mod wire;

pub use barrier::Barrier;
pub use builder::{Builder, Timings};
pub use campaign::{Campaign, Leader, Leadership, Observer};
pub use error::Error;
pub use fence::FenceGate;
pub use flight::RecordedMessage;
pub use group::{Group, GroupEvent, GroupLoss, GroupMember, GroupView, MAX_STATE, Snapshot};
pub use konklave_algorithms::group::Token;
pub use lock::{Guard, Handover, LockRequest, State};
pub use lock_algorithm::LockAlgorithm;
pub use multi::{Guards, LockAll};
#[cfg(feature = "tls")]
pub use net::tls::Tls;
pub use node::Node;
#[doc(hidden)]
pub use rate_limiter::RateLimiter;
pub use session::Session;
pub use status::{
    Event, Holder, LockStatus, Loss, MemberStatus, Outsider, Quorum, Refused, Remedy, Status,
    Waiter, Why, WhyState,
};
pub use streams::{Events, QuorumWatch};
pub use wire::MAX_MESSAGE;

use konklave_algorithms::group::{table, token};

/// The id of a node: a small number, kept in its data directory.
pub type NodeId = u32;
