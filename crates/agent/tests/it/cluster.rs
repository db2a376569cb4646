//! Whole agents, as processes, on loopback.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::kit::{Folder, output};
use crate::network::Network;

/// Agents that know each other.
pub(crate) struct Cluster {
    pub(crate) folder: Folder,
    addresses: Vec<SocketAddr>,
    agents: Vec<Option<Child>>,
    plan: Plan,
}

/// How agents are started.
pub(crate) struct Plan {
    /// How the agents find each other; by default, by a list of all addresses.
    pub(crate) meet: Option<Vec<String>>,
    pub(crate) flags: Vec<String>,
    /// Words before the command, for agent `i` and the folder of all.
    pub(crate) around: fn(&Path, usize) -> Vec<String>,
    pub(crate) network: Option<Network>,
}

impl Plan {
    /// Most tests wait for a fail-over, so the agents fail over fast, unless their flags choose a profile.
    fn profile(&self) -> &[&str] {
        if self.flags.iter().any(|flag| flag == "--profile") { &[] } else { &["--profile", "fast"] }
    }

    pub(crate) fn new(flags: &[&str]) -> Self {
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        Self { meet: None, flags, around: |_, _| Vec::new(), network: None }
    }
}

/// Addresses of loopback that are free now.
pub(crate) fn free_addresses(n: usize) -> Vec<SocketAddr> {
    let listeners: Vec<_> =
        (0..n).map(|_| TcpListener::bind("127.0.0.1:0").expect("a free port")).collect();
    listeners.iter().map(|listener| listener.local_addr().expect("bound")).collect()
}

impl Cluster {
    /// `n` agents that have formed a group.
    pub(crate) fn new(n: usize) -> Self {
        Self::with(n, &[])
    }

    /// `n` agents with more flags.
    pub(crate) fn with(n: usize, flags: &[&str]) -> Self {
        Self::planned(Folder::new(), free_addresses(n), Plan::new(flags))
    }

    /// Three agents in three networks that can be cut; nothing where that is not permitted.
    pub(crate) fn apart() -> Option<Self> {
        Self::apart_with(&[])
    }

    /// The same with more flags.
    pub(crate) fn apart_with(flags: &[&str]) -> Option<Self> {
        let network = Network::new(3)?;
        let folder = Folder::new();
        // Beyond loopback nothing goes without.
        let key = folder.file("key");
        fs::write(&key, "a key of sixteen bytes, and more").expect("written");
        let addresses = network.addresses();
        let plan =
            Plan { network: Some(network), ..Plan::new(&[&["--key-file", &key], flags].concat()) };
        Some(Self::planned(folder, addresses, plan))
    }

    /// Agents that have formed a group, started as planned.
    pub(crate) fn planned(folder: Folder, addresses: Vec<SocketAddr>, plan: Plan) -> Self {
        let n = addresses.len();
        let agents = (0..n).map(|_| None).collect();
        let mut cluster = Self { folder, addresses, agents, plan };
        for i in 0..n {
            cluster.start(i);
        }
        for i in 0..n {
            cluster.ready(i);
        }
        cluster
    }

    pub(crate) fn len(&self) -> usize {
        self.agents.len()
    }

    pub(crate) fn socket(&self, i: usize) -> PathBuf {
        self.folder.path().join(format!("{i}.sock"))
    }

    fn log(&self, i: usize) -> PathBuf {
        self.folder.path().join(format!("{i}.log"))
    }

    /// The log of agent `i` so far.
    pub(crate) fn logged(&self, i: usize) -> String {
        fs::read_to_string(self.log(i)).unwrap_or_default()
    }

    pub(crate) fn address(&self, i: usize) -> SocketAddr {
        self.addresses[i]
    }

    /// Starts agent `i`, which may be a restart.
    pub(crate) fn start(&mut self, i: usize) {
        self.start_with(i, &[]);
    }

