//! Flight recorder: the last messages sent and received, to look into an incident.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use konklave_algorithms::group::virtual_synchrony::Message;

use crate::NodeId;
use crate::lifted::LockMessage;
use crate::wire::Frame;

/// The number of messages to remember.
const REMEMBERED: u64 = 4096;
/// How long a reading of the wall clock is reused.
const REUSE_READING: Duration = Duration::from_secs(1);

/// A message sent or received; heartbeats and pings are left out.
#[derive(Clone, PartialEq, Debug)]
pub struct RecordedMessage {
    /// A counter of this node, never repeated.
    pub count: u64,
    /// The time by the wall clock.
    pub at: SystemTime,
    /// Whether this node sent it.
    pub sent: bool,
    /// The other side.
    pub peer: NodeId,
    /// The other side's name.
    pub name: String,
    /// The number the sender gave the message, among those to this receiver.
    pub number: u64,
    /// The kind of message.
    pub what: &'static str,
}

/// A ring buffer of messages.
#[derive(Debug, Default)]
pub(crate) struct FlightRecorder {
    /// The number of messages so far; and the last ones, where each replaces the one `REMEMBERED` before it.
    count: u64,
    passed: Vec<Entry>,
    /// A reading of the wall clock, and the time of the node's clock for it: reading it for every message
    /// would cost too much.
    wall: Option<(Duration, SystemTime)>,
}

/// A remembered message; small, since every message is recorded.
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
    /// Records a frame that passed at time `at` of the node's clock.
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
        match self.passed.get_mut(slot(self.count)) {
            Some(oldest) => *oldest = note,
            None => self.passed.push(note),
        }
        self.count += 1;
    }

    /// All remembered messages, with the names of the other sides.
    pub(crate) fn all(&self, name: impl Fn(NodeId) -> String) -> Vec<RecordedMessage> {
        let kept = self.count - self.passed.len() as u64..self.count;
        let passed = |before: u64| {
            let Entry { at, number, what, peer, sent } = self.passed[slot(before)];
            let at = UNIX_EPOCH + Duration::from_nanos(at);
            RecordedMessage { count: before + 1, at, sent, peer, name: name(peer), number, what }
        };
        kept.map(passed).collect()
    }

    /// The wall clock's time for time `at` of the node's clock.
    fn wall_at(&mut self, at: Duration) -> u64 {
        let known = self.wall.and_then(|(then, wall)| Some((at.checked_sub(then)?, wall)));
        let wall = match known {
            Some((passed, wall)) if passed < REUSE_READING => wall + passed,
            _ => self.wall.insert((at, SystemTime::now())).1,
        };
        wall.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
    }
}

/// The slot of message number `before`, counted from 0.
fn slot(before: u64) -> usize {
    (before % REMEMBERED) as usize
}

/// The kind of message; `None` for heartbeats, pings and the like.
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
    fn last_messages_are_remembered_without_heartbeats() {
        let mut flight = FlightRecorder::default();
        let sign = Frame::Ping { view: ViewId::default(), stamp: 0, lifted_sent: 0 };
        flight.note(Duration::ZERO, true, 1, 1, &sign);
        for number in 0..REMEMBERED + 2 {
            flight.note(Duration::ZERO, true, 1, number, &Frame::Group(Message::Welcome));
        }
        let all = flight.all(|id| id.to_string());
        assert_eq!((all.len(), all[0].number, all[0].what), (REMEMBERED as usize, 2, "welcome"));
        assert!(all.iter().map(|passed| passed.count).eq(3..=REMEMBERED + 2));
    }

    #[test]
    fn times_use_recent_wall_clock() {
        let mut flight = FlightRecorder::default();
        let start = SystemTime::now();
        let ms = Duration::from_millis;
        for at in [ms(70), ms(80), ms(10), ms(10) + REUSE_READING] {
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
