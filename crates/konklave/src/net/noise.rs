//! The shared key: the Noise protocol, in the pattern `XXpsk0`, below the greetings.
//!
//! ```text
//! caller → called   header, then psk, e        the caller proves that it has the key
//! called → caller   header, 0, e, ee, s, es    the called node proves it, and who it is
//! caller → called   s, se                      who the caller is
//! ```
//!
//! A called node sends nothing that depends on the key before the caller has proved it. The ephemeral keys
//! give forward secrecy: a key that leaks later opens no recorded connection. Each node has a static key,
//! kept in its data directory; its public half is the node's identity.

mod stream;

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use snow::params::{DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::{Builder, HandshakeState};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::handshake::{HandshakeError, KEYED, header, read_header, read_verdict, refuse};
use crate::error::Error;
pub(super) use stream::NoiseStream;

const PATTERN: &str = "Noise_XXpsk0_25519_ChaChaPoly_BLAKE2s";
/// Bytes of a public key, and of the tag behind everything encrypted.
const PUBLIC: usize = 32;
const TAG: usize = 16;
/// Bytes of the three messages of the handshake, which carry nothing else.
const FIRST: usize = PUBLIC + TAG;
const SECOND: usize = PUBLIC + PUBLIC + TAG + TAG;
const THIRD: usize = PUBLIC + TAG + TAG;
/// The shortest shared key, in bytes.
const SHORTEST_KEY: usize = 16;
/// The most shared keys: the present one, and another one while they are changed.
const MOST_KEYS: usize = 2;

/// The shared keys: calls use the first one, and every one is accepted.
#[derive(Clone)]
pub(crate) struct SharedKeys(Arc<[Vec<u8>]>);

impl SharedKeys {
    pub(crate) fn new<K: Into<Vec<u8>>>(keys: impl IntoIterator<Item = K>) -> Self {
        Self(keys.into_iter().map(Into::into).collect())
    }

    /// Whether there are one or two keys, each of them long enough.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let wrong = |why: String| Err(Error::Config(why));
        if !(1..=MOST_KEYS).contains(&self.0.len()) {
            let given = self.0.len();
            return wrong(format!("{given} pre-shared keys: give one, or two while you change it"));
        }
        if let Some(short) = self.0.iter().find(|key| key.len() < SHORTEST_KEY) {
            return wrong(format!(
                "the pre-shared key is too short: it has {} bytes, and at least {SHORTEST_KEY} are needed",
                short.len()
            ));
        }
        Ok(())
    }

    /// The key for the call after `refused` refused ones: the first key, and the second one now and then.
    fn for_call(&self, refused: u32) -> &[u8] {
        &self.0[refused as usize % self.0.len()]
    }
}

/// The private half of a node's static key.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret([u8; 32]);

impl Secret {
    /// A new one.
    pub(crate) fn random() -> Result<Self, Error> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)
            .map_err(|error| Error::Config(format!("no random numbers for a key: {error}")))?;
        Ok(Self(bytes))
    }

    /// The identity that belongs to it.
    pub(crate) fn identity(&self) -> String {
        let mut curve = DefaultResolver
            .resolve_dh(&DHChoice::Curve25519)
            .expect("the feature of this curve is on");
        curve.set(&self.0);
        identity(curve.pubkey())
    }
}

/// Does not show the key.
impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex(&self.0))
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digit = |at: usize| text.get(at..at + 2).and_then(|s| u8::from_str_radix(s, 16).ok());
        let bytes: Option<Vec<u8>> = (0..text.len()).step_by(2).map(digit).collect();
        let bytes: Option<[u8; 32]> = bytes.and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or_else(|| serde::de::Error::custom("a key has 64 hexadecimal digits"))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The identity of the node with this public key: half of it, which nobody finds a second key for.
fn identity(public: &[u8]) -> String {
    hex(&public[..PUBLIC / 2])
}

/// The key that Noise mixes in: 32 bytes, whatever the length of the shared key.
fn psk(key: &[u8]) -> [u8; 32] {
    let mut hash =
        DefaultResolver.resolve_hash(&HashChoice::Blake2s).expect("the feature of this hash is on");
    hash.input(b"konklave/2");
    hash.input(key);
    let mut psk = [0; 32];
    hash.result(&mut psk);
    psk
}

