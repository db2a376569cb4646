//! The simulator: discrete events, deterministic from a seed.
//!
//! It knows no algorithm. Processes, clients, judges and measures come from outside; delays, faults
//! and chance live here. The same seed gives the same run, byte for byte.

mod config;
mod delay;
mod fault;
mod network;
mod observer;
mod queue;
mod world;

pub use config::{Config, Pace, UNIT};
pub use delay::{Delay, FORMS as DELAY_FORMS};
pub use fault::{FORMS as FAULT_FORMS, Fault, Memory, Mishap, Selector, What, When};
pub use observer::{Incident, Observer};
pub use queue::{Time, Wheel};
pub use world::{Counts, Ending, Parts, Sim};
