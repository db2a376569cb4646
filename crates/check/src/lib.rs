//! The checker: every order of events, every choice, every fault up to a bound.
//!
//! It knows no algorithm. A [`Model`] is a small group with its clients, its judges and its
//! budgets; [`explore`](Model::explore) goes through all its states, breadth first, so that the
//! first violation found is a shortest one.
//!
//! The rules are here twice. `model` and `state` say plainly what a step does to a state; witnesses
//! are made by them. The search goes by `semantics`, `tables` and `expand`, where everything is a
//! number and no handler runs twice. Each step of a witness is made both ways and compared, and in
//! the tests stateright searches the plain rules and must find the same states.

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
