//! The catalog as a whole.

mod scenario;
mod sweeps;
mod tolerance;
