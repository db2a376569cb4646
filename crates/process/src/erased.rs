//! Type erasure between algorithms and worlds: processes, clients, judges and measures of any algorithm.
//!
//! A world that is written for [`AnyProcess`] is compiled once, however many algorithms there are. An
//! [`AnyProcess`] is a [`Process`] itself: it compares, hashes, prints and serialises as the process inside.
//! Only the simulator's loop, which must be fast for millions of steps, is compiled for each algorithm.

mod client;
mod data;
mod judge;
mod meter;
mod process;
mod view;

pub use client::AnyApplication;
pub use data::{AnyData, AnyTag, AnyTimer, Data, OrderedData, encoded_size};
pub use judge::AnyMonitor;
pub use meter::AnyMeter;
pub use process::{AnyProcess, Portable, Recordable};
pub use view::{EffectView, InputView};

/// The panic message if a host passes data of one algorithm to another, which is a bug of the host.
const FOREIGN: &str = "data of another algorithm crossed the seam";
