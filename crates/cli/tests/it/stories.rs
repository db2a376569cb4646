//! Stories: a command, a line of dashes, everything it printed. `UPDATE=1` rewrites them, and the
//! difference is reviewed like code.

use std::fs;
use std::path::{Path, PathBuf};

use super::konklave_line;

fn stories(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("stories are there").flatten() {
        let path = entry.path();
        if path.is_dir() {
            stories(&path, found);
        } else if path.extension().is_some_and(|e| e == "txt") {
            found.push(path);
        }
    }
}

/// Leaves out output that differs from machine to machine.
fn steady(text: &str) -> String {
    text.lines()
        .map(|line| if line.starts_with("took ") { "took        …" } else { line.trim_end() })
        .flat_map(|line| [line, "\n"])
        .collect()
}

#[test]
fn every_story_is_told_as_it_is_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stories");
    let mut paths = Vec::new();
    stories(&folder, &mut paths);
    paths.sort();
    assert!(!paths.is_empty());
    let mut different = Vec::new();
    for path in &paths {
        let written = fs::read_to_string(path).expect("a story");
        let mut told = String::new();
        for line in written.lines().filter(|l| l.starts_with("$ konklave ") || l.starts_with('#')) {
            told += line;
            told += "\n";
            let Some(arguments) = line.strip_prefix("$ konklave ") else { continue };
            let said = konklave_line(arguments);
            told += "----\n";
            told += &steady(&said.err);
            told += &steady(&said.out);
            told += &format!("exit {}\n\n", said.code);
        }
        let told = format!("{}\n", told.trim_end());
        if told == written {
            continue;
        }
        if std::env::var_os("UPDATE").is_some() {
            fs::write(path, &told).expect("a story can be rewritten");
        } else {
            let line = told.lines().zip(written.lines()).position(|(a, b)| a != b);
            different.push(format!(
                "{}: differs from line {} on\n--- told\n{told}",
                path.display(),
                line.map_or(0, |i| i + 1)
            ));
        }
    }
    assert!(different.is_empty(), "{}\n`UPDATE=1 cargo test` rewrites", different.join("\n"));
}
