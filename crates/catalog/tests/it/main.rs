//! The catalog as a whole.

mod assumptions;
mod endings;
mod replays;
mod scenario;
mod sweeps;
mod tolerance;
