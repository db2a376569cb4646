//! Peers: other systems, as Debian packages them, measured in the same run.

mod corosync;
mod etcd;
mod postgresql;
mod redis;
mod wire;
mod zookeeper;

use std::fs;
use std::io;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use crate::leash::{self, Leashed};
use crate::member::now;
use crate::report::{Report, Spans, measures, median, quantile};

/// The lease of a client's locks, where a peer has one.
const LEASE: Duration = Duration::from_secs(10);
/// The longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(40);
/// The longest attempt while servers start or stop.
const ATTEMPT: Duration = Duration::from_millis(300);

/// A system of servers that grants locks.
trait Peer: Sync {
    fn name(&self) -> &'static str;

    /// The package to install.
    fn package(&self) -> &'static str;

    /// Its program, if it is installed.
    fn program(&self) -> Option<PathBuf>;

    /// The number of servers of one system.
    fn servers(&self) -> usize {
        3
    }

    /// The number of ports of each server.
    fn ports(&self) -> usize;

    /// Prepares server number `i` with its own directory; `ports` are those of all servers.
    fn prepare(&self, i: usize, folder: &Path, ports: &[Vec<u16>]) -> io::Result<Command>;

    /// A client with this lease, and this limit for its calls.
    fn connect(
        &self,
        ports: &[u16],
        lease: Duration,
        patience: Duration,
    ) -> io::Result<Box<dyn Client>>;

    /// The server that leads, if there is one.
    fn leader(&self, ports: &[u16]) -> io::Result<Option<usize>>;
}

/// A client of one server.
trait Client: Send {
    fn acquire(&mut self, lock: &str) -> io::Result<()>;

    /// Releases the lock.
    fn release(&mut self) -> io::Result<()>;
}

const PEERS: [&dyn Peer; 4] =
    [&etcd::Etcd, &redis::Redlock, &zookeeper::ZooKeeper, &postgresql::PostgreSql];

/// Measures all installed peers; tells how to install the others.
pub(crate) fn measure(report: &mut Report, only: &[&str], seconds: f64) {
    for peer in PEERS.iter().filter(|p| only.is_empty() || only.contains(&p.name())) {
        if peer.program().is_none() {
            report.note(format!(
                "{} is not installed: apt-get install {}",
                peer.name(),
                peer.package()
            ));
            continue;
        }
        for round in 1..=3 {
            eprintln!("{} {round}/3", peer.name());
            if let Err(error) = one_round(report, *peer, seconds) {
                report.note(format!("{}: {error}", peer.name()));
            }
        }
    }
    if only.is_empty() || only.contains(&"corosync") {
        corosync::measure(report, seconds);
    }
}

/// `net holder PEER PORT...`: takes a lock, and holds it until it is killed.
pub(crate) fn hold(args: &[String]) {
    let peer = PEERS.iter().find(|p| Some(p.name()) == args.first().map(String::as_str));
    let ports: Vec<u16> = args.iter().skip(1).filter_map(|port| port.parse().ok()).collect();
    let client = peer.expect("there is such a peer").connect(&ports, LEASE, PATIENCE);
    let mut client = client.expect("it can be reached");
    client.acquire("held").expect("it is free");
    println!("held");
    let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
}

/// The servers of one system, and their ports.
struct System {
    servers: Vec<Leashed>,
    ports: Vec<u16>,
    since: Instant,
}

impl System {
    fn start(peer: &dyn Peer) -> io::Result<Self> {
        let base = leash::folder(peer.name())?;
        let ports = free_ports(peer.servers(), peer.ports())?;
        let mut commands = Vec::new();
        for i in 0..peer.servers() {
            let folder = base.join(i.to_string());
            fs::create_dir_all(&folder)?;
            let command = peer.prepare(i, &folder, &ports);
            let command = command.inspect_err(|_| drop(fs::remove_dir_all(&base)))?;
            commands.push((folder, command));
        }
        let since = Instant::now();
        let started = commands.iter().map(|(folder, command)| Leashed::start(folder, command));
        let servers: io::Result<Vec<_>> = started.collect();
        let servers = servers.inspect_err(|_| drop(fs::remove_dir_all(&base)))?;
        Ok(Self { servers, ports: ports.iter().map(|p| p[0]).collect(), since })
    }
}

/// `each` ports for each of `n`, all free at the same time.
fn free_ports(n: usize, each: usize) -> io::Result<Vec<Vec<u16>>> {
    let bound: io::Result<Vec<TcpListener>> =
        (0..n * each).map(|_| TcpListener::bind("127.0.0.1:0")).collect();
    let ports: io::Result<Vec<u16>> =
        bound?.iter().map(|listener| Ok(listener.local_addr()?.port())).collect();
    Ok(ports?.chunks(each).map(<[u16]>::to_vec).collect())
}

