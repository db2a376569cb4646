//! Real processes: the wrapper against a fake service, and whole agents.

mod agents;
mod cluster;
mod fake;
mod history;
mod kit;
mod mutex;
mod names;
mod network;
mod partitions;
mod sessions;
mod wrapper;
