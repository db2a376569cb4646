//! What the processes of a virtual tree say to each other.

use serde::{Deserialize, Serialize};

/// A message, with the epoch that it belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
pub enum Message {
    /// I am new, and know of nothing between us. What is your level?
    Connect(u32),
    /// This is my level, if I am attached.
    Welcome(u32, Option<u32>),
    /// My level has changed.
    Level(u32, Option<u32>),
    /// Be my parent; my level is this, if I have one to keep.
    Join(u32, Option<u32>),
    /// You are my child; my level is this.
    JoinOk(u32, u32),
    /// You are not; my level is this, if I am attached.
    JoinNo(u32, Option<u32>),
    /// Find another parent.
    Detach(u32),
    /// I am your child no longer.
    Leave(u32),
}

impl Message {
    /// Its epoch.
    pub(super) fn epoch(self) -> u32 {
        match self {
            Self::Connect(epoch)
            | Self::Welcome(epoch, _)
            | Self::Level(epoch, _)
            | Self::Join(epoch, _)
            | Self::JoinOk(epoch, _)
            | Self::JoinNo(epoch, _)
            | Self::Detach(epoch)
            | Self::Leave(epoch) => epoch,
        }
    }
}
