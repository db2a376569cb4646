//! Whole groups.

mod fences;
mod locks;
mod sweep;
mod tcp;
mod together;
