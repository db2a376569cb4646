//! The output for scripts: exit codes, JSON with its schema, and error messages.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Output, Stdio};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::fake::Fake;
use crate::kit::{Folder, Running, code, konklave, output, start, until};

/// Three members in one process.
fn dev(socket: &Path) -> Running {
    let agent = start(socket, &["agent", "--dev"]);
    until("there", || output(socket, &["status"]).status.success());
    agent
}

/// Runs it with `input`.
fn fed(socket: &Path, arguments: &[&str], input: &[u8]) -> Output {
    let mut command = konklave(socket);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    // A command that refuses its input may exit before it has read all of it.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    child.wait_with_output().expect("it ends")
}

#[test]
fn unreadable_and_unwritable_files_have_exit_codes() {
    let folder = Folder::new();
    let socket = folder.path().join("agent.sock");
    let (junk, data) = (folder.file("junk"), folder.file("data"));
    fs::write(&junk, "{\n").expect("written");
    fs::write(folder.file("kept.fence"), "no token").expect("written");
    let (fenced, missing) = (folder.file("kept"), folder.file("missing"));
    let member = ["agent", "--listen", "127.0.0.1:0", "--data-dir"];
    let check = |arguments: &[&str], expected: i32, words: &str| {
        let output = output(&socket, arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(code(&output), expected, "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    };
    check(&["agent", "--config", &missing], 66, &missing);
    check(&[&member[..], &[&data, "--key-file", &missing]].concat(), 66, &missing);
    check(&[&member[..], &[&data, "--peers-file", &missing]].concat(), 66, &missing);
    let tls = ["--tls-certificate", &missing, "--tls-key", &junk, "--tls-authority", &junk];
    check(&[&member[..], &[&data], &tls].concat(), 66, &missing);
    check(&[&member[..], &[&junk]].concat(), 73, &junk);
    check(&[&member[..], &["/proc/nowhere"]].concat(), 73, "/proc/nowhere");
    check(&["fence", &fenced, "--token", "1.1.1"], 65, &format!("{fenced}.fence: "));
    let nowhere = folder.file("no/such/folder");
    check(&["fence", &nowhere, "--token", "1.1.1"], 73, &nowhere);
    let agent = dev(&socket);
    check(&["record", "-o", &folder.file("no/x.run")], 73, "no/x.run");
    check(&["record", "--merge", &missing], 66, &missing);
    check(&["record", "--merge", &junk], 65, &format!("{junk}:1: "));
    agent.signal(Signal::SIGTERM);
    agent.end();
}

#[test]
fn a_message_is_too_long_by_its_length_alone() {
    let folder = Folder::new();
    let socket = folder.path().join("agent.sock");
    let agent = dev(&socket);
    let limit = konklave::MAX_MESSAGE;
    for byte in [b'a', 0, b'"', 0xff] {
        for (length, expected) in [(limit, 0), (limit + 1, 64), (5 << 20, 64)] {
            let output = fed(&socket, &["send", "chat"], &vec![byte; length]);
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(code(&output), expected, "{length} times {byte}: {said}");
            assert_eq!(said.contains(&format!("{limit} at most")), expected == 64, "{said}");
        }
    }
    agent.signal(Signal::SIGTERM);
    agent.end();
}

#[test]
fn every_object_names_its_schema_and_failures_are_objects_too() {
    let folder = Folder::new();
    let socket = folder.path().join("agent.sock");
    let json = |arguments: &[&str]| {
        let output = output(&socket, &[arguments, &["--format", "json"]].concat());
        let value: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        (code(&output), value)
    };
    // Without an agent.
    let commands =
        [&["status"][..], &["who", "a"], &["why", "a"], &["members"], &["revoke", "a"], &["watch"]];
    for arguments in commands.into_iter().chain([&["step-down", "a"][..], &["recv", "chat"]]) {
        let (code, value) = json(arguments);
        assert_eq!((code, &value["schema"]), (69, &"konklave.error/1".into()), "{arguments:?}");
        assert_eq!(value["exit_code"], 69, "{arguments:?}");
        assert!(value["error"].as_str().is_some_and(|e| e.contains("no agent")), "{value}");
    }
    // Called wrongly, too.
    for arguments in [&["who"][..], &["status", "--nonsense"], &["revoke"], &["watch", "a"]] {
        let (code, value) = json(arguments);
        assert_eq!((code, &value["schema"]), (64, &"konklave.error/1".into()), "{arguments:?}");
        assert_eq!(value["exit_code"], 64, "{arguments:?}: {value}");
        assert!(value["error"].as_str().is_some_and(|e| e.contains("Usage")), "{value}");
    }
    let (found, doctor) = json(&["doctor"]);
    assert_eq!((found, &doctor["well"]), (1, &false.into()), "{doctor}");
    let agent = dev(&socket);
    for (arguments, schema, field) in [
        (&["status"][..], "konklave.status/1", "view"),
        (&["who", "a"], "konklave.who/1", "holders"),
        (&["why", "a"], "konklave.why/1", "reasons"),
        (&["members"], "konklave.members/1", "members"),
        (&["doctor"], "konklave.doctor/1", "checks"),
    ] {
        let (code, value) = json(arguments);
        assert_eq!((code, &value["schema"]), (0, &schema.into()), "{arguments:?}: {value}");
        assert!(!value[field].is_null(), "{arguments:?}: {value}");
    }
    let (_, doctor) = json(&["doctor"]);
    let checks = doctor["checks"].as_array().expect("a list");
    assert!(checks.iter().any(|c| c["what"] == "cycles" && c["well"] == true), "{doctor}");
    for arguments in [&["revoke", "nobody"][..], &["step-down", "nobody"]] {
        let (code, value) = json(arguments);
        assert_eq!((code, &value["exit_code"]), (69, &69.into()), "{arguments:?}: {value}");
        assert_eq!(value["schema"], "konklave.error/1", "{arguments:?}");
    }
    agent.signal(Signal::SIGTERM);
    agent.end();
}

#[test]
fn key_that_everyone_can_read_is_reported_by_log_and_doctor() {
    let folder = Folder::new();
    let socket = folder.path().join("agent.sock");
    let (key, data) = (folder.file("key"), folder.file("data"));
    fs::write(&key, "a key of sixteen bytes, and more").expect("written");
    for (mode, told) in [(0o644, true), (0o440, false)] {
        fs::set_permissions(&key, fs::Permissions::from_mode(mode)).expect("ours");
        let flags = ["agent", "--listen", "127.0.0.1:0", "--data-dir", &data, "--key-file", &key];
        let agent = start(&socket, &flags);
        until("there", || output(&socket, &["status"]).status.success());
        let doctor = output(&socket, &["doctor"]);
        let said = String::from_utf8_lossy(&doctor.stdout);
        assert_eq!(said.contains("FAIL key: "), told, "{said}");
        agent.signal(Signal::SIGTERM);
        let (_, log) = agent.end();
        assert_eq!(log.contains("everyone on this machine can read it"), told, "{log}");
    }
}

#[test]
fn usage_shows_the_socket_as_optional() {
    for (command, usage) in [("who", "who [OPTIONS] <NAME>"), ("send", "send [OPTIONS] <GROUP>")] {
        let output = output(Path::new("nowhere"), &[command]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(code(&output), 64, "{said}");
        assert!(said.contains(&format!("Usage: konklave {usage}")), "{said}");
        assert!(!said.contains("--socket <PATH>"), "{said}");
    }
}

#[test]
fn refused_lock_is_named_once() {
    let folder = Folder::new();
    let socket = folder.path().join("agent.sock");
    let agent = dev(&socket);
    let holder = start(&socket, &["lock", "a", "--", "cat"]);
    until("held", || code(&output(&socket, &["lock", "-n", "a", "--", "true"])) == 75);
    let refused = output(&socket, &["lock", "-n", "-v", "a", "--", "true"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    let parts: Vec<&str> = said.trim_end().split(": ").collect();
    let distinct: BTreeSet<&str> = parts.iter().copied().collect();
    assert_eq!(parts.len(), distinct.len(), "{said}");
    drop(holder);
    agent.signal(Signal::SIGTERM);
    agent.end();
}

#[test]
fn help_names_only_own_commands() {
    let help = |arguments: &[&str]| {
        let output = output(Path::new("nowhere"), arguments);
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(!help(&["--help"]).contains("  draw "), "it has that");
    let record = help(&["record", "--help"]);
    assert!(!record.contains("konklave draw"), "{record}");
    assert!(record.contains("Only the full program has"), "{record}");
}

#[test]
fn reports_are_one_object_per_line_with_jsonl() {
    let folder = Folder::new();
    let (_fake, socket) = Fake::serve(folder.path());
    for words in [&["status"][..], &["why", "a"], &["who", "a"], &["members"], &["doctor"]] {
        let printed = output(&socket, &[words, &["--format", "jsonl"]].concat());
        let text = String::from_utf8_lossy(&printed.stdout);
        assert_eq!(text.lines().count(), 1, "{words:?}: {text}");
        assert!(serde_json::from_str::<Value>(&text).is_ok(), "{words:?}: {text}");
    }
    // Its events are lines in any case.
    assert_eq!(code(&output(&socket, &["watch", "--format", "jsonl"])), 0);
    let refused = output(&folder.path().join("none"), &["watch", "--format", "jsonl"]);
    let text = String::from_utf8_lossy(&refused.stdout);
    assert!(code(&refused) == 69 && text.lines().count() == 1, "{text}");
}
