//! Whole groups of every algorithm: exact costs in the simulator, every run in the checker.

mod central;
mod chang_roberts;
mod dolev_klawe_rodeh;
mod franklin;
mod heartbeat;
mod hirschberg_sinclair;
mod itai_rodeh;
mod naimi_trehel;
mod neilsen_mizuno;
mod raymond;
mod ricart_agrawala;
mod ricart_agrawala_token;
mod ring_list;
mod rings;
mod suzuki_kasami;
mod tree_wave;
