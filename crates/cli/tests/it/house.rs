//! House rules about every algorithm: a file, tests, a row in the glossary, mistakes that say enough.

use std::path::{Path, PathBuf};

use konklave_catalog::Catalog;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn every_algorithm_has_a_file_and_tests_of_its_own() {
    for entry in Catalog::builtin().entries() {
        let file = format!("{}.rs", entry.sheet.name.replace('-', "_"));
        let source = root().join("crates/algorithms/src").join(entry.problem).join(&file);
        assert!(source.is_file(), "{} has no file {}", entry.name(), source.display());
        let tests = root().join("crates/algorithms/tests");
        let found = ["it", entry.problem].iter().any(|f| tests.join(f).join(&file).is_file());
        assert!(found, "{} has no tests {}/it/{file}", entry.name(), tests.display());
    }
}

#[test]
fn every_algorithm_has_a_row_in_the_glossary() {
    let glossary = std::fs::read_to_string(root().join("GLOSSARY.md")).expect("a glossary");
    for entry in Catalog::builtin().entries() {
        assert!(glossary.contains(&format!("`{}`", entry.name())), "no row for {}", entry.name());
    }
}

#[test]
fn every_mistake_says_what_it_is_and_what_it_breaks() {
    for entry in Catalog::builtin().entries() {
        for mistake in entry.sheet.mistakes {
            let enough = !mistake.what.is_empty() && !mistake.breaks.is_empty();
            assert!(enough, "{}: mistake {} says too little", entry.name(), mistake.name);
        }
    }
}
