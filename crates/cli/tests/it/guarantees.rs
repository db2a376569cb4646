//! The table of guarantees in the docs is what the checker finds today.
//!
//! `UPDATE=1` computes what is missing in the cache and rewrites the page; `KONKLAVE_LONG=1` computes
//! every row anew and believes no cache.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{Folder, konklave, konklave_line, words};

fn docs(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../book").join(name)
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

/// How many states a row took, about; those of a cell that gave up, too.
fn states(row: &Value) -> u64 {
    let kinds = ["yes", "bypass", "bounded"];
    let cells = row["cells"].as_array().expect("cells").iter();
    cells.filter_map(|cell| kinds.iter().find_map(|kind| cell[kind]["states"].as_u64())).sum()
}

/// Every test computes the algorithms with at most so many states anew.
const FEW: u64 = 100_000;

/// The algorithms of the table, each once.
fn algorithms(rows: &[Value]) -> Vec<String> {
    let mut names: Vec<String> =
        rows.iter().filter_map(|row| Some(row["algorithm"].as_str()?.to_owned())).collect();
    names.dedup();
    names
}

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
        return fs::write(docs("en/learn/guarantees.md"), said.out)
            .expect("the page can be rewritten");
    }
    assert!(
        said.out == committed("en/learn/guarantees.md"),
        "book/en/learn/guarantees.md is stale; `UPDATE=1 cargo test -p konklave-cli guarantees` rewrites it"
    );
    let today = fs::read_to_string(&cache).expect("the cache is there");
    assert!(today == committed("guarantees.json"), "book/guarantees.json is stale");
}

#[test]
fn rows_computed_anew_are_those_of_the_docs() {
    let committed = rows(&committed("guarantees.json"));
    if std::env::var_os("KONKLAVE_LONG").is_some() {
        let said = konklave_line("guarantees --format json");
        assert_eq!(said.code, 0, "{}", said.err);
        assert!(rows(&said.out) == committed, "book/guarantees.json is stale");
        return;
    }
    let mut renewed = 0;
    for algorithm in algorithms(&committed) {
        let of_it = rows_of(&algorithm);
        if of_it.iter().map(states).sum::<u64>() > FEW {
            continue;
        }
        let said = konklave(&["guarantees", &algorithm, "--format", "json"]);
        assert_eq!(said.code, 0, "{}", said.err);
        assert_eq!(rows(&said.out), of_it, "{algorithm}: book/guarantees.json is stale");
        renewed += 1;
    }
    assert!(renewed > 10, "only {renewed} algorithms are small");
}

/// With more states allowed, more is decided, and nothing that was decided is decided otherwise.
#[test]
fn larger_bounds_confirm_what_smaller_ones_say() {
    let (line, long) = if std::env::var_os("KONKLAVE_LONG").is_some() {
        ("guarantees mutex --max-states 1000000 --format json", true)
    } else {
        ("guarantees mutex/raymond --max-states 200000 --format json", false)
    };
    let said = konklave_line(line);
    assert_eq!(said.code, 0, "{}", said.err);
    let (mut confirmed, mut decided) = (0, 0);
    for row in rows(&said.out) {
        let before = rows_of(row["algorithm"].as_str().expect("a name"));
        let before = before.iter().find(|old| old["property"] == row["property"]);
        let before = &before.expect("the row is there")["cells"];
        for (old, new) in before
            .as_array()
            .into_iter()
            .flatten()
            .zip(row["cells"].as_array().into_iter().flatten())
        {
            let kind = |cell: &Value| cell.as_object().and_then(|c| c.keys().next().cloned());
            let nodes = |cell: &Value| kind(cell).and_then(|kind| cell[kind]["nodes"].as_u64());
            if nodes(old).is_some() && nodes(old) == nodes(new) {
                assert_eq!(old, new, "{}: {}", row["algorithm"], row["property"]);
                confirmed += 1;
            }
            decided += u32::from(nodes(old).is_none() && nodes(new).is_some());
        }
    }
    assert!(confirmed > if long { 300 } else { 10 }, "only {confirmed}, and {decided} more");
}

