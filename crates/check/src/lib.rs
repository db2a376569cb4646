//! The checker: every order of events, every choice, every fault up to a bound.
//!
//! It knows no algorithm. A [`Model`] is a small group with its clients, its judges and its
//! budgets; [`explore`](Model::explore) goes through all its states, breadth first, so that the
//! first violation found is a shortest one.

mod draws;
mod fingerprint;
mod livelock;
mod model;
mod options;
mod search;
mod state;
mod witness;

pub use model::{Action, Model};
pub use options::{Options, Timing};
pub use search::{Bounded, Outcome, Progress, Report};
pub use witness::{Happened, Moment, Witness};
