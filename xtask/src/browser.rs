//! Requirements of the browser tests: Node, the locked playwright-core, Chromium of the distribution.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::tools;

const WITHOUT: &str = "KONKLAVE_NO_BROWSER=1 tests everything but the workbench in the browser";

/// Installs missing requirements; fails if that is not possible.
pub(crate) fn set_up() -> Result<()> {
    if env::var("KONKLAVE_NO_BROWSER").is_ok_and(|no| no == "1") {
        println!("xtask: KONKLAVE_NO_BROWSER=1: the workbench is not tested in the browser");
        return Ok(());
    }
    for (program, package) in [("node", "nodejs"), ("npm", "npm")] {
        if !answers(program) {
            install(package)?;
        }
    }
    let paths = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
    let given = env::var_os("KONKLAVE_CHROMIUM").is_some_and(|path| Path::new(&path).exists());
    if !given && !paths.iter().any(|path| Path::new(path).exists()) {
        install("chromium")?;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/web/tests/browser");
    let locked = fs::read_to_string(folder.join("package-lock.json"))
        .context("crates/web/tests/browser/package-lock.json")?;
    let there = fs::read_to_string(folder.join("node_modules/.package-lock.json"));
    if there.is_ok_and(|there| versions(&there) == versions(&locked)) {
        return Ok(());
    }
    println!("xtask: npm ci in crates/web/tests/browser");
    let mut npm = Command::new("npm");
    npm.args(["ci", "--no-audit", "--no-fund"]).current_dir(&folder);
    let status = npm.status().with_context(|| format!("cannot start npm; {WITHOUT}"))?;
    if !status.success() {
        bail!("npm ci failed; {WITHOUT}");
    }
    Ok(())
}

/// The packages of a lock file, with their versions.
fn versions(lock: &str) -> Vec<&str> {
    let told = |line: &&str| line.contains("\"node_modules/") || line.contains("\"version\":");
    lock.lines().map(str::trim).filter(told).collect()
}

fn answers(program: &str) -> bool {
    let asked = Command::new(program).arg("--version").stdout(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
}

fn install(package: &str) -> Result<()> {
    if tools::install(package) {
        return Ok(());
    }
    bail!("{package} is missing and cannot be installed; {WITHOUT}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_file_names_a_version_and_no_place() {
        let lock = include_str!("../../crates/web/tests/browser/package-lock.json");
        assert!(versions(lock).iter().any(|line| line.contains("node_modules/playwright-core")));
        assert!(!lock.contains("resolved") && !lock.contains("://"), "{lock}");
        assert_ne!(versions("{}"), versions(lock));
    }
}
