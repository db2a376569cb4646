//! The wire format between members.
//!
//! A connection carries *records*: four bytes of length, then that many bytes. What protects them, TLS or a
//! shared key, is a layer below. A record holds frames, each encoded with postcard. Nothing that arrives is trusted: lengths are
//! checked before anything is allocated, and invalid bytes end the connection.

use konklave_algorithms::group::forming::{self, FoundingMessage, PeerStatus};
use konklave_algorithms::group::virtual_synchrony::Message;
use konklave_algorithms::group::{View, ViewId};
use serde::{Deserialize, Serialize};

use crate::lifted::LiftedFrame;
use crate::table::Batch;

/// The version of the wire format. Raise it whenever the golden bytes change, or the way members apply
/// operations: their tables must stay equal.
pub(crate) const VERSION: u16 = 8;
/// The longest record; far longer than the frames of a view change, see `core/outgoing.rs`.
pub(crate) const MAX_RECORD: usize = 128 << 20;
/// The longest frame; leaves room for others in its record.
pub(crate) const MAX_FRAME: usize = MAX_RECORD - (1 << 20);
/// The longest greeting: unknown peers get no more memory.
pub(crate) const MAX_HELLO: usize = 1024;
/// The longest message of an application.
pub const MAX_MESSAGE: usize = 1 << 20;

/// A frame between members.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) enum Frame {
    /// A message of virtual synchrony.
    Group(Message<Batch>),
    /// Asks whether the receiver is still in this view. `lifted_sent`: the number of lifted frames sent to it
    /// in this view.
    Ping { view: ViewId, stamp: u64, lifted_sent: u64 },
    /// Answers a ping: the sender is in this view.
    Pong { view: ViewId, stamp: u64 },
    /// The sender's own state.
    PeerStatus(PeerStatus),
    /// The first view, agreed on by all its members.
    Found(View),
    /// The addresses of other members.
    Peers(Vec<(u32, String)>),
    /// A message about a lifted lock.
    Lifted(LiftedFrame),
    /// A message about the first view, before there is one.
    Founding(FoundingMessage),
}

impl From<forming::Message<Batch>> for Frame {
    fn from(message: forming::Message<Batch>) -> Self {
        match message {
            forming::Message::Group(message) => Self::Group(message),
            forming::Message::Status(status) => Self::PeerStatus(status),
            forming::Message::Found(view) => Self::Found(view),
            forming::Message::Founding(message) => Self::Founding(message),
        }
    }
}

/// The first message of a connection, in both directions.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) version: u16,
    /// Groups with different names refuse each other.
    pub(crate) cluster: String,
    pub(crate) id: u32,
    /// Identifies the node: ids are short, and may collide.
    pub(crate) key: u64,
    /// Identifies the process: frames for an earlier one must not reach it.
    pub(crate) boot: u64,
    pub(crate) name: String,
    /// Where the node is called.
    pub(crate) address: String,
    /// The lock algorithm: the same for all members.
    pub(crate) mutex: String,
    /// The lease in microseconds: the same for all members.
    pub(crate) lease: u64,
}

/// Why bytes are not frames.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum WireError {
    #[error("a record has {0} bytes: at most {MAX_RECORD} are allowed")]
    TooLong(usize),
    #[error("a frame has {0} bytes: at most {MAX_FRAME} are allowed")]
    LongFrame(usize),
    #[error("a record is too short for its header")]
    Short,
    #[error("a record begins with the impossible frame number {0}")]
    Count(u64),
    #[error("a frame cannot be decoded: {0}")]
    Garbage(postcard::Error),
}

impl Frame {
    /// Appends the frame to `buffer`.
    pub(crate) fn encode(&self, buffer: Vec<u8>) -> Vec<u8> {
        postcard::to_extend(self, buffer).expect("memory takes every frame")
    }

    /// Decodes the first frame of `bytes`; returns it and the rest.
    pub(crate) fn decode(bytes: &[u8]) -> Result<(Self, &[u8]), WireError> {
        postcard::take_from_bytes(bytes).map_err(WireError::Garbage)
    }
}

/// The length of the record with this header.
pub(crate) fn record_length(header: [u8; 4], limit: usize) -> Result<usize, WireError> {
    let length = u32::from_le_bytes(header) as usize;
    if length > limit { Err(WireError::TooLong(length)) } else { Ok(length) }
}

/// The number of the last of `frames` frames (at least one). Fails if it leaves no number for later ones.
pub(crate) fn last_number(first: u64, frames: usize) -> Result<u64, WireError> {
    let next = first.checked_add(frames as u64).filter(|next| *next < u64::MAX);
    next.map(|next| next - 1).ok_or(WireError::Count(first))
}

#[cfg(test)]
mod tests;
