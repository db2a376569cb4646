//! Restarts of agents: commands that hold a lock go on, waiters come back, and nobody else gets a lock meanwhile.

use std::fs;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::cluster::Cluster;
use crate::fake::Fake;
use crate::kit::{Folder, Running, alive, code, konklave, number, output, start, until};

/// A command that holds `name` at agent `i` until its input ends, and the number of its process.
fn holder(cluster: &Cluster, i: usize, words: &[&str]) -> (Running, i32) {
    let pid = cluster.file("pid");
    let _ = fs::remove_file(&pid);
    let script = format!("echo $$ > {pid}; cat; echo $KONKLAVE_TOKEN");
    let job = start(&cluster.socket(i), &[words, &["-c", &script]].concat());
    (job, number(&pid))
}

/// Ends a command by its input; its exit code and what it printed.
fn finish(mut job: Running) -> (i32, String, String) {
    drop(job.child_mut().stdin.take());
    let output = job.output();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (code(&output), text(&output.stdout), text(&output.stderr))
}

/// A held lock survives a restart of its agent, planned or not, for each kind of grant.
#[test]
fn held_locks_survive_restart_of_their_agent() {
    let mut cluster = Cluster::with(3, &["--profile", "steady"]);
    let kinds: [&[&str]; 4] = [
        &["lock", "a"],
        &["lock", "-s", "shared"],
        &["lock", "--slots", "1", "slots"],
        &["elect", "boss"],
    ];
    let jobs: Vec<_> = kinds.iter().map(|words| holder(&cluster, 2, words)).collect();
    let next = cluster.file("next");
    let waiter = start(&cluster.socket(1), &["lock", "a", "-c", &format!("echo 1 > {next}")]);
    cluster.until(1, "one waits", |s| s["locks"][0]["waiters"][0]["node"] == "n1");
    let tokens = |cluster: &Cluster| -> Vec<String> {
        let status = cluster.status(1).expect("a status");
        let of = |part: &str| status[part].as_array().cloned().unwrap_or_default();
        let all = of("locks").into_iter().chain(of("elections"));
        all.map(|lock| lock["holders"][0]["token"].as_str().unwrap_or_default().to_owned())
            .collect()
    };
    let before = tokens(&cluster);
    assert!(before.len() == 4 && before.iter().all(|token| !token.is_empty()), "{before:?}");
    let pid = cluster.pid(2);
    // Two views: without it, and with its next incarnation.
    let back = |epoch: u64| {
        move |s: &serde_json::Value| {
            s["view"]["epoch"].as_u64() >= Some(epoch + 2)
                && s["view"]["members"].as_array().is_some_and(|m| m.len() == 3)
        }
    };
    let epoch = |cluster: &Cluster| {
        cluster.status(1).and_then(|s| s["view"]["epoch"].as_u64()).expect("a view")
    };
    let before_restart = epoch(&cluster);
    cluster.signal(2, Signal::SIGUSR2);
    cluster.until(1, "back", back(before_restart));
    assert!(alive(pid), "a planned restart keeps the process");
    // The agent of a holder knows until when its lock is safe.
    let held = |s: &serde_json::Value| {
        let of = |part: &str| s[part].as_array().cloned().unwrap_or_default();
        let all: Vec<_> = of("locks").into_iter().chain(of("elections")).collect();
        all.len() == 4 && all.iter().all(|lock| lock["holders"][0]["safe"].is_number())
    };
    cluster.until(2, "resumed", held);
    // Without a warning, and longer than the lease of the first process.
    let before_restart = epoch(&cluster);
    cluster.kill(2);
    cluster.start(2);
    cluster.until(1, "back", back(before_restart));
    cluster.until(2, "resumed", held);
    std::thread::sleep(Duration::from_secs(9));
    assert_eq!(tokens(&cluster), before);
    assert!(fs::metadata(&next).is_err(), "two commands at once");
    for (job, pid) in jobs {
        assert!(alive(pid));
        let (code, said, errors) = finish(job);
        assert_eq!(code, 0, "{errors}");
        assert!(before.contains(&said.trim().to_owned()), "{said}: {before:?}");
    }
    number(&next);
    assert_eq!(waiter.end().0, 0);
}

/// A wrapper that is killed after the restart still takes its command along before the lock is free.
#[test]
fn killed_wrapper_of_resumed_lock_takes_its_command_along() {
    let mut cluster = Cluster::with(3, &["--profile", "steady"]);
    let (job, pid) = holder(&cluster, 2, &["lock", "a"]);
    cluster.kill(2);
    cluster.start(2);
    cluster.until(2, "resumed", |s| s["locks"][0]["holders"][0]["safe"].is_number());
    job.signal(Signal::SIGKILL);
    let killed = Instant::now();
    let script = format!("kill -0 {pid} 2>/dev/null && echo ALIVE; true");
    let next = output(&cluster.socket(1), &["lock", "a", "-c", &script]);
    assert_eq!((code(&next), next.stdout.as_slice()), (0, &b""[..]), "two commands at once");
    assert!(killed.elapsed() < Duration::from_secs(3), "{:?}", killed.elapsed());
}

