//! Single steps.
