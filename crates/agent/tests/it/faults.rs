//! Faults of machines: full disks, clock jumps, firewalls, slow members, and members that do not read.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use konklave::Token;
use konklave_agent::client::Client;
use konklave_agent::protocol::{Event, Reply, Request};
use nix::sys::signal::Signal;

use crate::cluster::{Cluster, Plan, free_addresses};
use crate::history::{command, judge, parse};
use crate::kit::{Folder, code, number, output, start, until};

fn token(cluster: &Cluster, i: usize, name: &str) -> Token {
    let said = cluster.ask(i, &["lock", "-w", "20", name, "-c", "echo $KONKLAVE_TOKEN"]);
    said.trim().parse().expect("a token")
}

fn whole(n: usize) -> impl Fn(&serde_json::Value) -> bool {
    move |s| {
        s["standing"] == "primary" && s["view"]["members"].as_array().is_some_and(|m| m.len() == n)
    }
}

fn can_mount() -> bool {
    let can = Command::new("unshare").args(["-m", "mount", "-t", "tmpfs", "none", "/mnt"]).status();
    let can = can.is_ok_and(|status| status.success());
    if !can {
        eprintln!("skipped: no file systems can be mounted here; it needs root");
    }
    can
}

/// Words that mount a small file system for the data of agent `i`.
fn on_a_small_disk(folder: &Path, i: usize) -> Vec<String> {
    let data = folder.join(format!("{i}.data")).display().to_string();
    let mount = "mkdir -p \"$1\" && mount -t tmpfs -o size=64k none \"$1\" && shift && exec \"$@\"";
    ["unshare", "-m", "--propagation", "private", "sh", "-c", mount, "sh", &data]
        .map(str::to_owned)
        .to_vec()
}

#[test]
fn a_disk_that_is_full_from_the_start_is_told_in_the_log() {
    if !can_mount() {
        return;
    }
    let folder = Folder::new();
    let (socket, data) = (folder.path().join("agent.sock"), folder.file("data"));
    let listen = free_addresses(1)[0].to_string();
    let fill = "mkdir -p \"$1\" && mount -t tmpfs -o size=64k none \"$1\" && \
                { head -c 1000000 /dev/zero > \"$1/fill\"; shift; exec \"$@\"; }";
    let log = folder.file("log");
    let mut agent = Command::new("unshare")
        .args(["-m", "--propagation", "private", "sh", "-c", fill, "sh", &data])
        .args([env!("CARGO_BIN_EXE_konklave-agent"), "agent", "--listen", &listen])
        .args(["--data-dir", &data, "--socket"])
        .arg(&socket)
        .stdin(Stdio::null())
        .stderr(fs::File::create(&log).expect("a log"))
        .spawn()
        .expect("it starts");
    let logged = || fs::read_to_string(&log).unwrap_or_default();
    until("told", || logged().lines().any(|l| l.contains("WARN") && l.contains("No space left")));
    let said = output(&socket, &["doctor"]);
    assert!(String::from_utf8_lossy(&said.stdout).contains("No space left"), "{}", logged());
    agent.kill().expect("ours");
    agent.wait().expect("dead");
}

#[test]
fn a_full_disk_is_named_and_costs_the_others_nothing() {
    if !can_mount() {
        return;
    }
    let plan = Plan { around: on_a_small_disk, ..Plan::new(&[]) };
    let mut cluster = Cluster::planned(Folder::new(), free_addresses(3), plan);
    let first = token(&cluster, 0, "a");
    // The disk of the first, as it sees it.
    let disk = format!("/proc/{}/root{}/0.data", cluster.pid(0), cluster.path().display());
    assert!(Path::new(&disk).join("node.json").exists(), "its data is there");
    let fill = format!("{disk}/fill");
    let full = fs::write(&fill, vec![0; 1 << 20]);
    assert!(full.is_err(), "64 KiB are full");
    // A view that the first would have to write down.
    cluster.kill(2);
    cluster.until(1, "two", |s| s["view"]["members"].as_array().is_some_and(|m| m.len() == 2));
    until("named", || {
        let said = output(&cluster.socket(0), &["doctor"]);
        String::from_utf8_lossy(&said.stdout).contains("No space left")
    });
    assert!(cluster.logged(0).contains("No space left"), "{}", cluster.logged(0));
    let second = token(&cluster, 1, "a");
    assert!(second > first);
    cluster.start(2);
    cluster.until(1, "served on", |s| s["standing"] == "primary");
    let third = token(&cluster, 1, "a");
    assert!(third > second);
    // There is room again.
    fs::remove_file(&fill).expect("removed");
    cluster.until(0, "whole", whole(3));
    until("well", || {
        let said = output(&cluster.socket(0), &["doctor"]);
        !String::from_utf8_lossy(&said.stdout).contains("No space left")
    });
    assert!(token(&cluster, 0, "a") > third);
}

