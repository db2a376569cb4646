//! The checker: every order of events, every choice, every fault up to a bound.
//!
//! It knows no algorithm. A [`Model`] is a small group with its clients, its judges and its
//! budgets; [`explore`](Model::explore) goes through all its states, breadth first, so that the
//! first violation found is a shortest one.
//!
//! The rules are here twice. `model` and `state` say plainly what a step does to a state; witnesses
//! are made by them. The search goes by `workshop`, `tables` and `expand`, where everything is a
//! number and no handler runs twice. Each step of a witness is made both ways and compared, and in
//! the tests stateright searches the plain rules and must find the same states.

#[cfg(test)]
mod alike;
mod checkpoint;
mod craft;
mod cue;
mod cycles;
mod draws;
mod expand;
#[cfg(test)]
mod fingerprint;
mod model;
mod options;
mod plain;
mod reduce;
mod replay;
mod report;
mod search;
#[cfg(test)]
mod second_opinion;
mod shared;
mod state;
mod stopwatch;
mod store;
mod swarm;
mod symmetry;
mod tables;
mod verdicts;
mod witness;
mod workshop;

pub use checkpoint::{CheckpointError, Checkpoints};
pub use cue::{Cue, Played, Prompter};
pub use model::{Action, Model};
pub use options::{Clock, Options, Timing, Victim};
pub use report::{
    Bounded, FEWEST_MESSAGES, Interchangeable, MOST_MESSAGES, Outcome, Progress, Report,
};
pub use swarm::Swarm;
pub use witness::{Happened, Moment, Witness};
