//! Tables in documents are what the commands above them print: nothing in them goes stale.
//!
//! A table stands between `<!-- konklave ARGUMENTS -->` and `<!-- end -->`. `UPDATE=1` rewrites it,
//! and the difference is reviewed like code.

use std::fs;
use std::path::{Path, PathBuf};

use super::{konklave_line, verdicts};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../book/en/learn")
}

/// The table that belongs under a mark.
fn table(mark: &str) -> String {
    match mark {
        "verdicts" => verdicts::verdicts(),
        "mistakes" => verdicts::mistakes(),
        arguments => {
            let said = konklave_line(arguments);
            assert_eq!(said.code, 0, "konklave {arguments}: {}", said.err);
            said.out
        }
    }
}

/// The document with every table as it is today, and how many there are.
fn renewed(text: &str) -> (String, usize) {
    let (mut renewed, mut tables, mut old) = (String::new(), 0, false);
    for line in text.lines() {
        let mark = line.strip_prefix("<!-- konklave ").and_then(|l| l.strip_suffix(" -->"));
        if let Some(mark) = mark {
            assert!(!old, "`{line}` comes before the end of the table above it");
            renewed += &format!("{line}\n\n{}\n", table(mark).trim_end());
            (old, tables) = (true, tables + 1);
        } else if line == "<!-- end -->" {
            renewed += "\n<!-- end -->\n";
            old = false;
        } else if !old {
            renewed += line;
            renewed.push('\n');
        }
    }
    assert!(!old, "a table has no end");
    (renewed, tables)
}

fn check(name: &str, tables: usize) {
    let path = docs().join(name);
    let written = fs::read_to_string(&path).expect("the document is there");
    let (today, found) = renewed(&written);
    assert_eq!(found, tables, "{name}: tables");
    if today == written {
        return;
    }
    if std::env::var_os("UPDATE").is_some() {
        return fs::write(&path, today).expect("the document can be rewritten");
    }
    let line = today.lines().zip(written.lines()).position(|(a, b)| a != b);
    let line = line.unwrap_or(written.lines().count().min(today.lines().count()));
    panic!(
        "{name}: stale from line {}: it should be\n{}\n`UPDATE=1 cargo test` rewrites",
        line + 1,
        today.lines().nth(line).unwrap_or_default()
    );
}

#[test]
fn harm_of_crashes_and_losses_agrees_with_the_document() {
    check("tolerance.md", 1);
}

#[test]
fn verdicts_counts_and_costs_of_locks_are_as_the_document_says() {
    check("locks.md", 4);
}

#[test]
fn figures_of_groups_agree_with_the_document() {
    check("groups.md", 1);
}

#[test]
fn a_table_is_renewed_and_what_is_around_it_stays() {
    let text = "# A\n<!-- konklave costs sanders --matrix --nodes 2 --format csv -->\nold\n<!-- end -->\nz\n";
    let (today, tables) = renewed(text);
    assert_eq!(tables, 1);
    assert!(
        today.starts_with("# A\n<!-- konklave costs") && today.ends_with("\n<!-- end -->\nz\n")
    );
    assert!(today.contains("\nalgorithm,nodes,leaver,entrant,delay\n") && !today.contains("old"));
}
