//! A NATS server for a test, if one is installed.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server, killed when the test ends.
pub(crate) struct NatsServer {
    process: Option<Child>,
    address: SocketAddr,
    routes: SocketAddr,
    others: Vec<SocketAddr>,
    log: PathBuf,
}

fn free() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("bound")
}

fn program() -> Option<&'static str> {
    let places = ["nats-server", "/usr/sbin/nats-server"];
    places.into_iter().find(|program| {
        let asked = Command::new(program).arg("--version").stdout(Stdio::null()).status();
        asked.is_ok_and(|status| status.success())
    })
}

impl NatsServer {
    /// One server; `None`, with a note on stderr, if none is installed.
    pub(crate) fn new() -> Option<Self> {
        Self::many(1).map(|mut servers| servers.remove(0))
    }

    /// Several servers that forward messages to each other.
    pub(crate) fn many(n: usize) -> Option<Vec<Self>> {
        if program().is_none() {
            eprintln!("skipped: nats-server is not installed");
            return None;
        }
        // Another test may take a port between the check and the server's start.
        let linked = (0..5).find_map(|_| {
            let mut servers = Self::some(n);
            servers.iter_mut().all(Self::is_linked).then_some(servers)
        });
        Some(linked.expect("servers that find each other"))
    }

    fn some(n: usize) -> Vec<Self> {
        let routes: Vec<SocketAddr> = (0..n).map(|_| free()).collect();
        let mut servers: Vec<Self> = (0..n)
            .map(|i| {
                let address = free();
                let name = format!("konk-nats-{}-{}.log", std::process::id(), address.port());
                let others = routes.iter().copied().filter(|r| n > 1 && *r != routes[i]).collect();
                let log = std::env::temp_dir().join(name);
                Self { process: None, address, routes: routes[i], others, log }
            })
            .collect();
        servers.iter_mut().for_each(Self::start);
        servers
    }

    /// Whether the other servers can forward messages to it, if there are any.
    fn is_linked(&mut self) -> bool {
        let start = Instant::now();
        while !self.others.is_empty() && TcpStream::connect(self.routes).is_err() {
            if start.elapsed() > Duration::from_secs(5) {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.process.as_mut().is_some_and(|p| matches!(p.try_wait(), Ok(None)))
    }

    /// An address for a server that is started later.
    pub(crate) fn later() -> Option<Self> {
        let mut engine = Self::new()?;
        engine.kill();
        Some(engine)
    }

    pub(crate) fn start(&mut self) {
        let log = fs::File::options().create(true).append(true).open(&self.log).expect("a log");
        let mut command = Command::new(program().expect("it was there"));
        command.args(["-a", "127.0.0.1", "-p", &self.address.port().to_string()]);
        if !self.others.is_empty() {
            let urls: Vec<String> = self.others.iter().map(|o| format!("nats://{o}")).collect();
            command.args([
                "--cluster_name",
                "test",
                "--cluster",
                &format!("nats://{}", self.routes),
            ]);
            command.args(["--routes", &urls.join(",")]);
        }
        let started = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        self.process = Some(started.expect("the server starts"));
        let start = Instant::now();
        while TcpStream::connect(self.address).is_err() {
            let log = fs::read_to_string(&self.log).unwrap_or_default();
            assert!(start.elapsed() < Duration::from_secs(20), "no NATS server: {log}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub(crate) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("it is ours");
            process.wait().expect("it is dead");
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("nats://{}/test", self.address)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
        let _ = fs::remove_file(&self.log);
    }
}
