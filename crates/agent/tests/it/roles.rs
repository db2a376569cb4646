//! Which users may look, hold locks, and take them from others.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use nix::sys::signal::Signal;

use crate::kit::{Folder, code, output, start, until};

/// Runs the command as another user; nothing where that is not permitted.
fn as_user(user: &str, program: &str, socket: &Path, words: &[&str]) -> Option<Output> {
    let output = Command::new("setpriv")
        .args(["--reuid", user, "--regid", user, "--clear-groups", program])
        .args(words)
        .env("KONKLAVE_SOCKET", socket)
        .output()
        .ok()?;
    let refused = String::from_utf8_lossy(&output.stderr).starts_with("setpriv");
    (!refused).then_some(output)
}

#[test]
fn users_do_what_their_role_allows() {
    let folder = Folder::new();
    let socket = folder.path().join("agent.sock");
    let program = folder.file("konklave");
    fs::copy(env!("CARGO_BIN_EXE_konklave-agent"), &program).expect("a copy that others may run");
    Command::new("chmod").args(["755", &program, &folder.file("")]).status().expect("chmod");
    let config = folder.file("agent.toml");
    let lists = "observe-users = ['65531']\nallow-groups = ['65532']\noperate-users = ['65533']\n";
    fs::write(&config, lists).expect("written");
    let agent = start(&socket, &["agent", "--dev", "--config", &config]);
    until("there", || output(&socket, &["status"]).status.success());
    let holder = start(&socket, &["lock", "held", "--", "cat"]);
    until("held", || {
        String::from_utf8_lossy(&output(&socket, &["who", "held"]).stdout).contains("cat")
    });
    let looks = ["status"];
    let holds = ["lock", "-n", "a", "--", "true"];
    let sends = ["send", "g", "hello"];
    let takes = ["revoke", "held", "--dry-run"];
    let really = ["revoke", "held"];
    let runs = |user: &str, words: &[&str]| {
        as_user(user, &program, &socket, words)
            .map(|output| (code(&output), String::from_utf8_lossy(&output.stderr).into_owned()))
    };
    if runs("65531", &looks).is_none() {
        eprintln!("skipped: nobody else to be here (it needs root and setpriv)");
        return;
    }
    for (user, words, expected, says) in [
        ("65531", &looks[..], 0, ""),
        ("65531", &takes, 0, ""),
        ("65531", &holds, 77, "--allow-users"),
        ("65531", &sends, 77, "--allow-groups"),
        ("65531", &really, 77, "--operate-users"),
        ("65532", &looks, 0, ""),
        ("65532", &holds, 0, ""),
        ("65532", &sends, 0, ""),
        ("65532", &really, 77, "--operate-groups"),
        ("65534", &looks, 77, "may not use this agent"),
        ("65533", &holds, 0, ""),
        ("65533", &really, 0, "took held"),
    ] {
        let (code, said) = runs(user, words).expect("as before");
        assert_eq!(code, expected, "{user}: {words:?}: {said}");
        assert!(said.contains(says), "{user}: {words:?}: {said}");
    }
    assert_eq!(holder.stopped(), 76, "it was taken");
    // A reload changes the roles.
    fs::write(&config, "operate-users = ['65532']\n").expect("written");
    agent.signal(Signal::SIGHUP);
    until("the role has changed", || runs("65531", &looks).is_some_and(|(code, _)| code == 77));
    assert_eq!(runs("65532", &["step-down", "nothing"]).expect("as before").0, 69);
    agent.signal(Signal::SIGTERM);
    agent.end();
}

#[test]
fn unknown_user_in_a_role_is_named_with_its_list() {
    let folder = Folder::new();
    for (list, what) in [
        ("--observe-users", "observe-users: this machine has no user"),
        ("--operate-groups", "operate-groups: this machine has no group"),
    ] {
        let socket = folder.path().join("agent.sock");
        let end = start(&socket, &["agent", "--dev", list, "nobody-knows-her"]).end();
        assert_eq!(end.0, 78, "{}", end.1);
        assert!(end.1.contains(what), "{}", end.1);
    }
}
