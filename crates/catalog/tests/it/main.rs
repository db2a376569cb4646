//! The catalog as a whole.

mod assumptions;
mod scenario;
mod sweeps;
mod tolerance;
