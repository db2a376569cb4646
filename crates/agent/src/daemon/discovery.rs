//! Finding the founders: from a list, a file, or by calling out on the local network.

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

/// How often we call.
const CALL: Duration = Duration::from_millis(250);
/// How long we call out in haste.
const LISTEN: Duration = Duration::from_secs(30);
/// How long someone may take to answer, when we look who does.
pub(super) const TRY: Duration = Duration::from_secs(1);
/// The longest call.
const MAX_CALL: usize = 1024;

/// Reads a file of addresses: one a line; what follows a `#` is for people.
pub(super) fn read_file(path: &Path) -> Result<Vec<String>, Failure> {
    let text = std::fs::read_to_string(path).map_err(Failure::unreadable(path))?;
    let addresses = parse_file(&text);
    if addresses.is_empty() {
        return Err(Failure::Config(format!("{}: no address in it", path.display())));
    }
    for address in &addresses {
        let wrong = |why| Failure::Config(format!("{}: {why}", path.display()));
        check_address(address, false).map_err(wrong)?;
    }
    Ok(addresses)
}

/// Says in the log which names stand for no address: nobody can be called there.
pub(super) async fn look_up(addresses: Vec<String>) {
    for address in addresses {
        if let Err(error) = tokio::net::lookup_host(&address).await {
            tracing::warn!(%address, %error, "this name is not found; it is tried again and again");
        }
    }
}

