//! Measurements of three members, each a process of its own.

use std::io;
use std::net::TcpListener;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use konklave::LockAlgorithm;
use serde_json::Value;

use crate::member::{self, now};
use crate::report::{OURS, Report, Spans, measures};
use crate::worker::{Worker, number};
use crate::{leash, order};

/// Whether the members share a key.
pub(crate) static KEYED: AtomicBool = AtomicBool::new(false);

/// Starts members that form a group; also returns when they were started.
fn group(n: usize, algorithm: LockAlgorithm) -> io::Result<(Vec<Worker>, u64)> {
    let ports: io::Result<Vec<TcpListener>> =
        (0..n).map(|_| TcpListener::bind("127.0.0.1:0")).collect();
    let addresses: io::Result<Vec<String>> =
        ports?.iter().map(|port| Ok(port.local_addr()?.to_string())).collect();
    let (addresses, me) = (addresses?, std::env::current_exe()?);
    let start = now();
    let member = |i: usize| {
        let mut command = Command::new(&me);
        command.arg("member").arg(i.to_string()).arg(algorithm.name()).args(&addresses);
        command.env(member::KEYED, if KEYED.load(Ordering::Relaxed) { "1" } else { "" });
        Worker::start(&mut command)
    };
    let members: Vec<Worker> = (0..n).map(member).collect::<io::Result<_>>()?;
    for member in &members {
        member.answer()?;
    }
    Ok((members, start))
}

pub(crate) fn one_round(report: &mut Report, seconds: f64, round: usize) -> io::Result<()> {
    let (mut members, start) = group(3, LockAlgorithm::Table)?;
    members[1].ask("hold cold")?;
    let most = Some(Duration::from_millis(300));
    report.add_time(OURS, measures::COLD, Duration::from_nanos(now() - start), most);
    let pids: Vec<i32> = members.iter().map(Worker::pid).collect();
    leash::idle(report, OURS, &pids);
    let again = members[1].ask("again 200000")?;
    report.add_nanos(OURS, "a kept lock: acquire and release", number(&again, "p50"), Some(0.1));
    let remote = members[1].ask(&format!("remote 3000 r{round}"))?;
    report.add_nanos(OURS, measures::ACQUIRE, number(&remote, "acquire"), Some(3.0));
    report.add_nanos(OURS, measures::ACQUIRE_SLOW, number(&remote, "slow"), None);
    report.add_nanos(OURS, measures::CYCLE, number(&remote, "cycle"), None);
    hand_over(report, OURS, &mut members, seconds)?;
    for member in &mut members {
        member.order(&format!("cycles {seconds}"))?;
    }
    let mut cycles = 0.0;
    for member in &members {
        cycles += number(&member.answer()?, "rate");
    }
    report.add_rate(OURS, "9 clients, 9 locks: cycles/s", cycles, Some(100_000.0));
    for row in &measures::ORDER {
        let count = (seconds * 200_000.0) as u64;
        order::total_order(report, OURS, &mut members, row, count)?;
    }
    drop(members);
    for mode in ["fast", "safe"] {
        // First the leader is killed, then another member.
        kill(report, OURS, LockAlgorithm::Table, 0, mode)?;
        kill(report, OURS, LockAlgorithm::Table, 2, mode)?;
    }
    views(report, measures::PROCESS_KILLED, 2)?;
    views(report, measures::ALL_KILLED, 0)?;
    leader_killed(report)
}

/// The same locks, served by a lifted algorithm.
pub(crate) fn lifted_round(
    report: &mut Report,
    seconds: f64,
    round: usize,
    algorithm: LockAlgorithm,
) -> io::Result<()> {
    let system = &*format!("{OURS}, {algorithm}");
    let (mut members, _) = group(3, algorithm)?;
    let again = members[1].ask("again 200000")?;
    report.add_nanos(system, "a kept lock: acquire and release", number(&again, "p50"), Some(0.1));
    for (mode, what) in [("fast", ""), ("safe", " (LeaseSafe)")] {
        // The lock must come from another node; the first time it must also be found.
        for known in ["a lock never used here", "a lock used elsewhere"] {
            members[0].ask(&format!("remote 3000 {mode}{round} fast"))?;
            let remote = members[1].ask(&format!("remote 3000 {mode}{round} {mode}"))?;
            let name = format!("{known}: acquire{what}");
            report.add_nanos(system, &name, number(&remote, "acquire"), Some(1.7));
            let name = format!("{name}, the slowest of a hundred");
            report.add_nanos(system, &name, number(&remote, "slow"), None);
        }
    }
    hand_over(report, system, &mut members, seconds)?;
    drop(members);
    kill(report, system, algorithm, 0, "fast")
}

/// Three new members form an application group, and one of them is killed.
fn views(report: &mut Report, measure: &str, who: usize) -> io::Result<()> {
    let (mut members, start) = group(3, LockAlgorithm::Table)?;
    order::first_view(report, OURS, &mut members, start)?;
    order::join(&mut members, "kill")?;
    let mut victim = members.remove(who);
    order::killed(report, OURS, measure, &mut members, || victim.kill())
}

/// Eight clients of three processes compete for one lock.
fn hand_over(
    report: &mut Report,
    system: &str,
    members: &mut [Worker],
    seconds: f64,
) -> io::Result<()> {
    // Time for all processes to learn it: a client that starts alone would have the lock to itself.
    let start = now() + 100_000_000;
    for (member, clients) in members.iter_mut().zip([3, 3, 2]) {
        member.order(&format!("contend {clients} {start} {seconds}"))?;
    }
    let answers: Vec<Value> = members.iter().map(Worker::answer).collect::<io::Result<_>>()?;
    let mut clients = Vec::new();
    for (place, answer) in answers.into_iter().enumerate() {
        let lists: Vec<Spans> =
            serde_json::from_value(answer["clients"].clone()).expect("members answer so");
        clients.extend(lists.into_iter().map(|spans| (place, spans)));
    }
    report.add_hand_overs(system, &clients);
    Ok(())
}

/// A member that holds a lock is killed: the leader (0), or another.
fn kill(
    report: &mut Report,
    system: &str,
    algorithm: LockAlgorithm,
    holder: usize,
    mode: &str,
) -> io::Result<()> {
    let (mut members, _) = group(3, algorithm)?;
    members[holder].ask(&format!("hold x {mode}"))?;
    members[1].order(&format!("wait x {mode}"))?;
    thread::sleep(Duration::from_millis(200));
    let killed = now();
    members[holder].kill()?;
    let granted = number(&members[1].answer()?, "at");
    let took = Duration::from_nanos((granted as u64).saturating_sub(killed));
    let most = (mode == "fast").then_some(Duration::from_millis(100));
    let who = if holder == 0 { ", and leads" } else { "" };
    let name = format!("{}{who}{}", measures::HOLDER_KILLED, how(mode));
    report.add_time(system, &name, took, most);
    Ok(())
}

/// The plain name stands for locks with a token that is checked.
fn how(mode: &str) -> &'static str {
    if mode == "fast" { "" } else { " (LeaseSafe)" }
}

/// The leader is killed, and another member requests a lock.
fn leader_killed(report: &mut Report) -> io::Result<()> {
    let (mut members, _) = group(3, LockAlgorithm::Table)?;
    members[1].ask("hold before")?;
    let killed = now();
    members[0].kill()?;
    let granted = number(&members[1].ask("wait after")?, "at");
    let took = Duration::from_nanos((granted as u64).saturating_sub(killed));
    report.add_time(OURS, measures::LEADER_KILLED, took, Some(Duration::from_millis(100)));
    Ok(())
}
