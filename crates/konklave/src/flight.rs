//! The last messages that passed: what an incident looked like from here.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use konklave_algorithms::group::virtual_synchrony::Message;

use crate::NodeId;
use crate::lifted::Say;
use crate::wire::Frame;

/// So many are remembered.
const KEPT: usize = 4096;
/// How long what the wall clock said is believed.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

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
pub(crate) struct Flight(Mutex<Memory>);

#[derive(Debug, Default)]
struct Memory {
    count: u64,
    passed: VecDeque<Passed>,
    /// What the wall clock said when ours said what: to look at it for every message is not worth it.
    wall: Option<(Duration, SystemTime)>,
}

impl Memory {
    /// When that was, by the wall clock.
    fn wall_at(&mut self, at: Duration) -> SystemTime {
        let known = self.wall.and_then(|(then, wall)| Some((at.checked_sub(then)?, wall)));
        match known {
            Some((passed, wall)) if passed < LOOK_AGAIN => wall + passed,
            _ => self.wall.insert((at, SystemTime::now())).1,
        }
    }
}

impl Flight {
    /// This frame passed at this time of our clock.
    pub(crate) fn note(&self, at: Duration, sent: bool, peer: NodeId, number: u64, frame: &Frame) {
        let Some(what) = kind(frame) else { return };
        let mut memory = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        memory.count += 1;
        let (count, at) = (memory.count, memory.wall_at(at));
        if memory.passed.len() == KEPT {
            memory.passed.pop_front();
        }
        memory.passed.push_back(Passed { count, at, sent, peer, number, what });
    }

    pub(crate) fn all(&self) -> Vec<Passed> {
        let memory = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        memory.passed.iter().cloned().collect()
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
        let sign = Frame::Ping { view: ViewId::default(), stamp: 0, said: 0 };
        flight.note(Duration::ZERO, true, 1, 1, &sign);
        for number in 0..KEPT as u64 + 2 {
            flight.note(Duration::ZERO, true, 1, number, &Frame::Group(Message::Welcome));
        }
        let all = flight.all();
        assert_eq!((all.len(), all[0].number, all[0].what), (KEPT, 2, "welcome"));
    }

    #[test]
    fn times_are_those_of_the_wall_clock_as_it_was_lately() {
        let flight = Flight::default();
        let start = SystemTime::now();
        let ms = Duration::from_millis;
        for at in [ms(70), ms(80), ms(10), ms(10) + LOOK_AGAIN] {
            flight.note(at, true, 1, 1, &Frame::Group(Message::Welcome));
        }
        let all = flight.all();
        assert_eq!(all[1].at, all[0].at + ms(10));
        for looked in [0, 2, 3] {
            let (at, now) = (all[looked].at, SystemTime::now());
            assert!(start <= at && at <= now, "{looked}: {at:?}, between {start:?} and {now:?}");
        }
    }
}
