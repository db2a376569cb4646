//! The command line as a user meets it: whole outputs, exit codes, bad input.

mod agreement;
mod bad_input;
mod conventions;
mod determinism;
mod documents;
mod elections;
mod exports;
mod guarantees;
mod house;
mod measuring;
mod mistakes;
mod namespaces;
mod new;
mod outputs;
mod process_sets;
mod processes;
mod replays;
mod ring;
mod searching;
mod stories;
mod thousand;
mod ui;
mod verdicts;
mod worlds;

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// The output of a command, and its exit code.
struct Said {
    out: String,
    err: String,
    code: i32,
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_konklave"));
    command.args(args).stdin(Stdio::null());
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("KONKLAVE_")) {
        command.env_remove(name);
    }
    command.env("NO_COLOR", "1").env("COLUMNS", "100");
    command
}

fn konklave(args: &[&str]) -> Said {
    let Output { status, stdout, stderr } = command(args).output().expect("konklave starts");
    Said {
        out: String::from_utf8(stdout).expect("output is UTF-8"),
        err: String::from_utf8(stderr).expect("talk is UTF-8"),
        code: status.code().unwrap_or(-1),
    }
}

/// The words of a command line; single quotes hold together.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for c in line.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            c => word.push(c),
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

fn konklave_line(line: &str) -> Said {
    let words = words(line);
    konklave(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

/// A folder of its own for a test, gone when the test is over.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("konklave-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }

    fn write(&self, name: &str, content: &str) -> String {
        std::fs::write(self.0.join(name), content).expect("a temporary file");
        self.file(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
