//! Three processes on loopback, against a ping-pong on the same machine in the same run.
//!
//! `cargo xtask bench net [--json FILE] [--seconds S]`. The program starts itself as its own members,
//! which take orders on standard input. All times are of one clock, which all processes share.

mod member;
mod report;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use konklave::Mutex;
use report::{Report, median};
use serde_json::Value;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    match args.first().map(String::as_str) {
        Some("member") => member::run(&args[1..]),
        _ => measure(&args),
    }
}

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
}

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Members that have found each other, and how long that took.
fn group(n: usize, mutex: Mutex) -> (Vec<Member>, Duration) {
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
    (members, start.elapsed())
}

/// The floor: one byte there and one back, between two processes' threads with nothing in between.
fn ping_pong() -> Duration {
    const ROUNDS: u32 = 20_000;
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let address = listener.local_addr().expect("it is bound");
    let echo = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("someone calls");
        stream.set_nodelay(true).expect("it is TCP");
        let mut byte = [0];
        while stream.read_exact(&mut byte).is_ok() {
            stream.write_all(&byte).expect("it listens");
        }
    });
    let mut stream = TcpStream::connect(address).expect("someone listens");
    stream.set_nodelay(true).expect("it is TCP");
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let start = Instant::now();
        let mut byte = [1];
        stream.write_all(&byte).expect("it listens");
        stream.read_exact(&mut byte).expect("it answers");
        times.push(start.elapsed().as_nanos() as f64);
    }
    drop(stream);
    let _ = echo.join();
    Duration::from_nanos(median(&mut times) as u64)
}

fn number(value: &Value, name: &str) -> f64 {
    value[name].as_f64().unwrap_or(f64::NAN)
}

fn measure(args: &[String]) {
    let after = |name: &str| args.iter().position(|a| a == name).and_then(|i| args.get(i + 1));
    let seconds: f64 = after("--seconds").and_then(|s| s.parse().ok()).unwrap_or(2.0);
    let floor = ping_pong();
    let mut report = Report::new(floor);
    for round in 0..3 {
        one_round(&mut report, seconds, round);
        for mutex in [Mutex::NaimiTrehel, Mutex::SuzukiKasami] {
            lifted_round(&mut report, seconds, round, mutex);
        }
    }
    print!("{}", report.text());
    if let Some(file) = after("--json") {
        let written = std::fs::write(file, format!("{:#}\n", report.json()));
        written.unwrap_or_else(|error| eprintln!("{file}: {error}"));
    }
}

