//! Datagrams of a member: what one step says to many is one of them, to the whole group.

use std::collections::BTreeMap;
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread;

use konklave_process::{Group, ProcessId};

use super::wire::{Parcel, Samples};
use crate::codec;
use crate::transport::datagram::{Datagram, MOST};

/// The way out. What cannot be sent is lost, as it would be on any network.
pub(super) struct Datagrams {
    pub(super) me: ProcessId,
    pub(super) group: Group,
    pub(super) own: UdpSocket,
    pub(super) all: SocketAddrV4,
    pub(super) addresses: BTreeMap<ProcessId, SocketAddr>,
    /// What was sent in this step, as bodies with their receivers: places and numbers.
    pub(super) pending: Vec<(Vec<u8>, Receivers)>,
}

/// Places, and the numbers of what goes there.
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

/// Tells the datagrams of one group from those of others: who shares the address shares the group.
fn number(all: SocketAddrV4) -> u64 {
    u64::from(all.ip().to_bits()) << 16 | u64::from(all.port())
}

/// Reads datagrams, and hands on what is for `me`.
pub(super) fn take_datagrams(
    socket: UdpSocket,
    all: SocketAddrV4,
    (me, group): (ProcessId, Group),
    samples: Arc<Samples>,
    inbox: Sender<(ProcessId, Parcel)>,
) {
    thread::spawn(move || {
        let mut buffer = vec![0; MOST];
        loop {
            // A failed receive is about an earlier send, to one who is gone.
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
