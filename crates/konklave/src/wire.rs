//! What members say to each other, as bytes.
//!
//! A connection carries *records*: four bytes of length, then so many bytes, which are sealed where a
//! key is shared. A record holds frames, each in postcard. Nothing that arrives is trusted: lengths
//! are bounded before anything is allocated, and what cannot be read ends the connection.

use konklave_algorithms::group::virtual_synchrony::Message;
use konklave_algorithms::group::{View, ViewId};
use serde::{Deserialize, Serialize};

use crate::core::{FoundingMessage, PeerStatus};
use crate::lifted::LiftedFrame;
use crate::table::Batch;

/// The version of all that follows. Raised whenever the golden bytes change, or what members make of them:
/// their tables must stay the same.
pub(crate) const VERSION: u16 = 6;
/// The longest record: far more than a view that ends has to say, see `core/outgoing.rs`.
pub(crate) const MAX_RECORD: usize = 128 << 20;
/// The longest frame: others may travel with it.
pub(crate) const MAX_FRAME: usize = MAX_RECORD - (1 << 20);
/// The longest greeting: strangers get no more room than that.
pub(crate) const MAX_HELLO: usize = 1024;
/// The longest message of an application.
pub const MAX_MESSAGE: usize = 1 << 20;

/// What one member says to another.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub(crate) enum Frame {
    /// Of the group below.
    Group(Message<Batch>),
    /// Are you still with me in this view?
    /// So many frames about locks went to you in it.
    Ping { view: ViewId, stamp: u64, lifted_sent: u64 },
    /// I am.
    Pong { view: ViewId, stamp: u64 },
    /// This is where I stand.
    PeerStatus(PeerStatus),
    /// This is the first view.
    Found(View),
    /// There are others, at these addresses.
    Peers(Vec<(u32, String)>),
    /// About a lock that an algorithm serves inside a view.
    Lifted(LiftedFrame),
    /// About the first view, before there is one.
    Founding(FoundingMessage),
}

/// How a connection begins, from both sides.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Hello {
    pub(crate) version: u16,
    /// Groups of different names do not mix.
    pub(crate) cluster: String,
    pub(crate) id: u32,
    /// Who it really is: ids are short and may collide.
    pub(crate) key: u64,
    /// Which process this is: what was said to an earlier one is not meant for it.
    pub(crate) boot: u64,
    pub(crate) name: String,
    /// Where it can be called.
    pub(crate) address: String,
    /// Drawn anew for each connection.
    pub(crate) nonce: [u8; 32],
    /// What serves its exclusive locks: it must be the same for all.
    pub(crate) mutex: String,
    /// How long its grants are safe without a sign of life, in microseconds: the same for all, too.
    pub(crate) lease: u64,
}

/// Why bytes are no frames.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum WireError {
    #[error("a record of {0} bytes: {MAX_RECORD} at most")]
    TooLong(usize),
    #[error("a frame of {0} bytes: {MAX_FRAME} at most")]
    LongFrame(usize),
    #[error("a record without a head")]
    Short,
    #[error("a record from number {0} on: nobody says so much")]
    Count(u64),
    #[error("not a frame: {0}")]
    Garbage(postcard::Error),
}

impl Frame {
    /// Appends the frame to `buffer`.
    pub(crate) fn encode(&self, buffer: Vec<u8>) -> Vec<u8> {
        postcard::to_extend(self, buffer).expect("memory takes every frame")
    }

    /// Takes the first frame off `bytes`.
    pub(crate) fn decode(bytes: &[u8]) -> Result<(Self, &[u8]), WireError> {
        postcard::take_from_bytes(bytes).map_err(WireError::Garbage)
    }
}

/// The length of the record that these four bytes announce.
pub(crate) fn record_length(header: [u8; 4], limit: usize) -> Result<usize, WireError> {
    let length = u32::from_le_bytes(header) as usize;
    if length > limit { Err(WireError::TooLong(length)) } else { Ok(length) }
}

/// The number of the last of so many frames, of which there is one at least: one that others can follow.
pub(crate) fn last_number(first: u64, frames: usize) -> Result<u64, WireError> {
    let next = first.checked_add(frames as u64).filter(|next| *next < u64::MAX);
    next.map(|next| next - 1).ok_or(WireError::Count(first))
}

#[cfg(test)]
mod tests;
