//! The last messages that passed: what an incident looked like from here.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use konklave_algorithms::group::virtual_synchrony::Message;

use crate::NodeId;
use crate::lifted::LockMessage;
use crate::wire::Frame;

/// So many are remembered.
const KEPT: u64 = 4096;
/// How long what the wall clock said is believed.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// A message that was sent or received. Signs of life are left out.
#[derive(Clone, PartialEq, Debug)]
pub struct RecordedMessage {
    /// Our own count: never repeated.
    pub count: u64,
    /// When, by the wall clock.
    pub at: SystemTime,
    /// Whether we sent it.
    pub sent: bool,
    /// To or from whom.
    pub peer: NodeId,
    /// What people call it.
    pub name: String,
    /// The sender's number for it, among those to this receiver.
    pub number: u64,
    /// What kind of message.
    pub what: &'static str,
}

/// A bounded memory.
#[derive(Debug, Default)]
pub(crate) struct FlightRecorder {
    /// How many there were, and the last of them: each takes the place of the one `KEPT` before it.
    count: u64,
    passed: Vec<Entry>,
    /// What the wall clock said when ours said what: to look at it for every message is not worth it.
    wall: Option<(Duration, SystemTime)>,
}

/// What is written down of a message: little, as it is done for every one.
#[derive(Debug)]
struct Entry {
    /// Nanoseconds since 1970.
    at: u64,
    number: u64,
    what: &'static str,
    peer: NodeId,
    sent: bool,
}

impl FlightRecorder {
    /// This frame passed at this time of our clock.
    pub(crate) fn note(
        &mut self,
        at: Duration,
        sent: bool,
        peer: NodeId,
        number: u64,
        frame: &Frame,
    ) {
        let Some(what) = kind(frame) else { return };
        let note = Entry { at: self.wall_at(at), number, what, peer, sent };
        match self.passed.get_mut(place(self.count)) {
            Some(oldest) => *oldest = note,
            None => self.passed.push(note),
        }
        self.count += 1;
    }

    /// All that is remembered, with the names of who was at the other end.
    pub(crate) fn all(&self, name: impl Fn(NodeId) -> String) -> Vec<RecordedMessage> {
        let kept = self.count - self.passed.len() as u64..self.count;
        let passed = |before: u64| {
            let Entry { at, number, what, peer, sent } = self.passed[place(before)];
            let at = UNIX_EPOCH + Duration::from_nanos(at);
            RecordedMessage { count: before + 1, at, sent, peer, name: name(peer), number, what }
        };
        kept.map(passed).collect()
    }

    /// When that was, by the wall clock.
    fn wall_at(&mut self, at: Duration) -> u64 {
        let known = self.wall.and_then(|(then, wall)| Some((at.checked_sub(then)?, wall)));
        let wall = match known {
            Some((passed, wall)) if passed < LOOK_AGAIN => wall + passed,
            _ => self.wall.insert((at, SystemTime::now())).1,
        };
        wall.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
    }
}

/// Where the one after so many lies.
fn place(before: u64) -> usize {
    (before % KEPT) as usize
}

/// What kind of message it is; none for signs of life.
fn kind(frame: &Frame) -> Option<&'static str> {
    Some(match frame {
        Frame::Ping { .. } | Frame::Pong { .. } | Frame::Peers(_) => return None,
        Frame::PeerStatus(_) => "standing",
        Frame::Found(_) => "found",
        Frame::Founding(_) => "founding",
        Frame::Lifted(inside) => match inside.message {
            LockMessage::Note(_) => return None,
            LockMessage::Step { .. } => "step",
            LockMessage::Safe => "safe",
            LockMessage::Noted => "noted",
            LockMessage::Try { .. } => "try",
            LockMessage::InUse { .. } => "used",
            LockMessage::Revoke { .. } => "revoke",
            LockMessage::Revoked { .. } => "revoked",
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
        let mut flight = FlightRecorder::default();
        let sign = Frame::Ping { view: ViewId::default(), stamp: 0, lifted_sent: 0 };
        flight.note(Duration::ZERO, true, 1, 1, &sign);
        for number in 0..KEPT + 2 {
            flight.note(Duration::ZERO, true, 1, number, &Frame::Group(Message::Welcome));
        }
        let all = flight.all(|id| id.to_string());
        assert_eq!((all.len(), all[0].number, all[0].what), (KEPT as usize, 2, "welcome"));
        assert!(all.iter().map(|passed| passed.count).eq(3..=KEPT + 2));
    }

    #[test]
    fn times_are_those_of_the_wall_clock_as_it_was_lately() {
        let mut flight = FlightRecorder::default();
        let start = SystemTime::now();
        let ms = Duration::from_millis;
        for at in [ms(70), ms(80), ms(10), ms(10) + LOOK_AGAIN] {
            flight.note(at, true, 1, 1, &Frame::Group(Message::Welcome));
        }
        let all = flight.all(|id| id.to_string());
        assert_eq!(all[1].at, all[0].at + ms(10));
        for looked in [0, 2, 3] {
            let (at, now) = (all[looked].at, SystemTime::now());
            assert!(start <= at && at <= now, "{looked}: {at:?}, between {start:?} and {now:?}");
        }
    }
}
