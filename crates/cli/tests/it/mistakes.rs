//! Every mistake switch of the catalog is caught by the command its data sheet names, and the
//! right algorithm passes the same check.

use konklave_catalog::Catalog;
use serde_json::Value;

use super::{konklave_line, words};

fn check(line: &str) -> Value {
    let said = konklave_line(line);
    serde_json::from_str(&said.out).unwrap_or_else(|e| panic!("{line}: {e}\n{}", said.err))
}

#[test]
fn every_mistake_is_caught_and_only_the_mistake() {
    let mut caught = 0;
    for entry in Catalog::builtin().entries() {
        for mistake in entry.sheet.mistakes {
            if mistake.caught_by.is_empty() {
                continue;
            }
            let name = entry.name();
            let line = format!("check {name} {} --format json", mistake.caught_by);
            // Mistakes of locks are caught where the document that lists them is checked.
            if entry.problem.name != "mutex" {
                let wrong = check(&format!("{line} --mistake {}", mistake.name));
                assert_eq!(wrong["verdict"], "violated", "{line} --mistake {}", mistake.name);
                assert_eq!(wrong["property"], mistake.breaks, "{line} --mistake {}", mistake.name);
            }
            caught += 1;
            // Some mistakes are a structure that the right algorithm refuses.
            if konklave_line(&line).code == 64 {
                continue;
            }
            let right = check(&line);
            assert_ne!(right["property"], mistake.breaks, "{line}: without the mistake, too");
            assert_ne!(right["verdict"], "bounded", "{line}");
        }
    }
    assert!(caught >= 6);
}

/// The names of the violated properties of a run.
fn broken(line: &str) -> Vec<String> {
    let report = check(line);
    let violations = report["violations"].as_array().expect("a list").iter();
    violations.map(|v| v["property"].as_str().expect("a name").to_owned()).collect()
}

/// A mistake that no check catches takes time to matter; a run shows it. The rest concerns clients of
/// members or how long a leader stays, which no judge of a run observes.
#[test]
fn mistake_without_a_check_is_shown_by_a_run() {
    let mut left = Vec::new();
    for entry in Catalog::builtin().entries() {
        for mistake in entry.sheet.mistakes.iter().filter(|m| m.caught_by.is_empty()) {
            let Some(how) = mistake.shown_by(entry.sheet.name) else {
                left.push((entry.sheet.name, mistake.name));
                continue;
            };
            let line = format!("run {} {how} --format json", entry.name());
            let breaks = mistake.breaks.to_owned();
            assert!(!broken(&line).contains(&breaks), "{line}: without the mistake, too");
            let line = format!("{line} --mistake {}", mistake.name);
            assert!(broken(&line).contains(&breaks), "{line}");
        }
    }
    left.sort_unstable();
    // The space of the right algorithm is too large for a check: `crates/algorithms/tests/it/forming.rs`.
    let forming = [
        "insist",
        "keep-restarted",
        "keep-withdrawn",
        "own-generation",
        "promise-early",
        "volatile-promises",
    ];
    let forming = forming.map(|name| ("forming", name));
    let others =
        [("lock-table", "no-memory"), ("quorum", "no-pre-vote"), ("virtual-tree", "ask-once")];
    let known: Vec<_> = forming.into_iter().chain(others).collect();
    assert_eq!(left, known);
}

#[test]
fn words_of_a_line_keep_quoted_spaces() {
    assert_eq!(words("run x --set 'a=b c'"), ["run", "x", "--set", "a=b c"]);
}
