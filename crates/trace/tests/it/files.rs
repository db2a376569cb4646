//! Expected output in files.

use std::path::PathBuf;

use konklave_algorithms::{election, mutex};
use konklave_process::Condition;

/// The conditions of the stored runs: those of locks and elections.
pub(crate) const CONDITIONS: &[Condition] =
    &[mutex::WAITING, mutex::INSIDE, election::LEADING, election::FOLLOWING];

/// The file under `tests/golden`.
pub(crate) fn path_of(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// Compares with a file under `tests/golden`; `UPDATE=1` rewrites it.
pub(crate) fn golden(name: &str, found: &str) {
    let path = path_of(name);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, found).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    let line = expected.lines().zip(found.lines()).position(|(a, b)| a != b);
    let shorter = expected.lines().count().min(found.lines().count());
    let line = line.unwrap_or(shorter);
    let show = |text: &str| text.lines().nth(line).unwrap_or("(the end)").to_owned();
    assert!(
        expected == found,
        "{name}:{}: expected `{}`, found `{}`; UPDATE=1 rewrites the file",
        line + 1,
        show(&expected),
        show(found)
    );
}