#[test]
fn every_no_has_its_run_and_the_signs_are_explained() {
    let folder = Folder::new("guarantees-runs");
    let runs = folder.file("runs");
    let said = konklave(&["guarantees", "mutex/central", "--witnesses", &runs]);
    assert_eq!(said.code, 0, "{}", said.err);
    for sign in
        ["yes      every run was explored", "no (k)   a run of k steps", "≤k in r  undecided"]
    {
        assert!(said.out.contains(sign), "{sign}: {}", said.out);
    }
    let broken = |row: &Value| {
        let cells = row["cells"].as_array().expect("cells").iter();
        cells.filter(|cell| cell["no"].is_object()).count()
    };
    let expected: usize = rows_of("mutex/central").iter().map(broken).sum();
    let mut found = 0;
    for file in fs::read_dir(&runs).expect("a folder") {
        let file = file.expect("a file").path();
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        assert!(name.starts_with("mutex-central-") && name.ends_with(".run"), "{name}");
        let run = fs::read_to_string(&file).expect("a run");
        assert!(run.contains("\"violated\""), "{name}: {run}");
        let again = konklave(&["replay", &file.to_string_lossy()]);
        assert!(again.out.contains("the same, effect by effect"), "{name}: {}", again.out);
        found += 1;
        // The shrunk run still has the crash, and no loss was added.
        if name.contains("deadlock-crash") {
            let shrunk = konklave(&["shrink", &file.to_string_lossy()]);
            assert!(shrunk.out.contains("crash"), "{name}: {}{}", shrunk.out, shrunk.err);
        }
    }
    assert_eq!(found, expected);
    let blocked = folder.write("file", "");
    let said = konklave(&["guarantees", "mutex/central", "--witnesses", &blocked]);
    assert_eq!(said.code, 73, "{}", said.err);
    let none = konklave_line("guarantees detector/heartbeat");
    assert_eq!((none.code, none.out.starts_with("no table")), (0, true), "{}", none.out);
}

/// Rows that are searched under the assumption of known time bounds are named everywhere.
#[test]
fn synchronous_rows_are_named_in_page_terminal_and_data() {
    let mut named = 0;
    let page = committed("en/learn/guarantees.md");
    for row in rows(&committed("guarantees.json")) {
        let algorithm = row["algorithm"].as_str().expect("a name");
        let synchronous = row["synchronous"].as_bool().expect("said of every row");
        let commands = row["cells"].as_array().expect("cells").iter();
        for command in commands.filter_map(|cell| cell["no"]["command"].as_str()) {
            assert_eq!(command.contains(" --synchronous "), synchronous, "{command}");
        }
        let is_heading = |line: &str| {
            let words = line.strip_prefix("## ").and_then(|rest| rest.strip_prefix(algorithm));
            words.is_some_and(|rest| rest.is_empty() || rest.starts_with(','))
        };
        let heading = page.lines().find(|line| is_heading(line)).expect("a section");
        assert_eq!(heading.ends_with(", --synchronous"), synchronous, "{heading}");
        named += u32::from(synchronous);
    }
    assert!(named > 10, "only {named} rows");
    assert!(page.contains("- `--synchronous`: the algorithm assumes known time bounds"));
    let said = konklave_line("guarantees mutex/token-ring");
    assert!(said.out.starts_with("mutex/token-ring, 3 nodes, --synchronous\n"), "{}", said.out);
    assert!(said.out.contains("--synchronous  the algorithm assumes"), "{}", said.out);
    assert!(!konklave_line("guarantees mutex/central").out.contains("synchronous"));
    let said = konklave_line("guarantees mutex/token-ring --format csv");
    assert!(said.out.starts_with("algorithm,nodes,synchronous,"), "{}", said.out);
    assert!(said.out.contains("mutex/token-ring,3,true,"), "{}", said.out);
}

#[test]
fn elections_have_no_holder_and_most_cells_of_voting_are_decided() {
    let (mut elections, mut open) = (0, 0);
    for row in rows(&committed("guarantees.json")) {
        let algorithm = row["algorithm"].as_str().expect("a name");
        if algorithm.starts_with("election/") {
            assert_eq!(row["cells"][6], "never", "{algorithm}, {}", row["property"]);
            elections += 1;
        }
        let cells = row["cells"].as_array().expect("cells").iter();
        let undecided = cells.filter(|cell| cell["bounded"].is_object()).count();
        if algorithm == "mutex/voting"
            && ["exclusion", "deadlock"].contains(&row["property"].as_str().unwrap_or_default())
        {
            assert_eq!(undecided, 0, "{}", row["property"]);
        }
        open += if algorithm == "mutex/voting" { undecided } else { 0 };
    }
    assert!(elections > 50 && open < 10, "{elections} rows of elections, {open} open cells");
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
