//! etcd, as its packages install it: three members, and `etcdctl lock`.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::kit::{Folder, Running};
use crate::network::Network;
use crate::{HOLDER, System};

/// The default time to live of `etcdctl lock`, in seconds.
const TTL: u64 = 10;

pub(crate) struct Etcd {
    folder: Folder,
    network: Network,
    members: Vec<Child>,
}

fn host(i: usize) -> String {
    format!("10.77.0.{}", i + 1)
}

impl Etcd {
    pub(crate) fn start() -> Result<Self, String> {
        let version = Command::new("etcd").arg("--version").output();
        version.map_err(|why| format!("{why} (Debian: etcd-server, etcd-client)"))?;
        let network = Network::new(3).ok_or("no networks")?;
        let mut etcd = Self { folder: Folder::new(), network, members: Vec::new() };
        for i in 0..3 {
            let member = etcd.spawn(i).map_err(|why| why.to_string())?;
            etcd.members.push(member);
        }
        etcd.ready();
        Ok(etcd)
    }

    fn spawn(&self, i: usize) -> std::io::Result<Child> {
        let (peer, client) =
            (format!("http://{}:2380", host(i)), format!("http://{}:2379", host(i)));
        let all: Vec<String> = (0..3).map(|j| format!("m{j}=http://{}:2380", host(j))).collect();
        self.network
            .command(i, "etcd")
            .args(["--name", &format!("m{i}"), "--data-dir", &self.folder.file(&format!("m{i}"))])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--initial-cluster", &all.join(",")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
    }

    fn control(&self, i: usize) -> Command {
        let mut command = self.network.command(i, "etcdctl");
        command.env("ETCDCTL_API", "3").args(["--endpoints", &format!("{}:2379", host(i))]);
        command
    }
}

impl System for Etcd {
    fn name(&self) -> String {
        format!("etcd, `etcdctl lock` (TTL {TTL} s)")
    }

    fn patience(&self) -> Duration {
        Duration::from_secs(TTL + 4)
    }

    fn network(&self) -> &Network {
        &self.network
    }

    fn file(&self, name: &str) -> String {
        self.folder.file(name)
    }

    fn lock(&self, i: usize, name: &str, script: &str) -> Running {
        // `etcdctl` would take `-c` for a flag of its own.
        let file = self.folder.file(&format!("{i}-{name}.sh"));
        std::fs::write(&file, script).expect("written");
        let mut command = self.control(i);
        command.args(["lock", &format!("--ttl={TTL}"), name, "sh", &file]);
        Running::of(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()))
    }

    fn member(&self, i: usize) -> i32 {
        i32::try_from(self.members[i].id()).expect("a pid")
    }

    fn restart(&mut self) {
        let _ = self.members[HOLDER].kill();
        let _ = self.members[HOLDER].wait();
        self.members[HOLDER] = self.spawn(HOLDER).expect("it starts");
    }

    fn ready(&self) {
        let start = Instant::now();
        let healthy = |i: usize| {
            let asked = self.control(i).args(["endpoint", "health"]).output();
            asked.is_ok_and(|output| output.status.success())
        };
        while !(0..3).all(healthy) {
            assert!(start.elapsed() < Duration::from_secs(60), "etcd is not healthy");
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        for member in &mut self.members {
            let _ = member.kill();
            let _ = member.wait();
        }
    }
}
