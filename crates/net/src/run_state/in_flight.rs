//! The messages in flight.

use std::collections::BTreeMap;

use konklave_process::{AnyData, AnyTag, ProcessId};

use crate::transport::Link;

/// A message in flight. The monitor's tag stays here; the wire carries only the algorithm's message.
#[derive(Clone)]
pub(super) struct MessageInFlight {
    pub(super) from: ProcessId,
    pub(super) to: ProcessId,
    pub(super) message: AnyData,
    pub(super) tag: AnyTag,
    /// How many copies of it have not arrived yet.
    pub(super) copies: u32,
}

/// All messages in flight, by number. A later message of a channel has a higher number.
#[derive(Default)]
pub(super) struct MessagesInFlight {
    all: BTreeMap<u64, MessageInFlight>,
    half_closed: Vec<HalfClosed>,
}

/// A connection closed at one end. When both ends are closed, its messages still in flight are lost.
struct HalfClosed {
    link: Link,
    /// The last message written to it, if the sender closed it.
    last: Option<u64>,
}

impl MessagesInFlight {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn depart(&mut self, id: u64, flight: MessageInFlight) {
        self.all.insert(id, flight);
    }

    /// Takes one copy of message `id`, if it is in flight from `from` to `to`.
    pub(super) fn arrive(
        &mut self,
        from: ProcessId,
        to: ProcessId,
        id: u64,
    ) -> Option<MessageInFlight> {
        let flight = self.all.get_mut(&id)?;
        if (flight.from, flight.to) != (from, to) {
            return None;
        }
        flight.copies = flight.copies.saturating_sub(1);
        if flight.copies > 0 {
            return Some(flight.clone());
        }
        self.all.remove(&id)
    }

    pub(super) fn remove(&mut self, id: u64) -> Option<MessageInFlight> {
        self.all.remove(&id)
    }

    /// The messages sent through earlier connections that are still in flight when message `id` arrives.
    /// Channels keep their order, so they must not be delivered any more.
    pub(super) fn overtaken(&self, from: ProcessId, to: ProcessId, id: u64) -> Vec<u64> {
        let earlier = self.half_closed.iter().filter_map(|HalfClosed { link, last }| {
            let same = (link.sender.process, link.receiver.process) == (from, to);
            last.filter(|last| same && *last < id)
        });
        earlier.max().map_or(Vec::new(), |last| self.up_to(from, to, last))
    }

    /// The sender closed `link` after writing message `last` to it; returns the messages lost by that.
    pub(super) fn closed(&mut self, link: Link, last: u64) -> Vec<u64> {
        if self.take(link).is_some() {
            return self.up_to(link.sender.process, link.receiver.process, last);
        }
        self.half_closed.push(HalfClosed { link, last: Some(last) });
        Vec::new()
    }

    /// The receiver has handled all messages of `link`; returns the messages lost by that.
    pub(super) fn drained(&mut self, link: Link) -> Vec<u64> {
        if let Some(HalfClosed { last: Some(last), .. }) = self.take(link) {
            return self.up_to(link.sender.process, link.receiver.process, last);
        }
        self.half_closed.push(HalfClosed { link, last: None });
        Vec::new()
    }

    /// `p` has crashed; returns the messages lost by that.
    pub(super) fn cut_off(&mut self, p: ProcessId) -> Vec<u64> {
        self.half_closed.retain(|half| half.link.receiver.process != p);
        self.all.iter().filter(|(_, flight)| flight.to == p).map(|(id, _)| *id).collect()
    }

    fn take(&mut self, link: Link) -> Option<HalfClosed> {
        let i = self.half_closed.iter().position(|half| half.link == link)?;
        Some(self.half_closed.swap_remove(i))
    }

    fn up_to(&self, from: ProcessId, to: ProcessId, last: u64) -> Vec<u64> {
        let earlier = self.all.range(..=last);
        let lost = earlier.filter(|(_, flight)| (flight.from, flight.to) == (from, to));
        lost.map(|(id, _)| *id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::End;

    const P: ProcessId = ProcessId(0);
    const Q: ProcessId = ProcessId(1);

    fn link(connection: u32) -> Link {
        let end = |process| End { process, incarnation: 0 };
        Link { sender: end(P), receiver: end(Q), connection }
    }

    /// Messages 1 to 5 go from p to q, message 6 goes back.
    fn in_flight() -> MessagesInFlight {
        let mut in_flight = MessagesInFlight::default();
        for id in 1..=6 {
            let (from, to) = if id == 6 { (Q, P) } else { (P, Q) };
            let (message, tag) = (AnyData::new(()), AnyTag::default());
            in_flight.depart(id, MessageInFlight { from, to, message, tag, copies: 1 });
        }
        in_flight
    }

    #[test]
    fn message_arrives_once_and_at_its_receiver() {
        let mut in_flight = in_flight();
        assert!(in_flight.arrive(P, Q, 6).is_none());
        assert!(in_flight.arrive(P, Q, 7).is_none());
        assert!(in_flight.arrive(Q, P, 6).is_some());
        assert!(in_flight.arrive(Q, P, 6).is_none());
    }

    #[test]
    fn duplicated_message_arrives_twice() {
        let mut in_flight = MessagesInFlight::default();
        let (message, tag) = (AnyData::new(()), AnyTag::default());
        in_flight.depart(1, MessageInFlight { from: P, to: Q, message, tag, copies: 2 });
        assert!(in_flight.arrive(P, Q, 1).is_some());
        assert!(in_flight.arrive(P, Q, 1).is_some());
        assert!(in_flight.arrive(P, Q, 1).is_none());
        assert!(in_flight.is_empty());
    }

    #[test]
    fn messages_left_after_both_ends_closed_are_lost() {
        for sender_first in [true, false] {
            let mut in_flight = in_flight();
            in_flight.arrive(P, Q, 1);
            let lost = if sender_first {
                assert_eq!(in_flight.closed(link(1), 3), [0; 0]);
                in_flight.drained(link(1))
            } else {
                assert_eq!(in_flight.drained(link(1)), [0; 0]);
                in_flight.closed(link(1), 3)
            };
            assert_eq!(lost, [2, 3]);
        }
    }

    #[test]
    fn messages_overtaken_by_a_new_connection_are_lost() {
        let mut in_flight = in_flight();
        assert_eq!(in_flight.overtaken(P, Q, 4), [0; 0]);
        in_flight.closed(link(1), 2);
        assert_eq!(in_flight.overtaken(P, Q, 2), [0; 0]);
        assert_eq!(in_flight.overtaken(Q, P, 6), [0; 0]);
        assert_eq!(in_flight.overtaken(P, Q, 4), [1, 2]);
    }

    #[test]
    fn messages_to_a_crashed_process_are_lost() {
        assert_eq!(in_flight().cut_off(Q), [1, 2, 3, 4, 5]);
        assert_eq!(in_flight().cut_off(P), [6]);
    }
}
