//! `keys`: a shared key, certificates, and agents that are shut out.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::cluster::{Cluster, Plan, free_addresses};
use crate::kit::{Folder, code, output, start, start_with, until};

/// Runs a command without an agent: exit code and errors.
fn run(words: &[&str]) -> (i32, String) {
    let ended = output(Path::new("unused.sock"), words);
    (code(&ended), String::from_utf8_lossy(&ended.stderr).into_owned())
}

fn mode(file: &str) -> u32 {
    fs::metadata(file).expect("there").permissions().mode() & 0o777
}

fn members(n: usize) -> impl Fn(&Value) -> bool {
    move |s| {
        s["standing"] == "primary" && s["view"]["members"].as_array().is_some_and(|m| m.len() == n)
    }
}

/// Reads the settings of agent `i` again.
fn reload(cluster: &Cluster, i: usize) {
    let times = || cluster.logged(i).matches("reloaded").count();
    let before = times();
    cluster.signal(i, Signal::SIGHUP);
    until("reloaded", || times() > before);
}

#[test]
fn made_key_joins_agents_and_is_never_replaced() {
    let folder = Folder::new();
    let (old, new, config) = (folder.file("old"), folder.file("new"), folder.file("agent.toml"));
    for file in [&old, &new] {
        assert_eq!(run(&["keys", "shared", file]).0, 0);
        assert_eq!(mode(file), 0o400);
        assert_eq!(fs::read_to_string(file).expect("text").trim_end().len(), 64);
    }
    assert_ne!(fs::read(&old).expect("there"), fs::read(&new).expect("there"));
    let (again, said) = run(&["keys", "shared", &old]);
    assert_eq!(again, 73, "{said}");
    assert!(said.contains("exists, and is not replaced"), "{said}");
    // The key changes without a pause: first all agents accept both, then the new one alone.
    fs::write(&config, format!("key-file = '{old}'\n")).expect("written");
    let plan = Plan::new(&["--config", &config]);
    let mut cluster = Cluster::planned(folder, free_addresses(3), plan);
    fs::write(&config, format!("key-file = '{new}'\nsecond-key-file = '{old}'\n"))
        .expect("written");
    for i in 0..3 {
        reload(&cluster, i);
        // With both keys it finds those that have the old one only.
        cluster.kill(i);
        cluster.start(i);
        cluster.until(i, "back", members(3));
    }
    fs::write(&config, format!("key-file = '{new}'\n")).expect("written");
    (0..3).for_each(|i| reload(&cluster, i));
    let (seed, data) = (cluster.address(0).to_string(), cluster.file("late.data"));
    let words = ["agent", "--listen", "127.0.0.1:0", "--data-dir", &data, "--peers", &seed];
    let late =
        start(&cluster.path().join("late.sock"), &[&words[..], &["--key-file", &old]].concat());
    until("refused", || cluster.logged(0).contains("wrong key"));
    drop(late);
}

/// Three agents, each with its own certificate of one authority; and the folder of these.
fn with_certificates() -> (Cluster, String, String) {
    let folder = Folder::new();
    let (certificates, config) = (folder.file("certificates"), folder.file("agent.toml"));
    let (made, said) = run(&["keys", "tls", &certificates, "a", "b", "c"]);
    assert_eq!(made, 0, "{said}");
    fs::write(&config, "").expect("written");
    let authority = format!("{certificates}/authority.pem");
    let around = |folder: &Path, i: usize| {
        let own = folder.join("certificates").join(["a", "b", "c"][i]).display().to_string();
        let certificate = format!("KONKLAVE_TLS_CERTIFICATE={own}.pem");
        vec!["env".to_owned(), certificate, format!("KONKLAVE_TLS_KEY={own}.key")]
    };
    let plan = Plan { around, ..Plan::new(&["--tls-authority", &authority, "--config", &config]) };
    (Cluster::planned(folder, free_addresses(3), plan), certificates, config)
}

#[test]
fn made_certificates_join_agents_and_their_end_is_reported() {
    let (cluster, certificates, _) = with_certificates();
    for (file, expected) in [("authority.key", 0o400), ("a.key", 0o400), ("a.pem", 0o644)] {
        assert_eq!(mode(&format!("{certificates}/{file}")), expected, "{file}");
    }
    cluster.until(0, "three", members(3));
    let doctor = cluster.ask(0, &["doctor"]);
    assert!(doctor.contains("ok   certificate: the certificate is valid until 20"), "{doctor}");
    assert!(
        doctor.contains("ok   certificate: that of the authority is valid until 20"),
        "{doctor}"
    );
    let (again, said) = run(&["keys", "tls", &certificates, "a"]);
    assert_eq!(again, 73, "{said}");
    let (renewed, said) = run(&["keys", "tls", "--renew", "--days", "5", &certificates, "a"]);
    assert_eq!(renewed, 0, "{said}");
    reload(&cluster, 0);
    let doctor = output(&cluster.socket(0), &["doctor"]);
    let doctor = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(doctor.contains("FAIL certificate: the certificate ends on 20"), "{doctor}");
    assert!(
        doctor.contains("in 4 days") && doctor.contains("konklave keys tls --renew"),
        "{doctor}"
    );
    let metrics = cluster.ask(0, &["status", "--metrics"]);
    assert!(
        metrics.contains("konklave_certificate_end_seconds{certificate=\"own\"} "),
        "{metrics}"
    );
    assert_eq!(run(&["keys", "tls", &certificates, "Not_A_Name"]).0, 64);
}

#[test]
fn agent_with_denied_identity_is_shut_out() {
    let (cluster, _, config) = with_certificates();
    cluster.until(0, "three", members(3));
    let shown: Value =
        serde_json::from_str(&cluster.ask(0, &["members", "--format", "json"])).expect("JSON");
    let mut identities: Vec<&str> = shown["members"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|member| member["identity"].as_str())
        .collect();
    identities.sort_unstable();
    assert_eq!(identities, ["a", "b", "c"]);
    assert!(cluster.ask(0, &["members"]).contains("IDENTITY"));
    fs::write(&config, "deny = ['c']\n").expect("written");
    (0..2).for_each(|i| reload(&cluster, i));
    cluster.until(0, "two", members(2));
    until("it is told", || cluster.logged(2).contains("its identity c is shut out here"));
    fs::write(&config, "").expect("written");
    (0..2).for_each(|i| reload(&cluster, i));
    cluster.until(2, "back", members(3));
}

/// Every user of the machine can read a command line, but not an environment.
#[test]
fn password_of_nats_is_refused_on_the_command_line() {
    let folder = Folder::new();
    let (socket, data) = (folder.path().join("agent.sock"), folder.file("data"));
    let (url, words) = ("nats://me:secret@127.0.0.1:1", ["agent", "--data-dir", &data]);
    let (refused, said) = start(&socket, &[&words[..], &["--nats", url]].concat()).end();
    assert_eq!(refused, 64, "{said}");
    assert!(said.contains("KONKLAVE_NATS") && !said.contains("secret"), "{said}");
    let agent = start_with(&socket, &words, &[("KONKLAVE_NATS", url)]);
    until("it serves clients", || {
        let status = output(&socket, &["status", "--format", "json"]);
        serde_json::from_slice::<Value>(&status.stdout).is_ok_and(|s| s["standing"] == "forming")
    });
    agent.signal(Signal::SIGTERM);
    assert!(!agent.end().1.contains("secret"));
}