/// An agent that does not come back in time: the command ends before the next one starts.
#[test]
fn command_ends_if_its_agent_stays_away() {
    let mut cluster = Cluster::new(3);
    let (job, pid) = holder(&cluster, 2, &["lock", "a"]);
    cluster.kill(2);
    let script = format!("kill -0 {pid} 2>/dev/null && echo ALIVE; true");
    let next = output(&cluster.socket(1), &["lock", "a", "-c", &script]);
    assert_eq!((code(&next), next.stdout.as_slice()), (0, &b""[..]), "two commands at once");
    let (code, _, said) = finish(job);
    assert_eq!(code, 76, "{said}");
    assert!(said.contains("the agent closed the connection"), "{said}");
}

#[test]
fn waiter_comes_back_after_restart_of_its_agent() {
    let folder = Folder::new();
    let mut cluster = Cluster::with(3, &["--profile", "steady"]);
    let (job, _) = holder(&cluster, 1, &["lock", "a"]);
    let done = folder.file("done");
    let script = format!("echo 1 >> {done}");
    let waiters = [&["lock", "a"][..], &["lock", "-w", "60", "a"]]
        .map(|words| start(&cluster.socket(2), &[words, &["-c", &script]].concat()));
    cluster.until(1, "two wait", |s| {
        s["locks"][0]["waiters"].as_array().is_some_and(|waiters| waiters.len() == 2)
    });
    cluster.kill(2);
    std::thread::sleep(Duration::from_secs(1));
    cluster.start(2);
    cluster.until(1, "two wait again", |s| {
        s["locks"][0]["waiters"].as_array().is_some_and(|waiters| waiters.len() == 2)
    });
    assert_eq!(finish(job).0, 0);
    for waiter in waiters {
        let (code, said) = waiter.end();
        assert_eq!(code, 0, "{said}");
    }
    assert_eq!(fs::read_to_string(&done).expect("written"), "1\n1\n");
}

/// 75 means that another client holds the lock; no agent is 69.
#[test]
fn frozen_agent_ends_no_waiter() {
    let cluster = Cluster::new(3);
    let (job, _) = holder(&cluster, 1, &["lock", "a"]);
    let waiters = [&["lock", "a"][..], &["lock", "-w", "60", "a"], &["elect", "--again", "a"]]
        .map(|words| start(&cluster.socket(2), &[words, &["true"]].concat()));
    cluster.until(1, "all wait", |s| {
        s["locks"][0]["waiters"].as_array().is_some_and(|waiters| waiters.len() == 2)
    });
    let short = start(&cluster.socket(2), &["lock", "-w", "3", "a", "--", "true"]);
    cluster.signal(2, Signal::SIGSTOP);
    // Longer than a session lives without keep-alives. The waiters are stopped, too: like a machine that sleeps.
    waiters.iter().for_each(|waiter| waiter.signal(Signal::SIGSTOP));
    assert_eq!(short.end().0, 69, "nobody could tell whether the lock is held");
    std::thread::sleep(Duration::from_secs(4));
    cluster.signal(2, Signal::SIGCONT);
    std::thread::sleep(Duration::from_millis(200));
    waiters.iter().for_each(|waiter| waiter.signal(Signal::SIGCONT));
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(finish(job).0, 0);
    for waiter in waiters {
        let (code, said) = waiter.end();
        assert_eq!(code, 0, "{said}");
    }
}

#[test]
fn unavailable_agent_is_tried_again_within_timeout() {
    let folder = Folder::new();
    let socket = folder.path().join("agent.sock");
    let begun = Instant::now();
    let refused = output(&socket, &["lock", "-w", "1", "a", "--", "true"]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(code(&refused), 69, "{said}");
    assert!(begun.elapsed() >= Duration::from_secs(1), "{:?}", begun.elapsed());
    for words in [&["lock", "a", "--", "true"][..], &["lock", "-n", "a", "--", "true"]] {
        let begun = Instant::now();
        assert_eq!(code(&output(&socket, words)), 69);
        assert!(begun.elapsed() < Duration::from_secs(1), "{:?}", begun.elapsed());
    }
    let patient = start(&socket, &["lock", "-w", "20", "a", "--", "true"]);
    std::thread::sleep(Duration::from_millis(500));
    let (_fake, _) = Fake::serve(folder.path());
    let (code, said) = patient.end();
    assert_eq!(code, 0, "{said}");
}

/// The client does not read for as long as the agent waits for that. It may still rely on its deadline.
#[test]
fn session_that_agent_ends_keeps_its_locks_until_their_deadline() {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    let folder = Folder::new();
    let (fake, socket) = Fake::serve(folder.path());
    let frame = |text: &str| {
        let length = u32::try_from(text.len()).expect("short");
        [&length.to_be_bytes()[..], text.as_bytes()].concat()
    };
    let mut client = UnixStream::connect(&socket).expect("it listens");
    client
        .write_all(&frame(r#"{"id":1,"op":"hello","protocol":1,"label":"x","ttl":3000}"#))
        .expect("sent");
    let acquire = r#"{"id":2,"op":"acquire","name":"a","claim":{"kind":"exclusive"},"wait":null}"#;
    client.write_all(&frame(acquire)).expect("sent");
    until("held", || fake.holders("a").len() == 1);
    let begun = Instant::now();
    // A frame that is too long: the agent ends the session.
    client.write_all(&[0xff; 8]).expect("sent");
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(fake.holders("a").len(), 1, "its deadline has not passed");
    until("free", || fake.holders("a").is_empty());
    assert!(begun.elapsed() > Duration::from_millis(2500), "{:?}", begun.elapsed());
    drop(konklave(&socket));
}
