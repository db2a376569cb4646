//! Real IP multicast in network namespaces of its own, free of other traffic, where
//! packets can really be dropped: within one namespace, and between several. The tests need the right to create
//! namespaces, and `nft` for the drops. A test that cannot run here prints why.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::words;

/// A network namespace, gone when the test is over.
struct Namespace(String);

impl Namespace {
    /// None, with a word on standard error, where namespaces cannot be made.
    fn new(name: &str) -> Option<Self> {
        let name = format!("konklave-{name}-{}", std::process::id());
        let made = Command::new("ip").args(["netns", "add", &name]).output();
        let why = match made {
            Ok(made) if made.status.success() => {
                let namespace = Self(name);
                namespace.must("ip link set lo up multicast on");
                return Some(namespace);
            }
            Ok(refused) => String::from_utf8_lossy(&refused.stderr).trim().to_owned(),
            Err(error) => format!("`ip`: {error}"),
        };
        eprintln!("NOT RUN HERE: no network namespace can be made: {why}");
        None
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0]).args(words(line));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("KONKLAVE_")) {
            command.env_remove(name);
        }
        command
    }

    fn run(&self, line: &str) -> Output {
        self.command(line).output().expect("ip was there a moment ago")
    }

    /// Runs what must succeed.
    fn must(&self, line: &str) {
        let done = self.run(line);
        assert!(done.status.success(), "{line}: {}", String::from_utf8_lossy(&done.stderr));
    }

    fn konklave(&self, line: &str) -> Value {
        let said = self.run(&format!("{} {line} --format json", env!("CARGO_BIN_EXE_konklave")));
        let err = String::from_utf8_lossy(&said.stderr);
        serde_json::from_slice(&said.stdout).unwrap_or_else(|e| panic!("{line}: {e}: {err}"))
    }

    /// Drops so many of a hundred multicast packets; false, with a word, where that cannot be done.
    fn drop_multicasts(&self, of_a_hundred: u32) -> bool {
        for rule in [
            "add table ip konklave".to_owned(),
            "add chain ip konklave input '{ type filter hook input priority 0 ; }'".to_owned(),
            format!(
                "add rule ip konklave input ip daddr 239.255.0.0/16 numgen random mod 100 < {of_a_hundred} drop"
            ),
        ] {
            let done = self.run(&format!("nft {rule}"));
            if !done.status.success() {
                let why = String::from_utf8_lossy(&done.stderr);
                eprintln!("NOT RUN HERE: packets cannot be dropped: nft {rule}: {}", why.trim());
                return false;
            }
        }
        true
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).output();
    }
}

#[test]
fn all_arrives_by_ip_multicast_also_where_packets_are_dropped() {
    let Some(namespace) = Namespace::new("multicast") else { return };
    let line = "run srm -n 8 --requests 40,0,0,0,0,0,0,0 --think 2 --world multicast --unit 5";
    let calm = namespace.konklave(line);
    assert_eq!(calm["verdict"], "ok", "{calm}");
    assert_eq!(calm["multicast"]["delivered"], 320, "{calm}");
    // That none of the 40 first packets is dropped: once in a hundred thousand times.
    if !namespace.drop_multicasts(25) {
        return;
    }
    let lossy = namespace.konklave(line);
    assert_eq!(lossy["verdict"], "ok", "{lossy}");
    assert_eq!(lossy["multicast"]["delivered"], 320, "{lossy}");
    assert!(lossy["messages"]["lost"].as_u64() > Some(0), "{lossy}");
    let figure = |name: &str| lossy["multicast"][name].as_f64().expect("something was lost");
    let (requests, repairs) = (figure("requests_per_loss"), figure("repairs_per_loss"));
    println!("requests/loss {requests:.2}, repairs/loss {repairs:.2}");
    assert!(requests >= 1.0 && repairs >= 1.0, "{lossy}");
}

/// Namespaces that hang on one bridge, which has a namespace of its own: nothing of this machine's
/// network is touched. Host k has the address 10.77.0.k+1 and a route for multicasts.
struct Lan {
    hosts: Vec<Namespace>,
    _switch: Namespace,
}

impl Lan {
    /// None, with a word, where there can be no such thing.
    fn new(n: usize) -> Option<Self> {
        let switch = Namespace::new("switch")?;
        let made = switch.run("ip link add bridge type bridge mcast_snooping 0");
        if !made.status.success() {
            let why = String::from_utf8_lossy(&made.stderr);
            eprintln!("NOT RUN HERE: no bridge can be made: {}", why.trim());
            return None;
        }
        switch.must("ip link set bridge up");
        let mut hosts = Vec::new();
        for k in 0..n {
            let host = Namespace::new(&format!("host{k}"))?;
            let (port, name) = (format!("port{k}"), &host.0);
            switch.must(&format!("ip link add {port} type veth peer name eth0 netns {name}"));
            switch.must(&format!("ip link set {port} master bridge up"));
            host.must(&format!("ip addr add 10.77.0.{}/24 dev eth0", k + 1));
            host.must("ip link set eth0 up multicast on");
            host.must("ip route add 224.0.0.0/4 dev eth0");
            hosts.push(host);
        }
        Some(Self { hosts, _switch: switch })
    }

