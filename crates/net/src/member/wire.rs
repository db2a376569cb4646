//! The sockets of a member: a thread for each connection that comes in, and one for each peer.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::marker::PhantomData;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Duration;

use konklave_process::{Group, ProcessId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::datagrams::Datagrams;
use crate::codec;

/// A peer that does not answer within this time is taken for gone, for this message.
const CONNECT_WITHIN: Duration = Duration::from_millis(250);

/// What travels: messages of the algorithm, and of the detector beside it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Parcel<M, D> {
    Own(M),
    Detector(D),
}

/// The ways to all others.
pub(super) struct Outlets<M, D> {
    me: ProcessId,
    frame_limit: usize,
    last_id: u64,
    ways: Ways,
    parcels: PhantomData<fn(M, D)>,
}

/// A connection to each, or datagrams.
pub(super) enum Ways {
    Streams(BTreeMap<ProcessId, Sender<Vec<u8>>>),
    Datagrams(Datagrams),
}

impl Ways {
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

impl<M: Serialize, D: Serialize> Outlets<M, D> {
    pub(super) fn new(me: ProcessId, frame_limit: usize, ways: Ways) -> Self {
        Self { me, frame_limit, last_id: 0, ways, parcels: PhantomData }
    }

    /// Sends, and does not wait. What cannot be sent is lost, as it would be on any network.
    pub(super) fn send(&mut self, to: ProcessId, parcel: &Parcel<M, D>) {
        self.last_id += 1;
        match &mut self.ways {
            Ways::Streams(queues) => {
                let (id, limit, mut bytes) = (self.last_id, self.frame_limit, Vec::new());
                let framed = codec::encode(self.me, id, parcel, limit, &mut bytes);
                if let (Ok(()), Some(queue)) = (framed, queues.get(&to)) {
                    // The thread ends with us only.
                    let _ = queue.send(bytes);
                }
            }
            Ways::Datagrams(datagrams) => {
                if let Ok(body) = postcard::to_stdvec(parcel) {
                    datagrams.send(to, self.last_id, body);
                }
            }
        }
    }

    /// The step is over: what waits for more of the same goes out.
    pub(super) fn flush(&mut self) {
        if let Ways::Datagrams(datagrams) = &mut self.ways {
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

/// Takes connections, and hands on what comes through them.
pub(super) fn take_connections<M, D>(
    listener: TcpListener,
    group: Group,
    frame_limit: usize,
    inbox: Sender<(ProcessId, Parcel<M, D>)>,
) where
    M: DeserializeOwned + Send + 'static,
    D: DeserializeOwned + Send + 'static,
{
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (group, inbox) = (group.clone(), inbox.clone());
            thread::spawn(move || read(stream, &group, frame_limit, &inbox));
        }
    });
}

/// Reads frames until the connection ends, or says what no member would.
fn read<M: DeserializeOwned, D: DeserializeOwned>(
    mut stream: TcpStream,
    group: &Group,
    frame_limit: usize,
    inbox: &Sender<(ProcessId, Parcel<M, D>)>,
) {
    let (mut buffer, mut chunk) = (Vec::new(), [0; 4096]);
    while let Ok(read @ 1..) = stream.read(&mut chunk) {
        buffer.extend_from_slice(&chunk[..read]);
        loop {
            match codec::decode::<Parcel<M, D>>(&buffer, frame_limit) {
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
