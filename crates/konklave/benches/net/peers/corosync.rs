//! Corosync: total order and views of closed process groups, with one daemon per host.
//!
//! Three daemons share one network namespace, so they talk over loopback as our members do; everything else
//! is separate (`corosync.sh`). Clients need its C library: ours is `corosync.c`, which takes the same
//! commands as our members. There are no locks to measure: those are in the kernel's dlm.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use super::wire::{program, strange};
use crate::leash::{self, Leashed};
use crate::member::now;
use crate::order;
use crate::report::{Report, measures};
use crate::worker::Worker;

const NAME: &str = "corosync";
const LIBRARY: &str = "libcpg.so.4";
/// The longest time to set up namespaces.
const SET_UP: Duration = Duration::from_secs(5);

/// The differences between its measurements and ours in the same row.
const HOW: &str = "corosync: transport udpu (quicker here than knet), no encryption, over loopback, other settings \
                   unchanged. Its order is agreed, ours uniform: a message that one of our members delivered \
                   survives the crash of any minority. `What serves it` is its daemon; with ours, it is the process itself";

pub(super) fn measure(report: &mut Report, seconds: f64) {
    if let Some(missing) = missing() {
        report.note(format!("corosync is not measured: {missing}"));
        return;
    }
    for round in 1..=3 {
        eprintln!("{NAME} {round}/3");
        match one_round(report, seconds) {
            Ok(()) => report.note(HOW.into()),
            Err(error) => report.note(format!("{NAME}: {error}")),
        }
    }
}

/// The missing requirement of the measurement, if any.
fn missing() -> Option<&'static str> {
    let needed = [
        (NAME, "it is not installed: apt-get install corosync libcpg4"),
        ("cc", "its client needs a C compiler: apt-get install gcc libc6-dev"),
        ("ip", "its network needs `ip`: apt-get install iproute2"),
        ("nsenter", "its namespaces need `nsenter`: apt-get install util-linux"),
    ];
    let lacking = needed.iter().find(|(name, _)| program(name).is_none());
    let root = "three daemons on one machine need namespaces, which only root can make";
    lacking.map(|(_, what)| *what).or((!rustix::process::getuid().is_root()).then_some(root))
}

/// Three prepared daemons.
struct Daemons {
    folders: Vec<PathBuf>,
    daemons: Vec<Leashed>,
    /// Keeps the network namespace alive.
    _network: Leashed,
}

impl Daemons {
    fn prepare() -> io::Result<Self> {
        let base = leash::folder(NAME)?;
        Self::prepare_in(&base).inspect_err(|_| drop(fs::remove_dir_all(&base)))
    }

    fn prepare_in(base: &Path) -> io::Result<Self> {
        let place = base.join("network");
        fs::create_dir_all(&place)?;
        let addresses: String =
            (1..=3).map(|i| format!("ip addr add 10.77.0.{i}/32 dev lo && ")).collect();
        let script =
            format!("ip link set lo up && {addresses} echo ready > ready && exec sleep infinity");
        let mut network = Command::new("unshare");
        network.args(["--net", "sh", "-c", &script]);
        let network = Leashed::start(&place, &network)?;
        ready(&place)?;
        let client = compile(&place)?;
        let mut folders = Vec::new();
        let mut daemons = Vec::new();
        for i in 1..=3 {
            let folder = base.join(i.to_string());
            fs::create_dir_all(folder.join("etc/corosync"))?;
            fs::create_dir_all(folder.join("run"))?;
            fs::write(folder.join("etc/corosync/corosync.conf"), settings())?;
            fs::copy(&client, folder.join("run/client"))?;
            let mut command = Command::new("nsenter");
            command.args(["-t", &network.pid().to_string(), "--net", "unshare", "--mount"]);
            command.args(["--uts", "sh", "-c", include_str!("corosync.sh"), NAME]);
            command.arg(&folder).arg(format!("n{i}"));
            daemons.push(Leashed::start(&folder, &command)?);
            ready(&folder)?;
            folders.push(folder);
        }
        Ok(Self { folders, daemons, _network: network })
    }

    /// Lets the daemons run, and starts a client for each.
    fn start(&self) -> io::Result<(Vec<Worker>, u64)> {
        let start = now();
        for folder in &self.folders {
            fs::write(folder.join("go"), "\n")?;
        }
        let clients: io::Result<Vec<Worker>> = self.daemons.iter().map(client).collect();
        Ok((clients?, start))
    }