    /// The same with more flags for this agent.
    pub(crate) fn start_with(&mut self, i: usize, flags: &[&str]) {
        assert!(self.agents[i].is_none(), "agent {i} runs");
        let peers: Vec<String> = self.addresses.iter().map(SocketAddr::to_string).collect();
        let log = fs::File::options().create(true).append(true).open(self.log(i)).expect("a log");
        let program = env!("CARGO_BIN_EXE_konklave-agent");
        let mut words = (self.plan.around)(self.folder.path(), i);
        words.push(program.to_owned());
        let mut command = match &self.plan.network {
            Some(network) => network.command(i, &words[0]),
            None => Command::new(&words[0]),
        };
        command.args(&words[1..]).args(["agent", "--name", &format!("n{i}")]);
        match &self.plan.meet {
            Some(flags) => command.args(flags),
            None => command.args(["--peers", &peers.join(",")]),
        };
        if self.plan.meet.as_ref().is_none_or(|flags| flags[0] != "--nats") {
            command.args(["--listen", &peers[i]]);
        }
        command
            .arg("--socket")
            .arg(self.socket(i))
            .arg("--data-dir")
            .arg(self.folder.path().join(format!("{i}.data")))
            .args(&self.plan.flags)
            .args(self.plan.profile())
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        self.agents[i] = Some(command.spawn().expect("the agent starts"));
    }

    /// Waits until agent `i` can grant locks, and returns the time that took.
    pub(crate) fn ready(&self, i: usize) -> Duration {
        self.until(i, "ready", |status| status["standing"] == "primary")
    }

    /// Waits until the status of agent `i` is as wanted.
    pub(crate) fn until(&self, i: usize, what: &str, seen: impl Fn(&Value) -> bool) -> Duration {
        let start = Instant::now();
        loop {
            if let Some(status) = self.status(i)
                && seen(&status)
            {
                return start.elapsed();
            }
            if start.elapsed() > Duration::from_secs(30) {
                let log = fs::read_to_string(self.log(i)).unwrap_or_default();
                panic!("agent {i}: never {what}: {:?}\n{log}", self.status(i));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn status(&self, i: usize) -> Option<Value> {
        let output = output(&self.socket(i), &["status", "--format", "json"]);
        serde_json::from_slice(&output.stdout).ok()
    }

    pub(crate) fn signal(&self, i: usize, signal: Signal) {
        kill(Pid::from_raw(self.pid(i)), signal).expect("it is there");
    }

    pub(crate) fn pid(&self, i: usize) -> i32 {
        let agent = self.agents[i].as_ref().expect("it runs");
        i32::try_from(agent.id()).expect("a pid")
    }

    /// Kills agent `i`, without a warning.
    pub(crate) fn kill(&mut self, i: usize) {
        let mut agent = self.agents[i].take().expect("it runs");
        agent.kill().expect("it is ours");
        agent.wait().expect("it is dead");
    }

    /// Asks agent `i` to leave; its exit code.
    pub(crate) fn leave(&mut self, i: usize) -> Option<i32> {
        self.signal(i, Signal::SIGTERM);
        let mut agent = self.agents[i].take().expect("it runs");
        agent.wait().expect("it ends").code()
    }

    /// Asks agent `i` something, and gives what it prints.
    pub(crate) fn ask(&self, i: usize, arguments: &[&str]) -> String {
        let output = output(&self.socket(i), arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?}: {said}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// The network between them, where there is one.
    pub(crate) fn network(&self) -> &Network {
        self.plan.network.as_ref().expect("they are apart")
    }

    pub(crate) fn file(&self, name: &str) -> String {
        self.folder.file(name)
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for agent in self.agents.iter_mut().flatten() {
            let _ = agent.kill();
            let _ = agent.wait();
        }
        if std::thread::panicking() {
            for i in 0..self.agents.len() {
                let log = fs::read_to_string(self.log(i)).unwrap_or_default();
                let start = log.len().saturating_sub(3000);
                eprintln!("--- agent {i}\n{}", log.get(start..).unwrap_or_default());
            }
        }
    }
}
