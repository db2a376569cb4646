//! Finding the founders: from a list, a file, or announcements by IP multicast.

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4};
use std::path::Path;
use std::time::{Duration, Instant};

use konklave::Node;
use serde::{Deserialize, Serialize};
use tokio::net::UdpSocket;

use crate::config::check_address;
use crate::failure::Failure;

/// How often the agent announces itself.
const INTERVAL: Duration = Duration::from_millis(250);
/// How long after its start an agent announces itself at the full rate: the group may not exist yet.
const FOUNDING_PERIOD: Duration = Duration::from_secs(30);
/// How long a founder may take to accept a connection that tests whether it answers.
pub(super) const PROBE_TIMEOUT: Duration = Duration::from_secs(1);
/// The longest announcement, in bytes.
const MAX_ANNOUNCEMENT: usize = 1024;

/// Reads a file of addresses, one per line; `#` starts a comment.
pub(super) fn read_file(path: &Path) -> Result<Vec<String>, Failure> {
    let text = std::fs::read_to_string(path).map_err(Failure::unreadable(path))?;
    let addresses = parse_file(&text);
    if addresses.is_empty() {
        return Err(Failure::Config(format!(
            "{} contains no address: write one host:port per line",
            path.display()
        )));
    }
    for address in &addresses {
        let wrong = |why| Failure::Config(format!("{}: {why}", path.display()));
        check_address(address, false).map_err(wrong)?;
    }
    Ok(addresses)
}

/// Logs the names that cannot be resolved to an address.
pub(super) async fn look_up(addresses: Vec<String>) {
    for address in addresses {
        if let Err(error) = tokio::net::lookup_host(&address).await {
            tracing::warn!(%address, %error, "cannot resolve this peer's name; retrying");
        }
    }
}

/// The addresses that accept no connection within `patience`, each with the reason.
pub(super) async fn silent(addresses: &[String], patience: Duration) -> Vec<String> {
    let mut tries = tokio::task::JoinSet::new();
    for (i, address) in addresses.iter().enumerate() {
        let address = address.clone();
        tries.spawn(async move {
            let call = tokio::net::TcpStream::connect(&address);
            let why = match tokio::time::timeout(patience, call).await {
                Ok(Ok(_)) => return None,
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("no answer within {} s", patience.as_secs_f64()),
            };
            Some((i, format!("{address}: {why}")))
        });
    }
    let mut silent: Vec<_> = tries.join_all().await.into_iter().flatten().collect();
    silent.sort_unstable();
    silent.into_iter().map(|(_, why)| why).collect()
}

fn parse_file(text: &str) -> Vec<String> {
    text.lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim())
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

/// An announcement of an agent's address. It is not authenticated: the handshake with the key is.
#[derive(Serialize, Deserialize)]
struct Announcement {
    konklave: u32,
    cluster: String,
    address: String,
}

/// Announces the agent by multicast, and collects the announcements of others.
pub(super) struct Beacon {
    socket: UdpSocket,
    group: SocketAddr,
    announcement: Vec<u8>,
    cluster: String,
    addresses: BTreeSet<String>,
}

impl Beacon {
    /// Starts to announce `address` on the network interface of `bound`, the listen address. Without a
    /// specific listen address, the system chooses the interface.
    pub(super) fn start(
        group: SocketAddr,
        cluster: &str,
        address: &str,
        bound: &str,
    ) -> Result<Self, Failure> {
        let open = || {
            let domain = socket2::Domain::for_address(group);
            let socket = socket2::Socket::new(domain, socket2::Type::DGRAM, None)?;
            // So that several agents on one machine can listen on the same port.
            socket.set_reuse_address(true)?;
            socket.set_nonblocking(true)?;
            match group {
                SocketAddr::V4(v4) => {
                    let any = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, v4.port());
                    socket.bind(&SocketAddr::V4(any).into())?;
                    let interface = interface([bound, address]).unwrap_or(Ipv4Addr::UNSPECIFIED);
                    socket.join_multicast_v4(v4.ip(), &interface)?;
                    socket.set_multicast_if_v4(&interface)?;
                    socket.set_multicast_loop_v4(true)?;
                    socket.set_multicast_ttl_v4(1)?;
                }
                SocketAddr::V6(v6) => {
                    let any = SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), v6.port());
                    socket.bind(&any.into())?;
                    // An interface in the group's address takes precedence.
                    let scope = Some(v6.scope_id()).filter(|scope| *scope > 0);
                    let interface = scope.or_else(|| interface_v6([bound, address])).unwrap_or(0);
                    socket.join_multicast_v6(v6.ip(), interface)?;
                    socket.set_multicast_if_v6(interface)?;
                    socket.set_multicast_loop_v6(true)?;
                }
            }
            UdpSocket::from_std(socket.into())
        };
        let what = format!("cannot announce this agent by multicast on {group}");
        let fail = Failure::bind(
            what,
            "choose another port with --beacon=GROUP:PORT, the same on all agents",
        );
        let socket = open().map_err(fail)?;
        let announcement =
            Announcement { konklave: 1, cluster: cluster.to_owned(), address: address.to_owned() };
        let announcement =
            serde_json::to_vec(&announcement).map_err(|error| Failure::Data(error.to_string()))?;
        let addresses = BTreeSet::from([address.to_owned()]);
        Ok(Self { socket, group, announcement, cluster: cluster.to_owned(), addresses })
    }

    /// Sends one announcement, and receives those of others for one interval.
    async fn round(&mut self) -> io::Result<()> {
        let sent = self.socket.send_to(&self.announcement, self.group).await;
        let mut buffer = [0; MAX_ANNOUNCEMENT];
        let end = tokio::time::sleep(INTERVAL);
        tokio::pin!(end);
        loop {
            tokio::select! {
                () = &mut end => return sent.map(drop),
                received = self.socket.recv_from(&mut buffer) => {
                    let Ok((length, _)) = received else { continue };
                    let announcement = serde_json::from_slice::<Announcement>(&buffer[..length]);
                    if let Ok(announcement) = announcement
                        && announcement.konklave == 1
                        && announcement.cluster == self.cluster
                        && self.addresses.len() < 1000
                    {
                        self.addresses.insert(announcement.address);
                    }
                }
            }
        }
    }

    /// Passes each announced address to `node`, which connects to it, and keeps announcing for agents that
    /// start later.
    pub(super) async fn run(mut self, node: Node) {
        let (start, mut known) = (Instant::now(), 1);
        let mut failed = false;
        loop {
            if let Err(error) = self.round().await
                && !std::mem::replace(&mut failed, true)
            {
                tracing::warn!(%error, group = %self.group, "cannot announce this agent by multicast");
            }
            if self.addresses.len() != known {
                known = self.addresses.len();
                tracing::info!(agents = known, "found agents by multicast, this one included");
                // The node ignores addresses that it knows.
                node.call(self.addresses.iter().cloned());
            }
            // Later, agents only join an existing group, which is less urgent.
            if start.elapsed() > FOUNDING_PERIOD {
                tokio::time::sleep(INTERVAL * 3).await;
            }
        }
    }
}

