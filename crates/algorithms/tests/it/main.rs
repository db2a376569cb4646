//! Whole groups of every algorithm: exact costs in the simulator, every run in the checker.

mod bully;
mod bully_1982;
mod chang_roberts;
mod invitation;
mod quorum;
mod tree_wave;
mod central;
mod ricart_agrawala;
mod suzuki_kasami;
mod heartbeat;
mod phi_accrual;
