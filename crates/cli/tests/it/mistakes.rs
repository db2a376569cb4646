//! Every mistake switch of the catalog is caught by the command its data sheet names, and the
//! right algorithm passes the same check.

use konklave_catalog::CATALOG;
use serde_json::Value;

use super::{konklave_line, words};

fn check(line: &str) -> Value {
    let said = konklave_line(line);
    serde_json::from_str(&said.out).unwrap_or_else(|e| panic!("{line}: {e}\n{}", said.err))
}

#[test]
fn every_mistake_is_caught_and_only_the_mistake() {
    let mut caught = 0;
    for entry in CATALOG {
        for mistake in entry.sheet.mistakes {
            if mistake.caught_by.is_empty() {
                continue;
            }
            let name = entry.name();
            let line = format!("check {name} {} --format json", mistake.caught_by);
            let wrong = check(&format!("{line} --mistake {}", mistake.name));
            assert_eq!(wrong["verdict"], "violated", "{line} --mistake {}", mistake.name);
            assert_eq!(wrong["property"], mistake.breaks, "{line} --mistake {}", mistake.name);
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

#[test]
fn words_of_a_line_keep_quoted_spaces() {
    assert_eq!(words("run x --set 'a=b c'"), ["run", "x", "--set", "a=b c"]);
}
