//! Every adversarial schedule of group communication has a test of its name.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The letters, how many schedules each has, and where their tests are.
const SCHEDULES: &[(&str, u32)] = &[
    ("a", 7),   // acknowledgements
    ("n", 9),   // negative acknowledgements
    ("s", 10),  // scalable reliable multicast
    ("f", 1),   // FIFO
    ("c", 5),   // causal
    ("i", 4),   // ISIS
    ("l", 3),   // Lamport's timestamps
    ("r", 5),   // token ring
    ("v", 21),  // virtual synchrony
    ("x", 5),   // state transfer
    ("k", 14),  // locks and leader
    ("lf", 11), // lifted locks
];

/// The names of all tests of groups and multicasts.
fn names() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in ["tests/it", "src/multicast"] {
        collect(&root.join(folder), &mut files);
    }
    let mut names = BTreeSet::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let tests = text.split("#[test]\n").skip(1);
        let name =
            |test: &str| Some(test.trim_start().strip_prefix("fn ")?.split('(').next()?.to_owned());
        names.extend(tests.filter_map(name));
    }
    names
}

fn collect(folder: &Path, files: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder is there").flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
}

/// The schedules that a test's name begins with: `k8_k13_only_…` is about two.
fn schedules(name: &str) -> impl Iterator<Item = &str> {
    name.split('_').take_while(|word| {
        let digits = word.trim_start_matches(|c: char| c.is_ascii_lowercase());
        !digits.is_empty()
            && digits.len() < word.len()
            && digits.bytes().all(|b| b.is_ascii_digit())
    })
}

#[test]
fn every_schedule_has_a_test_of_its_name() {
    let names = names();
    assert!(names.len() > 150, "only {} tests were found", names.len());
    let found: BTreeSet<&str> = names.iter().flat_map(|name| schedules(name)).collect();
    let wanted = SCHEDULES
        .iter()
        .flat_map(|(letter, count)| (1..=*count).map(move |number| format!("{letter}{number}")));
    let missing: Vec<String> = wanted.filter(|name| !found.contains(name.as_str())).collect();
    assert!(missing.is_empty(), "no test is named after {}", missing.join(", "));
}
