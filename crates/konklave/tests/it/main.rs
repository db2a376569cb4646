//! Whole groups.

mod locks;
