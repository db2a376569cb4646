//! The table of guarantees in the docs is what the checker finds today.
//!
//! `UPDATE=1` computes what is missing in the cache and rewrites the page; `KONKLAVE_LONG=1` computes
//! every row anew and believes no cache.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Folder, konklave, konklave_line, words};

fn docs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

fn committed(name: &str) -> String {
    fs::read_to_string(docs(name)).expect("the document is there")
}

fn rows(json: &str) -> Vec<Value> {
    serde_json::from_str(json).expect("rows of guarantees")
}

/// The committed rows of one algorithm.
fn rows_of(algorithm: &str) -> Vec<Value> {
    let mut rows = rows(&committed("guarantees.json"));
    rows.retain(|row| row["algorithm"] == algorithm);
    assert!(!rows.is_empty(), "{algorithm} has rows");
    rows
}

/// A server, a token and an election: what takes little time.
const QUICK: &[&str] = &["mutex/central", "mutex/suzuki-kasami", "election/chang-roberts"];

#[test]
fn the_page_is_what_its_rows_say_and_no_algorithm_is_missing() {
    let folder = Folder::new("guarantees");
    let update = std::env::var_os("UPDATE").is_some();
    let cache = if update {
        docs("guarantees.json").to_string_lossy().into_owned()
    } else {
        folder.write("guarantees.json", &committed("guarantees.json"))
    };
    let said = konklave(&["guarantees", "--markdown", "--cache", &cache]);
    assert_eq!(said.code, 0, "{}", said.err);
    if update {
        return fs::write(docs("guarantees.md"), said.out).expect("the page can be rewritten");
    }
    assert!(
        said.out == committed("guarantees.md"),
        "docs/guarantees.md is stale; `UPDATE=1 cargo test -p konklave-cli guarantees` rewrites it"
    );
    let today = fs::read_to_string(&cache).expect("the cache is there");
    assert!(today == committed("guarantees.json"), "docs/guarantees.json is stale");
}

#[test]
fn rows_computed_anew_are_those_of_the_docs() {
    let long = std::env::var_os("KONKLAVE_LONG").is_some();
    if long {
        let said = konklave_line("guarantees --format json");
        assert_eq!(said.code, 0, "{}", said.err);
        assert!(rows(&said.out) == rows(&committed("guarantees.json")), "the table is stale");
        return;
    }
    for algorithm in QUICK {
        let said = konklave(&["guarantees", algorithm, "--format", "json"]);
        assert_eq!(said.code, 0, "{}", said.err);
        assert_eq!(
            rows(&said.out),
            rows_of(algorithm),
            "{algorithm}: docs/guarantees.json is stale"
        );
    }
}

#[test]
fn a_no_is_shown_by_its_command_in_as_many_steps() {
    let mut shown = 0;
    for algorithm in ["mutex/central", "election/chang-roberts"] {
        for row in rows_of(algorithm) {
            for cell in row["cells"].as_array().expect("cells") {
                let Some(command) = cell["no"]["command"].as_str() else { continue };
                let mut words = words(command);
                assert_eq!(words.remove(0), "konklave");
                words.extend(["--format".into(), "json".into()]);
                let said = konklave(&words.iter().map(String::as_str).collect::<Vec<_>>());
                assert_eq!(said.code, 1, "{command}: {}", said.err);
                let found: Value = serde_json::from_str(&said.out).expect("a report");
                assert_eq!(found["witness_length"], cell["no"]["length"], "{command}");
                shown += 1;
            }
        }
    }
    assert!(shown > 5, "only {shown} cells say no");
}

#[test]
fn a_cache_that_is_none_is_refused_and_sizes_have_bounds() {
    let folder = Folder::new("guarantees-bad");
    let file = folder.write("bad.json", "{}");
    let said = konklave(&["guarantees", "central", "--cache", &file]);
    assert_eq!(said.code, 65, "{}", said.err);
    assert_eq!(konklave_line("guarantees central -n 0").code, 64);
    assert_eq!(konklave_line("guarantees central -n 7").code, 64);
}