/// Repeats an attempt until it succeeds.
fn until_it_works<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    let end = Instant::now() + PATIENCE;
    loop {
        match attempt() {
            Ok(done) => return Ok(done),
            Err(error) if Instant::now() > end => return Err(error),
            Err(_) => thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// A new client takes a new lock.
fn fresh_lock(peer: &dyn Peer, ports: &[u16], attempts: &mut u32) -> io::Result<()> {
    *attempts += 1;
    let mut client = peer.connect(ports, LEASE, ATTEMPT)?;
    client.acquire(&format!("fresh-{attempts}"))?;
    client.release()
}

fn one_round(report: &mut Report, peer: &dyn Peer, seconds: f64) -> io::Result<()> {
    let system = System::start(peer)?;
    let mut attempts = 0;
    until_it_works(|| fresh_lock(peer, &system.ports, &mut attempts))?;
    report.add_time(peer.name(), measures::COLD, system.since.elapsed(), None);
    let pids: Vec<i32> = system.servers.iter().map(Leashed::pid).collect();
    leash::idle(report, peer.name(), &pids);
    free(report, peer, &system, seconds)?;
    contended(report, peer, &system, seconds)?;
    holder_killed(report, peer, &system)?;
    leader_killed(report, peer, system, attempts)
}

/// One client, one lock without competition.
fn free(report: &mut Report, peer: &dyn Peer, system: &System, seconds: f64) -> io::Result<()> {
    let mut client = peer.connect(&system.ports, PATIENCE, PATIENCE)?;
    let (mut acquires, mut cycles) = (Vec::new(), Vec::new());
    let span = Duration::from_secs_f64(seconds);
    // The first half is not measured: some systems need a warm-up.
    let begin = Instant::now() + span;
    while Instant::now() < begin {
        client.acquire("free")?;
        client.release()?;
    }
    let end = begin + span;
    while Instant::now() < end {
        let start = Instant::now();
        client.acquire("free")?;
        acquires.push(start.elapsed().as_nanos() as f64);
        client.release()?;
        cycles.push(start.elapsed().as_nanos() as f64);
    }
    report.add_nanos(peer.name(), measures::ACQUIRE, median(&mut acquires), None);
    let slow = quantile(&mut acquires, 0.99);
    report.add_nanos(peer.name(), measures::ACQUIRE_SLOW, slow, None);
    report.add_nanos(peer.name(), measures::CYCLE, median(&mut cycles), None);
    Ok(())
}

/// Eight clients compete for one lock, each with its own connection, spread over the servers.
fn contended(
    report: &mut Report,
    peer: &dyn Peer,
    system: &System,
    seconds: f64,
) -> io::Result<()> {
    let together = Barrier::new(8);
    let client = |i: usize| -> io::Result<Spans> {
        let mut ports = system.ports.clone();
        ports.rotate_left(i % system.ports.len());
        let client = peer.connect(&ports, PATIENCE, PATIENCE);
        // A client that starts alone would have the lock to itself.
        together.wait();
        let mut client = client?;
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        let mut spans = Vec::new();
        while Instant::now() < end {
            client.acquire("one")?;
            let start = now();
            spans.push((start, now()));
            client.release()?;
        }
        Ok(spans)
    };
    let clients: io::Result<Vec<Spans>> = thread::scope(|scope| {
        let client = &client;
        let threads: Vec<_> = (0..8).map(|i| scope.spawn(move || client(i))).collect();
        threads.into_iter().map(|t| t.join().expect("a client does not panic")).collect()
    });
    let clients: Vec<(usize, Spans)> = clients?.into_iter().enumerate().collect();
    report.add_hand_overs(peer.name(), &clients);
    Ok(())
}

/// A process that holds a lock is killed.
fn holder_killed(report: &mut Report, peer: &dyn Peer, system: &System) -> io::Result<()> {
    let mut holder = Holder::start(peer, &system.ports)?;
    let mut next = peer.connect(&system.ports, PATIENCE, PATIENCE)?;
    let waits = thread::spawn(move || next.acquire("held").map(|()| Instant::now()));
    thread::sleep(Duration::from_millis(200));
    let killed = Instant::now();
    holder.0.kill()?;
    let granted = waits.join().map_err(|_| io::Error::other("the next holder panicked"))??;
    let took = granted.saturating_duration_since(killed);
    report.add_time(peer.name(), measures::HOLDER_KILLED, took, None);
    Ok(())
}

/// A process of ours that holds a lock.
struct Holder(Child);

impl Holder {
    fn start(peer: &dyn Peer, ports: &[u16]) -> io::Result<Self> {
        let child = Command::new(std::env::current_exe()?)
            .args(["holder", peer.name()])
            .args(ports.iter().map(u16::to_string))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut holder = Self(child);
        let mut line = String::new();
        if let Some(output) = holder.0.stdout.take() {
            io::BufRead::read_line(&mut io::BufReader::new(output), &mut line)?;
        }
        if line.trim() == "held" {
            return Ok(holder);
        }
        Err(io::Error::other("the first holder has not got it"))
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The leading server is killed; a client of another one requests a lock.
fn leader_killed(
    report: &mut Report,
    peer: &dyn Peer,
    system: System,
    mut attempts: u32,
) -> io::Result<()> {
    let Some(leader) = peer.leader(&system.ports)? else { return Ok(()) };
    let mut others = system.ports.clone();
    // Clients try the first server first: never the dead one.
    others.rotate_left((leader + 1) % system.ports.len());
    system.servers[leader].kill();
    let killed = Instant::now();
    until_it_works(|| fresh_lock(peer, &others, &mut attempts))?;
    report.add_time(peer.name(), measures::LEADER_KILLED, killed.elapsed(), None);
    Ok(())
}
