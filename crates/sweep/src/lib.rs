//! Parameter studies: every combination of parameters, every seed, on all cores.
//!
//! A [`Study`] is data; its cases are numbered, and a case's result depends on nothing but the case.
//! So results are the same on one thread or many, in one piece or in shards, at once or resumed.

mod compare;
mod expression;
mod fit;
mod plot;
mod results;
mod seal;
mod statistics;
mod study;
mod work;

pub use compare::{
    Against, Better, Column, Comparison, Contest, Endurance, Line, Steady, compare, html, svg,
};
pub use fit::{Finding, Fit, LEAST_R2, LEVEL, Law, SIZES, fit};
pub use plot::{Figure, Plot};
pub use results::{Heading, Results, Row, merge};
pub use statistics::{Combination, Difference, Spread, combinations, holm, paired, spread};
pub use study::{Case, Impossible, Shard, Study, StudyError};
pub use work::{Progress, work};

/// The built-in catalog, for tests.
#[cfg(test)]
fn builtin() -> &'static konklave_catalog::Catalog {
    static CATALOG: std::sync::LazyLock<konklave_catalog::Catalog> =
        std::sync::LazyLock::new(konklave_catalog::Catalog::builtin);
    &CATALOG
}
