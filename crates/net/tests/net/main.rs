//! Tests of the network with real algorithms.

mod algorithms;
mod common;
mod datagrams;
mod faults;
