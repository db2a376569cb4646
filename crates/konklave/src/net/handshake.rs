//! Handshake: both sides introduce themselves, and prove that they know the shared key.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::seal::{Sealer, Secrets, same};
use super::{Mesh, Security};
use crate::wire::{Hello, MAX_HELLO, VERSION};

const MAGIC: [u8; 4] = *b"KNKL";
/// The longest reason to send.
const MAX_REASON: usize = 200;

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

/// The peer's greeting, and the ciphers of the connection.
pub(super) struct Established {
    pub(super) hello: Hello,
    pub(super) sealer: Sealer,
    pub(super) opener: Sealer,
}

impl Mesh {
    fn hello(&self) -> Hello {
        let mut nonce = [0; 32];
        // Without random numbers, a key protects nothing. Version 0 makes the peer refuse.
        let drawn = getrandom::fill(&mut nonce).is_ok();
        let settings = &self.settings;
        Hello {
            version: if drawn { VERSION } else { 0 },
            cluster: settings.cluster.clone(),
            id: self.me.0,
            key: settings.key,
            boot: settings.boot,
            name: settings.name.to_string(),
            address: settings.address.clone(),
            nonce,
            mutex: settings.lock_algorithm.to_string(),
            lease: micros(settings.lease),
        }
    }

    /// Performs the handshake; with an `objection`, refuses the peer. The bytes that an unknown peer can make
    /// this node read or keep are bounded.
    pub(super) async fn handshake<S>(
        &self,
        stream: &mut S,
        we_call: bool,
        objection: Option<String>,
    ) -> Result<Established, HandshakeError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let ours = encode(&self.hello());
        stream.write_all(&ours).await?;
        stream.flush().await?;
        let theirs = read_hello(stream).await;
        let theirs = match theirs {
            Ok(theirs) => theirs,
            Err(HandshakeError::Refused(reason)) => return Err(refuse(stream, reason).await),
            Err(other) => return Err(other),
        };
        let hello: Hello = match postcard::from_bytes(&theirs[8..]) {
            Ok(hello) => hello,
            Err(_) => return Err(refuse(stream, "its greeting cannot be read".into()).await),
        };
        if let Some(reason) = objection {
            return Err(refuse(stream, reason).await);
        }
        if hello.cluster != self.settings.cluster {
            let reason =
                format!("it belongs to {:?}, we to {:?}", hello.cluster, self.settings.cluster);
            return Err(refuse(stream, reason).await);
        }
        if hello.mutex != self.settings.lock_algorithm.name() {
            let reason =
                format!("its mutex is {}, ours {}", hello.mutex, self.settings.lock_algorithm);
            return Err(refuse(stream, reason).await);
        }
        if hello.lease != micros(self.settings.lease) {
            let theirs = Duration::from_micros(hello.lease);
            let reason = format!("its lease is {theirs:?}, ours {:?}", self.settings.lease);
            return Err(refuse(stream, reason).await);
        }
        let secrets = match self.security() {
            Security::Key(key) => {
                let (caller, called) = if we_call { (&ours, &theirs) } else { (&theirs, &ours) };
                Some(Secrets::new(&key, caller, called, we_call))
            }
            Security::None | Security::Tls(_) => None,
        };
        let mut answer = vec![0];
        answer.extend(secrets.as_ref().map_or([0; 32], |s| s.proof));
        stream.write_all(&answer).await?;
        stream.flush().await?;
        let proof = read_answer(stream).await?;
        let proved = secrets.as_ref().map_or([0; 32], |s| s.expected);
        if !same(&proof, &proved) {
            let reason =
                if secrets.is_some() { "wrong key, or none" } else { "it has a key, we have none" };
            return Err(refuse(stream, reason.into()).await);
        }
        let sealer = Sealer::new(secrets.as_ref().map(|s| s.seal));
        let opener = Sealer::new(secrets.as_ref().map(|s| s.open));
        Ok(Established { hello, sealer, opener })
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Encodes a greeting: magic number, version, length, body.
pub(crate) fn encode(hello: &Hello) -> Vec<u8> {
    let mut body = postcard::to_stdvec(hello).expect("a greeting can be encoded");
    body.truncate(MAX_HELLO);
    let mut bytes = MAGIC.to_vec();
    bytes.extend(hello.version.to_le_bytes());
    bytes.extend((body.len() as u16).to_le_bytes());
    bytes.extend(body);
    bytes
}

async fn read_hello<S: AsyncRead + Unpin>(stream: &mut S) -> Result<Vec<u8>, HandshakeError> {
    let mut bytes = vec![0; 8];
    stream.read_exact(&mut bytes).await?;
    if bytes[..4] != MAGIC {
        return Err(HandshakeError::Refused("it does not speak the protocol of Konklave".into()));
    }
    let version = u16::from_le_bytes([bytes[4], bytes[5]]);
    if version != VERSION {
        return Err(HandshakeError::Refused(format!(
            "it speaks protocol version {version}, this node version {VERSION}"
        )));
    }
    let length = usize::from(u16::from_le_bytes([bytes[6], bytes[7]]));
    if length > MAX_HELLO {
        return Err(HandshakeError::Refused(format!(
            "its greeting has {length} bytes: at most {MAX_HELLO} are allowed"
        )));
    }
    bytes.resize(8 + length, 0);
    stream.read_exact(&mut bytes[8..]).await?;
    Ok(bytes)
}

/// Sends the reason of a refusal, if the peer still reads.
async fn refuse<S: AsyncWrite + Unpin>(stream: &mut S, reason: String) -> HandshakeError {
    let text: String = reason.chars().take(MAX_REASON / 4).collect();
    let mut bytes = vec![1, text.len() as u8];
    bytes.extend(text.as_bytes());
    let _ = stream.write_all(&bytes).await;
    let _ = stream.shutdown().await;
    HandshakeError::Refused(reason)
}

async fn read_answer<S: AsyncRead + Unpin>(stream: &mut S) -> Result<[u8; 32], HandshakeError> {
    if stream.read_u8().await? == 0 {
        let mut proof = [0; 32];
        stream.read_exact(&mut proof).await?;
        return Ok(proof);
    }
    let mut text = vec![0; usize::from(stream.read_u8().await?)];
    stream.read_exact(&mut text).await?;
    // Shown to people: strip control characters of an unknown peer.
    let text = String::from_utf8_lossy(&text);
    Err(HandshakeError::RefusedUs(text.chars().filter(|c| !c.is_control()).collect()))
}