    /// Adds the last line of a daemon's log to an error.
    fn explain(&self, error: &io::Error) -> io::Error {
        let logs = self.folders.iter().map(|folder| last_line(&folder.join("log")));
        strange(format!("{error}; the daemons said: {}", logs.collect::<Vec<_>>().join(" | ")))
    }
}

impl Drop for Daemons {
    /// Kills the daemons: an orderly stop takes longer, and a kill leaves nothing behind, either.
    fn drop(&mut self) {
        self.daemons.iter().for_each(Leashed::kill);
    }
}

/// A client in its daemon's namespaces.
fn client(daemon: &Leashed) -> io::Result<Worker> {
    let mut command = Command::new("nsenter");
    Worker::start(command.args(["-t", &daemon.pid().to_string(), "--mount", "/run/client"]))
}

/// Debian's settings, with three nodes and their transport, and logging to a file.
fn settings() -> String {
    let node = |i| {
        format!("  node {{\n    nodeid: {i}\n    name: n{i}\n    ring0_addr: 10.77.0.{i}\n  }}\n")
    };
    let nodes: String = (1..=3).map(node).collect();
    format!(
        "totem {{\n  version: 2\n  cluster_name: bench\n  transport: udpu\n  crypto_cipher: none\n  \
         crypto_hash: none\n}}\nlogging {{\n  to_stderr: yes\n  to_logfile: no\n  to_syslog: no\n}}\n\
         quorum {{\n  provider: corosync_votequorum\n}}\nnodelist {{\n{nodes}}}\n"
    )
}

fn compile(folder: &Path) -> io::Result<PathBuf> {
    let (source, client) = (folder.join("client.c"), folder.join("client"));
    fs::write(&source, include_str!("corosync.c"))?;
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-o"]).arg(&client).arg(&source).arg(format!("-l:{LIBRARY}"));
    let made = cc.output()?;
    if made.status.success() {
        return Ok(client);
    }
    let why = String::from_utf8_lossy(&made.stderr);
    let hint = "apt-get install libcpg4 gcc libc6-dev";
    Err(strange(format!("its client cannot be compiled ({hint}): {}", why.trim())))
}

/// Waits until everything around a server is set up.
fn ready(folder: &Path) -> io::Result<()> {
    let end = Instant::now() + SET_UP;
    while fs::read(folder.join("ready")).unwrap_or_default().is_empty() {
        if Instant::now() > end {
            let said = last_line(&folder.join("log"));
            return Err(strange(format!("its namespaces cannot be made here: {said}")));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

fn last_line(file: &Path) -> String {
    let text = fs::read_to_string(file).unwrap_or_default();
    text.lines().last().unwrap_or("nothing").to_owned()
}

fn one_round(report: &mut Report, seconds: f64) -> io::Result<()> {
    let daemons = Daemons::prepare()?;
    measure_all(report, &daemons, seconds).map_err(|error| daemons.explain(&error))
}

fn measure_all(report: &mut Report, daemons: &Daemons, seconds: f64) -> io::Result<()> {
    let (mut clients, start) = daemons.start()?;
    order::first_view(report, NAME, &mut clients, start)?;
    let pids: Vec<i32> = daemons.daemons.iter().map(Leashed::pid).collect();
    leash::idle(report, NAME, &pids);
    for row in &measures::ORDER {
        // About as long as ours takes.
        let count = (seconds * 30_000.0) as u64;
        order::total_order(report, NAME, &mut clients, row, count)?;
    }
    order::join(&mut clients, "kill")?;
    let victim = clients.pop();
    order::killed(report, NAME, measures::PROCESS_KILLED, &mut clients, || {
        victim.map_or(Ok(()), |mut victim| victim.kill())
    })?;
    // New clients for all; now the first daemon is killed.
    let clients: io::Result<Vec<Worker>> = daemons.daemons.iter().map(client).collect();
    let mut clients = clients?;
    order::join(&mut clients, "daemon")?;
    order::killed(report, NAME, measures::ALL_KILLED, &mut clients[1..], || {
        daemons.daemons[0].kill();
        Ok(())
    })
}
