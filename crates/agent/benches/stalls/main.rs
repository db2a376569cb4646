//! Which stalls a command under a lock survives, and how long the next holder waits after a crash: for both profiles,
//! and for etcd where it is installed. `cargo xtask bench stalls` prints the table of book/en/operate/limits.md.
//!
//! Three machines are network namespaces, so it needs root and `ip`. A command holds a lock at the third machine, and
//! another one waits for it at the second. Then one part of the third machine stops for a while, or for ever.

#![expect(dead_code, reason = "the helpers of the tests are more than this needs")]

#[path = "../../tests/it/cluster.rs"]
mod cluster;
mod etcd;
#[path = "../../tests/it/kit.rs"]
mod kit;
#[path = "../../tests/it/network.rs"]
mod network;

use std::fs;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use cluster::Cluster;
use etcd::Etcd;
use kit::{Running, alive, start};
use network::Network;

/// The machine of the holder, and that of the waiter.
const HOLDER: usize = 2;
const WAITER: usize = 1;
/// How long a second holder is waited for after a crash.
const PATIENCE: Duration = Duration::from_secs(40);

/// The part that stops, on the machine of the holder.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// The agent, or etcd's member.
    Member,
    /// The wrapper: `konklave lock`, or `etcdctl lock`.
    Wrapper,
    /// All packets between the machines.
    Network,
}

impl Part {
    const ALL: [Self; 3] = [Self::Member, Self::Wrapper, Self::Network];

    fn name(self) -> &'static str {
        match self {
            Self::Member => "agent",
            Self::Wrapper => "wrapper",
            Self::Network => "network",
        }
    }
}

/// A system of three machines with locks.
trait System {
    fn name(&self) -> String;
    /// How long after the start of a stall a loss shows.
    fn patience(&self) -> Duration;
    fn network(&self) -> &Network;
    fn file(&self, name: &str) -> String;
    /// Runs a shell script under a lock at machine `i`.
    fn lock(&self, i: usize, name: &str, script: &str) -> Running;
    fn member(&self, i: usize) -> i32;
    /// Starts the member of the holder again, after it was killed.
    fn restart(&mut self);
    fn ready(&self);
}

struct Konklave {
    cluster: Cluster,
    profile: &'static str,
}

impl System for Konklave {
    fn name(&self) -> String {
        format!("konklave, {}", self.profile)
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(if self.profile == "fast" { 5 } else { 11 })
    }

    fn network(&self) -> &Network {
        self.cluster.network()
    }

    fn file(&self, name: &str) -> String {
        self.cluster.file(name)
    }

    fn lock(&self, i: usize, name: &str, script: &str) -> Running {
        start(&self.cluster.socket(i), &["lock", name, "-c", script])
    }

    fn member(&self, i: usize) -> i32 {
        self.cluster.pid(i)
    }

    fn restart(&mut self) {
        self.cluster.kill(HOLDER);
        self.cluster.start(HOLDER);
    }

    fn ready(&self) {
        for i in 0..3 {
            self.cluster.until(i, "three", |s| {
                s["standing"] == "primary"
                    && s["view"]["members"].as_array().is_some_and(|m| m.len() == 3)
            });
        }
    }
}

/// A command that holds a lock, and one that waits for it.
struct Pair {
    holder: Running,
    waiter: Running,
    pid: i32,
    next: String,
}

impl Pair {
    fn new(system: &dyn System, name: &str) -> Self {
        let (pid, next) =
            (system.file(&format!("{name}.pid")), system.file(&format!("{name}.next")));
        let holder = system.lock(HOLDER, name, &format!("echo $$ > {pid}; exec sleep 1000"));
        let pid = kit::number(&pid);
        let script =
            format!("kill -0 {pid} 2>/dev/null && echo both > {next} || echo one > {next}");
        let waiter = system.lock(WAITER, name, &script);
        std::thread::sleep(Duration::from_secs(1));
        Self { holder, waiter, pid, next }
    }

    /// Whether the next holder has started, and whether the first one still ran then.
    fn next(&self) -> Option<bool> {
        let text = fs::read_to_string(&self.next).unwrap_or_default();
        text.ends_with('\n').then(|| text.starts_with("both"))
    }

    fn end(self) {
        drop((self.holder, self.waiter));
        if alive(self.pid) {
            let _ = kill(Pid::from_raw(self.pid), Signal::SIGKILL);
        }
    }
}

fn pairs() -> impl Iterator<Item = (usize, usize)> {
    (0..3).flat_map(|i| (0..3).filter(move |j| *j != i).map(move |j| (i, j)))
}

