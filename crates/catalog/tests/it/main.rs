//! The catalog as a whole.

mod replays;
mod scenario;
mod sweeps;
mod tolerance;
