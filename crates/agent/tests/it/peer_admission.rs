//! Which peers an agent accepts: names, certificates, changed keys, and garbage on its port.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use nix::sys::signal::Signal;

use crate::cluster::{Cluster, Plan, free_addresses};
use crate::kit::{Folder, Running, code, output, start, until};

const KEY: &str = "a key of sixteen bytes, and more";

fn with_key(folder: &Folder) -> Plan {
    let key = folder.file("key");
    fs::write(&key, KEY).expect("written");
    Plan::new(&["--key-file", &key])
}

/// Three agents with a key.
fn cluster() -> Cluster {
    let folder = Folder::new();
    let plan = with_key(&folder);
    Cluster::planned(folder, free_addresses(3), plan)
}

/// Whether a status shows a group of `n`.
fn members(n: usize) -> impl Fn(&serde_json::Value) -> bool {
    move |s| {
        s["standing"] == "primary" && s["view"]["members"].as_array().is_some_and(|m| m.len() == n)
    }
}

/// An agent beside the cluster: `name`, at a free address.
fn beside(cluster: &Cluster, name: &str, flags: &[&str]) -> Running {
    let socket = cluster.path().join(format!("{name}.sock"));
    let data = cluster.file(&format!("{name}.data"));
    let words = ["agent", "--name", name, "--listen", "127.0.0.1:0", "--data-dir", &data];
    start(&socket, &[&words[..], &["--profile", "fast"], flags].concat())
}

fn standing(cluster: &Cluster, name: &str) -> String {
    let socket = cluster.path().join(format!("{name}.sock"));
    let output = output(&socket, &["status", "--format", "json"]);
    let status: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    status["standing"].as_str().unwrap_or_default().to_owned()
}

fn serves(cluster: &Cluster) {
    for i in 0..cluster.len() {
        cluster.ask(i, &["lock", "-w", "20", "a", "--", "true"]);
    }
}

#[test]
fn agents_with_certificates_accept_only_peers_of_their_authority() {
    let folder = Folder::new();
    let authority = |name: &str| {
        let mut params = rcgen::CertificateParams::new(Vec::new()).expect("no names");
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let key = rcgen::KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("signed").pem();
        let issuer = rcgen::Issuer::new(params, key);
        let params = rcgen::CertificateParams::new(vec!["konklave".into()]).expect("a name");
        let key = rcgen::KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &issuer).expect("signed").pem();
        let texts =
            [("authority", pem), ("certificate", certificate), ("key", key.serialize_pem())];
        let flags = texts.map(|(what, text)| {
            let file = folder.file(&format!("{name}.{what}"));
            fs::write(&file, text).expect("written");
            [format!("--tls-{what}"), file]
        });
        flags.concat()
    };
    let (ours, theirs) = (authority("ours"), authority("theirs"));
    let flags: Vec<&str> = ours.iter().map(String::as_str).collect();
    let plan = Plan::new(&flags);
    let cluster = Cluster::planned(folder, free_addresses(3), plan);
    serves(&cluster);
    let seed = cluster.address(0).to_string();
    let mut words: Vec<&str> = theirs.iter().map(String::as_str).collect();
    words.extend(["--peers", &seed]);
    let _stranger = beside(&cluster, "stranger", &words);
    until("refused", || cluster.logged(0).contains("TLS"));
    assert_ne!(standing(&cluster, "stranger"), "primary");
    // Without any, nothing is understood.
    let mut plain = TcpStream::connect(cluster.address(1)).expect("someone listens");
    plain.write_all(b"KNKL").expect("written");
    let mut answer = Vec::new();
    plain.set_read_timeout(Some(Duration::from_secs(10))).expect("set");
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"KNKL"), "greeted in the clear");
    cluster.until(0, "three", members(3));
    serves(&cluster);
}

