//! What is on its way.

use std::collections::BTreeMap;

use konklave_process::{AnyData, AnyTag, ProcessId};

use crate::transport::Link;

/// A message on its way. The tag stays here: the wire carries what the algorithm says, and no more.
pub(super) struct Flight {
    pub(super) from: ProcessId,
    pub(super) to: ProcessId,
    pub(super) message: AnyData,
    pub(super) tag: AnyTag,
}

/// All messages on their way, by number. A later message of a channel has a higher number.
#[derive(Default)]
pub(super) struct Flights {
    all: BTreeMap<u64, Flight>,
    half_closed: Vec<HalfClosed>,
}

/// A connection of which one end is closed. When both are, what is still on its way is lost.
struct HalfClosed {
    link: Link,
    /// The last message given to it, if it was the sender who closed.
    last: Option<u64>,
}

impl Flights {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn depart(&mut self, id: u64, flight: Flight) {
        self.all.insert(id, flight);
    }

    /// Takes message `id`, if it is on its way from `from` to `to`.
    pub(super) fn arrive(&mut self, from: ProcessId, to: ProcessId, id: u64) -> Option<Flight> {
        let flight = self.all.get(&id)?;
        if (flight.from, flight.to) != (from, to) {
            return None;
        }
        self.all.remove(&id)
    }

    pub(super) fn remove(&mut self, id: u64) -> Option<Flight> {
        self.all.remove(&id)
    }

    /// What went through earlier connections and comes too late now that message `id` is here:
    /// channels keep their order.
    pub(super) fn overtaken(&self, from: ProcessId, to: ProcessId, id: u64) -> Vec<u64> {
        let earlier = self.half_closed.iter().filter_map(|HalfClosed { link, last }| {
            let same = (link.sender.process, link.receiver.process) == (from, to);
            last.filter(|last| same && *last < id)
        });
        earlier.max().map_or(Vec::new(), |last| self.up_to(from, to, last))
    }

    /// The sender closed `link` after it had given message `last` to it: what is lost by that.
    pub(super) fn closed(&mut self, link: Link, last: u64) -> Vec<u64> {
        if self.take(link).is_some() {
            return self.up_to(link.sender.process, link.receiver.process, last);
        }
        self.half_closed.push(HalfClosed { link, last: Some(last) });
        Vec::new()
    }

    /// The receiver handled all that came through `link`: what is lost by that.
    pub(super) fn drained(&mut self, link: Link) -> Vec<u64> {
        if let Some(HalfClosed { last: Some(last), .. }) = self.take(link) {
            return self.up_to(link.sender.process, link.receiver.process, last);
        }
        self.half_closed.push(HalfClosed { link, last: None });
        Vec::new()
    }

    /// Nothing reaches `p` any more: what is lost by that.
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
    fn flights() -> Flights {
        let mut flights = Flights::default();
        for id in 1..=6 {
            let (from, to) = if id == 6 { (Q, P) } else { (P, Q) };
            let (message, tag) = (AnyData::new(()), AnyTag::default());
            flights.depart(id, Flight { from, to, message, tag });
        }
        flights
    }

    #[test]
    fn a_message_arrives_once_and_where_it_was_sent() {
        let mut flights = flights();
        assert!(flights.arrive(P, Q, 6).is_none());
        assert!(flights.arrive(P, Q, 7).is_none());
        assert!(flights.arrive(Q, P, 6).is_some());
        assert!(flights.arrive(Q, P, 6).is_none());
    }

    #[test]
    fn what_is_left_when_both_ends_are_closed_is_lost() {
        for sender_first in [true, false] {
            let mut flights = flights();
            flights.arrive(P, Q, 1);
            let lost = if sender_first {
                assert_eq!(flights.closed(link(1), 3), [0; 0]);
                flights.drained(link(1))
            } else {
                assert_eq!(flights.drained(link(1)), [0; 0]);
                flights.closed(link(1), 3)
            };
            assert_eq!(lost, [2, 3]);
        }
    }

    #[test]
    fn what_a_new_connection_overtakes_is_lost() {
        let mut flights = flights();
        assert_eq!(flights.overtaken(P, Q, 4), [0; 0]);
        flights.closed(link(1), 2);
        assert_eq!(flights.overtaken(P, Q, 2), [0; 0]);
        assert_eq!(flights.overtaken(Q, P, 6), [0; 0]);
        assert_eq!(flights.overtaken(P, Q, 4), [1, 2]);
    }

    #[test]
    fn who_is_cut_off_gets_nothing() {
        assert_eq!(flights().cut_off(Q), [1, 2, 3, 4, 5]);
        assert_eq!(flights().cut_off(P), [6]);
    }
}
