//! Whole groups.

mod locks;
mod tcp;
