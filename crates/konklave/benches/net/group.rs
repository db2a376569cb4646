//! Three members, each a process of its own, and what is measured of them.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use konklave::Mutex;
use serde_json::Value;

use crate::leash;
use crate::member::now;
use crate::report::{OURS, Report, Spans, measures};

/// A member in a process of its own.
struct Member {
    child: Child,
    orders: ChildStdin,
    answers: mpsc::Receiver<Value>,
}

impl Member {
    fn start(addresses: &[String], i: usize, mutex: Mutex) -> Self {
        let me = std::env::current_exe().expect("this program is a file");
        let mut child = Command::new(me)
            .arg("member")
            .arg(i.to_string())
            .arg(mutex.name())
            .args(addresses)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this program can be started");
        let orders = child.stdin.take().expect("it was piped");
        let output = child.stdout.take().expect("it was piped");
        let (to, answers) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let Ok(answer) = serde_json::from_str(&line) else { continue };
                if to.send(answer).is_err() {
                    break;
                }
            }
        });
        Self { child, orders, answers }
    }

    fn order(&mut self, order: &str) {
        writeln!(self.orders, "{order}").expect("the member lives");
    }

    fn answer(&self) -> Value {
        self.answers.recv_timeout(Duration::from_secs(120)).expect("the member answers")
    }

    fn ask(&mut self, order: &str) -> Value {
        self.order(order);
        self.answer()
    }

    /// What it has in memory, in MiB.
    fn memory(&self) -> f64 {
        leash::memory(self.child.id().cast_signed())
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Members that have found each other, and when they were started.
fn group(n: usize, mutex: Mutex) -> (Vec<Member>, Instant) {
    let ports: Vec<TcpListener> =
        (0..n).map(|_| TcpListener::bind("127.0.0.1:0").expect("there is a port")).collect();
    let addresses: Vec<String> =
        ports.iter().map(|l| l.local_addr().expect("it is bound").to_string()).collect();
    drop(ports);
    let start = Instant::now();
    let members: Vec<Member> = (0..n).map(|i| Member::start(&addresses, i, mutex)).collect();
    for member in &members {
        member.answer();
    }
    (members, start)
}

fn number(value: &Value, name: &str) -> f64 {
    value[name].as_f64().unwrap_or(f64::NAN)
}

pub(crate) fn one_round(report: &mut Report, seconds: f64, round: usize) {
    let (mut members, start) = group(3, Mutex::Table);
    members[1].ask("hold cold");
    let most = Some(Duration::from_millis(300));
    report.add_time(OURS, measures::COLD, start.elapsed(), most);
    thread::sleep(Duration::from_secs(1));
    let memory = members.iter().map(Member::memory).fold(0.0, f64::max);
    report.add_cost(OURS, measures::MEMORY, memory, None);
    let again = members[1].ask("again 200000");
    report.add_nanos(OURS, "a kept lock: acquire and release", number(&again, "p50"), Some(0.1));
    let remote = members[1].ask(&format!("remote 3000 r{round}"));
    report.add_nanos(OURS, measures::ACQUIRE, number(&remote, "acquire"), Some(3.0));
    report.add_nanos(OURS, measures::CYCLE, number(&remote, "cycle"), None);
    hand_over(report, OURS, &mut members, seconds);
    for member in &mut members {
        member.order(&format!("cycles {seconds}"));
    }
    let cycles: f64 = members.iter().map(|m| number(&m.answer(), "rate")).sum();
    report.add_rate(OURS, "9 clients, 9 locks: cycles/s", cycles, Some(100_000.0));
    for (bytes, least) in [(100, 300_000.0), (1024, 150_000.0)] {
        total_order(report, &mut members, seconds, bytes, least);
    }
    drop(members);
    for mode in ["fast", "safe"] {
        // Who is killed leads, too; then another one.
        kill(report, OURS, Mutex::Table, 0, mode);
        kill(report, OURS, Mutex::Table, 2, mode);
    }
    leader_killed(report);
}

/// The same locks, served by an algorithm inside the view.
pub(crate) fn lifted_round(report: &mut Report, seconds: f64, round: usize, mutex: Mutex) {
    let system = &*format!("{OURS}, {mutex}");
    let (mut members, _) = group(3, mutex);
    let again = members[1].ask("again 200000");
    report.add_nanos(system, "a kept lock: acquire and release", number(&again, "p50"), Some(0.1));
    for (mode, what) in [("fast", ""), ("safe", " (LeaseSafe)")] {
        // It was used elsewhere, so that it has to come from there.
        members[0].ask(&format!("remote 3000 {mode}{round} fast"));
        let remote = members[1].ask(&format!("remote 3000 {mode}{round} {mode}"));
        let name = format!("a lock used elsewhere: acquire{what}");
        report.add_nanos(system, &name, number(&remote, "acquire"), Some(1.7));
    }
    hand_over(report, system, &mut members, seconds);
    drop(members);
    kill(report, system, mutex, 0, "fast");
}

/// One member sends to all.
fn total_order(report: &mut Report, members: &mut [Member], seconds: f64, bytes: u32, least: f64) {
    for member in members.iter_mut() {
        member.ask(&format!("join g{bytes}"));
    }
    let count = (seconds * 200_000.0) as u64;
    for member in &mut members[1..] {
        member.order(&format!("receive {count}"));
    }
    let sent = members[0].ask(&format!("send {bytes} {count}"));
    let others = members[1..].iter().map(|m| number(&m.answer(), "end"));
    let end = others.fold(number(&sent, "end"), f64::max);
    let rate = count as f64 / ((end - number(&sent, "start")) / 1e9);
    let name = format!("total order, uniform, {bytes} B: messages/s at every member");
    report.add_rate(OURS, &name, rate, Some(least));
    for member in &mut members[1..] {
        member.order("receive 2000");
    }
    let one = members[0].ask(&format!("latency {bytes} 2000"));
    members[1..].iter().for_each(|m| drop(m.answer()));
    let name = format!("total order, uniform, {bytes} B: one in flight");
    report.add_nanos(OURS, &name, number(&one, "p50"), Some(4.0));
    for member in members {
        member.ask("part");
    }
}

/// Eight clients of three processes want one lock.
fn hand_over(report: &mut Report, system: &str, members: &mut [Member], seconds: f64) {
    // Time for all to hear it: who begins alone would have the lock to itself for a while.
    let start = now() + 100_000_000;
    for (member, clients) in members.iter_mut().zip([3, 3, 2]) {
        member.order(&format!("contend {clients} {start} {seconds}"));
    }
    let answers: Vec<Value> = members.iter().map(Member::answer).collect();
    let mut clients = Vec::new();
    for (place, answer) in answers.into_iter().enumerate() {
        let lists: Vec<Spans> =
            serde_json::from_value(answer["clients"].clone()).expect("members answer so");
        clients.extend(lists.into_iter().map(|spans| (place, spans)));
    }
    report.add_hand_overs(system, &clients);
}

/// A member that holds a lock is killed: the one that leads (0), or another.
fn kill(report: &mut Report, system: &str, mutex: Mutex, holder: usize, mode: &str) {
    let (mut members, _) = group(3, mutex);
    members[holder].ask(&format!("hold x {mode}"));
    members[1].order(&format!("wait x {mode}"));
    thread::sleep(Duration::from_millis(200));
    let killed = now();
    members[holder].child.kill().expect("it lives");
    let granted = number(&members[1].answer(), "at");
    let took = Duration::from_nanos((granted as u64).saturating_sub(killed));
    let most = (mode == "fast").then_some(Duration::from_millis(100));
    let who = if holder == 0 { ", and leads" } else { "" };
    let name = format!("{}{who}{}", measures::HOLDER_KILLED, how(mode));
    report.add_time(system, &name, took, most);
}

/// The plain name is that of locks with a token that is checked.
fn how(mode: &str) -> &'static str {
    if mode == "fast" { "" } else { " (LeaseSafe)" }
}

/// The member that leads is killed; another one wants a lock.
fn leader_killed(report: &mut Report) {
    let (mut members, _) = group(3, Mutex::Table);
    members[1].ask("hold before");
    let killed = now();
    members[0].child.kill().expect("it lives");
    let granted = number(&members[1].ask("wait after"), "at");
    let took = Duration::from_nanos((granted as u64).saturating_sub(killed));
    report.add_time(OURS, measures::LEADER_KILLED, took, Some(Duration::from_millis(100)));
}
