//! No client gets a lock while the command of its previous holder may still run.

use std::time::{Duration, Instant};

use crate::cluster::Cluster;
use crate::kit::{Running, code, number, start};

/// A command at the agent with this number that ends only when it is killed, and its process.
fn holder(cluster: &Cluster, i: usize) -> (Running, String) {
    let pid = cluster.file("pid");
    let script = format!("trap '' TERM; echo $$ > {pid}; while :; do sleep 0.01; done");
    let job = start(&cluster.socket(i), &["lock", "a", "--grace", "3", "-c", &script]);
    (job, number(&pid).to_string())
}

/// Takes the lock at another agent, and says if the first command still runs.
fn next(cluster: &Cluster, i: usize, pid: &str) {
    let script = format!("kill -0 {pid} 2>/dev/null && echo ALIVE; true");
    let begun = Instant::now();
    let output = start(&cluster.socket(i), &["lock", "-w", "20", "a", "-c", &script]).output();
    eprintln!("the next command after {:?}", begun.elapsed());
    assert_eq!((code(&output), output.stdout.as_slice()), (0, &b""[..]), "two commands at once");
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
}

#[test]
fn an_agent_that_is_back_at_once_leaves_its_commands_their_time() {
    let mut cluster = Cluster::new(3);
    let (job, pid) = holder(&cluster, 2);
    cluster.kill(2);
    cluster.start(2);
    next(&cluster, 1, &pid);
    assert_eq!(job.end().0, 76);
}

#[test]
fn agents_that_are_all_back_at_once_leave_their_commands_their_time() {
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
fn what_an_operator_takes_is_given_on_when_its_command_is_dead() {
    let cluster = Cluster::new(3);
    let (job, pid) = holder(&cluster, 2);
    cluster.ask(0, &["revoke", "a"]);
    next(&cluster, 1, &pid);
    assert_eq!(job.end().0, 76);
}
