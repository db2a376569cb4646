//! Journeys through the workbench in a real browser: `tests/browser/journeys.mjs`.
//!
//! They need Node, playwright-core and Chromium; `cargo xtask test` sets them up. Pictures of what
//! was seen stay in `target/workbench`.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::server::Server;

fn chromium() -> Option<String> {
    let given = std::env::var("KONKLAVE_CHROMIUM").ok();
    let names = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
    given.into_iter().chain(names.map(str::to_owned)).find(|path| Path::new(path).exists())
}

/// The folder that holds all that is built.
fn target() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    program
        .ancestors()
        .find(|path| path.join("CACHEDIR.TAG").exists())
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"), Path::to_owned)
}

const SETUP: &str = "`cargo xtask test` sets it up; KONKLAVE_NO_BROWSER=1 goes without";

/// The folder of the journeys, with what they need; none where the tests are to go without.
fn folder() -> Option<PathBuf> {
    if std::env::var("KONKLAVE_NO_BROWSER").is_ok_and(|no| no == "1") {
        println!("skipped: KONKLAVE_NO_BROWSER=1");
        return None;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/browser");
    for package in ["playwright-core", "typescript"] {
        assert!(folder.join("node_modules").join(package).is_dir(), "no {package}: {SETUP}");
    }
    Some(folder)
}

#[test]
fn the_types_in_the_modules_fit() {
    let Some(folder) = folder() else { return };
    let mut tsc = Command::new("node");
    tsc.args(["node_modules/typescript/bin/tsc", "-p", "."]).current_dir(folder);
    let said = tsc.output().unwrap_or_else(|e| panic!("node cannot be started ({e}): {SETUP}"));
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stdout));
}

#[test]
fn a_person_can_do_all_of_it() {
    let Some(folder) = folder() else { return };
    let chromium = chromium().unwrap_or_else(|| panic!("no Chromium: {SETUP}"));
    let server = Server::start();
    let done = Command::new("node")
        .arg("journeys.mjs")
        .current_dir(&folder)
        .env("KONKLAVE_LINK", &server.link)
        .env("KONKLAVE_SHOTS", target().join("workbench"))
        .env("KONKLAVE_CHROMIUM", chromium)
        .output()
        .unwrap_or_else(|e| panic!("node cannot be started ({e}): {SETUP}"));
    let (said, also) =
        (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    println!("{said}{also}");
    assert!(done.status.success(), "{said}{also}");
    // A journey that is left out by accident is no success.
    let gone = said.lines().filter(|line| line.starts_with("ok ")).count();
    assert!(gone >= 13 || std::env::var_os("KONKLAVE_JOURNEY").is_some(), "{gone} journeys");
}
