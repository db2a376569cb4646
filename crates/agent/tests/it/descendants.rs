//! A lock that is lost goes to the next holder only after all descendants of the command are dead.
//!
//! A process called `work` writes the time into a file as fast as it can, and ignores SIGTERM. A client
//! that waits for the lock notes when it was granted. A stamp after the grant is an overlap.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use konklave_agent::client::Client;
use konklave_agent::clock::Moment;
use konklave_agent::protocol::{Answer, ClaimKind, Reply, Request};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::cluster::Cluster;
use crate::kit::{alive, child_of, start_with, until};

/// Names the file of stamps to a `work` process.
const STAMPS: &str = "KONKLAVE_TEST_STAMPS";
/// How long `work` runs if it is not killed.
const LIFE: Duration = Duration::from_secs(20);
/// How long after a grant stamps are awaited.
const AFTER: Duration = Duration::from_millis(20);

/// How the command starts `work`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shape {
    /// `lock a -- sh -c 'work & wait'`
    Plain,
    /// `lock a -- lock b -- sh -c 'work & wait'`
    Nested,
    /// `lock a -- sh -c 'setsid work & wait'`
    Setsid,
    /// `lock a -- sh -c '(setsid work &); sleep'`: its parent is dead.
    Daemon,
}

/// How the lock is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Loss {
    /// `kill -9` of the process that the user started.
    KilledWrapper,
    /// `kill -9` of the wrapper inside another one: the inner lock is lost.
    KilledInner,
    /// `revoke a`
    Revoked,
    /// `kill -9` of the process between wrapper and command.
    KilledKeeper,
    /// `kill -9` of the watchdog and then, when there is a new one, of the wrapper.
    KilledBoth,
    /// The keeper is stopped, then the wrapper is killed: the watchdog alone has to do it.
    StoppedKeeper,
}

/// As a process of its own: writes its pid and, again and again, the time. As a test: nothing.
#[test]
fn work() {
    let Some(file) = std::env::var_os(STAMPS) else { return };
    let file = File::options().write(true).open(file).expect("the test made it");
    let pid = u64::from(std::process::id());
    file.write_all_at(&pid.to_le_bytes(), 8).expect("written");
    let end = Moment::now().after(LIFE);
    while !end.passed() {
        file.write_all_at(&Moment::now().0.to_le_bytes(), 0).expect("written");
    }
}

/// The last stamp of `work`, and its pid.
fn stamps(file: &str) -> (Moment, i32) {
    let bytes = fs::read(file).expect("the test made it");
    let number = |at: usize| {
        u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes of sixteen"))
    };
    (Moment(number(0)), i32::try_from(number(8)).expect("a pid"))
}

fn arguments(shape: Shape) -> Vec<String> {
    let program = env!("CARGO_BIN_EXE_konklave-agent");
    let test = std::env::current_exe().expect("a path").display().to_string();
    let work = format!("sh -c 'trap \"\" TERM; exec {test} --exact descendants::work' >/dev/null");
    let script = match shape {
        Shape::Plain | Shape::Nested => format!("{work} & wait"),
        Shape::Setsid => format!("setsid {work} & wait"),
        Shape::Daemon => format!("(setsid {work} &); sleep 100"),
    };
    let lock = |name: &str| ["lock", "--grace", "0.03", name].map(str::to_owned);
    let mut words = lock("a").to_vec();
    if shape == Shape::Nested {
        words.extend(["--".to_owned(), program.to_owned()]);
        words.extend(lock("b"));
    }
    words.extend(["-c".to_owned(), script]);
    words
}

/// Waits for `name` on a thread of its own; gives the moment of the grant, and holds it a little longer.
fn next_holder(socket: &Path, name: &'static str) -> std::thread::JoinHandle<Moment> {
    let (socket, (ready, asked)) = (socket.to_owned(), std::sync::mpsc::channel());
    let thread = std::thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let ttl = Duration::from_secs(60);
            let mut client = Client::connect(&socket, "next", ttl).await.expect("an agent");
            let acquire = Request::Acquire {
                name: name.into(),
                claim: ClaimKind::Exclusive,
                wait: None,
                lease: None,
            };
            let number = client.send(acquire).await.expect("sent");
            // Answered in order: with this answer the agent has the first request, too.
            client.call(Request::Metrics).await.expect("metrics");
            ready.send(()).expect("the test waits");
            loop {
                if let Reply::Answer { id, answer } = client.next().await.expect("an answer")
                    && id == number
                {
                    assert!(matches!(answer, Answer::Granted { .. }), "{answer:?}");
                    let granted = Moment::now();
                    std::thread::sleep(AFTER);
                    return granted;
                }
            }
        })
    });
    asked.recv().expect("asked");
    thread
}

fn revoke(socket: &Path, name: &str) {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let revoke = Request::Revoke { name: name.into(), election: false, slots: false, token: None };
    runtime.block_on(async {
        let mut client =
            Client::connect(socket, "test", Duration::from_secs(60)).await.expect("an agent");
        client.call(revoke).await.expect("revoked");
    });
}

