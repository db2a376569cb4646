//! Programs of the distribution that tests start, installed if possible.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Programs for tests of network, faults and fences, with their packages and the tests that need them.
const NEEDED: &[(&str, &str, &str)] = &[
    ("nats-server", "nats-server", "groups over NATS"),
    ("ip", "iproute2", "cuts in the network"),
    ("nft", "nftables", "cuts in the network, slow members"),
    ("unshare", "util-linux", "full disks, names of hosts"),
    ("faketime", "faketime", "clocks that jump"),
    ("postgres", "postgresql", "fences in PostgreSQL"),
];

/// Installs missing programs; names those that cannot be installed, whose tests skip themselves.
pub(crate) fn set_up() {
    for (program, package, tests) in NEEDED {
        if !is_there(program) && !install(package) {
            println!("xtask: {package} is missing and cannot be installed; not tested: {tests}");
        }
    }
}

/// Whether a program can be started; also looks in folders that are not on the path.
fn is_there(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    let more = ["/usr/sbin", "/sbin"].map(|folder| Path::new(folder).to_owned());
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let versions = versions.map(|version| version.path().join("bin"));
    let mut folders = env::split_paths(&path).chain(more).chain(versions);
    folders.any(|folder| folder.join(program).is_file())
}

/// Installs a package of the distribution; whether it could.
pub(crate) fn install(package: &str) -> bool {
    println!("xtask: apt-get install {package}");
    let apt = |args: &[&str]| {
        let mut apt = Command::new("apt-get");
        apt.args(["-o", "DPkg::Lock::Timeout=120"]).args(args);
        // A server that the package installs is only for tests, so it must not start with the machine.
        apt.env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1");
        let status = apt.stdin(Stdio::null()).stdout(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    let install = ["install", "-y", "--no-install-recommends", package];
    apt(&install) || (apt(&["update"]) && apt(&install))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_there_or_not() {
        assert!(is_there("sh"));
        assert!(!is_there("no-program-has-this-name"));
    }
}
