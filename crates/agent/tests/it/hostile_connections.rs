//! Hostile connections at every port of an agent: garbage, half-sent requests, thousands of silent
//! connections, a wrong key. The group still serves its clients.
//!
//! The tests print how long a client waits for a lock before, during and after each attack:
//! `cargo nextest run -p konklave-agent --no-capture hostile_connections`.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use konklave_agent::client::Client;
use konklave_agent::protocol::{Answer, ClaimKind, Request};
use nix::sys::resource::{Resource, getrlimit, setrlimit};

use crate::cluster::{Cluster, Plan, free_addresses};
use crate::kit::{Folder, output, start_with, until};

/// How many silent connections to open, if this process may have as many descriptors.
const SILENT: usize = 10_000;
/// How many half-sent requests: more than an agent may have descriptors.
const HALF_SENT: usize = 1100;
/// How many locks to measure.
const LOCKS: usize = 20;
/// The limit of descriptors of an agent, a usual one.
const AGENT_LIMIT: &str = "ulimit -n 1024 && exec \"$@\"";

/// Three agents with a key and the usual limit of descriptors; agent 0 has a metrics port.
fn cluster() -> (Cluster, SocketAddr) {
    let folder = Folder::new();
    let key = folder.file("key");
    fs::write(&key, "a key of sixteen bytes, and more").expect("written");
    let metrics = free_addresses(1)[0];
    let around = |_: &Path, _| ["sh", "-c", AGENT_LIMIT, "sh"].map(str::to_owned).to_vec();
    let plan = Plan { around, ..Plan::new(&["--key-file", &key]) };
    let mut cluster = Cluster::planned(folder, free_addresses(3), plan);
    // Only one of them can have the port.
    cluster.leave(0);
    cluster.start_with(0, &["--metrics", &metrics.to_string()]);
    cluster.ready(0);
    (cluster, metrics)
}

/// As many connections as this process may have, up to [`SILENT`].
fn silent() -> usize {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).expect("allowed");
    SILENT.min(usize::try_from(hard).expect("a number").saturating_sub(500))
}

/// New clients of agent 0 take a lock of their own, one after the other; prints how long that takes.
fn serves(cluster: &Cluster, what: &str) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut took: Vec<Duration> = runtime.block_on(async {
        let mut took = Vec::new();
        for i in 0..LOCKS {
            let start = Instant::now();
            let ttl = Duration::from_secs(30);
            let client = Client::connect(&cluster.socket(0), "client", ttl).await;
            let mut client = client.unwrap_or_else(|error| panic!("{what}: {error}"));
            let (name, claim) = (format!("{what} {i}"), ClaimKind::Exclusive);
            let granted = client
                .call(Request::Acquire { name, claim, wait: Some(20_000), lease: None })
                .await;
            assert!(matches!(granted, Ok(Answer::Granted { .. })), "{what}: {granted:?}");
            took.push(start.elapsed());
        }
        took
    });
    took.sort();
    let (median, slowest) = (took[LOCKS / 2], took[LOCKS - 1]);
    println!(
        "{what}: a new client has its lock after {median:.1?}, the slowest after {slowest:.1?}"
    );
}

/// Attacks with connections that `connect` opens, and sees that the group serves before, during and after.
fn attack<C: Write>(
    cluster: &Cluster,
    port: &str,
    connect: impl Fn() -> std::io::Result<C>,
    sends: &[(&str, usize, &[u8])],
) {
    serves(cluster, &format!("{port}, before"));
    for (what, count, bytes) in sends {
        let mut open = Vec::new();
        for _ in 0..*count {
            // The agent may have no place, or close the connection at once: that is its right.
            if let Ok(mut stream) = connect() {
                let _ = stream.write_all(bytes);
                open.push(stream);
            }
        }
        println!("{port}: {} of {count} connections opened: {what}", open.len());
        assert!(open.len() > count / 2, "{port}: {what}: only {} connected", open.len());
        serves(cluster, &format!("{port}, {what}"));
    }
    serves(cluster, &format!("{port}, after"));
    for i in 0..cluster.len() {
        cluster.until(i, "a group of three", |status| {
            status["standing"] == "primary"
                && status["view"]["members"].as_array().is_some_and(|members| members.len() == 3)
        });
    }
}

fn tcp(to: SocketAddr) -> impl Fn() -> std::io::Result<TcpStream> {
    move || {
        let stream = TcpStream::connect_timeout(&to, Duration::from_secs(5))?;
        stream.set_write_timeout(Some(Duration::from_secs(5)))?;
        Ok(stream)
    }
}

fn garbage() -> Vec<u8> {
    (0..20_000_u32).map(|i| (i * 31 % 251) as u8).collect()
}

#[test]
fn group_serves_while_member_port_is_attacked() {
    let (cluster, _) = cluster();
    let guess = [&b"KNKL\x08\0\xff\xff"[..], &[9; 48]].concat();
    let sends: [(&str, usize, &[u8]); 5] = [
        ("garbage", 300, &garbage()),
        ("a wrong key", 300, &guess),
        ("half a header", HALF_SENT, b"KNK"),
        ("half a handshake", HALF_SENT, &guess[..20]),
        ("silence", silent(), b""),
    ];
    attack(&cluster, "member port", tcp(cluster.address(0)), &sends);
}

