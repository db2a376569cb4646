//! Real processes: the wrapper against a fake service, and whole agents.

mod agents;
mod answers;
mod cluster;
mod courtesy;
mod descendants;
mod doors;
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
#[path = "../../../konklave/tests/it/nats_server.rs"]
mod nats_server;
mod network;
mod operators;
mod partitions;
mod promises;
mod recipes;
mod sessions;
mod taken;
mod wrapper;
