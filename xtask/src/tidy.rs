//! The house rules, as checks.

mod algorithms;
mod prose;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::portable;

/// The dependencies that the pure crates may have.
const PURE: &[(&str, &[&str])] = &[
    (
        "process",
        &[
            "erased-serde",
            "postcard",
            "prefetch-index",
            "serde",
            "serde_json",
            "smallvec",
            "thiserror",
        ],
    ),
    (
        "algorithms",
        &["erased-serde", "konklave-process", "konklave-sim", "rustc-hash", "serde", "smallvec"],
    ),
];

/// Checks all rules and lists all violations.
pub(crate) fn tidy() -> Result<()> {
    let root = root();
    let mut broken = Vec::new();
    pure_crates(&root, &mut broken)?;
    portable_core(&root, &mut broken)?;
    glossary(&root, &mut broken)?;
    algorithms::algorithms(&root, &mut broken)?;
    decisions(&root, &mut broken)?;
    plain_files(&root, &mut broken)?;
    prose::prose(&root, &mut broken)?;
    if broken.is_empty() {
        println!("xtask: tidy");
        return Ok(());
    }
    bail!("house rules are violated:\n{}", broken.join("\n"))
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(|| ".".into(), Path::to_owned)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Algorithms use no clock, randomness or I/O, so they have no dependency that provides one.
fn pure_crates(root: &Path, broken: &mut Vec<String>) -> Result<()> {
    for (name, allowed) in PURE {
        let manifest = read(&root.join("crates").join(name).join("Cargo.toml"))?;
        let section = manifest.split("[dependencies]").nth(1).unwrap_or_default();
        let section = section.split("\n[").next().unwrap_or_default();
        for line in section.lines().filter(|l| !l.trim().is_empty()) {
            let dependency = line.split(['.', ' ', '=']).next().unwrap_or_default();
            if !allowed.contains(&dependency) {
                broken.push(format!(
                    "crates/{name}/Cargo.toml: {dependency} is not allowed; the pure crates may depend on {}",
                    allowed.join(", ")
                ));
            }
        }
    }
    Ok(())
}

/// Code for the browser uses no clock, since `Instant::now` panics there.
fn portable_core(root: &Path, broken: &mut Vec<String>) -> Result<()> {
    for name in portable::CORE {
        let krate = name.strip_prefix("konklave-").unwrap_or(name);
        let mut folders = vec![root.join("crates").join(krate).join("src")];
        while let Some(folder) = folders.pop() {
            let files = fs::read_dir(&folder);
            for file in files.with_context(|| format!("cannot read {}", folder.display()))? {
                let path = file?.path();
                if path.is_dir() {
                    folders.push(path);
                } else if !path.ends_with("check/src/stopwatch.rs") {
                    let text = read(&path)?;
                    let clocks = ["Instant::now", "SystemTime::now"];
                    for clock in clocks.into_iter().filter(|clock| text.contains(clock)) {
                        let path = path.strip_prefix(root).unwrap_or(&path).display();
                        broken.push(format!("{path}: {clock} panics in a browser"));
                    }
                }
            }
        }
    }
    Ok(())
}

/// Every path that the glossary names exists.
fn glossary(root: &Path, broken: &mut Vec<String>) -> Result<()> {
    let glossary = read(&root.join("GLOSSARY.md"))?;
    for (i, line) in glossary.lines().enumerate() {
        for word in line.split('`').skip(1).step_by(2) {
            if word.contains('/') && word.contains('.') && !root.join(word).exists() {
                broken.push(format!("GLOSSARY.md:{}: {word} does not exist", i + 1));
            }
        }
    }
    Ok(())
}

/// Decision records are numbered without gaps, and each has its three parts.
fn decisions(root: &Path, broken: &mut Vec<String>) -> Result<()> {
    let folder = root.join("docs/adr");
    let mut names: Vec<String> = fs::read_dir(&folder)
        .with_context(|| format!("cannot read {}", folder.display()))?
        .filter_map(|file| file.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(".md"))
        .collect();
    names.sort();
    for (i, name) in names.iter().enumerate() {
        if !name.starts_with(&format!("{:04}-", i + 1)) {
            broken.push(format!("docs/adr/{name}: the next number is {:04}", i + 1));
        }
        let text = read(&folder.join(name))?;
        for part in ["## Context", "## Decision", "## Cost"] {
            if !text.contains(part) {
                broken.push(format!("docs/adr/{name}: `{part}` is missing"));
            }
        }
    }
    Ok(())
}

/// No file names a path of the machine on which it was written.
fn plain_files(root: &Path, broken: &mut Vec<String>) -> Result<()> {
    let listed = Command::new("git").arg("ls-files").current_dir(root).output();
    let Ok(listed) = listed else { return Ok(()) };
    let places = [["/ho", "me/"].concat(), ["/ro", "ot/"].concat(), ["/wo", "rk/"].concat()];
    for name in String::from_utf8_lossy(&listed.stdout).lines() {
        let Ok(text) = fs::read_to_string(root.join(name)) else { continue };
        for (i, line) in text.lines().enumerate() {
            if let Some(place) = places.iter().find(|place| line.contains(place.as_str())) {
                broken.push(format!("{name}:{}: {place} is a path of one machine", i + 1));
            }
        }
    }
    Ok(())
}
