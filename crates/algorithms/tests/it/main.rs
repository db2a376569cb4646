//! Whole groups of every algorithm: exact costs in the simulator, every run in the checker.

mod chang_roberts;
mod tree_wave;
mod carvalho_roucairol;
mod central;
mod channel_orders;
mod lamport;
mod script;
mod ricart_agrawala;
mod ricart_agrawala_acknowledged;
mod singhal;
mod suzuki_kasami;
mod token_ring;
mod heartbeat;
