//! Whole groups of every algorithm: exact costs in the simulator, every run in the checker.

mod central;
mod chang_roberts;
mod heartbeat;
mod ricart_agrawala;
mod suzuki_kasami;
mod tree_wave;
