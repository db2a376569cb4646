//! Every lock of Konklave, compiled for all worlds.
//!
//! Each problem has such a crate, so that cargo builds them in parallel.

use konklave_algorithms::{AnyAlgorithm, erased};

/// Every lock, in the order of their names.
pub static ALGORITHMS: &[&dyn AnyAlgorithm] = &[
    erased::<konklave_algorithms::mutex::cao_singhal::CaoSinghal>(),
    erased::<konklave_algorithms::mutex::carvalho_roucairol::CarvalhoRoucairol>(),
    erased::<konklave_algorithms::mutex::central::Central>(),
    erased::<konklave_algorithms::mutex::lamport::Lamport>(),
    erased::<konklave_algorithms::mutex::maekawa::Maekawa>(),
    erased::<konklave_algorithms::mutex::naimi_trehel::NaimiTrehel>(),
    erased::<konklave_algorithms::mutex::neilsen_mizuno::NeilsenMizuno>(),
    erased::<konklave_algorithms::mutex::raymond::Raymond>(),
    erased::<konklave_algorithms::mutex::ricart_agrawala::RicartAgrawala>(),
    erased::<konklave_algorithms::mutex::ricart_agrawala_acknowledged::RicartAgrawalaAcknowledged>(
    ),
    erased::<konklave_algorithms::mutex::ricart_agrawala_token::RicartAgrawalaToken>(),
    erased::<konklave_algorithms::mutex::sanders::Sanders>(),
    erased::<konklave_algorithms::mutex::singhal::Singhal>(),
    erased::<konklave_algorithms::mutex::suzuki_kasami::SuzukiKasami>(),
    erased::<konklave_algorithms::mutex::token_ring::TokenRing>(),
    erased::<konklave_algorithms::mutex::voting::Voting>(),
];
