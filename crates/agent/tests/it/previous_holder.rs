//! No client gets a lock while the command of its previous holder may still run.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;

use crate::cluster::Cluster;
use crate::kit::{Running, code, number, start};

/// A command at the agent with this number that ends only when it is killed, and its process.
fn holder(cluster: &Cluster, i: usize) -> (Running, String) {
    let pid = cluster.file("pid");
    let script = format!("trap '' TERM; echo $$ > {pid}; while :; do sleep 0.01; done");
    let job = start(&cluster.socket(i), &["lock", "a", "--grace", "3", "-c", &script]);
    (job, number(&pid).to_string())
}

/// Obtains the lock at another agent, with a command that reports whether the first one still runs.
fn next(cluster: &Cluster, i: usize, pid: &str) {
    let script = format!("kill -0 {pid} 2>/dev/null && echo ALIVE; true");
    let begun = Instant::now();
    let output = start(&cluster.socket(i), &["lock", "-w", "20", "a", "-c", &script]).output();
    eprintln!("the next command after {:?}", begun.elapsed());
    assert_eq!((code(&output), output.stdout.as_slice()), (0, &b""[..]), "two commands at once");
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
}

#[test]
fn restarted_agent_waits_for_its_former_commands() {
    let mut cluster = Cluster::new(3);
    let (job, pid) = holder(&cluster, 2);
    // A wrapper that is stopped does not go on with its lock.
    job.signal(Signal::SIGSTOP);
    cluster.kill(2);
    cluster.start(2);
    next(&cluster, 1, &pid);
    job.signal(Signal::SIGCONT);
    assert_eq!(job.end().0, 76);
}

#[test]
fn restarted_group_waits_for_its_former_commands() {
    for n in [3, 1] {
        let mut cluster = Cluster::new(n);
        let (job, pid) = holder(&cluster, n - 1);
        (0..n).for_each(|i| cluster.kill(i));
        (0..n).for_each(|i| cluster.start(i));
        (0..n).for_each(|i| _ = cluster.ready(i));
        next(&cluster, 0, &pid);
        assert_eq!(job.end().0, 76);
    }
}

#[test]
fn revoked_lock_is_granted_after_its_command_is_dead() {
    let cluster = Cluster::new(3);
    let (job, pid) = holder(&cluster, 2);
    cluster.ask(0, &["revoke", "a"]);
    next(&cluster, 1, &pid);
    assert_eq!(job.end().0, 76);
}
