//! Virtual networks that can be cut: one namespace for each agent, and a bridge between them.
//!
//! A cut drops packets silently, as a broken cable does: frames go to a hardware address that no host has.

use std::net::SocketAddr;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Namespaces that are gone after the test.
pub(crate) struct Network {
    names: Vec<String>,
    switch: String,
}

fn ip(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(arguments).output().map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("ip {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim()))
}

/// The address of agent `i`, in its network.
fn address(i: usize) -> String {
    format!("10.77.0.{}", i + 1)
}

impl Network {
    /// `n` networks that reach each other; nothing, and a word why, where that is not permitted.
    pub(crate) fn new(n: usize) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let prefix = format!("kk{}x{number}", std::process::id());
        let names = (0..n).map(|i| format!("{prefix}n{i}")).collect();
        let network = Self { names, switch: format!("{prefix}sw") };
        match network.build() {
            Ok(()) => Some(network),
            Err(why) => {
                eprintln!("skipped: no networks to cut here ({why}); it needs root and `ip`");
                None
            }
        }
    }

    fn build(&self) -> Result<(), String> {
        let switch = self.switch.as_str();
        ip(&["netns", "add", switch])?;
        ip(&["-n", switch, "link", "add", "name", "hub", "type", "bridge"])?;
        ip(&["-n", switch, "link", "set", "hub", "up"])?;
        for (i, name) in self.names.iter().enumerate() {
            let port = format!("p{i}");
            ip(&["netns", "add", name])?;
            ip(&["-n", name, "link", "set", "lo", "up"])?;
            ip(&[
                "-n", name, "link", "add", "eth0", "type", "veth", "peer", "name", &port, "netns",
                switch,
            ])?;
            ip(&["-n", switch, "link", "set", &port, "master", "hub", "up"])?;
            ip(&["-n", name, "addr", "add", &format!("{}/24", address(i)), "dev", "eth0"])?;
            ip(&["-n", name, "link", "set", "eth0", "up"])?;
        }
        Ok(())
    }

    /// Gives each network an address of IPv6, and another way that leads nowhere, which the system
    /// finds first; their addresses, or why that is not possible.
    pub(crate) fn with_blind_alleys(&self) -> Result<Vec<SocketAddr>, String> {
        let mut addresses = Vec::new();
        for (i, name) in self.names.iter().enumerate() {
            let address = format!("fd77::{}", i + 1);
            ip(&["-n", name, "link", "set", "eth0", "down"])?;
            ip(&["-n", name, "link", "add", "alley", "type", "veth", "peer", "name", "end"])?;
            ip(&["-n", name, "link", "set", "end", "up"])?;
            ip(&["-n", name, "link", "set", "alley", "up"])?;
            ip(&["-n", name, "link", "set", "eth0", "up"])?;
            let prefix = format!("{address}/64");
            ip(&["-n", name, "addr", "add", &prefix, "dev", "eth0", "nodad"])?;
            addresses.push(format!("[{address}]:7400").parse().expect("an address"));
        }
        Ok(addresses)
    }

    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        let parse = |i| format!("{}:7400", address(i)).parse().expect("an address");
        (0..self.names.len()).map(parse).collect()
    }

    /// A command in the network of agent `i`.
    pub(crate) fn command(&self, i: usize, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.names[i], program]);
        command
    }

    /// Drops all frames from `from` to `to`.
    pub(crate) fn cut(&self, from: usize, to: usize) {
        let (name, address) = (self.names[from].as_str(), address(to));
        let nobody = ["lladdr", "02:00:00:00:00:99", "nud", "permanent", "dev", "eth0"];
        ip(&[&["-n", name, "neigh", "replace", &address], &nobody[..]].concat()).expect("cut");
    }

    /// Whether a firewall can be set up in the network of `i`.
    pub(crate) fn can_refuse(&self, i: usize) -> bool {
        self.nft(i, "add table inet probe; delete table inet probe").is_ok()
    }

    /// The firewall of `i` rejects every packet of a connection, in or out, with a reset.
    pub(crate) fn refuse(&self, i: usize) {
        let chain = |hook: &str| {
            format!(
                "add chain inet cut {hook} {{ type filter hook {hook} priority 0; }}; \
                 add rule inet cut {hook} ip saddr 10.77.0.0/24 meta l4proto tcp \
                 reject with tcp reset"
            )
        };
        let rules = format!("add table inet cut; {}; {}", chain("input"), chain("output"));
        self.nft(i, &rules).expect("refused");
    }

    /// It lets everything pass again.
    pub(crate) fn allow(&self, i: usize) {
        self.nft(i, "delete table inet cut").expect("allowed");
    }

    fn nft(&self, i: usize, rules: &str) -> Result<(), String> {
        ip(&["netns", "exec", &self.names[i], "nft", rules])
    }

    /// It does again.
    pub(crate) fn mend(&self, from: usize, to: usize) {
        let name = self.names[from].as_str();
        ip(&["-n", name, "neigh", "del", &address(to), "dev", "eth0"]).expect("mended");
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for name in self.names.iter().chain([&self.switch]) {
            let _ = ip(&["netns", "del", name]);
        }
    }
}
