//! Real IP multicast in a network namespace of its own, where nobody else's traffic is, and where
//! packets can be dropped for real. Needs the right to make namespaces, and `nft` for the drops; what
//! cannot be done here is said, not passed over in silence.

use std::process::{Command, Output};

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
                let up = namespace.run("ip link set lo up multicast on");
                assert!(up.status.success(), "{}", String::from_utf8_lossy(&up.stderr));
                return Some(namespace);
            }
            Ok(refused) => String::from_utf8_lossy(&refused.stderr).trim().to_owned(),
            Err(error) => format!("`ip`: {error}"),
        };
        eprintln!("NOT RUN HERE: no network namespace can be made: {why}");
        None
    }

    fn run(&self, line: &str) -> Output {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.0]).args(words(line));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("KONKLAVE_")) {
            command.env_remove(name);
        }
        command.output().expect("ip was there a moment ago")
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
