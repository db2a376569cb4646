//! The checker: every order of events, every choice, every fault up to a bound.
//!
//! The checker knows no algorithm. A [`Model`] is a small group with its clients, its judges and its
//! fault budgets. [`explore`](Model::explore) visits all its states, breadth first, so that the first
//! violation found is a shortest one.
//!
//! The rules exist twice:
//! - The *plain rules* (`model`, `enabled`, `state`) work on values and say what a step does to a state.
//!   Witnesses and schedules are run by them.
//! - The *numbered rules* (`semantics`, `tables`, `expand`) work on numbers, so that no handler runs
//!   twice for the same state and input. The search runs by them.
//!
//! Replay makes each step of a witness by both and compares the results. In the tests, stateright
//! searches the plain rules and must find the same states.
//!
//! Words used throughout:
//! - A *place* is the index of a process in node order.
//! - A *local* is a process together with its timers, its saved record and its pending news.
//! - *News* are what the failure detector has to report to a process: a peer is suspected or trusted.
//! - The *environment* is the rest of a state: clients, judges, spent budgets, cut channels.
//! - An *observation* is what the environment learns of a step or a fault.
//! - An *end* is a state in which nothing but a fault can happen.

mod checkpoint;
mod cycles;
mod draws;
mod enabled;
mod expand;
#[cfg(test)]
mod fingerprint;
mod model;
mod options;
mod reduce;
mod replay;
mod report;
mod schedule;
mod search;
mod semantics;
mod shared;
mod state;
#[cfg(test)]
mod stateright_oracle;
mod stopwatch;
mod store;
mod swarm;
mod symmetry;
#[cfg(test)]
mod symmetry_oracle;
mod tables;
mod verdicts;
mod witness;

pub use checkpoint::{CheckpointError, Checkpoints};
pub use model::{Action, Model};
pub use options::{Clock, Options, Timing, Victim};
pub use report::{
    Bounded, FEWEST_MESSAGES, Interchangeable, MOST_MESSAGES, Outcome, Progress, Report,
};
pub use schedule::{Playback, ScheduleRecorder, ScheduleStep};
pub use swarm::Swarm;
pub use witness::{Moment, Witness, WorldEvent};
