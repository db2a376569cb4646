//! The catalog as a whole.

mod endings;
mod scenario;
mod sweeps;
mod tolerance;
