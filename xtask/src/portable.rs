//! The portable core: all code for the browser builds for `wasm32-unknown-unknown`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::{cargo, run, tools};

const TARGET: &str = "wasm32-unknown-unknown";

/// The crates of the portable core, without their features.
pub(crate) const CORE: &[&str] = &[
    "konklave-process",
    "konklave-algorithms",
    "konklave-sim",
    "konklave-check",
    "konklave-trace",
    "konklave-tables",
    "konklave-builtin-election",
    "konklave-builtin-group",
    "konklave-builtin-multicast",
    "konklave-builtin-mutex",
    "konklave-catalog",
    "konklave-sweep",
];

/// Debian's compiler for the web, which comes with the source of the standard library.
const COMPILER: &str = "/usr/bin/rustc";
const PACKAGES: &[&str] = &["rustc-web", "rust-web-src"];

/// Features of our Rust that this compiler (1.85) still has as unstable ones.
const NEWER: &[&str] = &[
    "extract_if",
    "hash_extract_if",
    "let_chains",
    "trait_upcasting",
    "unsigned_is_multiple_of",
    "vec_pop_if",
];

/// Checks that the portable core builds for a browser; prints a note if no compiler for it is installed.
pub(crate) fn check() -> Result<()> {
    let mut command = cargo(&["check", "--quiet", "--no-default-features", "--target", TARGET]);
    command.args(["--target-dir", "target/portable"]);
    command.args(CORE.iter().flat_map(|name| ["-p", name]));
    if has_target() {
        return run(&mut command);
    }
    let installed = has_source() || PACKAGES.iter().all(|package| tools::install(package));
    if !(installed && has_source()) {
        println!(
            "xtask: the portable core is not built for a browser this time: `rustup target add"
        );
        println!("  {TARGET}`, or Debian's {}, make it possible", PACKAGES.join(" and "));
        return Ok(());
    }
    command.env("RUSTC", COMPILER).env("RUSTC_BOOTSTRAP", "1");
    command.args(["-Zbuild-std=std,panic_abort", "-Zprofile-rustflags", "--ignore-rust-version"]);
    let newer: Vec<String> =
        NEWER.iter().map(|name| format!("\"-Zcrate-attr=feature({name})\"")).collect();
    let flags = format!("rustflags = [{}]\n", newer.join(", "));
    let config: String =
        CORE.iter().map(|name| format!("[profile.dev.package.{name}]\n{flags}")).collect();
    let file = Path::new("target/portable.toml");
    fs::create_dir_all("target")?;
    fs::write(file, config).with_context(|| format!("cannot write {}", file.display()))?;
    run(command.arg("--config").arg(file))
}

/// Whether our own compiler has the standard library of the target.
fn has_target() -> bool {
    let rustc = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let asked = Command::new(rustc).args(["--print", "target-libdir", "--target", TARGET]).output();
    asked.is_ok_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir())
}

/// Whether Debian's compiler is there, with the source of its standard library.
fn has_source() -> bool {
    let asked = Command::new(COMPILER).args(["--print", "sysroot"]).output();
    asked.is_ok_and(|output| {
        let root = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
        root.join("lib/rustlib/src/rust/library/std").is_dir()
    })
}
