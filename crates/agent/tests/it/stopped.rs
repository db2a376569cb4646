//! Commands, waiters and helpers that are stopped (SIGSTOP, Ctrl-Z), and the signals that reach them.

use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::fake::Fake;
use crate::kit::{Folder, alive, child_of, number, output, start, until};

fn stop(pid: i32) {
    kill(Pid::from_raw(pid), Signal::SIGSTOP).expect("it is there");
}

#[test]
fn ending_signals_reach_a_stopped_command() {
    let folder = Folder::new();
    let (fake, socket) = Fake::serve(folder.path());
    for (signal, expected) in [
        (Signal::SIGTERM, 143),
        (Signal::SIGINT, 130),
        (Signal::SIGHUP, 129),
        (Signal::SIGQUIT, 131),
    ] {
        let pid = folder.file(signal.as_str());
        let job = start(&socket, &["lock", "a", "-c", &format!("echo $$ > {pid}; exec sleep 100")]);
        let pid = number(&pid);
        stop(pid);
        std::thread::sleep(Duration::from_millis(100));
        job.signal(signal);
        until("dead", || !alive(pid));
        assert_eq!(job.end().0, expected);
        until("free", || fake.holders("a").is_empty());
    }
}

/// The lock was granted while the waiter was stopped, and its time was over when it went on: its command has not
/// run, so nothing is lost. It waits again.
#[test]
fn stopped_waiter_that_never_ran_waits_again() {
    let folder = Folder::new();
    let (fake, socket) = Fake::serve(folder.path());
    let mut holder = start(&socket, &["lock", "a", "--", "cat"]);
    until("held", || fake.holders("a").len() == 1);
    let ran = folder.file("ran");
    let script = format!("echo 1 >> {ran}");
    let waiter = start(&socket, &["lock", "--ttl", "1", "-v", "a", "-c", &script]);
    until("waits", || fake.waiting("a") == 1);
    waiter.signal(Signal::SIGSTOP);
    drop(holder.child_mut().stdin.take());
    assert_eq!(holder.end().0, 0);
    until("granted and over", || fake.holders("a").is_empty() && fake.ended("a").is_some());
    std::thread::sleep(Duration::from_secs(2));
    assert!(!std::path::Path::new(&ran).exists());
    waiter.signal(Signal::SIGCONT);
    let (code, said) = waiter.end();
    assert_eq!(code, 0, "{said}");
    assert!(!said.contains("was lost while the command ran"), "{said}");
    assert_eq!(std::fs::read_to_string(&ran).expect("written"), "1\n");
}

/// The same with a session that lives longer than the grant, which has been renewed meanwhile.
#[test]
fn waiter_that_was_stopped_briefly_uses_its_grant() {
    let folder = Folder::new();
    let (fake, socket) = Fake::serve(folder.path());
    fake.lease(Duration::from_millis(800));
    let mut holder = start(&socket, &["lock", "a", "--", "cat"]);
    until("held", || fake.holders("a").len() == 1);
    let waiter = start(&socket, &["lock", "--ttl", "30", "a", "--", "true"]);
    until("waits", || fake.waiting("a") == 1);
    waiter.signal(Signal::SIGSTOP);
    drop(holder.child_mut().stdin.take());
    assert_eq!(holder.end().0, 0);
    until("granted", || fake.holders("a").len() == 1);
    let granted = fake.holders("a");
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(fake.holders("a"), granted);
    waiter.signal(Signal::SIGCONT);
    let (code, said) = waiter.end();
    assert_eq!(code, 0, "{said}");
}

#[test]
fn stopped_watchdog_does_not_keep_its_wrapper() {
    let folder = Folder::new();
    let (fake, socket) = Fake::serve(folder.path());
    let mut job = start(&socket, &["lock", "a", "--", "cat"]);
    until("held", || fake.holders("a").len() == 1);
    stop(child_of(job.pid(), "lock-watchdog").expect("a watchdog"));
    drop(job.child_mut().stdin.take());
    let begun = Instant::now();
    assert_eq!(job.end().0, 0);
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    until("free", || fake.holders("a").is_empty());
}

/// The wrapper ends the watchdog before the keeper has joined its process group.
#[test]
fn keeper_of_a_refused_lock_says_nothing() {
    let program = env!("CARGO_BIN_EXE_konklave-agent");
    let script = format!(": | exec {program} lock-keeper 0 1 2147483646 -- true");
    let output = std::process::Command::new("sh").args(["-c", &script]).output().expect("a shell");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*said), (Some(0), ""));
}

#[test]
fn refused_lock_is_silent() {
    let folder = Folder::new();
    let (fake, socket) = Fake::serve(folder.path());
    let holder = start(&socket, &["lock", "a", "--", "cat"]);
    until("held", || fake.holders("a").len() == 1);
    for _ in 0..30 {
        let refused = output(&socket, &["lock", "-n", "a", "--", "true"]);
        let said = String::from_utf8_lossy(&refused.stderr);
        assert_eq!((refused.status.code(), &*said), (Some(75), ""));
    }
    drop(holder);
}

/// An interactive shell on a terminal, where `typed` is typed after these pauses; what it shows.
fn in_a_shell(socket: &std::path::Path, typed: &[(u64, &str)]) -> Option<String> {
    let child = std::process::Command::new("script")
        .args(["-qec", "bash --norc --noprofile -i", "/dev/null"])
        .env("KONKLAVE_SOCKET", socket)
        .env("PS1", "$ ")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(mut child) = child else {
        eprintln!("skipped: no terminal here (it needs script of util-linux, and bash)");
        return None;
    };
    let mut keys = child.stdin.take().expect("a pipe");
    for (pause, text) in typed {
        std::thread::sleep(Duration::from_millis(*pause));
        keys.write_all(text.as_bytes()).expect("typed");
    }
    drop(keys);
    let output = child.wait_with_output().expect("output");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Ctrl-Z: a line says when the lock will be lost; `fg` before that keeps it, and afterwards the command is dead.
#[test]
fn suspended_job_keeps_its_lock_until_the_time_that_is_printed() {
    let folder = Folder::new();
    let (fake, socket) = Fake::serve(folder.path());
    fake.lease(Duration::from_secs(4));
    let program = env!("CARGO_BIN_EXE_konklave-agent");
    let pid = folder.file("pid");
    let line = format!("{program} lock a -- sh -c 'echo $$ > {pid}; exec sleep 3'; echo code=$?\n");
    let typed = [(700, line.as_str()), (1000, "\x1a"), (1000, "fg\n"), (4500, "exit\n")];
    let Some(shown) = in_a_shell(&socket, &typed) else { return };
    assert!(shown.contains("suspended; a will be lost in"), "{shown}");
    assert!(shown.contains("unless the job is resumed"), "{shown}");
    assert!(!shown.contains("was lost while"), "{shown}");
    // The time, and after it.
    let _ = std::fs::remove_file(&pid);
    let line = format!("{program} lock a -- sh -c 'echo $$ > {pid}; exec sleep 60'\n");
    let typed = [(700, line.as_str()), (1000, "\x1a"), (5000, "fg\n"), (1000, "exit\n")];
    let shown = in_a_shell(&socket, &typed).expect("as before");
    let seconds = shown.split("will be lost in ").nth(1).and_then(|rest| rest.split(' ').next());
    let seconds: f64 = seconds.and_then(|number| number.parse().ok()).expect("a number");
    assert!((2.0..4.0).contains(&seconds), "{shown}");
    assert!(shown.contains("a was lost while the command ran"), "{shown}");
    assert!(!alive(number(&pid)) && fake.holders("a").is_empty());
}
