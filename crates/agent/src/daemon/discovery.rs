//! Finding the founders: from a list, a file, or by calling out on the local network.

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::Path;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tokio::net::UdpSocket;

use crate::failure::Failure;

/// How often we call.
const CALL: Duration = Duration::from_millis(250);
/// How long we listen for more, once someone was heard.
const LISTEN: Duration = Duration::from_secs(3);
/// The longest call.
const MAX_CALL: usize = 1024;

/// Reads a file of addresses: one a line; what follows a `#` is for people.
pub(super) fn read_file(path: &Path) -> Result<Vec<String>, Failure> {
    let what = format!("cannot read {}", path.display());
    let text = std::fs::read_to_string(path).map_err(Failure::system(what))?;
    let addresses = parse_file(&text);
    if addresses.is_empty() {
        return Err(Failure::Config(format!("{}: no address in it", path.display())));
    }
    Ok(addresses)
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
    /// Starts to call out that `address` is there.
    pub(super) fn start(group: SocketAddr, cluster: &str, address: &str) -> Result<Self, Failure> {
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
                    socket.join_multicast_v4(v4.ip(), &Ipv4Addr::UNSPECIFIED)?;
                    socket.set_multicast_loop_v4(true)?;
                    socket.set_multicast_ttl_v4(1)?;
                }
                SocketAddr::V6(v6) => {
                    let any = SocketAddr::new(std::net::Ipv6Addr::UNSPECIFIED.into(), v6.port());
                    socket.bind(&any.into())?;
                    socket.join_multicast_v6(v6.ip(), v6.scope_id())?;
                    socket.set_multicast_loop_v6(true)?;
                }
            }
            UdpSocket::from_std(socket.into())
        };
        let socket = open().map_err(Failure::system(format!("cannot call out on {group}")))?;
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

    /// Waits until all founders are heard, or, some time after the first, for those that were.
    pub(super) async fn find(&mut self, founders: usize) -> Vec<String> {
        let mut first: Option<Instant> = None;
        let mut told = 0;
        loop {
            if let Err(error) = self.round().await {
                tracing::warn!(%error, group = %self.group, "cannot call out");
            }
            let heard = self.heard.len();
            if heard > 1 {
                first.get_or_insert_with(Instant::now);
            }
            if heard != told {
                told = heard;
                tracing::info!(heard, founders, "looking for founders");
            }
            if heard >= founders || first.is_some_and(|first| first.elapsed() > LISTEN) {
                return self.heard.iter().cloned().collect();
            }
        }
    }

    /// Goes on calling, for those who come later.
    pub(super) async fn go_on(mut self) {
        loop {
            // Where it cannot, it was said; it may come back.
            let _ = self.round().await;
            tokio::time::sleep(CALL * 3).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_addresses_has_comments() {
        let text = "# founders\n10.0.0.1:7400\n\n 10.0.0.2:7400 # the old one\n";
        assert_eq!(parse_file(text), ["10.0.0.1:7400", "10.0.0.2:7400"]);
    }
}
