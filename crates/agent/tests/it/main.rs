//! Real processes: the wrapper against a fake service, and whole agents.

mod fake;
mod kit;
mod wrapper;
