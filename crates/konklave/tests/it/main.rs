//! Whole groups.

mod fences;
mod lifted;
mod locks;
mod sweep;
mod tcp;
mod together;
