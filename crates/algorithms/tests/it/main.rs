//! Whole groups of every algorithm: exact costs in the simulator, every run in the checker.

mod chang_roberts;
mod adoption;
mod extinction;
mod firewire;
mod graphs;
mod tree_wave;
mod virtual_tree;
mod central;
mod ricart_agrawala;
mod suzuki_kasami;
mod heartbeat;
