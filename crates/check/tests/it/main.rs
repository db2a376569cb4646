//! Small models, explored whole.

mod checkpoint;
mod clock;
mod engine;
mod lock;
mod reduction;
