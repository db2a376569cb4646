//! Every multicast of Konklave, compiled for all worlds.
//!
//! Each problem has such a crate, so that cargo builds them in parallel.

use konklave_algorithms::{AnyAlgorithm, erased};

/// Every multicast, in the order of their names.
pub static ALGORITHMS: &[&dyn AnyAlgorithm] = &[
    erased::<konklave_algorithms::multicast::ack::Ack>(),
    erased::<konklave_algorithms::multicast::best_effort::BestEffort>(),
    erased::<konklave_algorithms::multicast::causal::Causal>(),
    erased::<konklave_algorithms::multicast::fifo::Fifo>(),
    erased::<konklave_algorithms::multicast::isis::Isis>(),
    erased::<konklave_algorithms::multicast::lamport_order::LamportOrder>(),
    erased::<konklave_algorithms::multicast::nack::Nack>(),
    erased::<konklave_algorithms::multicast::sequencer::Sequencer>(),
    erased::<konklave_algorithms::multicast::srm::Srm>(),
    erased::<konklave_algorithms::multicast::token_order::TokenOrder>(),
];
