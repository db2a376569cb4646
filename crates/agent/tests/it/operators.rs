//! The commands of an operator: semaphores, deadlocks of nested commands, changes in the whole group, gaps,
//! missing founders, and invalid settings.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use nix::sys::signal::Signal;
use serde_json::Value;

use crate::cluster::{Cluster, free_addresses};
use crate::kit::{Folder, code, konklave, output, start, until};

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn slots_are_shown_and_revoked_apart_from_a_lock_of_the_same_name() {
    let cluster = Cluster::new(3);
    let mut lock = start(&cluster.socket(0), &["lock", "gpu", "--", "cat"]);
    let train = ["lock", "--slots", "3", "disk", "--", "cat"];
    let one = start(&cluster.socket(1), &train);
    let held = |n: usize| {
        move |s: &Value| {
            let all = s["locks"].as_array().cloned().unwrap_or_default();
            let disk = all.into_iter().find(|lock| lock["name"] == "disk");
            disk.is_some_and(|disk| {
                disk["slots"] == 3 && disk["holders"].as_array().is_some_and(|h| h.len() == n)
            })
        }
    };
    cluster.until(0, "one of three", held(1));
    // One of three is held: one more can be had.
    let why = json(&cluster.ask(0, &["why", "disk", "--format", "json"]));
    assert_eq!(why["free"], true, "{why}");
    assert!(why["reasons"].to_string().contains("slots held: 1 of 3"), "{why}");
    assert!(cluster.ask(2, &["why", "disk"]).contains("is available"));
    let two = start(&cluster.socket(2), &train);
    cluster.until(0, "two of three", held(2));
    // Without --slots a lock is meant, and there is none of that name.
    let refused = output(&cluster.socket(0), &["revoke", "disk"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(code(&refused), 69, "{said}");
    assert!(said.contains("revoke --slots"), "{said}");
    let would =
        json(&cluster.ask(0, &["revoke", "--slots", "disk", "--dry-run", "--format", "json"]));
    assert_eq!(would["holders"].as_array().map(Vec::len), Some(2), "{would}");
    assert_eq!((&would["kind"], &would["dry_run"]), (&"semaphore".into(), &true.into()));
    let token = would["holders"][0]["token"].as_str().expect("a token").to_owned();
    let taken = json(
        &cluster.ask(0, &["revoke", "--slots", "disk", "--token", &token, "--format", "json"]),
    );
    assert_eq!(taken["holders"].as_array().map(Vec::len), Some(1), "{taken}");
    cluster.until(0, "one is left", held(1));
    cluster.ask(0, &["revoke", "--slots", "disk"]);
    assert_eq!((one.stopped(), two.stopped()), (76, 76));
    drop(lock.child_mut().stdin.take());
    assert_eq!(lock.end().0, 0, "nobody took the lock");
    // Leaders, too, in JSON.
    let boss = start(&cluster.socket(1), &["elect", "boss", "--", "cat"]);
    cluster.until(0, "led", |s| s["elections"][0]["holders"][0]["node"] == "n1");
    let taken = json(&cluster.ask(0, &["step-down", "boss", "--format", "json"]));
    assert_eq!(taken["holders"][0]["node"], "n1", "{taken}");
    assert_eq!(boss.stopped(), 76);
}

#[test]
fn why_explains_all_kinds_of_a_name() {
    let cluster = Cluster::new(3);
    let full = start(&cluster.socket(0), &["lock", "--slots", "1", "x", "--", "cat"]);
    let boss = start(&cluster.socket(1), &["elect", "x", "--", "cat"]);
    let one = |list: &Value| list.as_array().is_some_and(|all| all.len() == 1);
    cluster.until(2, "both", |s| one(&s["locks"]) && one(&s["elections"]));
    let next = start(&cluster.socket(1), &["lock", "--slots", "1", "x", "--", "true"]);
    cluster.until(2, "one waits", |s| one(&s["locks"][0]["waiters"]));
    // A slot is a slot, be it held or waited for.
    for words in [&["who", "x"][..], &["who", "x", "--format", "json"], &["why", "x"]] {
        let said = cluster.ask(2, words);
        assert!(said.contains("slot") && !said.contains("permit"), "{said}");
    }
    next.signal(Signal::SIGTERM);
    next.end();
    let lead = start(&cluster.socket(1), &["elect", "y", "--", "cat"]);
    cluster.until(2, "led", |s| s["elections"].as_array().is_some_and(|e| e.len() == 2));
    let who = output(&cluster.socket(2), &["who", "y"]);
    assert_eq!(String::from_utf8_lossy(&who.stderr), "", "there is an election of that name");
    assert!(String::from_utf8_lossy(&who.stdout).starts_with("ELECTION"), "{who:?}");
    let who = json(&cluster.ask(2, &["who", "y", "--format", "json"]));
    assert_eq!((&who["kind"], &who["others"]), (&"election".into(), &Value::Null), "{who}");
    let nobody = output(&cluster.socket(2), &["who", "z"]);
    assert_eq!(String::from_utf8_lossy(&nobody.stderr), "konklave: z has no holder\n");
    drop(lead);
    cluster.until(2, "both", |s| one(&s["locks"]) && one(&s["elections"]));
    assert_eq!(code(&output(&cluster.socket(2), &["lock", "x", "--", "true"])), 0);
    let why = json(&cluster.ask(2, &["why", "x", "--format", "json"]));
    assert_eq!(why["free"], false, "its only slot is held: {why}");
    let reasons = why["reasons"].to_string();
    for said in ["as a semaphore:", "slots held: 1 of 1", "as an election:", "leads"] {
        assert!(reasons.contains(said), "{said}: {reasons}");
    }
    drop((full, boss));
}

#[test]
fn command_who_shows_all_holders_of_a_name() {
    let cluster = Cluster::new(3);
    let lock = start(&cluster.socket(0), &["lock", "x", "--", "cat"]);
    cluster.until(2, "held", |s| s["locks"][0]["holders"][0]["node"] == "n0");
    let who = || json(&cluster.ask(2, &["who", "x", "--format", "json"]));
    let alone = who();
    assert_eq!((&alone["kind"], &alone["others"]), (&"lock".into(), &Value::Null), "{alone}");
    let slot = start(&cluster.socket(1), &["lock", "--slots", "2", "x", "--", "cat"]);
    let boss = start(&cluster.socket(2), &["elect", "x", "--", "cat"]);
    let count = |list: &Value| list.as_array().map_or(0, Vec::len);
    cluster.until(2, "all", |s| count(&s["locks"]) == 2 && count(&s["elections"]) == 1);
    let next = start(&cluster.socket(1), &["elect", "x", "--", "true"]);
    cluster.until(2, "one waits", |s| count(&s["elections"][0]["waiters"]) == 1);
    let all = who();
    assert_eq!(all["holders"][0]["node"], "n0", "{all}");
    let others = &all["others"];
    assert_eq!(
        (&others[0]["kind"], &others[0]["slots"]),
        (&"semaphore".into(), &2.into()),
        "{all}"
    );
    assert_eq!(others[1]["kind"], "election", "{all}");
    assert_eq!(others[1]["holders"][0]["node"], "n2", "{all}");
    let said = cluster.ask(2, &["who", "x"]);
    for words in ["exclusive", "slot of 2", "ELECTION", "n0 (", "n1 (", "n2 (", "WAITER"] {
        assert!(said.contains(words), "{words}: {said}");
    }
    // --election shows the election only.
    let said = cluster.ask(2, &["who", "--election", "x"]);
    assert!(said.contains("n2 (") && !said.contains("n0 ("), "{said}");
    drop((lock, slot, boss, next));
}

#[test]
fn unknown_number_of_founders_names_the_flag() {
    let folder = Folder::new();
    let (socket, data) = (folder.path().join("agent.sock"), folder.file("data"));
    let agent = start(&socket, &["agent", "--nats", "nats://127.0.0.1:1/x", "--data-dir", &data]);
    until("served", || output(&socket, &["status"]).status.success());
    let why = output(&socket, &["why", "a"]);
    let said = String::from_utf8_lossy(&why.stdout);
    assert!(
        said.contains("how many founders there are") && said.contains("--founders N"),
        "{said}"
    );
    agent.signal(Signal::SIGTERM);
    agent.end();
}

#[test]
fn why_finds_deadlock_of_nested_commands() {
    let cluster = Cluster::new(3);
    let program = env!("CARGO_BIN_EXE_konklave-agent");
    let (go, a, b) = (cluster.file("go"), cluster.file("a"), cluster.file("b"));
    let nested = |mine: &str, other: &str| {
        format!(
            "touch {mine}; while ! test -e {go}; do sleep 0.01; done; {program} lock {other} -- true"
        )
    };
    let first = start(&cluster.socket(0), &["lock", "ca", "-c", &nested(&a, "cb")]);
    let second = start(&cluster.socket(1), &["lock", "cb", "-c", &nested(&b, "ca")]);
    until("both hold", || fs::exists(&a).unwrap_or(false) && fs::exists(&b).unwrap_or(false));
    // Both names are new: other agents know a cached lock by its first holder only.
    let why = json(&cluster.ask(2, &["why", "ca", "--format", "json"]));
    assert_eq!(why["cycle"], serde_json::json!([]), "{why}");
    let doctor =
        || String::from_utf8_lossy(&output(&cluster.socket(2), &["doctor"]).stdout).into_owned();
    assert!(doctor().contains("ok   cycles: "), "{}", doctor());
    fs::write(&go, "").expect("written");
    let start_of = Instant::now();
    loop {
        let why = json(&cluster.ask(2, &["why", "ca", "--format", "json"]));
        if why["cycle"].as_array().is_some_and(|cycle| cycle.len() == 2) {
            assert!(why["reasons"].to_string().contains("wait for each other"), "{why}");
            assert!(!why["cycle"].to_string().contains("session"), "who, not which number: {why}");
            let found = doctor();
            let found = found.lines().find(|line| line.starts_with("FAIL cycles: "));
            let both = |line: &str| line.contains("waits for ca") && line.contains("waits for cb");
            assert!(found.is_some_and(both), "{}", doctor());
            break;
        }
        assert!(start_of.elapsed() < Duration::from_secs(20), "no cycle: {why}");
        std::thread::sleep(Duration::from_millis(20));
    }
    // Ending one of the commands ends the deadlock.
    first.signal(Signal::SIGTERM);
    first.end();
    assert_eq!(second.end().0, 0);
    // A command that asks for the very lock it runs under waits for itself.
    let own = format!("{program} lock own -- true");
    let own = start(&cluster.socket(0), &["lock", "own", "-c", &own]);
    cluster.until(0, "it waits", |s| s["locks"][0]["waiters"][0]["node"] == "n0");
    let why = cluster.ask(0, &["why", "own"]);
    assert!(why.contains("waits for a lock that the command around it holds"), "{why}");
    own.signal(Signal::SIGTERM);
    own.end();
}

#[test]
fn watch_reports_changes_of_the_whole_group() {
    let cluster = Cluster::new(3);
    let mut watcher = start(&cluster.socket(0), &["watch", "--format", "json"]);
    let out = BufReader::new(watcher.child_mut().stdout.take().expect("a pipe"));
    cluster.until(0, "watched", |s| s["sessions"].as_u64() >= Some(2));
    std::thread::sleep(Duration::from_millis(100));
    cluster.ask(1, &["lock", "a", "--", "true"]);
    cluster.ask(2, &["elect", "boss", "--", "true"]);
    let mut awaited = vec![
        ("held", "a", "n1", true),
        ("freed", "a", "n1", false),
        ("leads", "boss", "n2", true),
        ("led", "boss", "n2", false),
    ];
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs_f64();
    let start = now();
    for line in out.lines() {
        let event = json(&line.expect("a line"));
        let at = event["at"].as_f64().expect("a time");
        assert!(at > start - 60.0 && at <= now(), "{event}");
        awaited.retain(|(kind, name, node, token)| {
            let by = format!("by {node}");
            !(event["kind"] == *kind
                && event["name"] == *name
                && event["node"] == *node
                && event["token"].as_str().is_some_and(|t| t.split('.').count() == 3) == *token
                && event["what"].as_str().is_some_and(|text| text.contains(&by)))
        });
        if awaited.is_empty() {
            return;
        }
    }
    panic!("never told: {awaited:?}");
}

#[test]
fn receiver_is_told_of_a_gap() {
    let cluster = Cluster::new(3);
    let mut receiver = start(&cluster.socket(0), &["recv", "chat", "--format", "json"]);
    let mut out = BufReader::new(receiver.child_mut().stdout.take().expect("a pipe"));
    cluster.until(0, "listens", |s| s["sessions"].as_u64() >= Some(2));
    std::thread::sleep(Duration::from_millis(300));
    cluster.ask(1, &["send", "chat", "before"]);
    cluster.signal(0, Signal::SIGSTOP);
    // Until the others have gone on without it.
    cluster
        .until(1, "two members", |s| s["view"]["members"].as_array().is_some_and(|m| m.len() == 2));
    cluster.ask(1, &["send", "chat", "missed"]);
    cluster.signal(0, Signal::SIGCONT);
    cluster.until(0, "back", |s| {
        s["standing"] == "primary" && s["view"]["members"].as_array().is_some_and(|m| m.len() == 3)
    });
    std::thread::sleep(Duration::from_millis(800));
    cluster.ask(1, &["send", "chat", "after"]);
    let (mut lines, mut line) = (Vec::new(), String::new());
    while !line.contains("after") {
        line.clear();
        assert!(out.read_line(&mut line).expect("a line") > 0, "{lines:?}");
        lines.push(line.clone());
    }
    let gap = lines.iter().position(|line| line.contains("\"event\":\"gap\""));
    let before = lines.iter().position(|line| line.contains("before"));
    assert!(before.is_some() && before < gap, "{lines:?}");
    assert!(!lines.concat().contains("missed"), "then it is no gap: {lines:?}");
    receiver.signal(Signal::SIGTERM);
    assert!(receiver.end().1.contains("messages may be missing"));
}

#[test]
fn clients_are_served_and_told_which_founders_are_missing() {
    let folder = Folder::new();
    let socket = folder.path().join("agent.sock");
    let [mine, other] = free_addresses(2)[..] else { panic!("two") };
    let (peers, mine) = (format!("{mine},{other},no-such-host.invalid:7400"), mine.to_string());
    let data = folder.file("data");
    let agent =
        start(&socket, &["agent", "--listen", &mine, "--peers", &peers, "--data-dir", &data]);
    until("served", || output(&socket, &["status"]).status.success());
    let doctor = output(&socket, &["doctor"]);
    let said = String::from_utf8_lossy(&doctor.stdout);
    assert!(said.contains(&format!("founder: {other}: ")), "{said}");
    assert!(said.contains("founder: no-such-host.invalid:7400: "), "{said}");
    assert!(!said.contains(&format!("founder: {mine}")), "{said}");
    // Quicker than a client gives up, and with the reason.
    let sent = output(&socket, &["send", "chat", "hello"]);
    let said = String::from_utf8_lossy(&sent.stderr);
    assert_eq!(code(&sent), 69, "{said}");
    assert!(said.contains("no group: "), "{said}");
    let (safe, dangerous) = (said.find("start their agents"), said.find("--found-alone"));
    assert!(safe.is_some() && safe < dangerous, "{said}");
    assert!(said.contains(&format!("\n  {other}: ")), "{said}");
    let why = output(&socket, &["why", "a"]);
    let said = String::from_utf8_lossy(&why.stdout);
    assert!(said.contains("--found-alone") && said.contains("there is no view yet"), "{said}");
    assert!(said.contains(&format!("founder {other}: ")), "{said}");
    let doctor = output(&socket, &["doctor"]);
    let said = String::from_utf8_lossy(&doctor.stdout);
    assert!(said.contains("FAIL majority: there is no view yet"), "{said}");
    assert!(said.contains("--found-alone") && !said.contains("0 of 0"), "{said}");
    agent.signal(Signal::SIGTERM);
    let (_, log) = agent.end();
    assert!(log.contains("no-such-host.invalid"), "{log}");
    assert!(log.contains("2 of 2 other founders do not answer"), "{log}");
    assert!(!log.contains("3 of 3"), "{log}");
    // By multicast, too.
    let group = format!("239.255.75.{}:{}", 1 + std::process::id() % 250, 21_000);
    let probe = std::net::UdpSocket::bind("0.0.0.0:0").expect("a socket");
    if probe.send_to(b"?", &group).is_err() {
        eprintln!("skipped: no multicast here");
        return;
    }
    let beacon = format!("--beacon={group}");
    let data = folder.file("other");
    let agent = start(
        &socket,
        &["agent", &beacon, "--founders", "3", "--listen", "127.0.0.1:0", "--data-dir", &data],
    );
    until("served", || output(&socket, &["status"]).status.success());
    let why = output(&socket, &["why", "a"]);
    let said = String::from_utf8_lossy(&why.stdout);
    assert!(said.contains("1 of 3 founders are here"), "{said}");
    agent.signal(Signal::SIGTERM);
    let (_, log) = agent.end();
    assert!(!log.contains("0 of 3"), "{log}");
}

#[test]
fn list_of_peers_without_own_address_is_reported() {
    let folder = Folder::new();
    let addresses: Vec<String> = free_addresses(3).iter().map(ToString::to_string).collect();
    let run = |i: usize, peers: &str| {
        let socket = folder.path().join(format!("{i}.sock"));
        let data = folder.file(&format!("{i}.data"));
        let words = ["agent", "--listen", &addresses[i], "--peers", peers, "--data-dir", &data];
        (start(&socket, &words), socket)
    };
    let told = "is not in --peers";
    let doctor = |socket: &std::path::Path| {
        String::from_utf8_lossy(&output(socket, &["doctor"]).stdout).into_owned()
    };
    let others = |i: usize| {
        let others: Vec<&str> = (0..3).filter(|j| *j != i).map(|j| addresses[j].as_str()).collect();
        others.join(",")
    };
    let agents: Vec<_> = (0..3).map(|i| run(i, &others(i))).collect();
    for (_, socket) in &agents {
        until("told", || doctor(socket).contains(told));
    }
    for (agent, _) in agents {
        agent.signal(Signal::SIGTERM);
        let (_, log) = agent.end();
        assert!(log.lines().any(|line| line.contains("WARN") && line.contains(told)), "{log}");
    }
    // An agent that joins an existing group need not be in any list of peers.
    let all = addresses[..2].join(",");
    let (first, second) = (run(0, &all), run(1, &all));
    let third = run(2, &addresses[0]);
    until("three", || {
        let status = output(&third.1, &["status", "--format", "json"]);
        serde_json::from_slice::<Value>(&status.stdout).is_ok_and(|s| s["view"]["heard"] == 3)
    });
    std::thread::sleep(Duration::from_secs(4));
    for (agent, socket) in [third, second, first] {
        assert!(!doctor(&socket).contains(told));
        agent.signal(Signal::SIGTERM);
        let (_, log) = agent.end();
        assert!(!log.contains(told), "{log}");
    }
}

#[test]
fn invalid_settings_are_refused_with_reason() {
    let folder = Folder::new();
    let socket = folder.path().join("agent.sock");
    let data = folder.file("data");
    fs::create_dir_all(&data).expect("a folder");
    fs::write(format!("{data}/node.json"), "{ \"schema\": \"konk").expect("written");
    let long = "x".repeat(300);
    for (arguments, words) in [
        (&["--peers", "127.0.0.1"][..], "has no port"),
        (&["--peers", ""], "has no port"),
        (&["--name", &long], "300 bytes: 200 at most"),
        (&["--cluster", &long], "300 bytes: 200 at most"),
        (&["--name", "a\u{1b}[31m"], "control characters"),
        (&["--data-dir", &data], "or remove it"),
    ] {
        let mut all = vec!["agent", "--listen", "127.0.0.1:0"];
        if !arguments.contains(&"--data-dir") {
            all.extend(["--data-dir", folder.path().to_str().expect("text")]);
        }
        all.extend(arguments);
        let child = konklave(&socket).args(&all).stderr(Stdio::piped()).spawn().expect("it starts");
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(code(&output), 78, "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
}

#[test]
fn a_group_in_one_process_heeds_its_lease_and_labels_do_nothing_to_terminals() {
    let folder = Folder::new();
    let socket = folder.path().join("agent.sock");
    let agent = start(&socket, &["agent", "--dev", "--lease", "7", "--name", "unheard"]);
    until("there", || {
        let output = output(&socket, &["status", "--format", "json"]);
        serde_json::from_slice::<Value>(&output.stdout)
            .is_ok_and(|status| status["standing"] == "primary")
    });
    let mut holder =
        start(&socket, &["lock", "--ttl", "60", "--label", "red \u{1b}[31m", "a", "--", "cat"]);
    let mut status = Value::Null;
    until("held", || {
        let output = output(&socket, &["status", "--format", "json"]);
        status = serde_json::from_slice(&output.stdout).unwrap_or_default();
        status["locks"][0]["holders"][0]["safe"].as_f64().is_some()
    });
    let holder_of = &status["locks"][0]["holders"][0];
    assert!(holder_of["safe"].as_f64() > Some(4.0), "{status}");
    assert!(holder_of["label"].as_str().is_some_and(|label| label.contains("red ?[31m")));
    drop(holder.child_mut().stdin.take());
    assert_eq!(holder.end().0, 0);
    agent.signal(Signal::SIGTERM);
    let (code, log) = agent.end();
    assert_eq!(code, 0, "{log}");
    assert!(log.contains("no effect with --dev") && log.contains("--name"), "{log}");
}
