//! Whole groups.

mod locks;
mod sweep;
mod tcp;
mod together;
