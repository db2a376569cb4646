//! The seam between algorithms and worlds: processes, clients, judges and measures without their types.
//!
//! A world that is written for [`AnyProcess`] is compiled once, however many algorithms there are. An
//! [`AnyProcess`] is a [`Process`] like any other: equal, hashed, printed and written down as the value inside
//! it. Only what must be fast for millions of steps (the simulator's loop) is compiled for each algorithm.

mod client;
mod data;
mod judge;
mod meter;
mod process;
mod view;

pub use client::AnyApplication;
pub use data::{AnyData, AnyTag, AnyTimer, Data, OrderedData};
pub use judge::AnyMonitor;
pub use meter::AnyMeter;
pub use process::{AnyProcess, Portable, Recordable};
pub use view::{EffectView, InputView};

/// What every world fails with if data of one algorithm is handed to another: a bug of the host.
const FOREIGN: &str = "data of another algorithm crossed the seam";
