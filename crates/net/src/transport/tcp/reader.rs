//! The receiving side: nothing that comes in is trusted.

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

/// A hello comes within this time.
const HELLO_WITHIN: Duration = Duration::from_secs(5);

/// The pause after a connection could not be taken: there may be no file descriptor left.
const ACCEPT_AGAIN: Duration = Duration::from_millis(20);

/// As many bytes are read at once.
const CHUNK: usize = 16 << 10;

/// Takes connections until it is given up, and all of them with it.
pub(super) async fn listen(
    listener: TcpListener,
    mesh: Arc<Mesh>,
    me: End,
    inbox: Sender<Arrival>,
) {
    // Every peer has one connection, and maybe a broken one that we have not seen the end of.
    let most = 2 * mesh.group.len() + 16;
    let warn = |trouble| mesh.fates.warn(Warning { at: me.process, trouble });
    let mut readers = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(_) if readers.len() >= most => warn(Trouble::Crowd),
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

/// One connection, from hello to end.
async fn serve(mut stream: TcpStream, mesh: Arc<Mesh>, me: End, inbox: Sender<Arrival>) {
    let warn = |trouble| mesh.fates.warn(Warning { at: me.process, trouble });
    let link = match greet(&mut stream, &mesh, me).await {
        Ok(link) => link,
        Err(trouble) => return warn(trouble),
    };
    if let Err(trouble) = read(&mut stream, &mesh, link, &inbox).await {
        warn(trouble);
    }
    // The process may be gone: then nobody wants to know.
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
        // A connection that is reset has ended, too: what its sender lost, it will say.
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
