//! Whole groups of every algorithm: exact costs in the simulator, every run in the checker.

mod chang_roberts;
mod tree_wave;
mod central;
mod ricart_agrawala;
mod suzuki_kasami;
mod heartbeat;
mod raymond;
mod naimi_trehel;
mod neilsen_mizuno;
mod ricart_agrawala_token;
