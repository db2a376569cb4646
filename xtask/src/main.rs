//! The project's own chores: `cargo xtask test`, `cargo xtask bench`, `cargo xtask tidy`.

mod book;
mod browser;
mod portable;
mod tidy;
mod tools;

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

const HELP: &str = "\
cargo xtask test [--long] [FILTER]   set up and run everything; --long: also what takes long
cargo xtask verify                   fmt, clippy, docs, house rules, WebAssembly: reads, never writes
cargo xtask fix                      fmt and clippy fixes: writes
cargo xtask tidy                     the house rules alone
cargo xtask portable                 does what a browser runs build for WebAssembly?
cargo xtask book                     build the book into target/book/site
cargo xtask bench [sim|elections|mutex|group|trace|check|cli|net|stalls] [...]  measure
cargo xtask bench net --peers        the library beside etcd, Redlock, ZooKeeper, PostgreSQL, Corosync";

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    if let Some(root) = Path::new(env!("CARGO_MANIFEST_DIR")).parent() {
        // All paths below are relative to the repository. A missing repository is an error.
        let _ = env::set_current_dir(root);
    }
    let done = match words.split_first() {
        Some((&"test", rest)) => test(rest),
        Some((&"verify", [])) => verify(),
        Some((&"fix", [])) => fix(),
        Some((&"tidy", [])) => tidy::tidy(),
        Some((&"portable", [])) => portable::check(),
        Some((&"book", [])) => book::build(),
        Some((&"bench", rest)) => bench(rest),
        Some((&("help" | "-h" | "--help"), _)) => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{HELP}");
            return ExitCode::from(64);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// All features of the command line, which include all features of the library. Every command uses the same
/// set, so that no crate is built twice.
const FULL: &str = "konklave-cli/full";

/// All checks; those that fail quickest come first.
fn test(args: &[&str]) -> Result<()> {
    let long = args.contains(&"--long");
    let filter: Vec<&str> = args.iter().copied().filter(|a| *a != "--long").collect();
    browser::set_up()?;
    tools::set_up();
    if filter.is_empty() {
        verify()?;
    }
    let mut command = if has("nextest") {
        // Not `--all-targets`: that would build the catalog a second time, as a test without tests.
        let mut command = cargo(&["nextest", "run", "--workspace", "--features", FULL, "--tests"]);
        if env::var_os("CI").is_some() {
            command.args(["--profile", "ci"]);
        }
        command
    } else {
        println!(
            "xtask: cargo-nextest is not installed; using `cargo test` instead, which is slower"
        );
        cargo(&["test", "--workspace", "--features", FULL, "--tests"])
    };
    if long {
        command.env("KONKLAVE_LONG", "1");
    }
    run(command.args(&filter))?;
    if filter.is_empty() {
        run(&mut cargo(&["test", "--workspace", "--features", FULL, "--doc", "--quiet"]))?;
        // The tests have built the program.
        book::build_with_program()?;
    }
    Ok(())
}

fn verify() -> Result<()> {
    run(&mut cargo(&["fmt", "--all", "--check"]))?;
    tidy::tidy()?;
    run(&mut cargo(&[
        "clippy",
        "--workspace",
        "--features",
        FULL,
        "--all-targets",
        "--quiet",
        "--",
        "-D",
        "warnings",
    ]))?;
    // Most users of the library add it without features, and most programs have a few of them.
    run(&mut cargo(&["clippy", "-p", "konklave-cli", "--quiet", "--", "-D", "warnings"]))?;
    run(&mut cargo(&[
        "clippy",
        "-p",
        "konklave",
        "-p",
        "konklave-agent",
        "--no-default-features",
        "--quiet",
        "--",
        "-D",
        "warnings",
    ]))?;
    portable::check()?;
    let mut docs = cargo(&["doc", "--workspace", "--features", FULL, "--no-deps", "--quiet"]);
    run(docs.env("RUSTDOCFLAGS", "-D warnings"))?;
    if has("deny") {
        run(&mut cargo(&["deny", "check", "bans", "licenses", "sources"]))?;
    } else {
        println!("xtask: cargo-deny is not installed; licences and sources are not checked");
    }
    Ok(())
}

fn fix() -> Result<()> {
    run(&mut cargo(&[
        "clippy",
        "--workspace",
        "--features",
        FULL,
        "--all-targets",
        "--fix",
        "--allow-dirty",
    ]))?;
    run(&mut cargo(&["fmt", "--all"]))
}

fn bench(args: &[&str]) -> Result<()> {
    // Real processes: no simulator, no checker to build.
    if let Some((&"net", rest)) = args.split_first() {
        let mut command = cargo(&["bench", "--quiet", "-p", "konklave", "--bench", "net", "--"]);
        return run(command.args(rest));
    }
    if args == ["stalls"] {
        return run(&mut cargo(&["bench", "--quiet", "-p", "konklave-agent", "--bench", "stalls"]));
    }
    let mut command =
        cargo(&["run", "--profile", "bench", "--quiet", "-p", "konklave-bench", "--"]);
    if let Some((what @ (&"cli" | &"witnesses"), rest)) = args.split_first() {
        // The program as users have it.
        run(&mut cargo(&["build", "--release", "--quiet", "-p", "konklave-cli"]))?;
        let target = env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
        let program = PathBuf::from(target).join("release/konklave");
        return run(command.arg(what).arg(program).args(rest));
    }
    run(command.args(if args.is_empty() { &["sim"][..] } else { args }))
}

fn cargo(args: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    // `cargo run` sets these for xtask. Build scripts that watch them (ring's does) would run again, and their crates
    // be built again, whenever a build by xtask follows one by hand.
    for (name, _) in env::vars_os() {
        if name.to_str().is_some_and(|name| {
            name.starts_with("CARGO_MANIFEST_") || name.starts_with("CARGO_PKG_")
        }) {
            command.env_remove(&name);
        }
    }
    command.args(args);
    command
}

/// Whether a subcommand of cargo is installed.
fn has(subcommand: &str) -> bool {
    let asked = cargo(&[subcommand, "--version"]).output();
    asked.is_ok_and(|output| output.status.success())
}

fn run(command: &mut Command) -> Result<()> {
    let shown: Vec<String> =
        command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
    println!("xtask: cargo {}", shown.join(" "));
    let status = command.status().with_context(|| format!("cannot start cargo {}", shown[0]))?;
    if !status.success() {
        bail!("cargo {} failed", shown.join(" "));
    }
    Ok(())
}
