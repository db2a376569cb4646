//! Small models, explored exhaustively.

mod checkpoint;
mod clock;
mod engine;
mod lock;
mod reduction;