/// The library that lies about the wall clock.
fn liar() -> Option<String> {
    let found =
        Command::new("find").args(["/usr/lib", "-name", "libfaketime.so.1"]).output().ok()?;
    let found = String::from_utf8_lossy(&found.stdout).lines().next().map(str::to_owned);
    if found.is_none() {
        eprintln!("skipped: libfaketime is not installed");
    }
    found
}

fn with_a_lying_clock(folder: &Path, _: usize) -> Vec<String> {
    let clock = folder.join("clock").display().to_string();
    vec![
        "env".into(),
        format!("LD_PRELOAD={}", liar().unwrap_or_default()),
        format!("FAKETIME_TIMESTAMP_FILE={clock}"),
        "FAKETIME_NO_CACHE=1".into(),
        "FAKETIME_DONT_FAKE_MONOTONIC=1".into(),
    ]
}

#[test]
fn a_clock_that_jumps_moves_no_lock_and_no_token_backwards() {
    if liar().is_none() {
        return;
    }
    let folder = Folder::new();
    let clock = folder.file("clock");
    fs::write(&clock, "+0").expect("written");
    let plan = Plan { around: with_a_lying_clock, ..Plan::new(&[]) };
    let mut cluster = Cluster::planned(folder, free_addresses(3), plan);
    let holder = start(&cluster.socket(0), &["lock", "held", "--", "cat"]);
    cluster.until(1, "held", |s| s["locks"][0]["holders"][0]["node"] == "n0");
    let mut last = token(&cluster, 1, "a");
    for jump in ["+2d", "-3000d", "+1000d"] {
        fs::write(&clock, jump).expect("written");
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(1500) {
            let next = token(&cluster, 2, "a");
            assert!(next > last, "{jump}: {next} after {last}");
            last = next;
        }
        let taken = output(&cluster.socket(1), &["lock", "-n", "held", "--", "true"]);
        assert_eq!(code(&taken), 75, "{jump}: the lock is still held");
        let record = cluster.ask(0, &["record"]);
        assert!(!record.contains("\"suspected\""), "{jump}: nobody was suspected");
    }
    // The recorder notes the wall clock, which shows that the clock has jumped.
    let year = |cluster: &Cluster| {
        let record = cluster.ask(2, &["record"]);
        let line = record.lines().last().expect("something was recorded").to_owned();
        let line: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        line["at"].as_f64().expect("a time")
    };
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("now");
    assert!(year(&cluster) > now.as_secs_f64() + 900.0 * 86_400.0, "the clock did not jump");
    drop(holder);
    // A total restart in the past: tokens grow all the same.
    (0..3).for_each(|i| cluster.kill(i));
    fs::write(&clock, "-9000d").expect("written");
    (0..3).for_each(|i| cluster.start(i));
    for i in 0..3 {
        cluster.ready(i);
    }
    assert!(token(&cluster, 0, "a") > last);
}

#[test]
fn a_slow_member_slows_down_but_loses_nothing() {
    let cluster = Cluster::with(3, &["--silence", "3", "--lease", "2"]);
    let script = command(&cluster.path().display().to_string(), "sleep 0.01");
    let pid = nix::unistd::Pid::from_raw(cluster.pid(2));
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        // It runs for a tenth of the time.
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                for (signal, ms) in [(Signal::SIGSTOP, 90), (Signal::SIGCONT, 10)] {
                    let _ = nix::sys::signal::kill(pid, signal);
                    std::thread::sleep(Duration::from_millis(ms));
                }
            }
        });
        let view = cluster.status(0).expect("a status")["view"]["id"].clone();
        for round in 0..30 {
            cluster.ask(round % 3, &["lock", "-w", "20", "a", "-c", &script]);
        }
        assert_eq!(cluster.status(0).expect("a status")["view"]["id"], view, "nobody is excluded");
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    let history = parse(&fs::read_to_string(cluster.file("history")).expect("written"));
    assert_eq!(judge(&history), Ok(30));
}

#[test]
fn a_firewall_that_refuses_is_no_proof_that_a_process_is_gone() {
    let Some(cluster) = Cluster::apart() else { return };
    if !cluster.network().can_refuse(0) {
        eprintln!("skipped: nft is not installed, or may not be used");
        return;
    }
    let (pid, next) = (cluster.file("pid"), cluster.file("next"));
    let script = format!("trap '' TERM; echo $$ > {pid}; while :; do sleep 0.01; done");
    let holder = start(&cluster.socket(0), &["lock", "a", "-c", &script]);
    let pid = number(&pid);
    let script = format!("kill -0 {pid} 2>/dev/null && echo ALIVE; echo 1 > {next}");
    let waiter = start(&cluster.socket(1), &["lock", "a", "-c", &script]);
    cluster.until(1, "one waits", |s| s["locks"][0]["waiters"][0]["node"] == "n1");
    // The firewall tells the others at once that the process is gone, but it runs, and so does its command.
    cluster.network().refuse(0);
    until("the next", || fs::metadata(&next).is_ok());
    let output = waiter.output();
    assert_eq!((code(&output), output.stdout.as_slice()), (0, &b""[..]), "two commands at once");
    assert_eq!(holder.end().0, 76);
    cluster.network().allow(0);
    cluster.until(0, "back", whole(3));
}

