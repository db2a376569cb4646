//! Whole groups.

mod engine;
mod fences;
mod lifted;
mod locks;
mod nats;
mod sweep;
mod tcp;
mod together;
