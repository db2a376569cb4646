//! Real processes: the wrapper against a fake service, and whole agents.

mod agents;
mod answers;
mod cluster;
mod courtesy;
mod descendants;
mod doors;
#[path = "../../../konklave/tests/it/engine.rs"]
mod engine;
mod fake;
mod faults;
mod gate;
mod history;
mod kit;
mod late;
mod missing;
mod mutex;
mod names;
mod nats;
mod network;
mod operators;
mod partitions;
mod promises;
mod recipes;
mod sessions;
mod taken;
mod wrapper;