/// Why nobody answers at these addresses, for each where nobody does.
pub(super) async fn silent(addresses: &[String], patience: Duration) -> Vec<String> {
    let mut tries = tokio::task::JoinSet::new();
    for (i, address) in addresses.iter().enumerate() {
        let address = address.clone();
        tries.spawn(async move {
            let call = tokio::net::TcpStream::connect(&address);
            let why = match tokio::time::timeout(patience, call).await {
                Ok(Ok(_)) => return None,
                Ok(Err(error)) => error.to_string(),
                Err(_) => "no answer".to_owned(),
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

/// What is called out: whoever hears it may try to connect; only who has the key gets in.
#[derive(Serialize, Deserialize)]
struct Cry {
    konklave: u32,
    cluster: String,
    address: String,
}

/// Calls out as long as it lives.
pub(super) struct Beacon {
    socket: UdpSocket,
    group: SocketAddr,
    cry: Vec<u8>,
    cluster: String,
    heard: BTreeSet<String>,
}

impl Beacon {
    /// Starts to call out that `address` is there: on the network in which we listen (at `bound`), where
    /// that is one, and else on whichever the system thinks best.
    pub(super) fn start(
        group: SocketAddr,
        cluster: &str,
        address: &str,
        bound: &str,
    ) -> Result<Self, Failure> {
        let open = || {
            let domain = socket2::Domain::for_address(group);
            let socket = socket2::Socket::new(domain, socket2::Type::DGRAM, None)?;
            // Several agents of one machine hear the same calls.
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
                    // The one that the group itself names goes first.
                    let scope = Some(v6.scope_id()).filter(|scope| *scope > 0);
                    let interface = scope.or_else(|| interface_v6([bound, address])).unwrap_or(0);
                    socket.join_multicast_v6(v6.ip(), interface)?;
                    socket.set_multicast_if_v6(interface)?;
                    socket.set_multicast_loop_v6(true)?;
                }
            }
            UdpSocket::from_std(socket.into())
        };
        let what = format!("cannot call out on {group}");
        let fail = Failure::bind(what, "--beacon=GROUP:PORT names another port, for all agents");
        let socket = open().map_err(fail)?;
        let cry = Cry { konklave: 1, cluster: cluster.to_owned(), address: address.to_owned() };
        let cry = serde_json::to_vec(&cry).map_err(|error| Failure::Data(error.to_string()))?;
        let heard = BTreeSet::from([address.to_owned()]);
        Ok(Self { socket, group, cry, cluster: cluster.to_owned(), heard })
    }

    /// Calls out, and takes in the calls that come, for the time of one call.
    async fn round(&mut self) -> io::Result<()> {
        let sent = self.socket.send_to(&self.cry, self.group).await;
        let mut buffer = [0; MAX_CALL];
        let end = tokio::time::sleep(CALL);
        tokio::pin!(end);
        loop {
            tokio::select! {
                () = &mut end => return sent.map(drop),
                received = self.socket.recv_from(&mut buffer) => {
                    let Ok((length, _)) = received else { continue };
                    let cry = serde_json::from_slice::<Cry>(&buffer[..length]);
                    if let Ok(cry) = cry
                        && cry.konklave == 1
                        && cry.cluster == self.cluster
                        && self.heard.len() < 1000
                    {
                        self.heard.insert(cry.address);
                    }
                }
            }
        }
    }

    /// Has `node` call everyone who is heard, now and for ever, and goes on calling for those who come
    /// later.
    pub(super) async fn run(mut self, node: Node) {
        let (start, mut told) = (Instant::now(), 1);
        let mut failed = false;
        loop {
            if let Err(error) = self.round().await
                && !std::mem::replace(&mut failed, true)
            {
                tracing::warn!(%error, group = %self.group, "cannot call out");
            }
            if self.heard.len() != told {
                told = self.heard.len();
                tracing::info!(heard = told, "others call out");
                // Whom it calls already it does not call twice.
                node.call(self.heard.iter().cloned());
            }
            // In haste only as long as there may be a group to found.
            if start.elapsed() > LISTEN {
                tokio::time::sleep(CALL * 3).await;
            }
        }
    }
}

/// The network of the first of these addresses that is one of this machine in IPv4, and not all of them.
fn interface<'a>(addresses: impl IntoIterator<Item = &'a str>) -> Option<Ipv4Addr> {
    let own = |ip: &Ipv4Addr| std::net::UdpSocket::bind((*ip, 0)).is_ok();
    let specific = |address: &str| match address.parse() {
        Ok(SocketAddr::V4(v4)) if !v4.ip().is_unspecified() => Some(*v4.ip()),
        Ok(_) | Err(_) => None,
    };
    addresses.into_iter().filter_map(specific).find(own)
}

/// The same in IPv6, by its number: the one that an address names (`[fe80::1%2]:7400`), or that has it.
fn interface_v6<'a>(addresses: impl IntoIterator<Item = &'a str>) -> Option<u32> {
    // Only Linux tells it in a file; elsewhere the system chooses.
    let table = std::fs::read_to_string("/proc/net/if_inet6").unwrap_or_default();
    let number = |address: &str| match address.parse() {
        Ok(SocketAddr::V6(v6)) if v6.scope_id() > 0 => Some(v6.scope_id()),
        // There is no way for many on that network: the system chooses another, and we hear ourselves.
        Ok(SocketAddr::V6(v6)) if v6.ip().is_loopback() => None,
        Ok(SocketAddr::V6(v6)) => numbered(&table, *v6.ip()),
        Ok(SocketAddr::V4(_)) | Err(_) => None,
    };
    addresses.into_iter().find_map(number)
}

/// The number of the network that has an address, in Linux's table: address, number and more in a line, all
/// of it hexadecimal.
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
    fn a_network_of_ipv6_is_the_one_that_an_address_names_or_that_has_it() {
        let table = "00000000000000000000000000000001 01 80 10 80       lo\n\
                     fd770000000000000000000000000001 0b 40 00 82     eth0\n";
        let numbered = |ip: &str| numbered(table, ip.parse().expect("an address"));
        assert_eq!((numbered("::1"), numbered("fd77::1")), (Some(1), Some(11)));
        assert_eq!((numbered("fd77::2"), numbered("::")), (None, None));
        assert_eq!(interface_v6(["127.0.0.1:1", "[fe80::1%7]:7400"]), Some(7));
        assert_eq!(interface_v6(["10.0.0.1:1", "a.example:7400", "[::]:7400"]), None);
    }

    #[test]
    fn a_file_of_addresses_has_comments() {
        let text = "# founders\n10.0.0.1:7400\n\n 10.0.0.2:7400 # the old one\n";
        assert_eq!(parse_file(text), ["10.0.0.1:7400", "10.0.0.2:7400"]);
    }

    #[test]
    fn the_network_to_call_out_on_is_that_of_an_address_of_ours() {
        let local = Some(Ipv4Addr::LOCALHOST);
        assert_eq!(interface(["127.0.0.1:7400"]), local);
        assert_eq!(interface(["0.0.0.0:7400", "127.0.0.1:7400"]), local);
        // Not of this machine: of whoever passes things on to it.
        assert_eq!(interface(["192.0.2.1:7400", "127.0.0.1:0"]), local);
        assert_eq!(interface(["[::1]:7400", "a.example:7400"]), None);
    }
}