fn memory(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("a size");
    let digits: String = line.chars().filter(char::is_ascii_digit).collect();
    digits.parse::<u64>().expect("a number") / 1024
}

#[test]
fn a_listener_that_does_not_read_costs_bounded_memory_and_nobody_waits_for_it() {
    let cluster = Cluster::new(3);
    // It shows life, for a minute, and reads nothing.
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let deaf = runtime.block_on(async {
        let ttl = Duration::from_secs(60);
        let mut deaf = Client::connect(&cluster.socket(2), "deaf", ttl).await.expect("connected");
        deaf.send(Request::Receive { group: "g".into() }).await.expect("sent");
        deaf
    });
    let out = cluster.file("heard");
    let heard = fs::File::create(&out).expect("a file");
    let mut listener = crate::kit::konklave(&cluster.socket(1))
        .args(["recv", "g"])
        .stdout(heard)
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    std::thread::sleep(Duration::from_secs(1));
    let before = memory(cluster.pid(2));
    let line = "x".repeat(100_000);
    let text = format!("{line}\n").repeat(2500);
    let file = cluster.file("text");
    fs::write(&file, text).expect("written");
    let sent = crate::kit::konklave(&cluster.socket(0))
        .args(["send", "g"])
        .stdin(fs::File::open(&file).expect("there"))
        .output()
        .expect("it starts");
    assert_eq!(code(&sent), 0, "{}", String::from_utf8_lossy(&sent.stderr));
    // The other receiver gets later messages, though it may have been too slow for a while itself.
    until("heard", || {
        cluster.ask(0, &["send", "g", "end"]);
        fs::read(&out).is_ok_and(|heard| heard.ends_with(b"end\n"))
    });
    let after = memory(cluster.pid(2));
    eprintln!("memory of the agent with the deaf listener: {before} to {after} MiB");
    assert!(after < before + 200, "{before} to {after} MiB for 240 MB that nobody reads");
    let _ = listener.kill();
    let _ = listener.wait();
    drop(deaf);
}

/// How long nine hundred messages take until a listener at the same agent has heard them all.
fn hears_all(cluster: &Cluster, file: &str) -> Duration {
    let mut listener = start(&cluster.socket(0), &["recv", "g", "--count", "900", "--views"]);
    let mut heard = std::io::BufReader::new(listener.child_mut().stdout.take().expect("a pipe"));
    let mut line = String::new();
    std::io::BufRead::read_line(&mut heard, &mut line).expect("a view");
    let reading = std::thread::spawn(move || {
        let mut text = String::new();
        std::io::Read::read_to_string(&mut heard, &mut text).expect("all");
        text
    });
    let begin = Instant::now();
    let sent = crate::kit::konklave(&cluster.socket(0))
        .args(["send", "g"])
        .stdin(fs::File::open(file).expect("there"))
        .output()
        .expect("it starts");
    assert_eq!(code(&sent), 0, "{}", String::from_utf8_lossy(&sent.stderr));
    let text = reading.join().expect("read");
    assert_eq!(text.lines().filter(|line| line.ends_with('x')).count(), 900);
    assert_eq!(listener.end().0, 0);
    begin.elapsed()
}

/// Both at the same agent, and more than the deaf one's session takes: others are not kept until that
/// is given up, after five seconds.
#[test]
fn a_listener_that_does_not_read_does_not_stall_others_at_its_agent() {
    let cluster = Cluster::new(1);
    let file = cluster.file("text");
    fs::write(&file, format!("{}\n", "x".repeat(4000)).repeat(900)).expect("written");
    let alone = hears_all(&cluster, &file);
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut deaf = runtime.block_on(async {
        let ttl = Duration::from_secs(60);
        let mut deaf = Client::connect(&cluster.socket(0), "deaf", ttl).await.expect("connected");
        deaf.send(Request::Receive { group: "g".into() }).await.expect("sent");
        // The first word of the group: it is in.
        deaf.next().await.expect("a view");
        deaf
    });
    let beside = hears_all(&cluster, &file);
    eprintln!("heard after {alone:?}, beside a deaf one after {beside:?}");
    assert!(beside < alone * 2 + Duration::from_secs(3), "{alone:?}, {beside:?}");
    // If the deaf client reads again, it finds the events in order.
    let numbers: Vec<u64> = runtime.block_on(async {
        let mut numbers = Vec::new();
        while numbers.len() < 20
            && let Ok(Reply::Event(event)) = deaf.next().await
        {
            if let Event::Message { number, .. } = event {
                numbers.push(number);
            }
        }
        numbers
    });
    assert!(numbers.len() == 20 && numbers.is_sorted(), "{numbers:?}");
}