#[test]
fn group_serves_while_socket_is_attacked() {
    let (cluster, _) = cluster();
    let socket = cluster.socket(0);
    let hello = br#"{"id":1,"op":"hello","protocol":99,"label":"x","ttl":5000}"#;
    let other_version = [&(hello.len() as u32).to_be_bytes(), &hello[..]].concat();
    let sends: [(&str, usize, &[u8]); 4] = [
        ("garbage", 300, &garbage()),
        ("another version", 300, &other_version),
        ("half a request", HALF_SENT, &other_version[..20]),
        ("silence", silent(), b""),
    ];
    attack(&cluster, "socket", || UnixStream::connect(&socket), &sends);
}

/// 1100 half-sent requests took an agent down: it had no descriptor left for its peers.
#[test]
fn group_serves_while_metrics_port_is_attacked() {
    let (cluster, metrics) = cluster();
    let sends: [(&str, usize, &[u8]); 3] = [
        ("garbage", 300, &garbage()),
        ("half a request", HALF_SENT, b"GET /metrics HTTP/1.1\r\nHost: x\r\n"),
        ("silence", silent(), b""),
    ];
    attack(&cluster, "metrics port", tcp(metrics), &sends);
    let half: Vec<TcpStream> = (0..HALF_SENT).filter_map(|_| tcp(metrics)().ok()).collect();
    let mut page = tcp(metrics)().expect("it listens");
    page.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("sent");
    let mut text = String::new();
    page.read_to_string(&mut text).expect("an answer");
    assert!(text.contains("konklave_node_info"), "{text}");
    drop(half);
}

/// Each client holds a session, so nothing but their number is wrong with them.
#[test]
fn clients_leave_descriptors_for_the_group() {
    let folder = Folder::new();
    let socket = folder.path().join("agent.sock");
    let program = env!("CARGO_BIN_EXE_konklave-agent");
    let limited = std::process::Command::new("sh")
        .args(["-c", "ulimit -n 256 && exec \"$@\"", "sh", program, "agent", "--dev", "--socket"])
        .arg(&socket)
        .stderr(fs::File::create(folder.file("log")).expect("a log"))
        .spawn();
    let mut agent = limited.expect("it starts");
    until("there", || output(&socket, &["status"]).status.success());
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let mut clients = Vec::new();
        let refused = loop {
            match Client::connect(&socket, "one of many", Duration::from_secs(30)).await {
                Ok(client) => clients.push(client),
                Err(refused) => break refused,
            }
            assert!(clients.len() < 256, "all descriptors of the agent are clients");
        };
        assert!(refused.to_string().contains("128 clients already"), "{refused}");
        assert_eq!(refused.exit_code(), 69);
        clients.pop();
        let start = Instant::now();
        while Client::connect(&socket, "for a free place", Duration::from_secs(30)).await.is_err() {
            assert!(start.elapsed() < Duration::from_secs(20), "no place is free");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    agent.kill().expect("ours");
    agent.wait().expect("dead");
}

/// Another user put a socket where the agent's should be, in a folder where all may write.
#[test]
fn client_refuses_socket_of_another_user() {
    let folder = Folder::new();
    let program = folder.file("konklave");
    fs::copy(env!("CARGO_BIN_EXE_konklave-agent"), &program).expect("a copy that others may run");
    let chmod = |mode: &str, path: &str| {
        let done = std::process::Command::new("chmod").args([mode, path]).status();
        assert!(done.expect("chmod").success());
    };
    let shared = folder.file("shared");
    fs::create_dir(&shared).expect("a folder");
    chmod("755", &folder.path().display().to_string());
    chmod("755", &program);
    chmod("1777", &shared);
    let socket = Path::new(&shared).join("konklave/agent.sock");
    let planted = std::process::Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .args([&program, "agent", "--dev", "--allow-users", "0", "--socket"])
        .arg(&socket)
        .stderr(fs::File::create(folder.file("log")).expect("a log"))
        .spawn();
    let log = || fs::read_to_string(folder.file("log")).unwrap_or_default();
    let Ok(mut planted) = planted else { return };
    until("it listens, or cannot be", || {
        log().contains("ready for clients") || planted.try_wait().is_ok_and(|end| end.is_some())
    });
    if !log().contains("ready for clients") {
        eprintln!("skipped: nobody else to be here (it needs root and setpriv): {}", log());
        return;
    }
    let victim = output(&socket, &["lock", "-n", "a", "--", "true"]);
    let said = String::from_utf8_lossy(&victim.stderr).into_owned();
    assert_eq!(victim.status.code(), Some(77), "{said}");
    assert!(said.contains("impostor") && said.contains("KONKLAVE_AGENT_USER"), "{said}");
    // An administrator who means it can say so.
    let trusting = start_with(&socket, &["status"], &[("KONKLAVE_AGENT_USER", "65534")]);
    assert_eq!(trusting.end().0, 0);
    planted.kill().expect("ours");
    planted.wait().expect("dead");
}
