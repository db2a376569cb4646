//! Whole runs of small test processes: the world does what its configuration says.

mod faults;
mod network;
mod node;
mod runs;
mod stalls;
