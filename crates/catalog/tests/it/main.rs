//! The catalog as a whole.

mod assumptions;
mod compact;
mod disturbances;
mod endings;
mod replays;
mod scenario;
mod sweeps;
mod tolerance;
mod workloads;

use std::sync::LazyLock;

use konklave_catalog::{Catalog, Entry, Error};

/// The built-in catalog.
fn catalog() -> &'static Catalog {
    static CATALOG: LazyLock<Catalog> = LazyLock::new(Catalog::builtin);
    &CATALOG
}

fn find(name: &str) -> Result<&'static Entry, Error> {
    catalog().find(name)
}
