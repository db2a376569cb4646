//! Datagrams of a member. A message that one step sends to several receivers is one multicast datagram.

use std::collections::BTreeMap;
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;

use konklave_process::{Group, ProcessId};

use super::wire::{MemberMessage, Samples};
use crate::codec;
use crate::transport::datagram::{Datagram, MAX_DATAGRAM};

/// The sending side. A message that cannot be sent is lost, as on any network.
pub(super) struct Datagrams {
    pub(super) me: ProcessId,
    pub(super) group: Group,
    pub(super) own: UdpSocket,
    pub(super) all: SocketAddrV4,
    pub(super) addresses: BTreeMap<ProcessId, SocketAddr>,
    /// The messages of this step: encoded bodies with their receivers.
    pub(super) pending: Vec<(Vec<u8>, Receivers)>,
}

/// The places of the receivers, each with its message number.
type Receivers = Vec<(usize, u64)>;

impl Datagrams {
    pub(super) fn send(&mut self, to: ProcessId, id: u64, body: Vec<u8>) {
        let Some(to) = self.group.place(to) else { return };
        match self.pending.last_mut() {
            Some((last, receivers))
                if *last == body && receivers.iter().all(|(place, _)| *place != to) =>
            {
                receivers.push((to, id));
            }
            _ => self.pending.push((body, vec![(to, id)])),
        }
    }

    pub(super) fn flush(&mut self) {
        for (body, receivers) in std::mem::take(&mut self.pending) {
            let target = match receivers[..] {
                [(place, _)] => self.addresses.get(&self.group.id(place)).copied(),
                _ => Some(SocketAddr::V4(self.all)),
            };
            let run = number(self.all);
            let datagram = Datagram { run, sender: self.me, receivers: &receivers, body: &body };
            if let Some(target) = target {
                let _ = self.own.send_to(&datagram.encode(), target);
            }
        }
    }
}

/// The number of a group in its datagrams: groups with different multicast addresses have different ones.
fn number(all: SocketAddrV4) -> u64 {
    u64::from(all.ip().to_bits()) << 16 | u64::from(all.port())
}

/// Reads datagrams on a thread, and passes on the messages for `me`.
pub(super) fn take_datagrams(
    socket: UdpSocket,
    all: SocketAddrV4,
    (me, group): (ProcessId, Group),
    samples: Arc<Samples>,
    inbox: Sender<(ProcessId, MemberMessage)>,
) {
    thread::spawn(move || {
        let mut buffer = vec![0; MAX_DATAGRAM];
        loop {
            // A receive error concerns an earlier send to a member that is gone.
            let Ok(len) = socket.recv(&mut buffer) else { continue };
            let Ok(datagram) = Datagram::decode(&buffer[..len]) else { continue };
            let ours = datagram.run == number(all)
                && datagram.sender != me
                && group.contains(datagram.sender)
                && group.place(me).and_then(|place| datagram.id_for(place)).is_some();
            if let (true, Ok(parcel)) = (ours, codec::read_body(&*samples, datagram.body))
                && inbox.send((datagram.sender, parcel)).is_err()
            {
                return;
            }
        }
    });
}
