//! Every election of Konklave, compiled for all worlds.
//!
//! Each problem has such a crate, so that cargo builds them in parallel.

use konklave_algorithms::{AnyAlgorithm, erased};

/// Every election, in the order of their names.
pub static ALGORITHMS: &[&dyn AnyAlgorithm] = &[
    erased::<konklave_algorithms::election::adoption::Adoption>(),
    erased::<konklave_algorithms::election::bully::Bully>(),
    erased::<konklave_algorithms::election::bully_1982::Bully1982>(),
    erased::<konklave_algorithms::election::chang_roberts::ChangRoberts>(),
    erased::<konklave_algorithms::election::dolev_klawe_rodeh::DolevKlaweRodeh>(),
    erased::<konklave_algorithms::election::extinction::Extinction>(),
    erased::<konklave_algorithms::election::firewire::FireWire>(),
    erased::<konklave_algorithms::election::franklin::Franklin>(),
    erased::<konklave_algorithms::election::hirschberg_sinclair::HirschbergSinclair>(),
    erased::<konklave_algorithms::election::invitation::Invitation>(),
    erased::<konklave_algorithms::election::itai_rodeh::ItaiRodeh>(),
    erased::<konklave_algorithms::election::quorum::Quorum>(),
    erased::<konklave_algorithms::election::ring_list::RingList>(),
    erased::<konklave_algorithms::election::tree_wave::TreeWave>(),
    erased::<konklave_algorithms::election::virtual_tree::VirtualTree>(),
    erased::<konklave_algorithms::election::virtual_tree_wave::VirtualTreeWave>(),
];

/// The bully algorithm in its hardened form.
pub static BULLY_HARDENED: &dyn AnyAlgorithm =
    erased::<konklave_algorithms::election::bully::hardened::Hardened>();

/// Chang and Roberts's election in its hardened form.
pub static CHANG_ROBERTS_HARDENED: &dyn AnyAlgorithm =
    erased::<konklave_algorithms::election::chang_roberts::hardened::Hardened>();

/// The list-collecting ring election in its hardened form.
pub static RING_LIST_HARDENED: &dyn AnyAlgorithm =
    erased::<konklave_algorithms::election::ring_list::hardened::Hardened>();
