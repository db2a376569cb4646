//! Real processes: the wrapper against a fake service, and whole agents.

mod agents;
mod answers;
mod cluster;
mod descendants;
mod diagnosis;
mod fake;
mod faults;
mod gate;
mod history;
mod hostile_connections;
mod keys;
mod kit;
mod late_renewal;
mod missing;
mod mutex;
mod names;
mod nats;
#[path = "../../../konklave/tests/it/nats_server.rs"]
mod nats_server;
mod network;
mod operators;
mod partitions;
mod peer_admission;
mod previous_holder;
mod recipes;
mod resources_in_use;
mod restarts;
mod roles;
mod sessions;
mod shutdown;
mod stalls;
mod stopped;
mod wrapper;
