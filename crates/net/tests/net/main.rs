//! The network with algorithms of the catalog: one binary, one module for each concern.

mod algorithms;
mod common;
mod datagrams;
mod faults;
