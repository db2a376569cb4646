//! The last messages that passed: what an incident looked like from here.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use konklave_algorithms::group::virtual_synchrony::Message;

use crate::NodeId;
use crate::lifted::Say;
use crate::wire::Frame;

/// So many are remembered.
const KEPT: usize = 4096;

/// A message that was sent or received. Signs of life are left out.
#[derive(Clone, PartialEq, Debug)]
pub struct Passed {
    /// Our own count: never repeated.
    pub count: u64,
    /// When, by the wall clock.
    pub at: SystemTime,
    /// Whether we sent it.
    pub sent: bool,
    /// To or from whom.
    pub peer: NodeId,
    /// The sender's number for it, among those to this receiver.
    pub number: u64,
    /// What kind of message.
    pub what: &'static str,
}

/// A bounded memory.
#[derive(Debug, Default)]
pub(crate) struct Flight(Mutex<(u64, VecDeque<Passed>)>);

impl Flight {
    pub(crate) fn note(&self, sent: bool, peer: NodeId, number: u64, frame: &Frame) {
        let Some(what) = kind(frame) else { return };
        let mut guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (count, passed) = &mut *guard;
        *count += 1;
        if passed.len() == KEPT {
            passed.pop_front();
        }
        passed.push_back(Passed { count: *count, at: SystemTime::now(), sent, peer, number, what });
    }

    pub(crate) fn all(&self) -> Vec<Passed> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.iter().cloned().collect()
    }
}

/// What kind of message it is; none for signs of life.
fn kind(frame: &Frame) -> Option<&'static str> {
    Some(match frame {
        Frame::Ping { .. } | Frame::Pong { .. } | Frame::Peers(_) => return None,
        Frame::Standing(_) => "standing",
        Frame::Found(_) => "found",
        Frame::Founding(_) => "founding",
        Frame::Inside(inside) => match inside.say {
            Say::Note(_) => return None,
            Say::Step { .. } => "step",
            Say::Safe => "safe",
            Say::Noted => "noted",
            Say::Try { .. } => "try",
            Say::Used { .. } => "used",
            Say::Revoke { .. } => "revoke",
            Say::Revoked { .. } => "revoked",
        },
        Frame::Group(message) => match message {
            Message::Heartbeat { .. } => return None,
            Message::Join { .. } => "join",
            Message::Welcome => "welcome",
            Message::NotMember { .. } => "not-member",
            Message::Data { .. } => "data",
            Message::Order { .. } => "order",
            Message::Ack { .. } => "ack",
            Message::Suspect { .. } => "suspect",
            Message::Leave { .. } => "leave",
            Message::Synced { .. } => "synced",
            Message::Prepare { .. } => "prepare",
            Message::Promise { .. } => "promise",
            Message::Accept { .. } => "accept",
            Message::Accepted { .. } => "accepted",
            Message::Ask { .. } => "ask",
            Message::Install { .. } => "install",
            Message::State { .. } => "state",
            Message::StateAck { .. } => "state-ack",
        },
    })
}

#[cfg(test)]
mod tests {
    use konklave_algorithms::group::ViewId;

    use super::*;

    #[test]
    fn the_last_messages_are_remembered_and_signs_of_life_are_not() {
        let flight = Flight::default();
        flight.note(true, 1, 1, &Frame::Ping { view: ViewId::default(), stamp: 0, said: 0 });
        for number in 0..KEPT as u64 + 2 {
            flight.note(true, 1, number, &Frame::Group(Message::Welcome));
        }
        let all = flight.all();
        assert_eq!((all.len(), all[0].number, all[0].what), (KEPT, 2, "welcome"));
    }
}
