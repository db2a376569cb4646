//! Three agents: what clients see of a group, and what is left when parts of it are killed.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use konklave::Token;
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::cluster::{Cluster, free_addresses};
use crate::history::{command, judge, parse};
use crate::kit::{Folder, alive, code, konklave, number, output, start, until};

/// The token that a command wrote to a file.
fn token(file: &str) -> Token {
    let mut token = None;
    until(file, || {
        let text = fs::read_to_string(file).unwrap_or_default();
        token = text.strip_suffix('\n').and_then(|text| text.parse().ok());
        token.is_some()
    });
    token.expect("it was read")
}

#[test]
fn status_who_and_why_of_three_agents_agree() {
    holders_and_waiters_are_shown(&[]);
}

/// In a group of agents with these flags.
pub(crate) fn holders_and_waiters_are_shown(flags: &[&str]) {
    let cluster = Cluster::with(3, flags);
    let pid = cluster.file("pid");
    let mut holder = start(
        &cluster.socket(0),
        &["lock", "--label", "my cat", "reports", "-c", &format!("echo $$ > {pid}; cat")],
    );
    number(&pid);
    let waiter = start(&cluster.socket(1), &["lock", "reports", "--", "true"]);
    cluster.until(2, "one waits", |status| {
        status["locks"][0]["waiters"].as_array().is_some_and(|waiters| waiters.len() == 1)
    });
    let status = cluster.status(2).expect("a status");
    assert_eq!(status["schema"], "konklave.status/1");
    assert_eq!(status["view"]["members"].as_array().map(Vec::len), Some(3));
    assert_eq!((&status["view"]["quorum"], &status["view"]["heard"]), (&2.into(), &3.into()));
    let lock = &status["locks"][0];
    assert_eq!((&lock["name"], &lock["kind"]), (&"reports".into(), &"lock".into()));
    assert_eq!(lock["holders"][0]["node"], "n0");
    assert!(lock["holders"][0]["label"].as_str().is_some_and(|label| label.contains("my cat")));
    assert_eq!(lock["waiters"][0]["node"], "n1");

    let who: Value = serde_json::from_str(&cluster.ask(1, &["who", "reports", "--format", "json"]))
        .expect("json");
    assert_eq!(who["holders"][0]["node"], "n0");
    assert!(cluster.ask(2, &["who", "reports"]).contains("n0"));
    let why = cluster.ask(2, &["why", "reports"]);
    for words in
        ["is not available", "n0", "holds it", "last heard", "place 1", "of 3 voters", "needs 2"]
    {
        assert!(why.contains(words), "{words}: {why}");
    }
    assert!(cluster.ask(0, &["why", "nothing"]).contains("is available"));
    let members = cluster.ask(0, &["members"]);
    assert!(members.contains("n0") && members.contains("n2") && members.contains("this agent"));
    let page = cluster.ask(0, &["status", "--metrics"]);
    for line in ["konklave_primary 1", "konklave_view_members 3", "konklave_held{kind=\"lock\"} 1"]
    {
        assert!(page.lines().any(|l| l == line), "{line}:\n{page}");
    }
    drop(holder.child_mut().stdin.take());
    assert_eq!(holder.end().0, 0);
    assert_eq!(waiter.end().0, 0);
    let record = cluster.ask(0, &["record"]);
    assert!(
        record.contains("\"kind\":\"granted\"") && record.contains("\"kind\":\"view\""),
        "{record}"
    );
}