fn one_round(report: &mut Report, seconds: f64, round: usize) {
    let (mut members, cold) = group(3, Mutex::Table);
    report.add_time("first view of three cold processes", cold, None);
    let again = members[1].ask("again 200000");
    report.add_nanos("re-acquire of a kept lock", number(&again, "p50"), Some(0.1));
    let remote = members[1].ask(&format!("remote 3000 r{round}"));
    report.add_nanos(
        "acquire of a free lock, known to a majority",
        number(&remote, "p50"),
        Some(3.0),
    );
    hand_over(report, "", &mut members, &[3, 3, 2], seconds);
    for member in &mut members {
        member.order(&format!("cycles {seconds}"));
    }
    let cycles: f64 = members.iter().map(|m| number(&m.answer(), "rate")).sum();
    report.add_rate("9 clients, 9 locks, cycles/s", cycles, Some(100_000.0));
    for (bytes, least) in [(100, 300_000.0), (1024, 150_000.0)] {
        for member in &mut members {
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
        report.add_rate(
            &format!("total order, uniform, {bytes} B, messages/s at every member"),
            rate,
            Some(least),
        );
        for member in &mut members[1..] {
            member.order("receive 2000");
        }
        let one = members[0].ask(&format!("latency {bytes} 2000"));
        members[1..].iter().for_each(|m| drop(m.answer()));
        report.add_nanos(
            &format!("total order, uniform, {bytes} B, one in flight"),
            number(&one, "p50"),
            Some(4.0),
        );
        for member in &mut members {
            member.ask("part");
        }
    }
    fail_over(report, "", members);
}

/// The same locks, served by an algorithm inside the view.
fn lifted_round(report: &mut Report, seconds: f64, round: usize, mutex: Mutex) {
    let who = format!("{mutex}: ");
    let (mut members, _) = group(3, mutex);
    let again = members[1].ask("again 200000");
    report.add_nanos(&format!("{who}re-acquire"), number(&again, "p50"), Some(0.1));
    let modes =
        [("fast", "Fast"), ("safe", "LeaseSafe, first time"), ("safe", "LeaseSafe, not the first")];
    for (mode, what) in modes {
        // It was used elsewhere, so that it has to come from there.
        members[0].ask(&format!("remote 3000 {mode}{round} fast"));
        let remote = members[1].ask(&format!("remote 3000 {mode}{round} {mode}"));
        let name = format!("{who}acquire of a lock used elsewhere, {what}");
        report.add_nanos(&name, number(&remote, "p50"), Some(1.7));
    }
    hand_over(report, &who, &mut members, &[1, 1, 1], seconds);
    hand_over(report, &who, &mut members, &[3, 3, 2], seconds);
    fail_over(report, &who, members);
}

/// So many clients of each process want one lock.
fn hand_over(
    report: &mut Report,
    who: &str,
    members: &mut [Member],
    clients: &[usize],
    seconds: f64,
) {
    let row =
        |what: &str| format!("{who}{} clients, one lock, {what}", clients.iter().sum::<usize>());
    for (member, clients) in members.iter_mut().zip(clients) {
        member.order(&format!("contend {clients} {seconds}"));
    }
    let answers: Vec<Value> = members.iter().map(Member::answer).collect();
    let lists = answers.iter().flat_map(|a| a["counts"].as_array().cloned().unwrap_or_default());
    let counts: Vec<f64> = lists.filter_map(|c| c.as_f64()).collect();
    let total: f64 = counts.iter().sum();
    let least = counts.iter().copied().fold(f64::MAX, f64::min);
    let most = counts.iter().copied().fold(0.0, f64::max);
    report.add_rate(&row("hand-overs/s"), total / seconds, Some(20_000.0));
    report.add_nanos(&row("time of a hand-over"), seconds * 1e9 / total, Some(3.0));
    let gap = median(&mut crossings(&answers));
    report.add_nanos(&row("from process to process"), gap, Some(3.0));
    report.add_plain(&row("fewest/most"), least / most, Some(0.9));
    report.add_plain(&row("two at once"), overlaps(&answers) as f64, None);
}

/// How often two had the lock at once: by the clock that all processes share.
fn overlaps(answers: &[Value]) -> usize {
    let spans = answers.iter().flat_map(|a| a["spans"].as_array().cloned().unwrap_or_default());
    let mut spans: Vec<(u64, u64)> =
        spans.filter_map(|s| Some((s[0].as_u64()?, s[1].as_u64()?))).collect();
    spans.sort_unstable();
    spans.windows(2).filter(|pair| pair[1].0 < pair[0].1).count()
}

/// How long the lock was with nobody, each time it went from one process to another.
fn crossings(answers: &[Value]) -> Vec<f64> {
    let spans = |(i, answer): (usize, &Value)| {
        let spans = answer["spans"].as_array().cloned().unwrap_or_default();
        spans.into_iter().filter_map(move |s| Some((s[0].as_u64()?, s[1].as_u64()?, i)))
    };
    let mut spans: Vec<(u64, u64, usize)> = answers.iter().enumerate().flat_map(spans).collect();
    spans.sort_unstable();
    let crosses = |pair: &&[(u64, u64, usize)]| pair[0].2 != pair[1].2;
    let gap = |pair: &[(u64, u64, usize)]| pair[1].0.saturating_sub(pair[0].1) as f64;
    spans.windows(2).filter(crosses).map(gap).collect()
}

/// The member that holds the lock, and leads the view, is killed.
fn fail_over(report: &mut Report, who: &str, mut members: Vec<Member>) {
    members[0].ask("hold x");
    members[1].order("wait x");
    thread::sleep(Duration::from_millis(200));
    let killed = member::now();
    members[0].child.kill().expect("it lives");
    let granted = number(&members[1].answer(), "at");
    let took = Duration::from_nanos((granted as u64).saturating_sub(killed));
    report.add_time(
        &format!("{who}kill -9 of the leader that holds a lock, to the next holder"),
        took,
        Some(Duration::from_millis(100)),
    );
}
