//! The catalog as a whole.

mod endings;
mod replays;
mod scenario;
mod sweeps;
mod tolerance;
