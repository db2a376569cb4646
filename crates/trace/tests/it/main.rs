//! Recorded runs: written, read again, replayed, filtered, drawn and exported.

mod axis;
mod compact;
mod exports;
mod files;
mod filters;
mod player;
mod process;
mod runs;
mod tikz;
mod world;
