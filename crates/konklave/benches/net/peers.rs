//! What one would otherwise take, measured in the same run: servers of others, as Debian has them.

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

/// What a lock of a client that is gone waits for, where a peer lets one choose.
const LEASE: Duration = Duration::from_secs(10);
/// How long we wait for anything.
const PATIENCE: Duration = Duration::from_secs(40);
/// How long one attempt may take while servers are not yet, or no longer, there.
const ATTEMPT: Duration = Duration::from_millis(300);

/// A system of servers that gives locks.
trait Peer: Sync {
    fn name(&self) -> &'static str;

    /// What to install.
    fn package(&self) -> &'static str;

    /// Its program, if it is installed.
    fn program(&self) -> Option<PathBuf>;

    /// How many servers make one system.
    fn servers(&self) -> usize {
        3
    }

    /// How many ports each of them needs.
    fn ports(&self) -> usize;

    /// Makes a server ready to be started: number `i`, with a folder of its own, where all have these
    /// ports.
    fn prepare(&self, i: usize, folder: &Path, ports: &[Vec<u16>]) -> io::Result<Command>;

    /// A client whose locks last so long after it is gone, and whose calls take so long at most.
    fn connect(
        &self,
        ports: &[u16],
        lease: Duration,
        patience: Duration,
    ) -> io::Result<Box<dyn Client>>;

    /// Which of the servers leads, if one does.
    fn leader(&self, ports: &[u16]) -> io::Result<Option<usize>>;
}

/// A client of one.
trait Client: Send {
    fn acquire(&mut self, lock: &str) -> io::Result<()>;

    /// Gives back what it has.
    fn release(&mut self) -> io::Result<()>;
}

const PEERS: [&dyn Peer; 4] =
    [&etcd::Etcd, &redis::Redlock, &zookeeper::ZooKeeper, &postgresql::PostgreSql];

/// Measures all that are installed; says of the others how to get them.
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

/// `net holder PEER PORT...`: takes a lock and keeps it until it is killed.
pub(crate) fn hold(args: &[String]) {
    let peer = PEERS.iter().find(|p| Some(p.name()) == args.first().map(String::as_str));
    let ports: Vec<u16> = args.iter().skip(1).filter_map(|port| port.parse().ok()).collect();
    let client = peer.expect("there is such a peer").connect(&ports, LEASE, PATIENCE);
    let mut client = client.expect("it can be reached");
    client.acquire("held").expect("it is free");
    println!("held");
    let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
}

/// Servers of one system, and where clients reach them.
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

/// Tries until it works.
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

/// A lock that nobody has had, by a client that nobody has been.
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

/// One client, one lock that nobody else wants.
fn free(report: &mut Report, peer: &dyn Peer, system: &System, seconds: f64) -> io::Result<()> {
    let mut client = peer.connect(&system.ports, PATIENCE, PATIENCE)?;
    let (mut acquires, mut cycles) = (Vec::new(), Vec::new());
    let span = Duration::from_secs_f64(seconds);
    // As long again before, not measured: some have to get warm first.
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

/// Eight clients want one lock, each with a connection of its own, spread over the servers.
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
        // Who begins alone would have the lock to itself for a while.
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

/// The server that leads is killed; a client of another one wants a lock.
fn leader_killed(
    report: &mut Report,
    peer: &dyn Peer,
    system: System,
    mut attempts: u32,
) -> io::Result<()> {
    let Some(leader) = peer.leader(&system.ports)? else { return Ok(()) };
    let mut others = system.ports.clone();
    // Clients begin with the first one: never with the dead one.
    others.rotate_left((leader + 1) % system.ports.len());
    system.servers[leader].kill();
    let killed = Instant::now();
    until_it_works(|| fresh_lock(peer, &others, &mut attempts))?;
    report.add_time(peer.name(), measures::LEADER_KILLED, killed.elapsed(), None);
    Ok(())
}
