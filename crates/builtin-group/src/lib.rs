//! Every group algorithm and failure detector of Konklave, compiled for all worlds.
//!
//! Each problem has such a crate, so that cargo builds them in parallel.

use konklave_algorithms::{AnyAlgorithm, erased};

/// Every group algorithm, in the order of their names.
pub static ALGORITHMS: &[&dyn AnyAlgorithm] = &[
    erased::<konklave_algorithms::group::forming::Forming>(),
    erased::<konklave_algorithms::group::leader::Leader>(),
    erased::<konklave_algorithms::group::lifted::Lifted>(),
    erased::<konklave_algorithms::group::lock_table::LockTable>(),
    erased::<konklave_algorithms::group::virtual_synchrony::VirtualSynchrony>(),
];

/// Every failure detector, in the order of their names.
pub static DETECTORS: &[&dyn AnyAlgorithm] = &[
    erased::<konklave_algorithms::detector::heartbeat::Heartbeat>(),
    erased::<konklave_algorithms::detector::phi_accrual::PhiAccrual>(),
];