#[test]
fn one_name_stands_for_all_founders() {
    let can = Command::new("unshare").args(["-m", "true"]).status();
    if !can.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no mount namespaces here; it needs root");
        return;
    }
    let folder = Folder::new();
    let port = free_addresses(1)[0].port();
    let addresses: Vec<SocketAddr> =
        (1..4).map(|i| format!("127.0.0.{i}:{port}").parse().expect("an address")).collect();
    let lines: Vec<String> =
        addresses.iter().map(|a| format!("{} founders.test\n", a.ip())).collect();
    fs::write(folder.file("hosts"), lines.concat()).expect("written");
    let meet = ["--peers", &format!("founders.test:{port}"), "--founders", "3"];
    let around = |folder: &std::path::Path, _: usize| {
        let mount = "mount --bind \"$1\" /etc/hosts && shift && exec \"$@\"";
        let hosts = folder.join("hosts").display().to_string();
        ["unshare", "-m", "sh", "-c", mount, "sh", &hosts].map(str::to_owned).to_vec()
    };
    let meet = Some(meet.map(str::to_owned).to_vec());
    let plan = Plan { meet, around, ..with_key(&folder) };
    let mut cluster = Cluster::planned(folder, addresses, plan);
    cluster.until(0, "three", members(3));
    serves(&cluster);
    // A restarted agent finds the others by the name.
    cluster.kill(1);
    cluster.start(1);
    cluster.until(1, "back", members(3));
}

#[test]
fn a_reload_changes_the_key_and_the_list_of_peers_while_the_group_goes_on() {
    let folder = Folder::new();
    let mut plan = with_key(&folder);
    // Long enough that a busy machine loses nothing: this is about keys, not about time.
    plan.flags.extend(["--lease", "10", "--silence", "12"].map(str::to_owned));
    let mut cluster = Cluster::planned(folder, free_addresses(3), plan);
    let view = cluster.status(0).expect("a status")["view"].clone();
    let holder = start(&cluster.socket(0), &["lock", "held", "--", "cat"]);
    cluster.until(1, "held", |s| s["locks"][0]["holders"][0]["node"] == "n0");
    let key = cluster.file("key");
    fs::write(&key, "another key, of more than sixteen bytes").expect("written");
    // An agent with the new key is refused until the reload.
    let (list, nobody) = (cluster.file("list"), free_addresses(1)[0].to_string());
    fs::write(&list, &nobody).expect("written");
    let fourth =
        beside(&cluster, "fourth", &["--key-file", &key, "--peers-file", &list, "--lease", "10"]);
    until("it is up", || !standing(&cluster, "fourth").is_empty());
    let hang_up = |i: usize| {
        let times = |log: String| log.matches("reloaded").count();
        let before = times(cluster.logged(i));
        cluster.signal(i, Signal::SIGHUP);
        until("reloaded", || times(cluster.logged(i)) > before);
        assert!(!cluster.logged(i).contains("reload failed"), "{}", cluster.logged(i));
    };
    (0..3).for_each(hang_up);
    assert_eq!(cluster.status(0).expect("a status")["view"]["id"], view["id"], "nobody noticed");
    assert_ne!(standing(&cluster, "fourth"), "primary", "it calls nobody");
    // The list of the fourth names a member now.
    fs::write(&list, cluster.address(0).to_string()).expect("written");
    fourth.signal(Signal::SIGHUP);
    until("the fourth is in", || standing(&cluster, "fourth") == "primary");
    // An agent with the old key is refused after the reload.
    let old = cluster.file("old");
    fs::write(&old, KEY).expect("written");
    let seed = cluster.address(1).to_string();
    let _late = beside(&cluster, "late", &["--key-file", &old, "--peers", &seed, "--lease", "10"]);
    until("refused", || cluster.logged(1).contains("wrong key"));
    assert_ne!(standing(&cluster, "late"), "primary");
    cluster.kill(2);
    cluster.start(2);
    cluster.until(2, "back, with the new key", members(4));
    // The lock was held all the time.
    assert_eq!(code(&output(&cluster.socket(1), &["lock", "-n", "held", "--", "true"])), 75);
    drop(holder);
}

#[test]
fn a_stranger_on_the_port_of_an_agent_is_refused_with_the_reason() {
    let cluster = cluster();
    let garbage: Vec<u8> = (0..100_000_u32).map(|i| (i * 31 % 251) as u8).collect();
    for (bytes, why) in [
        (garbage, "does not speak the protocol"),
        ([b"KNKL".to_vec(), vec![9, 9, 4, 0, 0, 0, 0, 0]].concat(), "version 2313"),
        ([b"KNKL".to_vec(), vec![8, 0, 4, 0]].concat(), "it has no key, we have one"),
        ([b"KNKL".to_vec(), vec![8, 0, 0xff, 0xff], vec![1; 48]].concat(), "wrong key"),
    ] {
        let before = cluster.logged(0).matches(why).count();
        let mut stream = TcpStream::connect(cluster.address(0)).expect("it listens");
        let _ = stream.write_all(&bytes);
        until(why, || cluster.logged(0).matches(why).count() > before);
    }
    let told = || cluster.logged(0).matches("does not speak the protocol").count();
    let before = told();
    let mut again = TcpStream::connect(cluster.address(0)).expect("it listens");
    let _ = again.write_all(b"GET / HTTP/1.1\r\n\r\n");
    // Many silent connections do not block members.
    let silent: Vec<TcpStream> =
        (0..200).map(|_| TcpStream::connect(cluster.address(0)).expect("it listens")).collect();
    serves(&cluster);
    drop(silent);
    let (other, seed) = (cluster.file("other"), cluster.address(0).to_string());
    fs::write(&other, "the key of somebody else").expect("written");
    let _stranger = beside(&cluster, "stranger", &["--key-file", &other, "--peers", &seed]);
    until("refused", || cluster.logged(0).contains("wrong key"));
    assert_ne!(standing(&cluster, "stranger"), "primary");
    cluster.until(0, "three", members(3));
    assert_eq!(told(), before, "the same reason is told once");
}

