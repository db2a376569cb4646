//! The sending side of TCP: connects when there is a message to send, and reconnects if necessary.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use konklave_process::ProcessId;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::sleep;

use super::{Entry, Mesh};
use crate::codec::{self, End, Hello};
use crate::node::OutgoingMessage;
use crate::transport::Link;
use crate::{Trouble, Warning};

/// How many messages go out in one write.
const BATCH: usize = 256;

/// The first pause before connecting is retried; each pause is twice as long as the one before.
const BACK_OFF_MIN: Duration = Duration::from_millis(1);

/// The longest pause.
const BACK_OFF_MAX: Duration = Duration::from_millis(200);

/// Sends messages from one process to another.
struct Writer {
    mesh: Arc<Mesh>,
    me: End,
    to: usize,
    peer: ProcessId,
    open: Option<Connection>,
    /// How many connections were made so far.
    connections: u32,
}

struct Connection {
    stream: TcpStream,
    link: Link,
    /// The last message written to it.
    last: u64,
}

/// Sends all parcels to the process at `to`, until no more will come.
pub(super) async fn write(
    mesh: Arc<Mesh>,
    me: End,
    to: usize,
    mut parcels: UnboundedReceiver<OutgoingMessage>,
) {
    let peer = mesh.group.id(to);
    let mut writer = Writer { mesh, me, to, peer, open: None, connections: 0 };
    let mut batch = Vec::new();
    let mut bytes = Vec::new();
    loop {
        tokio::select! {
            biased;
            taken = parcels.recv_many(&mut batch, BATCH) => if taken == 0 { break },
            () = end_of(&mut writer.open) => {
                writer.close();
                continue;
            }
        }
        bytes.clear();
        let mut last = None;
        for OutgoingMessage { id, message, .. } in batch.drain(..) {
            match codec::encode(me.process, id, &message, writer.mesh.frame_limit, &mut bytes) {
                Ok(()) => last = Some(id),
                Err(error) => {
                    writer.warn(Trouble::Unsendable { to: peer, error });
                    writer.mesh.events.lost(id);
                }
            }
        }
        if let Some(last) = last {
            writer.send(&bytes, last).await;
        }
    }
    writer.close();
}

/// Waits until the receiver closes the connection; it never sends anything.
async fn end_of(open: &mut Option<Connection>) {
    match open {
        Some(connection) => {
            let _ = connection.stream.read(&mut [0]).await;
        }
        None => pending().await,
    }
}

impl Writer {
    /// Sends `bytes`, whose last message is `last`. If the peer has crashed, these messages were counted as
    /// lost then.
    async fn send(&mut self, bytes: &[u8], last: u64) {
        self.connect().await;
        let Some(connection) = &mut self.open else { return };
        connection.last = last;
        if let Err(error) = connection.stream.write_all(bytes).await {
            // The sender cannot know which messages got through. Those that did not are lost; sending them
            // again could deliver a message twice.
            self.warn(Trouble::Write { to: self.peer, error: error.to_string() });
            self.close();
        }
    }

    /// Connects to the current incarnation of the peer, unless it is down.
    async fn connect(&mut self) {
        let mut pause = BACK_OFF_MIN;
        loop {
            let entry = self.mesh.look_up(self.to);
            if let Some(connection) = &self.open {
                if entry.is_some_and(|entry| entry.end == connection.link.receiver) {
                    return;
                }
                self.close();
            }
            let Some(entry) = entry else { return };
            match self.dial(entry).await {
                Ok(connection) => {
                    self.open = Some(connection);
                    return;
                }
                Err(error) => {
                    // The first failure is not reported: the peer may just have crashed, before the
                    // directory says so.
                    if pause > BACK_OFF_MIN {
                        self.warn(Trouble::Connect { to: self.peer, error: error.to_string() });
                    }
                    sleep(pause).await;
                    pause = (2 * pause).min(BACK_OFF_MAX);
                }
            }
        }
    }

    async fn dial(&mut self, entry: Entry) -> std::io::Result<Connection> {
        let mut stream = TcpStream::connect(entry.address).await?;
        stream.set_nodelay(true)?;
        self.connections += 1;
        let (sender, receiver, connection) = (self.me, entry.end, self.connections);
        let hello = Hello { group: self.mesh.number, sender, receiver, connection };
        stream.write_all(&hello.encode()).await?;
        Ok(Connection { stream, link: Link { sender, receiver, connection }, last: 0 })
    }

    fn close(&mut self) {
        if let Some(Connection { link, last, stream }) = self.open.take() {
            drop(stream);
            self.mesh.events.closed(link, last);
        }
    }

    fn warn(&self, trouble: Trouble) {
        self.mesh.events.warn(Warning { at: self.me.process, trouble });
    }
}
