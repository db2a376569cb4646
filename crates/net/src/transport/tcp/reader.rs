//! The receiving side of TCP. No bytes received are trusted.

use std::sync::Arc;
use std::time::Duration;

use konklave_process::ProcessId;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::Sender;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::Mesh;
use crate::codec::{self, CodecError, End, HELLO_LEN, Hello};
use crate::transport::{Arrival, Link};
use crate::{Trouble, Warning};

/// The timeout for the hello of a new connection.
const HELLO_WITHIN: Duration = Duration::from_secs(5);

/// The pause after accepting failed: there may be no file descriptor left.
const ACCEPT_AGAIN: Duration = Duration::from_millis(20);

/// How many bytes are read at once.
const CHUNK: usize = 16 << 10;

/// Accepts connections and reads them, until this future is dropped.
pub(super) async fn listen(
    listener: TcpListener,
    mesh: Arc<Mesh>,
    me: End,
    inbox: Sender<Arrival>,
) {
    // Every peer may have one connection, and a broken one whose end has not been noticed yet.
    let most = 2 * mesh.group.len() + 16;
    let warn = |trouble| mesh.events.warn(Warning { at: me.process, trouble });
    let mut readers = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(_) if readers.len() >= most => warn(Trouble::TooManyConnections),
                Ok((stream, _)) => {
                    readers.spawn(serve(stream, mesh.clone(), me, inbox.clone()));
                }
                Err(error) => {
                    warn(Trouble::Accept(error.to_string()));
                    sleep(ACCEPT_AGAIN).await;
                }
            },
            Some(_) = readers.join_next() => {}
        }
    }
}

/// Reads one connection, from its hello to its end.
async fn serve(mut stream: TcpStream, mesh: Arc<Mesh>, me: End, inbox: Sender<Arrival>) {
    let warn = |trouble| mesh.events.warn(Warning { at: me.process, trouble });
    let link = match greet(&mut stream, &mesh, me).await {
        Ok(link) => link,
        Err(trouble) => return warn(trouble),
    };
    if let Err(trouble) = read(&mut stream, &mesh, link, &inbox).await {
        warn(trouble);
    }
    // If the process is gone, the inbox is closed, and the end does not matter.
    let _ = inbox.send(Arrival::End(link)).await;
}

async fn greet(stream: &mut TcpStream, mesh: &Mesh, me: End) -> Result<Link, Trouble> {
    let mut bytes = [0; HELLO_LEN];
    match timeout(HELLO_WITHIN, stream.read_exact(&mut bytes)).await {
        Ok(Ok(_)) => {}
        Ok(Err(_)) | Err(_) => return Err(Trouble::Silence),
    }
    let hello = Hello::decode(&bytes).map_err(Trouble::Hello)?;
    let Hello { group, sender, receiver, connection } = hello;
    if group != mesh.number {
        return Err(Trouble::OtherGroup);
    }
    if !mesh.group.contains(sender.process) {
        return Err(Trouble::Stranger(sender.process));
    }
    if receiver != me {
        return Err(Trouble::NotForUs(sender.process));
    }
    Ok(Link { sender, receiver, connection })
}

async fn read(
    stream: &mut TcpStream,
    mesh: &Mesh,
    link: Link,
    inbox: &Sender<Arrival>,
) -> Result<(), Trouble> {
    let from = link.sender.process;
    let mut buffer = Vec::new();
    loop {
        buffer.reserve(CHUNK);
        // A reset connection has ended, too; its sender reports the messages lost.
        let read = stream.read_buf(&mut buffer).await.unwrap_or(0);
        if read == 0 {
            return if buffer.is_empty() { Ok(()) } else { Err(Trouble::Truncated(from)) };
        }
        let mut used = 0;
        while let Some((message, len)) = next(&buffer[used..], mesh, from)? {
            used += len;
            if inbox.send(message).await.is_err() {
                return Ok(());
            }
        }
        buffer.drain(..used);
    }
}

fn next(bytes: &[u8], mesh: &Mesh, from: ProcessId) -> Result<Option<(Arrival, usize)>, Trouble> {
    let refused = |error| Trouble::Frame { from, error };
    let frame = codec::decode(&mesh.sample, bytes, mesh.frame_limit);
    let Some((frame, len)) = frame.map_err(refused)? else { return Ok(None) };
    if frame.sender != from {
        return Err(refused(CodecError::Sender(frame.sender)));
    }
    Ok(Some((Arrival::Message { from, id: frame.id, message: frame.message }, len)))
}