/// The first of these addresses that is a specific IPv4 address of this machine.
fn interface<'a>(addresses: impl IntoIterator<Item = &'a str>) -> Option<Ipv4Addr> {
    let own = |ip: &Ipv4Addr| std::net::UdpSocket::bind((*ip, 0)).is_ok();
    let specific = |address: &str| match address.parse() {
        Ok(SocketAddr::V4(v4)) if !v4.ip().is_unspecified() => Some(*v4.ip()),
        Ok(_) | Err(_) => None,
    };
    addresses.into_iter().filter_map(specific).find(own)
}

/// The interface number of the first of these addresses that names one (`[fe80::1%2]:7400`), or that is an
/// IPv6 address of this machine.
fn interface_v6<'a>(addresses: impl IntoIterator<Item = &'a str>) -> Option<u32> {
    // Only Linux has this file; on other systems the system chooses the interface.
    let table = std::fs::read_to_string("/proc/net/if_inet6").unwrap_or_default();
    let number = |address: &str| match address.parse() {
        Ok(SocketAddr::V6(v6)) if v6.scope_id() > 0 => Some(v6.scope_id()),
        // The IPv6 loopback interface has no multicast. The system chooses another interface, whose
        // announcements this machine receives, too.
        Ok(SocketAddr::V6(v6)) if v6.ip().is_loopback() => None,
        Ok(SocketAddr::V6(v6)) => numbered(&table, *v6.ip()),
        Ok(SocketAddr::V4(_)) | Err(_) => None,
    };
    addresses.into_iter().find_map(number)
}

/// The number of the interface with address `ip`, from Linux's table `if_inet6`. Each line has an address, an
/// interface number and more fields, in hexadecimal digits.
fn numbered(table: &str, ip: Ipv6Addr) -> Option<u32> {
    let wanted = format!("{:032x}", u128::from(ip));
    let mut lines = table.lines().map(str::split_whitespace);
    lines.find_map(|mut words| {
        let number = words.next().filter(|address| *address == wanted).and(words.next())?;
        u32::from_str_radix(number, 16).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ipv6_interface_is_named_by_an_address_or_has_it() {
        let table = "00000000000000000000000000000001 01 80 10 80       lo\n\
                     fd770000000000000000000000000001 0b 40 00 82     eth0\n";
        let numbered = |ip: &str| numbered(table, ip.parse().expect("an address"));
        assert_eq!((numbered("::1"), numbered("fd77::1")), (Some(1), Some(11)));
        assert_eq!((numbered("fd77::2"), numbered("::")), (None, None));
        assert_eq!(interface_v6(["127.0.0.1:1", "[fe80::1%7]:7400"]), Some(7));
        assert_eq!(interface_v6(["10.0.0.1:1", "a.example:7400", "[::]:7400"]), None);
    }

    #[test]
    fn file_of_addresses_may_have_comments() {
        let text = "# founders\n10.0.0.1:7400\n\n 10.0.0.2:7400 # the old one\n";
        assert_eq!(parse_file(text), ["10.0.0.1:7400", "10.0.0.2:7400"]);
    }

    #[test]
    fn ipv4_interface_is_a_specific_address_of_this_machine() {
        let local = Some(Ipv4Addr::LOCALHOST);
        assert_eq!(interface(["127.0.0.1:7400"]), local);
        assert_eq!(interface(["0.0.0.0:7400", "127.0.0.1:7400"]), local);
        // The advertised address of a proxy is not one of this machine.
        assert_eq!(interface(["192.0.2.1:7400", "127.0.0.1:0"]), local);
        assert_eq!(interface(["[::1]:7400", "a.example:7400"]), None);
    }
}
