//! Handshake: both sides introduce themselves, over a connection that is protected already, if it is to be.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::Mesh;
use crate::wire::{Hello, MAX_HELLO, VERSION};

const MAGIC: [u8; 4] = *b"KNKL";
/// Instead of a greeting's length in the header: a handshake with a shared key follows.
pub(super) const KEYED: u16 = u16::MAX;
/// Bytes of a header.
const HEADER: usize = 8;
/// The longest reason to send, in bytes.
const MAX_REASON: usize = 200;
/// How many bytes of a refused peer are read, and for how long.
const DRAIN_BYTES: u64 = 16 << 10;
const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

/// Why a connection was not established.
#[derive(Debug, thiserror::Error)]
pub(super) enum HandshakeError {
    #[error(transparent)]
    Io(#[from] io::Error),
    /// This node refuses the peer.
    #[error("{0}")]
    Refused(String),
    /// The peer refuses this node.
    #[error("it refused us: {0}")]
    RefusedUs(String),
}

impl Mesh {
    fn hello(&self) -> Hello {
        let settings = &self.settings;
        Hello {
            version: VERSION,
            cluster: settings.cluster.clone(),
            id: self.me.0,
            key: settings.key,
            boot: settings.boot,
            name: settings.name.to_string(),
            address: settings.address.clone(),
            mutex: settings.lock_algorithm.to_string(),
            lease: micros(settings.lease),
        }
    }

    /// Exchanges greetings; with an `objection`, refuses the peer. The bytes that an unknown peer can make
    /// this node read or keep are bounded.
    pub(super) async fn handshake<S>(
        &self,
        stream: &mut S,
        objection: Option<String>,
    ) -> Result<Hello, HandshakeError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        stream.write_all(&encode(&self.hello())).await?;
        stream.flush().await?;
        let read = read_hello(stream).await;
        let read = read.and_then(|hello| match objection.or_else(|| self.objection(&hello)) {
            Some(reason) => Err(HandshakeError::Refused(reason)),
            None => Ok(hello),
        });
        let hello = match read {
            Ok(hello) => hello,
            Err(HandshakeError::Refused(reason)) => return Err(refuse(stream, reason).await),
            Err(other) => return Err(other),
        };
        stream.write_all(&[0]).await?;
        stream.flush().await?;
        read_verdict(stream).await?;
        Ok(hello)
    }

    /// Why a peer with this greeting cannot be a member of the group, if so.
    fn objection(&self, hello: &Hello) -> Option<String> {
        let settings = &self.settings;
        if hello.cluster != settings.cluster {
            return Some(format!(
                "it belongs to {:?}, we to {:?}",
                hello.cluster, settings.cluster
            ));
        }
        if hello.mutex != settings.lock_algorithm.name() {
            return Some(format!("its mutex is {}, ours {}", hello.mutex, settings.lock_algorithm));
        }
        if hello.lease != micros(settings.lease) {
            let theirs = Duration::from_micros(hello.lease);
            return Some(format!("its lease is {theirs:?}, ours {:?}", settings.lease));
        }
        None
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// A header: magic number, version, and the length of the greeting that follows, or [`KEYED`].
pub(super) fn header(length: u16) -> [u8; HEADER] {
    let mut header = [0; HEADER];
    header[..4].copy_from_slice(&MAGIC);
    header[4..6].copy_from_slice(&VERSION.to_le_bytes());
    header[6..].copy_from_slice(&length.to_le_bytes());
    header
}

/// Encodes a greeting: header, body.
pub(crate) fn encode(hello: &Hello) -> Vec<u8> {
    let mut body = postcard::to_stdvec(hello).expect("a greeting can be encoded");
    body.truncate(MAX_HELLO);
    [&header(body.len() as u16)[..], &body].concat()
}

/// Reads a header: the length of the greeting that follows, or [`KEYED`].
pub(super) async fn read_header<S: AsyncRead + Unpin>(
    stream: &mut S,
) -> Result<u16, HandshakeError> {
    let mut bytes = [0; HEADER];
    stream.read_exact(&mut bytes).await?;
    if bytes[..4] != MAGIC {
        return Err(HandshakeError::Refused("it does not speak the protocol of Konklave".into()));
    }
    let version = u16::from_le_bytes([bytes[4], bytes[5]]);
    if version != VERSION {
        return Err(HandshakeError::Refused(format!(
            "it speaks protocol version {version}, this node version {VERSION}: install the same \
             version on all machines"
        )));
    }
    Ok(u16::from_le_bytes([bytes[6], bytes[7]]))
}

async fn read_hello<S: AsyncRead + Unpin>(stream: &mut S) -> Result<Hello, HandshakeError> {
    let length = read_header(stream).await?;
    if length == KEYED {
        return Err(HandshakeError::Refused("it has a key, we have none".into()));
    }
    let length = usize::from(length);
    if length > MAX_HELLO {
        return Err(HandshakeError::Refused(format!(
            "its greeting has {length} bytes: at most {MAX_HELLO} are allowed"
        )));
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    postcard::from_bytes(&body)
        .map_err(|_| HandshakeError::Refused("its greeting cannot be read".into()))
}

/// Sends the reason of a refusal, if the peer still reads.
pub(super) async fn refuse<S>(stream: &mut S, reason: String) -> HandshakeError
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let end = (0..=reason.len().min(MAX_REASON)).rfind(|end| reason.is_char_boundary(*end));
    let text = &reason[..end.unwrap_or(0)];
    let mut bytes = vec![1, text.len() as u8];
    bytes.extend(text.as_bytes());
    let _ = stream.write_all(&bytes).await;
    drain(stream).await;
    HandshakeError::Refused(reason)
}

/// Lets a refused peer read the reason: a connection closed with unread bytes is reset, and the last bytes
/// sent are lost.
pub(super) async fn drain<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S) {
    let _ = stream.shutdown().await;
    let (mut rest, mut nowhere) = (stream.take(DRAIN_BYTES), tokio::io::sink());
    let _ = timeout(DRAIN_TIMEOUT, tokio::io::copy(&mut rest, &mut nowhere)).await;
}

/// Reads whether the peer accepts this node; if not, the reason.
pub(super) async fn read_verdict<S: AsyncRead + Unpin>(
    stream: &mut S,
) -> Result<(), HandshakeError> {
    if stream.read_u8().await? == 0 {
        return Ok(());
    }
    let mut text = vec![0; usize::from(stream.read_u8().await?)];
    stream.read_exact(&mut text).await?;
    // Shown to people: strip control characters of an unknown peer.
    let text = String::from_utf8_lossy(&text);
    Err(HandshakeError::RefusedUs(text.chars().filter(|c| !c.is_control()).collect()))
}
