//! How a connection begins: both sides say who they are, and prove that they may.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::seal::{Sealer, Secrets, same};
use super::{Mesh, Security};
use crate::wire::{Hello, MAX_HELLO, VERSION};

const MAGIC: [u8; 4] = *b"KNKL";
/// The longest reason.
const MAX_REASON: usize = 200;

/// Why a connection did not come about.
#[derive(Debug, thiserror::Error)]
pub(super) enum HandshakeError {
    #[error(transparent)]
    Io(#[from] io::Error),
    /// We do not want it.
    #[error("{0}")]
    Refused(String),
    /// They do not want it.
    #[error("it refused us: {0}")]
    RefusedUs(String),
}

/// Who is at the other end, and how to talk to it.
pub(super) struct Established {
    pub(super) hello: Hello,
    pub(super) sealer: Sealer,
    pub(super) opener: Sealer,
}

impl Mesh {
    fn hello(&self) -> Hello {
        let mut nonce = [0; 32];
        // Without random numbers a key protects nothing: better no connection.
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

    /// Greets, and is established, and says what there is to object. What a stranger can make us read or keep
    /// is bounded.
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
            Err(_) => return Err(refuse(stream, "its handshake makes no sense".into()).await),
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

/// The handshake as bytes: four that say what this is, the version, the length, the rest.
pub(crate) fn encode(hello: &Hello) -> Vec<u8> {
    let mut body = postcard::to_stdvec(hello).expect("a handshake can be written");
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
        return Err(HandshakeError::Refused("it does not speak our language".into()));
    }
    let version = u16::from_le_bytes([bytes[4], bytes[5]]);
    if version != VERSION {
        return Err(HandshakeError::Refused(format!("it speaks version {version}, we {VERSION}")));
    }
    let length = usize::from(u16::from_le_bytes([bytes[6], bytes[7]]));
    if length > MAX_HELLO {
        return Err(HandshakeError::Refused(format!(
            "a handshake of {length} bytes: {MAX_HELLO} at most"
        )));
    }
    bytes.resize(8 + length, 0);
    stream.read_exact(&mut bytes[8..]).await?;
    Ok(bytes)
}

/// Says why not. Whether it arrives does not matter.
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
    // A stranger's words are shown to people: no more than letters.
    let text = String::from_utf8_lossy(&text);
    Err(HandshakeError::RefusedUs(text.chars().filter(|c| !c.is_control()).collect()))
}
