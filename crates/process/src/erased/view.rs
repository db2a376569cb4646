//! Inputs and effects as recorders see them: the data in them without its type.

use std::time::Duration;

use super::{Data, Recordable};
use crate::{Effect, Input, ProcessId};

/// An [`Input`] of any algorithm.
#[derive(Clone, Copy, Debug)]
pub enum InputView<'a> {
    /// The process starts for the first time.
    Start,
    /// The process restarts after a crash, with the record it saved last.
    Recover(Option<&'a dyn Data>),
    /// The client makes a request.
    Request(&'a dyn Data),
    /// A message arrives from this process.
    Message(ProcessId, &'a dyn Data),
    /// A timer ran out.
    Timer(&'a dyn Data),
    /// The failure detector suspects a peer.
    Suspect(ProcessId),
    /// The failure detector trusts a peer again.
    Trust(ProcessId),
    /// A message of the application arrives, with the sender's logical time.
    Stamp(ProcessId, u64),
}

/// An [`Effect`] of any algorithm.
#[derive(Clone, Copy, Debug)]
pub enum EffectView<'a> {
    /// It sends a message to this process.
    Send(ProcessId, &'a dyn Data),
    /// It starts or restarts a timer.
    SetTimer(&'a dyn Data, Duration),
    /// It stops a timer.
    CancelTimer(&'a dyn Data),
    /// It gives an indication to its client.
    Indicate(&'a dyn Data),
    /// It writes to stable storage.
    Save(&'a dyn Data),
    /// It met an input that the algorithm's assumptions rule out.
    Unexpected(&'static str),
}

impl<P: Recordable> Input<P> {
    /// The same without its type.
    pub fn view(&self) -> InputView<'_> {
        match self {
            Self::Start => InputView::Start,
            Self::Recover(saved) => {
                InputView::Recover(saved.as_ref().map(|saved| saved as &dyn Data))
            }
            Self::Request(request) => InputView::Request(request),
            Self::Message { from, message } => InputView::Message(*from, message),
            Self::Timer(timer) => InputView::Timer(timer),
            Self::Suspect(peer) => InputView::Suspect(*peer),
            Self::Trust(peer) => InputView::Trust(*peer),
            Self::Stamp { from, stamp } => InputView::Stamp(*from, *stamp),
        }
    }
}

impl<P: Recordable> Effect<P> {
    /// The same without its type.
    pub fn view(&self) -> EffectView<'_> {
        match self {
            Self::Send { to, message } => EffectView::Send(*to, message),
            Self::SetTimer { timer, after } => EffectView::SetTimer(timer, *after),
            Self::CancelTimer { timer } => EffectView::CancelTimer(timer),
            Self::Indicate(indication) => EffectView::Indicate(indication),
            Self::Save(record) => EffectView::Save(record),
            Self::Unexpected(what) => EffectView::Unexpected(what),
        }
    }
}
