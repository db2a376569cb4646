//! Whole groups.

mod engine;
mod fences;
mod locks;
mod nats;
mod sweep;
mod tcp;
mod together;
