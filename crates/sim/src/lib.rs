//! The simulator: discrete events, deterministic from a seed.
//!
//! The simulator knows no algorithm. Callers bring processes, clients, judges and measures; the simulator adds
//! delays, faults and chance. The same seed gives the same run, byte for byte.

mod condition;
mod config;
mod control;
mod delay;
mod event;
mod fault;
mod kinds;
mod network;
mod observer;
mod pause;
mod queue;
mod service;
mod sim;
mod stall;
mod streams;
mod timers;
mod world;

pub use config::{Config, PAUSE_FORMS, Pace, UNIT};
pub use control::Struck;
pub use delay::{Delay, FORMS as DELAY_FORMS};
pub use fault::{FORMS as FAULT_FORMS, Fault, Memory, Mishap, Selector, What, When};
pub use observer::{AnyObserver, Incident, Observer};
pub use pause::Pause;
pub use queue::{Time, Wheel};
pub use sim::{Counts, Ending, Parts, Sim};
pub use stall::{Patience, Stall};
pub use streams::{Purpose, Streams};
