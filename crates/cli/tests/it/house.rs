//! House rules about every algorithm that need the catalog; the others are in `cargo xtask tidy`.

use konklave_catalog::Catalog;

#[test]
fn every_mistake_says_what_it_is_and_what_it_breaks() {
    for entry in Catalog::builtin().entries() {
        for mistake in entry.sheet.mistakes {
            let enough = !mistake.what.is_empty() && !mistake.breaks.is_empty();
            assert!(enough, "{}: mistake {} says too little", entry.name(), mistake.name);
        }
    }
}
