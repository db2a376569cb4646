//! The connections of a member: a thread for each incoming connection, and one that sends to each peer.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use konklave_process::{AnyData, AnyProcess, Group, ProcessId};
use serde::Serialize;

use super::datagrams::Datagrams;
use crate::codec;

/// The timeout for connecting to a peer; after it, the message at hand is lost.
const CONNECT_WITHIN: Duration = Duration::from_millis(250);

/// A message of the algorithm, or of the failure detector beside it.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) enum MemberMessage {
    Own(AnyData),
    Detector(AnyData),
}

/// A process of the algorithm and one of the detector, which decode messages.
pub(super) struct Samples {
    pub(super) own: AnyProcess,
    pub(super) detector: AnyProcess,
}

impl codec::Reader for Samples {
    type Message = MemberMessage;

    fn read<'a>(&self, bytes: &'a [u8]) -> postcard::Result<(MemberMessage, &'a [u8])> {
        let (variant, body) = postcard::take_from_bytes::<u32>(bytes)?;
        match variant {
            0 => self.own.decode_message(body).map(|(m, rest)| (MemberMessage::Own(m), rest)),
            1 => self
                .detector
                .decode_message(body)
                .map(|(m, rest)| (MemberMessage::Detector(m), rest)),
            _ => Err(postcard::Error::DeserializeBadEnum),
        }
    }
}

/// Sends messages to all peers.
pub(super) struct Outgoing {
    me: ProcessId,
    frame_limit: usize,
    last_id: u64,
    links: PeerLinks,
}

/// How peers are reached: by a connection to each, or by datagrams.
pub(super) enum PeerLinks {
    Streams(BTreeMap<ProcessId, Sender<Vec<u8>>>),
    Datagrams(Datagrams),
}

impl PeerLinks {
    pub(super) fn streams(me: ProcessId, addresses: &BTreeMap<ProcessId, SocketAddr>) -> Self {
        let others = addresses.iter().filter(|(p, _)| **p != me);
        let queues = others.map(|(&p, &address)| {
            let (sender, frames) = channel();
            thread::spawn(move || write(address, &frames));
            (p, sender)
        });
        Self::Streams(queues.collect())
    }
}

impl Outgoing {
    pub(super) fn new(me: ProcessId, frame_limit: usize, links: PeerLinks) -> Self {
        Self { me, frame_limit, last_id: 0, links }
    }

    /// Sends without waiting. A message that cannot be sent is lost, as on any network.
    pub(super) fn send(&mut self, to: ProcessId, parcel: &MemberMessage) {
        self.last_id += 1;
        match &mut self.links {
            PeerLinks::Streams(queues) => {
                let (id, limit, mut bytes) = (self.last_id, self.frame_limit, Vec::new());
                let framed = codec::encode(self.me, id, parcel, limit, &mut bytes);
                if let (Ok(()), Some(queue)) = (framed, queues.get(&to)) {
                    // The thread lives as long as this member.
                    let _ = queue.send(bytes);
                }
            }
            PeerLinks::Datagrams(datagrams) => {
                if let Ok(body) = postcard::to_stdvec(parcel) {
                    datagrams.send(to, self.last_id, body);
                }
            }
        }
    }

    /// Sends the messages that wait to be combined into one datagram. Called after each step.
    pub(super) fn flush(&mut self) {
        if let PeerLinks::Datagrams(datagrams) = &mut self.links {
            datagrams.flush();
        }
    }
}

/// Writes frames to one peer. After a failure, the next frame goes through a new connection.
fn write(address: SocketAddr, frames: &Receiver<Vec<u8>>) {
    let mut open: Option<TcpStream> = None;
    for frame in frames {
        if open.is_none() {
            open = TcpStream::connect_timeout(&address, CONNECT_WITHIN).ok();
            if let Some(stream) = &open {
                let _ = stream.set_nodelay(true);
            }
        }
        open = open.filter(|mut stream| stream.write_all(&frame).is_ok());
    }
}

/// Accepts connections on a thread, and passes on their messages.
pub(super) fn take_connections(
    listener: TcpListener,
    group: Group,
    frame_limit: usize,
    samples: Arc<Samples>,
    inbox: Sender<(ProcessId, MemberMessage)>,
) {
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (group, samples, inbox) = (group.clone(), samples.clone(), inbox.clone());
            thread::spawn(move || read(stream, &group, frame_limit, &samples, &inbox));
        }
    });
}

/// Reads frames until the connection ends or a frame is invalid.
fn read(
    mut stream: TcpStream,
    group: &Group,
    frame_limit: usize,
    samples: &Samples,
    inbox: &Sender<(ProcessId, MemberMessage)>,
) {
    let (mut buffer, mut chunk) = (Vec::new(), [0; 4096]);
    while let Ok(read @ 1..) = stream.read(&mut chunk) {
        buffer.extend_from_slice(&chunk[..read]);
        loop {
            match codec::decode(samples, &buffer, frame_limit) {
                Ok(Some((frame, len))) => {
                    buffer.drain(..len);
                    let known = group.contains(frame.sender);
                    if !known || inbox.send((frame.sender, frame.message)).is_err() {
                        return;
                    }
                }
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::sample::sample;

    #[test]
    fn messages_have_these_bytes_and_can_be_read() {
        let samples = Samples { own: sample(), detector: sample() };
        let text = AnyData::new("ab".to_owned());
        for (parcel, bytes) in [
            (MemberMessage::Own(text.clone()), b"\0\x02ab"),
            (MemberMessage::Detector(text), b"\x01\x02ab"),
        ] {
            assert_eq!(postcard::to_stdvec(&parcel).unwrap(), bytes);
            assert_eq!(codec::read_body(&samples, bytes), Ok(parcel));
        }
        assert!(codec::read_body(&samples, b"\x02\x02ab").is_err());
    }
}
