//! Agents with `--mutex`: a classic algorithm gives the same guarantees as the table.

use std::process::{Command, Stdio};

use crate::agents;
use crate::cluster::Cluster;
use crate::kit::{code, output, until};

const NAIMI_TREHEL: &[&str] = &["--mutex", "naimi-trehel"];

#[test]
fn holders_and_waiters_are_shown() {
    agents::holders_and_waiters_are_shown(NAIMI_TREHEL);
}

#[test]
fn a_killed_wrapper_hands_over_at_once() {
    agents::a_killed_wrapper_hands_over(NAIMI_TREHEL);
}

#[test]
fn a_killed_agent_loses_its_locks() {
    agents::a_killed_agent_loses_its_locks(NAIMI_TREHEL);
}

#[test]
fn random_kills_under_load_never_let_two_in() {
    agents::random_kills_never_let_two_in(NAIMI_TREHEL);
    agents::random_kills_never_let_two_in(&["--mutex", "suzuki-kasami"]);
}

#[test]
fn shared_locks_are_refused_and_slots_are_not() {
    let cluster = Cluster::with(3, NAIMI_TREHEL);
    let refused = output(&cluster.socket(0), &["lock", "-s", "a", "--", "true"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(code(&refused), 64, "{said}");
    assert!(said.contains("naimi-trehel serves exclusive locks only"), "{said}");
    cluster.ask(1, &["lock", "--slots", "2", "a", "--", "true"]);
    cluster.ask(2, &["lock", "-n", "a", "--", "true"]);
}

/// An agent with another `--mutex` is refused, and logs why.
#[test]
fn another_setting_is_refused_at_joining() {
    let cluster = Cluster::with(1, NAIMI_TREHEL);
    let (socket, log) = (cluster.path().join("x.sock"), cluster.path().join("x.log"));
    let mut stranger = Command::new(env!("CARGO_BIN_EXE_konklave-agent"))
        .args(["agent", "--name", "x", "--mutex", "table", "--listen", "127.0.0.1:0", "--peers"])
        .arg(cluster.address(0).to_string())
        .args(["--socket".as_ref(), socket.as_os_str()])
        .args(["--data-dir".as_ref(), cluster.path().join("x.data").as_os_str()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&log).expect("a log"))
        .spawn()
        .expect("the agent starts");
    let read = || std::fs::read_to_string(&log).unwrap_or_default();
    let reason = "its mutex is naimi-trehel, ours table";
    until("the reason in the log", || read().contains(reason));
    stranger.kill().expect("it is ours");
    stranger.wait().expect("it is dead");
    let members = cluster.status(0).expect("a status")["view"]["members"].clone();
    assert_eq!(members.as_array().map(Vec::len), Some(1));
}

#[test]
fn an_unknown_algorithm_is_refused_with_the_list() {
    let refused = output(std::path::Path::new("x"), &["agent", "--mutex", "bakery"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(code(&refused), 64, "{said}");
    assert!(said.contains("suzuki-kasami"), "{said}");
}
