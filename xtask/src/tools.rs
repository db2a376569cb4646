//! Programs of the distribution that tests start: they are installed where that is possible.

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Programs that tests of the network, of faults and of fences use, the package of each, and what is not tested without.
const NEEDED: &[(&str, &str, &str)] = &[
    ("nats-server", "nats-server", "groups over NATS"),
    ("ip", "iproute2", "cuts in the network"),
    ("nft", "nftables", "cuts in the network, slow members"),
    ("unshare", "util-linux", "full disks, names of hosts"),
    ("faketime", "faketime", "clocks that jump"),
    ("postgres", "postgresql", "fences in PostgreSQL"),
];

/// Sets up what is missing; what cannot be had is named, and its tests skip themselves.
pub(crate) fn set_up() {
    for (program, package, tests) in NEEDED {
        if !is_there(program) && !install(package) {
            println!("xtask: {package} is not here and cannot be installed: not tested: {tests}");
        }
    }
}

/// Whether a program can be started; packages put some where only root looks, or nobody.
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
        // A server that comes along is for tests: it is not started with the machine.
        apt.env("DEBIAN_FRONTEND", "noninteractive").env("RUNLEVEL", "1");
        let status = apt.stdin(Stdio::null()).stdout(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    };
    let wish = ["install", "-y", "--no-install-recommends", package];
    apt(&wish) || (apt(&["update"]) && apt(&wish))
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