/// The first process below `root` whose command line has `words`.
fn below(root: i32, words: &str) -> Option<i32> {
    let children = fs::read_to_string(format!("/proc/{root}/task/{root}/children")).ok()?;
    children.split_whitespace().filter_map(|pid| pid.parse().ok()).find_map(|pid: i32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if alive(pid) && line.contains(words) { Some(pid) } else { below(pid, words) }
    })
}

fn kill_below(root: i32, words: &str) -> i32 {
    let pid = below(root, words).unwrap_or_else(|| panic!("no {words}"));
    kill(Pid::from_raw(pid), Signal::SIGKILL).expect("it is there");
    pid
}

/// One trial; for how long `work` ran after the next holder had the lock.
fn trial(cluster: &Cluster, shape: Shape, loss: Loss, number: u64) -> Duration {
    let file = cluster.file("stamps");
    fs::write(&file, [0; 16]).expect("written");
    let socket = cluster.socket(0);
    let words = arguments(shape);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let wrapper = start_with(&socket, &words, &[(STAMPS, &file)]);
    until("work", || stamps(&file).0.0 > 0);
    let mut waiters = Vec::new();
    if loss != Loss::KilledInner {
        waiters.push(next_holder(&socket, "a"));
    }
    if shape == Shape::Nested {
        waiters.push(next_holder(&socket, "b"));
    }
    // At another moment each time, so that what happens at regular times is met.
    std::thread::sleep(Duration::from_micros(number % 16 * 331));
    match loss {
        Loss::KilledWrapper => wrapper.signal(Signal::SIGKILL),
        Loss::KilledInner => drop(kill_below(wrapper.pid(), " lock --grace 0.03 b")),
        Loss::Revoked => revoke(&socket, "a"),
        Loss::KilledKeeper => drop(kill_below(wrapper.pid(), "lock-keeper")),
        Loss::StoppedKeeper => {
            let keeper = below(wrapper.pid(), "lock-keeper").expect("a keeper");
            kill(Pid::from_raw(keeper), Signal::SIGSTOP).expect("it is there");
            wrapper.signal(Signal::SIGKILL);
        }
        Loss::KilledBoth => {
            let old = kill_below(wrapper.pid(), "lock-watchdog");
            until("the old one is dead", || !alive(old));
            until("a new watchdog", || child_of(wrapper.pid(), "lock-watchdog").is_some());
            wrapper.signal(Signal::SIGKILL);
        }
    }
    let granted: Vec<Moment> =
        waiters.into_iter().map(|waiter| waiter.join().expect("granted")).collect();
    let (last, pid) = stamps(&file);
    if alive(pid) {
        let _ = kill(Pid::from_raw(pid), Signal::SIGKILL);
    }
    drop(wrapper.output());
    granted.into_iter().map(|granted| last.since(granted)).max().unwrap_or_default()
}

/// `trials` trials of each, twenty times as many with `KONKLAVE_LONG=1`.
fn never_two(trials: u64, shapes: &[Shape], losses: &[Loss]) {
    if shapes.iter().any(|shape| matches!(shape, Shape::Setsid | Shape::Daemon))
        && Command::new("setsid").arg("true").status().is_err()
    {
        eprintln!("skipped: no setsid here (it needs util-linux)");
        return;
    }
    let trials = if std::env::var_os("KONKLAVE_LONG").is_some() { 20 * trials } else { trials };
    let cluster = Cluster::new(1);
    let mut overlaps = Vec::new();
    for &shape in shapes {
        for &loss in losses {
            let found: Vec<Duration> = (0..trials)
                .map(|number| trial(&cluster, shape, loss, number))
                .filter(|overlap| !overlap.is_zero())
                .collect();
            let longest = found.iter().max().copied().unwrap_or_default();
            let line =
                format!("{shape:?} {loss:?}: {} of {trials} overlap, {longest:?}", found.len());
            eprintln!("{line}");
            if !found.is_empty() {
                overlaps.push(line);
            }
        }
    }
    assert!(overlaps.is_empty(), "{overlaps:#?}");
}

#[test]
fn nested_lock_is_free_only_after_all_descendants_of_a_killed_wrapper_are_dead() {
    never_two(50, &[Shape::Nested], &[Loss::KilledWrapper]);
}

#[test]
fn nested_lock_is_free_only_after_all_descendants_are_dead_when_revoked() {
    never_two(50, &[Shape::Nested], &[Loss::Revoked]);
}

#[test]
fn inner_lock_is_free_only_after_all_descendants_of_its_killed_wrapper_are_dead() {
    never_two(10, &[Shape::Nested], &[Loss::KilledInner]);
}

#[test]
fn lock_is_free_only_after_processes_that_left_the_group_are_dead() {
    never_two(10, &[Shape::Setsid, Shape::Daemon], &[Loss::KilledWrapper, Loss::Revoked]);
}

#[test]
fn lock_is_free_only_after_all_descendants_are_dead_whichever_guard_is_killed() {
    let shapes = [Shape::Plain, Shape::Nested, Shape::Daemon];
    never_two(5, &shapes, &[Loss::KilledKeeper, Loss::KilledBoth, Loss::StoppedKeeper]);
}

#[test]
fn plain_lock_is_free_only_after_its_command_is_dead() {
    never_two(10, &[Shape::Plain], &[Loss::KilledWrapper, Loss::Revoked]);
}
