//! `konklave`: elect a leader, take a lock, speak as a group — and see why it works.

use std::process::ExitCode;

use konklave_lab::Catalog;

fn main() -> ExitCode {
    konklave_lab::main(Catalog::builtin())
}