#[test]
fn metrics_health_and_readiness_are_served() {
    let address = free_addresses(1)[0];
    let cluster = Cluster::with(1, &["--metrics", &address.to_string()]);
    let get = |path: &str| {
        let mut stream = TcpStream::connect(address).expect("it listens");
        write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            .expect("sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        text
    };
    assert!(get("/metrics").contains("konklave_primary 1"));
    assert!(get("/healthz").starts_with("HTTP/1.1 200"));
    assert!(get("/ready").starts_with("HTTP/1.1 200"));
    assert!(get("/nothing").starts_with("HTTP/1.1 404"));
    drop(cluster);
}

#[test]
fn a_killed_wrapper_hands_over_at_once() {
    a_killed_wrapper_hands_over(&[]);
}

/// In a group of agents with these flags.
pub(crate) fn a_killed_wrapper_hands_over(flags: &[&str]) {
    let cluster = Cluster::with(3, flags);
    let (pid, next) = (cluster.file("pid"), cluster.file("next"));
    let holder = start(&cluster.socket(0), &["lock", "a", "-c", &format!("echo $$ > {pid}; cat")]);
    let held = number(&pid);
    let waiter = start(&cluster.socket(1), &["lock", "a", "-c", &format!("echo $$ > {next}")]);
    cluster.until(0, "one waits", |s| s["locks"][0]["waiters"][0]["node"] == "n1");
    holder.signal(Signal::SIGKILL);
    let killed = Instant::now();
    until("next", || fs::metadata(&next).is_ok());
    let took = killed.elapsed();
    assert!(!alive(held), "the command before it lives");
    eprintln!("kill -9 of the wrapper to the next command: {took:?}");
    assert!(took < Duration::from_millis(500), "{took:?}");
    assert_eq!(waiter.end().0, 0);
}

#[test]
fn a_killed_agent_loses_its_locks_and_the_next_token_is_higher() {
    a_killed_agent_loses_its_locks(&[]);
}

/// In a group of agents with these flags.
pub(crate) fn a_killed_agent_loses_its_locks(flags: &[&str]) {
    let mut cluster = Cluster::with(3, flags);
    let (pid, first, second) = (cluster.file("pid"), cluster.file("first"), cluster.file("second"));
    // It does not heed requests: the deadline has to kill it.
    let script = format!(
        "trap '' TERM; echo $KONKLAVE_TOKEN > {first}; echo $$ > {pid}; while :; do sleep 0.01; done"
    );
    let holder = start(&cluster.socket(0), &["lock", "a", "-c", &script]);
    let (first, pid) = (token(&first), number(&pid));
    let script =
        format!("kill -0 {pid} 2>/dev/null && echo ALIVE; echo $KONKLAVE_TOKEN > {second}");
    let waiter = start(&cluster.socket(1), &["lock", "a", "-c", &script]);
    cluster.until(1, "one waits", |s| s["locks"][0]["waiters"][0]["node"] == "n1");
    let killed = Instant::now();
    cluster.kill(0);
    let second = token(&second);
    eprintln!("kill -9 of the holder's agent to the next command: {:?}", killed.elapsed());
    assert!(second > first, "{second} after {first}");
    let output = waiter.output();
    assert_eq!((code(&output), output.stdout.as_slice()), (0, &b""[..]), "two commands at once");
    assert_eq!(holder.end().0, 76);
    assert!(killed.elapsed() < Duration::from_secs(5));
    cluster.start(0);
    cluster.ready(0);
    cluster
        .until(0, "three again", |s| s["view"]["members"].as_array().is_some_and(|m| m.len() == 3));
}

#[test]
fn a_frozen_agent_is_replaced_and_its_command_is_dead_before() {
    let cluster = Cluster::new(3);
    let (pid, second) = (cluster.file("pid"), cluster.file("second"));
    let script = format!("trap '' TERM; echo $$ > {pid}; while :; do sleep 0.01; done");
    let holder = start(&cluster.socket(2), &["lock", "a", "-c", &script]);
    let pid = number(&pid);
    let script =
        format!("kill -0 {pid} 2>/dev/null && echo ALIVE; echo $KONKLAVE_TOKEN > {second}");
    let waiter = start(&cluster.socket(1), &["lock", "a", "-c", &script]);
    cluster.until(1, "one waits", |s| s["locks"][0]["waiters"][0]["node"] == "n1");
    cluster.signal(2, Signal::SIGSTOP);
    let stopped = Instant::now();
    token(&second);
    eprintln!("SIGSTOP of the holder's agent to the next command: {:?}", stopped.elapsed());
    let output = waiter.output();
    assert_eq!((code(&output), output.stdout.as_slice()), (0, &b""[..]), "two commands at once");
    assert!(stopped.elapsed() < Duration::from_secs(8), "{:?}", stopped.elapsed());
    assert_eq!(holder.end().0, 76);
    cluster.signal(2, Signal::SIGCONT);
    cluster.until(2, "back", |s| {
        s["standing"] == "primary" && s["view"]["members"].as_array().is_some_and(|m| m.len() == 3)
    });
}

#[test]
fn after_a_total_restart_tokens_still_grow() {
    let mut cluster = Cluster::new(3);
    let file = cluster.file("token");
    let mut last = Token::default();
    for round in 0..3 {
        let script = format!("echo $KONKLAVE_TOKEN > {file}");
        cluster.ask(round, &["lock", "a", "-c", &script]);
        let next = token(&file);
        assert!(next > last, "round {round}: {next} after {last}");
        last = next;
        for i in 0..3 {
            cluster.kill(i);
        }
        for i in 0..3 {
            cluster.start(i);
        }
        for i in 0..3 {
            cluster.ready(i);
        }
    }
}

#[test]
fn without_majority_nothing_is_granted_and_why_explains_it() {
    let mut cluster = Cluster::new(3);
    let _holder = start(&cluster.socket(1), &["lock", "held", "--", "cat"]);
    cluster.until(0, "held", |s| s["locks"][0]["holders"][0]["node"] == "n1");
    cluster.kill(1);
    cluster.kill(2);
    cluster.until(0, "blocked", |s| s["standing"] != "primary");
    // A refused `revoke` must not report that it took the lock.
    let refused = output(&cluster.socket(0), &["revoke", "held"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(code(&refused), 69, "{said}");
    assert!(!said.contains("from n1"), "{said}");
    let refused = output(&cluster.socket(0), &["lock", "-w", "0.5", "a", "--", "true"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(code(&refused), 69, "{said}");
    assert!(said.contains("no majority: this agent hears 1 of "), "{said}");
    // Not the exit code of a lock that is taken.
    let refused = output(&cluster.socket(0), &["lock", "-n", "a", "--", "true"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(code(&refused), 69, "{said}");
    assert!(said.contains("no majority: this agent hears 1 of "), "{said}");
    let why = cluster.ask(0, &["why", "a"]);
    assert!(why.contains("is not available"), "{why}");
    let doctor = output(&cluster.socket(0), &["doctor"]);
    assert_eq!(code(&doctor), 1);
    assert!(String::from_utf8_lossy(&doctor.stdout).contains("FAIL"));
    // Whichever of them was in the last view: it takes a majority of that one.
    cluster.start(1);
    cluster.start(2);
    cluster.ready(0);
    assert_eq!(code(&output(&cluster.socket(0), &["lock", "a", "--", "true"])), 0);
    cluster.until(0, "three", |s| s["view"]["heard"] == 3);
    let doctor = output(&cluster.socket(0), &["doctor"]);
    assert_eq!(code(&doctor), 0, "{}", String::from_utf8_lossy(&doctor.stdout));
}

#[test]
fn an_agent_that_leaves_stops_its_commands_and_nobody_waits_for_it() {
    let mut cluster = Cluster::new(3);
    let (ready, tidy, next) = (cluster.file("ready"), cluster.file("tidy"), cluster.file("next"));
    let script = format!(
        "trap 'echo 1 > {tidy}; exit 0' TERM; echo 1 > {ready}; while :; do sleep 0.01; done"
    );
    let holder = start(&cluster.socket(0), &["lock", "a", "-c", &script]);
    number(&ready);
    let waiter = start(&cluster.socket(1), &["lock", "a", "-c", &format!("echo 1 > {next}")]);
    cluster.until(1, "one waits", |s| s["locks"][0]["waiters"][0]["node"] == "n1");
    let start = Instant::now();
    assert_eq!(cluster.leave(0), Some(0));
    number(&next);
    eprintln!("SIGTERM of the agent to the next command: {:?}", start.elapsed());
    number(&tidy);
    assert_eq!((holder.end().0, waiter.end().0), (76, 0));
    cluster.until(1, "two", |s| s["view"]["members"].as_array().is_some_and(|m| m.len() == 2));
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
}

#[test]
fn first_come_first_served_across_agents() {
    let cluster = Cluster::new(3);
    let order = cluster.file("order");
    let mut first = start(&cluster.socket(0), &["lock", "a", "--", "cat"]);
    cluster.until(0, "held", |s| s["locks"][0]["holders"].as_array().is_some_and(|h| h.len() == 1));
    let waiters: Vec<_> = (0..9)
        .map(|i| {
            let script = format!("echo {i} >> {order}");
            let waiter = start(&cluster.socket(i * 7 % 3), &["lock", "a", "-c", &script]);
            cluster.until(0, "in the queue", |s| {
                s["locks"][0]["waiters"].as_array().is_some_and(|w| w.len() == i + 1)
            });
            waiter
        })
        .collect();
    drop(first.child_mut().stdin.take());
    for waiter in waiters {
        assert_eq!(waiter.end().0, 0);
    }
    assert_eq!(fs::read_to_string(order).expect("written"), "0\n1\n2\n3\n4\n5\n6\n7\n8\n");
    assert_eq!(first.end().0, 0);
}

#[test]
fn a_semaphore_admits_as_many_as_it_has_slots() {
    let cluster = Cluster::new(3);
    let mut holders: Vec<_> = (0..2)
        .map(|i| start(&cluster.socket(i), &["lock", "--slots", "2", "gpu", "--", "cat"]))
        .collect();
    cluster.until(2, "two", |s| s["locks"][0]["holders"].as_array().is_some_and(|h| h.len() == 2));
    assert_eq!(
        code(&output(&cluster.socket(2), &["lock", "-n", "--slots", "2", "gpu", "--", "true"])),
        75
    );
    // Another number of slots is a misunderstanding.
    assert_eq!(
        code(&output(&cluster.socket(2), &["lock", "--slots", "3", "gpu", "--", "true"])),
        64
    );
    for holder in &mut holders {
        drop(holder.child_mut().stdin.take());
    }
    for holder in holders {
        assert_eq!(holder.end().0, 0);
    }
}

#[test]
fn operators_take_locks_away_and_leaders_step_down() {
    let cluster = Cluster::new(3);
    let holder = start(&cluster.socket(0), &["lock", "a", "--", "sleep", "100"]);
    cluster.until(1, "held", |s| s["locks"][0]["holders"][0]["node"] == "n0");
    cluster.ask(1, &["revoke", "a", "--dry-run"]);
    assert!(cluster.status(1).is_some_and(|s| s["locks"][0]["holders"][0]["node"] == "n0"));
    let taken = output(&cluster.socket(1), &["revoke", "a"]);
    let said = String::from_utf8_lossy(&taken.stderr);
    assert!(said.contains("took a from n0"), "{said}");
    assert_eq!(holder.end().0, 76);
    assert_eq!(code(&output(&cluster.socket(1), &["revoke", "nothing"])), 69);

    let leader = start(&cluster.socket(0), &["elect", "boss", "--", "sleep", "100"]);
    cluster.until(1, "led", |s| s["elections"][0]["holders"][0]["node"] == "n0");
    let standby = start(&cluster.socket(1), &["elect", "boss", "--", "sleep", "100"]);
    cluster.until(2, "a standby", |s| s["elections"][0]["waiters"][0]["node"] == "n1");
    cluster.ask(2, &["step-down", "boss"]);
    cluster.until(2, "the next leads", |s| s["elections"][0]["holders"][0]["node"] == "n1");
    assert_eq!(leader.end().0, 76);
    standby.signal(Signal::SIGTERM);
    assert_eq!(standby.end().0, 143);
}

#[test]
fn receivers_get_the_same_messages_in_the_same_order() {
    let cluster = Cluster::new(3);
    let count = "60";
    let receivers: Vec<_> = (0..3)
        .map(|i| start(&cluster.socket(i), &["recv", "chat", "--count", count, "--views"]))
        .collect();
    // All are members before the first message.
    let mut receivers: Vec<_> = receivers
        .into_iter()
        .map(|mut receiver| {
            let mut out =
                std::io::BufReader::new(receiver.child_mut().stdout.take().expect("a pipe"));
            let mut line = String::new();
            while line.matches('n').count() < 3 {
                line.clear();
                assert!(std::io::BufRead::read_line(&mut out, &mut line).expect("a line") > 0);
            }
            (receiver, out)
        })
        .collect();
    let senders: Vec<_> = (0..3)
        .map(|i| {
            let mut sender = start(&cluster.socket(i), &["send", "chat"]);
            let mut stdin = sender.child_mut().stdin.take().expect("a pipe");
            for k in 0..20 {
                writeln!(stdin, "{i}-{k}").expect("written");
            }
            sender
        })
        .collect();
    for sender in senders {
        assert_eq!(sender.end().0, 0);
    }
    let heard: Vec<String> = receivers
        .iter_mut()
        .map(|(_, out)| {
            let mut text = String::new();
            out.read_to_string(&mut text).expect("all");
            text.lines()
                .filter(|line| !line.starts_with("--"))
                .map(|line| format!("{line}\n"))
                .collect()
        })
        .collect();
    assert_eq!(heard[0].lines().count(), 60, "{}", heard[0]);
    assert_eq!(heard[0], heard[1]);
    assert_eq!(heard[1], heard[2]);
    // Each sender's own messages are in its order.
    for i in 0..3 {
        let own: Vec<_> = heard[0]
            .lines()
            .filter_map(|l| l.split_once(&format!(": {i}-")))
            .map(|(_, k)| k)
            .collect();
        let expected: Vec<String> = (0..20).map(|k| k.to_string()).collect();
        assert_eq!(own, expected);
    }
    for (receiver, _) in receivers {
        assert_eq!(receiver.end().0, 0);
    }
}

#[test]
fn dev_is_a_group_of_three_in_one_process() {
    let folder = Folder::new();
    let socket = folder.path().join("dev.sock");
    let agent = start(&socket, &["agent", "--dev"]);
    until("there", || output(&socket, &["status"]).status.success());
    let status = output(&socket, &["status", "--format", "json"]);
    let status: Value = serde_json::from_slice(&status.stdout).expect("json");
    assert_eq!(status["view"]["members"].as_array().map(Vec::len), Some(3), "{status}");
    for _ in 0..4 {
        assert_eq!(code(&output(&socket, &["lock", "a", "--", "true"])), 0);
    }
    let doctor = output(&socket, &["doctor"]);
    let said = String::from_utf8_lossy(&doctor.stdout);
    assert!(said.contains("data directory: none"), "{said}");
    // Another one at the same socket is refused, and the first one goes on.
    let second = output(&socket, &["agent", "--dev"]);
    assert_eq!(code(&second), 69, "{}", String::from_utf8_lossy(&second.stderr));
    assert_eq!(code(&output(&socket, &["lock", "a", "--", "true"])), 0);
    agent.signal(Signal::SIGTERM);
    assert_eq!(agent.end().0, 0);
    assert!(!socket.exists());
}

#[test]
fn invalid_configurations_are_refused_with_reason() {
    let folder = Folder::new();
    let socket = folder.path().join("x.sock");
    let file = folder.file("agent.toml");
    fs::write(&file, "name = 'a'\n\nlissten = '127.0.0.1:1'\n").expect("written");
    let data = folder.file("data");
    for (arguments, words) in [
        (&["agent", "--config", &file][..], "line 3"),
        (&["agent", "--listen", "0.0.0.0:0", "--data-dir", &data], "--key-file"),
        (&["agent", "--dev", "--peers", "a:1"], "--dev"),
        (&["agent", "--allow-users", "nobody-knows-her", "--data-dir", &data], "no user"),
        (&["agent", "--heartbeat", "0", "--data-dir", &data], "heartbeat"),
    ] {
        let output = konklave(&socket).args(arguments).output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(matches!(code(&output), 64 | 78), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
}

#[test]
fn random_kills_under_load_never_let_two_in() {
    random_kills_never_let_two_in(&[]);
}

/// In a group of agents with these flags.
pub(crate) fn random_kills_never_let_two_in(flags: &[&str]) {
    let long = std::env::var_os("KONKLAVE_LONG").is_some();
    let kills = if long { 200 } else { 10 };
    let mut cluster = Cluster::with(3, flags);
    let script = command(&cluster.path().display().to_string(), "sleep 0.02");
    let mut clients: Vec<Option<crate::kit::Running>> = (0..6).map(|_| None).collect();
    // A generator of our own: the kills of a failing run can be repeated.
    let mut seed = 0x9e37_79b9_u64;
    let mut draw = |n: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).expect("31 bits") % n
    };
    let tend = |cluster: &Cluster, clients: &mut Vec<Option<crate::kit::Running>>| {
        for (i, slot) in clients.iter_mut().enumerate() {
            if slot.as_mut().is_none_or(|client| !matches!(client.child_mut().try_wait(), Ok(None)))
            {
                let name = ["a", "b"][i % 2];
                *slot =
                    Some(start(&cluster.socket(i % cluster.len()), &["lock", name, "-c", &script]));
            }
        }
    };
    for _ in 0..kills {
        let end = Instant::now() + Duration::from_millis(150 + draw(200) as u64);
        while Instant::now() < end {
            tend(&cluster, &mut clients);
            std::thread::sleep(Duration::from_millis(5));
        }
        if draw(2) == 0 {
            let victim = draw(3);
            cluster.kill(victim);
            std::thread::sleep(Duration::from_millis(draw(300) as u64));
            cluster.start(victim);
            cluster.ready(victim);
        } else if let Some(client) = &clients[draw(6)] {
            client.signal(Signal::SIGKILL);
        }
    }
    let before = parse(&fs::read_to_string(cluster.file("history")).expect("written")).len();
    // When it is quiet again, everyone is served.
    drop(clients);
    for i in 0..3 {
        cluster.ready(i);
        for name in ["a", "b"] {
            cluster.ask(i, &["lock", "-w", "20", name, "-c", &script]);
        }
    }
    let history = parse(&fs::read_to_string(cluster.file("history")).expect("written"));
    assert!(history.len() >= before + 12, "nobody was served after the storm");
    let entries = judge(&history).unwrap_or_else(|wrong| panic!("{wrong}"));
    eprintln!("{kills} kills, {entries} entries");
}