/// The state of a handshake with this shared key.
fn handshake(key: &[u8], secret: &Secret, we_call: bool) -> Result<HandshakeState, snow::Error> {
    let (psk, header) = (psk(key), header(KEYED));
    let builder = Builder::new(PATTERN.parse()?)
        .psk(0, &psk)?
        .local_private_key(&secret.0)?
        // Nobody on the way can change the version without breaking the handshake.
        .prologue(&header)?;
    if we_call { builder.build_initiator() } else { builder.build_responder() }
}

/// A protected connection, and the identity of the peer.
type Protected<S> = (NoiseStream<S>, String);

fn protect<S>(stream: S, state: HandshakeState) -> Result<Protected<S>, HandshakeError> {
    let identity = state.get_remote_static().map(identity).unwrap_or_default();
    Ok((NoiseStream::new(stream, state.into_transport_mode().map_err(failed)?), identity))
}

/// An error in our own part of the handshake, such as the lack of random numbers.
fn failed(error: snow::Error) -> HandshakeError {
    HandshakeError::Refused(format!("the handshake failed: {error}"))
}

/// The handshake as the caller, after `refused` refused calls of the same address.
pub(super) async fn connect<S>(
    mut stream: S,
    keys: &SharedKeys,
    secret: &Secret,
    refused: u32,
) -> Result<Protected<S>, HandshakeError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut state = handshake(keys.for_call(refused), secret, true).map_err(failed)?;
    let mut first = header(KEYED).to_vec();
    let begin = first.len();
    first.resize(begin + FIRST, 0);
    state.write_message(&[], &mut first[begin..]).map_err(failed)?;
    stream.write_all(&first).await?;
    stream.flush().await?;
    if read_header(&mut stream).await? != KEYED {
        return Err(HandshakeError::Refused("it has no key, we have one".into()));
    }
    read_verdict(&mut stream).await?;
    let mut second = [0; SECOND];
    stream.read_exact(&mut second).await?;
    state.read_message(&second, &mut [0; SECOND]).map_err(|_| {
        HandshakeError::Refused("wrong key: it answered without knowing ours".into())
    })?;
    let mut third = [0; THIRD];
    state.write_message(&[], &mut third).map_err(failed)?;
    stream.write_all(&third).await?;
    stream.flush().await?;
    protect(stream, state)
}

/// The handshake as the called side.
pub(super) async fn accept<S>(
    mut stream: S,
    keys: &SharedKeys,
    secret: &Secret,
) -> Result<Protected<S>, HandshakeError>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let ours = header(KEYED);
    let begun = match read_header(&mut stream).await {
        Ok(KEYED) => {
            let mut first = [0; FIRST];
            stream.read_exact(&mut first).await?;
            let mut states = keys.0.iter().map(|key| {
                let mut state = handshake(key, secret, false)?;
                state.read_message(&first, &mut [0; FIRST])?;
                Ok::<_, snow::Error>(state)
            });
            states.find_map(Result::ok).ok_or_else(|| "wrong key".to_owned())
        }
        Ok(_) => Err("it has no key, we have one".to_owned()),
        Err(HandshakeError::Refused(reason)) => Err(reason),
        Err(other) => return Err(other),
    };
    let mut state = match begun {
        Ok(state) => state,
        Err(reason) => {
            // The header tells a node of another version, or without a key, what this one is.
            stream.write_all(&ours).await?;
            return Err(refuse(&mut stream, reason).await);
        }
    };
    let mut answer = [&ours[..], &[0]].concat();
    let begin = answer.len();
    answer.resize(begin + SECOND, 0);
    state.write_message(&[], &mut answer[begin..]).map_err(failed)?;
    stream.write_all(&answer).await?;
    stream.flush().await?;
    let mut third = [0; THIRD];
    stream.read_exact(&mut third).await?;
    state.read_message(&third, &mut [0; THIRD]).map_err(|_| {
        HandshakeError::Refused("it repeats the call of another node, or was changed".into())
    })?;
    protect(stream, state)
}

#[cfg(test)]
mod tests;