/// Stops a part for this time, and reports what became of the command.
fn stall(system: &dyn System, part: Part, seconds: u64) -> String {
    let pair = Pair::new(system, &format!("{}-{seconds}", part.name()));
    let pid = if part == Part::Member { system.member(HOLDER) } else { pair.holder.pid() };
    let send = |signal| kill(Pid::from_raw(pid), signal).expect("it is there");
    let begun = Instant::now();
    match part {
        Part::Network => pairs().for_each(|(from, to)| system.network().cut(from, to)),
        Part::Member | Part::Wrapper => send(Signal::SIGSTOP),
    }
    let (mut stopped, mut ended, mut both) = (true, None, false);
    while begun.elapsed() < system.patience() {
        if stopped && begun.elapsed() >= Duration::from_secs(seconds) {
            stopped = false;
            match part {
                Part::Network => pairs().for_each(|(from, to)| system.network().mend(from, to)),
                Part::Member | Part::Wrapper => send(Signal::SIGCONT),
            }
        }
        if ended.is_none() && !alive(pair.pid) {
            ended = Some(begun.elapsed());
        }
        both |= pair.next() == Some(true);
        std::thread::sleep(Duration::from_millis(10));
    }
    let lost = pair.next().is_some();
    pair.end();
    match ended {
        _ if both => "**two at once**".into(),
        Some(time) => format!("ended after {:.1} s", time.as_secs_f64()),
        None if lost => "lost".into(),
        None => "goes on".into(),
    }
}

/// Stops a part for ever; the time until the next holder starts.
fn crash(system: &mut dyn System, part: Part, signal: Signal) -> String {
    let pair = Pair::new(system, &format!("{}-{}", part.name(), signal.as_str()));
    let pid = if part == Part::Member { system.member(HOLDER) } else { pair.holder.pid() };
    let begun = Instant::now();
    kill(Pid::from_raw(pid), signal).expect("it is there");
    let mut next = None;
    while next.is_none() && begun.elapsed() < PATIENCE {
        next = pair.next();
        std::thread::sleep(Duration::from_millis(2));
    }
    let took = begun.elapsed();
    pair.end();
    if part == Part::Member {
        system.restart();
        system.ready();
    }
    match next {
        Some(true) => format!("{:.1} s, **two at once**", took.as_secs_f64()),
        Some(false) => format!("{:.1} s", took.as_secs_f64()),
        None => format!("more than {} s", PATIENCE.as_secs()),
    }
}

fn column(mut system: Box<dyn System>) -> (String, Vec<String>) {
    eprintln!("{} …", system.name());
    let mut cells = Vec::new();
    for part in Part::ALL {
        for seconds in [1, 2, 3] {
            system.ready();
            cells.push(told(stall(&*system, part, seconds)));
        }
    }
    for (part, signal) in crashes() {
        system.ready();
        cells.push(told(crash(&mut *system, part, signal)));
    }
    (system.name(), cells)
}

/// Shows a cell while the others are measured.
fn told(cell: String) -> String {
    eprintln!("  {cell}");
    cell
}

fn crashes() -> [(Part, Signal); 3] {
    [
        (Part::Wrapper, Signal::SIGKILL),
        (Part::Member, Signal::SIGKILL),
        (Part::Member, Signal::SIGSTOP),
    ]
}

fn main() {
    let mut columns = Vec::new();
    for profile in ["steady", "fast"] {
        let Some(cluster) = Cluster::apart_with(&["--profile", profile]) else { return };
        columns.push(column(Box::new(Konklave { cluster, profile })));
    }
    match Etcd::start() {
        Ok(etcd) => columns.push(column(Box::new(etcd))),
        Err(why) => eprintln!("without etcd: {why}"),
    }
    let stalls = Part::ALL
        .into_iter()
        .flat_map(|part| [1, 2, 3].map(|seconds| format!("{} stops for {seconds} s", part.name())));
    let ends = ["wrapper, `kill -9`", "agent, `kill -9`", "agent frozen, or its machine lost"];
    let ends = ends.into_iter().map(|what| format!("next holder after: {what}"));
    let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    println!("| | {} |", names.join(" | "));
    println!("|---|{}", "---|".repeat(columns.len()));
    for (row, what) in stalls.chain(ends).enumerate() {
        let cells: Vec<&str> = columns.iter().map(|(_, cells)| cells[row].as_str()).collect();
        println!("| {what} | {} |", cells.join(" | "));
    }
}