    /// One member of srm in each namespace; the first multicasts. Ends when all have delivered all.
    fn multicast(&self, units: u64) -> Heard {
        let n = self.hosts.len();
        let requests = vec![0; n - 1].iter().fold(units.to_string(), |all, _| all + ",0");
        let (sender, lines) = channel();
        let mut starting = Vec::new();
        for (me, host) in self.hosts.iter().enumerate() {
            let line = format!(
                "{} member srm -n {n} --requests {requests} --me {me} --unit 5 --listen 10.77.0.{} \
                 --multicast 239.255.7.7:7700 --time-limit 100000",
                env!("CARGO_BIN_EXE_konklave"),
                me + 1
            );
            let mut command = host.command(&line);
            let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = Member(piped.spawn().expect("a member starts"));
            let mut output = BufReader::new(child.0.stdout.take().expect("it has a stdout"));
            let mut first = String::new();
            output.read_line(&mut first).expect("it speaks");
            let address = first.trim().strip_prefix("listens ").map(str::to_owned);
            let address = address.unwrap_or_else(|| panic!("member {me}: {first}"));
            assert!(address.starts_with("10.77.0."), "{address}");
            starting.push((child, output, format!("{me}={address}")));
        }
        let all: Vec<String> = starting.iter().map(|(.., address)| address.clone()).collect();
        let mut members = Vec::new();
        // The sender starts last: a member that does not know the other addresses yet would miss the first units.
        for (me, (mut child, output, _)) in starting.into_iter().enumerate().rev() {
            let mut input = child.0.stdin.take().expect("it has a stdin");
            writeln!(input, "{}", all.join(" ")).expect("it listens");
            members.push(child);
            listen(me, output, sender.clone());
        }
        let mut heard = Heard::default();
        let patience = Instant::now() + Duration::from_secs(120);
        while heard.delivered.values().filter(|units_of| units_of.len() as u64 == units).count() < n
        {
            let left = patience.saturating_duration_since(Instant::now());
            let said = lines.recv_timeout(left);
            let (me, told) = said.unwrap_or_else(|_| panic!("not all arrives: {heard:?}"));
            heard.note(me, &told);
        }
        heard
    }
}

/// A process, gone when the test is over.
struct Member(Child);

impl Drop for Member {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn listen(me: usize, output: impl BufRead + Send + 'static, lines: Sender<(usize, Value)>) {
    thread::spawn(move || {
        for line in output.lines().map_while(Result::ok) {
            let said: Value = serde_json::from_str(&line).unwrap_or_default();
            if lines.send((me, said["told"].clone())).is_err() {
                return;
            }
        }
    });
}

/// The deliveries that the members report.
#[derive(Debug, Default)]
struct Heard {
    delivered: BTreeMap<usize, BTreeSet<u64>>,
    /// Units that at least one member missed.
    lost: BTreeSet<u64>,
    requests: u32,
    repairs: u32,
}

impl Heard {
    fn note(&mut self, me: usize, told: &Value) {
        let number = |unit: &Value| unit["number"].as_u64();
        if let Some(unit) = number(&told["Delivered"]) {
            assert!(self.delivered.entry(me).or_default().insert(unit), "{me}: {unit} came twice");
        }
        self.lost.extend(number(&told["Note"]["Missing"]));
        self.requests += u32::from(told["Note"]["Asked"].is_object());
        self.repairs += u32::from(told["Note"]["Repaired"].is_object());
    }
}

#[test]
fn members_in_namespaces_of_their_own_hear_all_also_where_packets_are_dropped() {
    let Some(lan) = Lan::new(4) else { return };
    let calm = lan.multicast(60);
    assert_eq!(calm.delivered.len(), 4, "{calm:?}");
    for host in &lan.hosts {
        if !host.drop_multicasts(20) {
            return;
        }
    }
    let lossy = lan.multicast(60);
    let losses = lossy.lost.len() as f64;
    // Of 60 units to three others each: that nothing is dropped happens once in 10^17 times.
    assert!(losses > 0.0, "{lossy:?}");
    let per_loss = |count: u32| f64::from(count) / losses;
    let (requests, repairs) = (per_loss(lossy.requests), per_loss(lossy.repairs));
    println!("{losses} of 60 units lost; requests/loss {requests:.2}, repairs/loss {repairs:.2}");
    assert!(requests >= 1.0 && repairs >= 0.5, "{lossy:?}");
}