/// Forwards connections to `to`, and records what callers send. With `spoil`, it
/// changes one byte.
struct Tap {
    address: SocketAddr,
    said: Arc<Mutex<Vec<Vec<u8>>>>,
    spoil: Arc<AtomicBool>,
}

impl Tap {
    fn new(to: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let said = Arc::new(Mutex::new(Vec::<Vec<u8>>::new()));
        let spoil = Arc::new(AtomicBool::new(false));
        let (log, bad) = (said.clone(), spoil.clone());
        thread::spawn(move || {
            for caller in listener.incoming().flatten() {
                let Ok(called) = TcpStream::connect(to) else { continue };
                let place = {
                    let mut log = log.lock().expect("no panic");
                    log.push(Vec::new());
                    log.len() - 1
                };
                let back =
                    (called.try_clone().expect("a copy"), caller.try_clone().expect("a copy"));
                thread::spawn(move || pass(back.0, back.1, |_| ()));
                let (log, bad) = (log.clone(), bad.clone());
                thread::spawn(move || {
                    pass(caller, called, |bytes| {
                        if bad.swap(false, Ordering::Relaxed) {
                            bytes[0] ^= 0x40;
                        }
                        log.lock().expect("no panic")[place].extend_from_slice(bytes);
                    });
                });
            }
        });
        Self { address, said, spoil }
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, mut look: impl FnMut(&mut [u8])) {
    let mut buffer = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        look(&mut buffer[..length]);
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(std::net::Shutdown::Both);
    let _ = from.shutdown(std::net::Shutdown::Both);
}

#[test]
fn replayed_connection_is_refused_and_changed_byte_loses_nothing() {
    let cluster = cluster();
    let (tap, key) = (Tap::new(cluster.address(0)), cluster.file("key"));
    let seed = tap.address.to_string();
    // No process listens at the advertised address, so all bytes between this agent and the first pass the tap.
    let hole = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let nowhere = hole.local_addr().expect("bound").to_string();
    let flags = ["--key-file", &key, "--peers", &seed, "--advertise", &nowhere];
    let _fourth = beside(&cluster, "fourth", &flags);
    until("the fourth is in", || standing(&cluster, "fourth") == "primary");
    cluster.until(0, "four", members(4));
    thread::sleep(Duration::from_millis(500));
    let said = tap.said.lock().expect("no panic").clone();
    let longest = said.iter().max_by_key(|said| said.len()).expect("it called");
    assert!(longest.len() > 200, "a handshake, a greeting and records: {}", longest.len());
    // The same handshake, the same records, word for word.
    let refusals = || cluster.logged(0).matches("repeats the call").count();
    let before = refusals();
    let view = cluster.status(0).expect("a status")["view"]["id"].clone();
    let mut replay = TcpStream::connect(cluster.address(0)).expect("it listens");
    replay.write_all(longest).expect("sent");
    until("refused", || refusals() > before);
    assert_eq!(cluster.status(0).expect("a status")["view"]["id"], view, "nobody noticed");
    // A byte that changes on the way ends a connection, and no more.
    let socket = cluster.path().join("fourth.sock");
    tap.spoil.store(true, Ordering::Relaxed);
    until("a byte is changed", || !tap.spoil.load(Ordering::Relaxed));
    assert_eq!(code(&output(&socket, &["lock", "-w", "20", "a", "--", "true"])), 0);
    until("noticed", || cluster.logged(0).contains("or was changed"));
    assert_eq!(cluster.status(0).expect("a status")["view"]["id"], view, "nobody is excluded");
    serves(&cluster);
}
