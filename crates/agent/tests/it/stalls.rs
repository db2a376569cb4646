//! Stalls that the default times survive, and what happens after longer ones: whoever is stopped, the command is dead
//! before the next holder starts.

use std::fs;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::cluster::Cluster;
use crate::kit::{Running, alive, child_of, code, number, start};

const STALL: Duration = Duration::from_secs(3);
const STEADY: [&str; 2] = ["--profile", "steady"];

/// A command at agent `i` that runs until its input ends, or until it is killed, and its process.
fn job(cluster: &Cluster, i: usize, words: &[&str], name: &str) -> (Running, i32) {
    let pid = cluster.file(&format!("pid-{name}"));
    let script = format!("trap '' TERM; echo $$ > {pid}; cat");
    let job = start(&cluster.socket(i), &[words, &[name, "-c", &script]].concat());
    (job, number(&pid))
}

fn finish((mut job, pid): (Running, i32)) {
    assert!(alive(pid), "the command was ended");
    drop(job.child_mut().stdin.take());
    let (code, said) = job.end();
    assert_eq!(code, 0, "{said}");
}

#[test]
fn agent_that_stalls_for_three_seconds_costs_nothing() {
    let cluster = Cluster::with(3, &STEADY);
    let job = job(&cluster, 2, &["lock"], "a");
    let view = cluster.status(0).expect("a status")["view"]["epoch"].clone();
    cluster.signal(2, Signal::SIGSTOP);
    std::thread::sleep(STALL);
    cluster.signal(2, Signal::SIGCONT);
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(cluster.status(0).expect("a status")["view"]["epoch"], view, "excluded");
    finish(job);
}

#[test]
fn wrapper_that_stalls_for_three_seconds_costs_nothing() {
    let cluster = Cluster::with(3, &STEADY);
    let job = job(&cluster, 2, &["lock"], "a");
    job.0.signal(Signal::SIGSTOP);
    std::thread::sleep(STALL);
    job.0.signal(Signal::SIGCONT);
    std::thread::sleep(Duration::from_secs(2));
    finish(job);
}

#[test]
fn network_that_stalls_for_three_seconds_costs_nothing() {
    let Some(cluster) = Cluster::apart_with(&STEADY) else { return };
    let job = job(&cluster, 2, &["lock"], "a");
    let pairs = || (0..3).flat_map(|i| (0..3).filter(move |j| *j != i).map(move |j| (i, j)));
    pairs().for_each(|(from, to)| cluster.network().cut(from, to));
    std::thread::sleep(STALL);
    pairs().for_each(|(from, to)| cluster.network().mend(from, to));
    // Longer than the lease. TCP may take two seconds more to send again; a member that is excluded for that reason
    // comes back and goes on with its locks.
    std::thread::sleep(Duration::from_secs(7));
    finish(job);
}

/// The agent of four commands is frozen, and with it one of the processes that guard each command. The next holder
/// waits for the whole lease, and each command is dead before.
#[test]
fn command_is_dead_before_the_next_when_any_process_is_stopped() {
    let cluster = Cluster::with(3, &STEADY);
    let names = ["none", "lock-watchdog", "lock-keeper", "wrapper"];
    let jobs = names.map(|name| job(&cluster, 2, &["lock"], name));
    let waiters: Vec<_> = names
        .iter()
        .zip(&jobs)
        .map(|(name, (_, pid))| {
            let (next, old) = (cluster.file(&format!("next-{name}")), *pid);
            let script = format!("kill -0 {old} 2>/dev/null && echo ALIVE; echo 1 > {next}");
            (start(&cluster.socket(1), &["lock", name, "-c", &script]), next)
        })
        .collect();
    cluster.until(1, "all wait", |s| {
        let waits =
            |lock: &serde_json::Value| lock["waiters"].as_array().is_some_and(|w| w.len() == 1);
        s["locks"].as_array().is_some_and(|locks| locks.len() == 4 && locks.iter().all(waits))
    });
    for (name, (job, _)) in names.iter().zip(&jobs) {
        match *name {
            "none" => {}
            "wrapper" => job.signal(Signal::SIGSTOP),
            helper => {
                let pid = child_of(job.pid(), helper).expect("it runs");
                kill(Pid::from_raw(pid), Signal::SIGSTOP).expect("it is there");
            }
        }
    }
    cluster.signal(2, Signal::SIGSTOP);
    let stopped = Instant::now();
    for (waiter, next) in waiters {
        number(&next);
        let took = stopped.elapsed();
        // The silence, the lease, and what clocks may differ.
        assert!(took > Duration::from_secs(12), "{took:?}");
        let output = waiter.output();
        assert_eq!(
            (code(&output), output.stdout.as_slice()),
            (0, &b""[..]),
            "two commands at once"
        );
    }
    assert!(stopped.elapsed() < Duration::from_secs(25), "{:?}", stopped.elapsed());
    for (name, (job, _)) in names.iter().zip(jobs) {
        job.signal(Signal::SIGCONT);
        assert_eq!(job.end().0, 76, "{name}");
    }
}

/// A lock with a short lease is free soon after its agent crashed; one with a long lease keeps the others out.
#[test]
fn lease_of_a_lock_decides_how_long_others_wait() {
    let mut cluster = Cluster::with(3, &STEADY);
    let (short, _) = job(&cluster, 2, &["lock", "--lease", "1"], "short");
    let (long, pid) = job(&cluster, 2, &["lock", "--lease", "20"], "long");
    let long_next = start(&cluster.socket(1), &["lock", "long", "--", "true"]);
    let begun = Instant::now();
    cluster.kill(2);
    let next = start(&cluster.socket(1), &["lock", "short", "--", "true"]);
    assert_eq!(next.end().0, 0);
    let took = begun.elapsed();
    assert!(took > Duration::from_millis(900) && took < Duration::from_secs(5), "{took:?}");
    assert_eq!(short.end().0, 76);
    // The agent is away for longer than its own lease, and the long lock is still held.
    std::thread::sleep(Duration::from_secs(9).saturating_sub(begun.elapsed()));
    assert!(alive(pid));
    cluster.start(2);
    cluster.until(2, "resumed", |s| s["locks"][0]["holders"][0]["safe"].is_number());
    finish((long, pid));
    assert_eq!(long_next.end().0, 0);
    assert!(fs::metadata(cluster.file("pid-long")).is_ok());
}
