//! Steps of Total order by timestamps, one at a time.

use konklave_process::{Effect, Group, Topology};
use konklave_testkit::{Bench, send, tell};

use super::*;
use crate::{Algorithm as _, Setup};

fn process(me: u32, n: usize) -> Bench<LamportOrder> {
    let setup = Setup::new(Group::of(n), Topology::complete(n));
    Bench::new(LamportOrder::new(ProcessId(me), &setup), ProcessId(me), &setup.group)
}

fn delivered(from: u32, number: u32) -> Effect<LamportOrder> {
    tell(Indication::Delivered(Unit { from: ProcessId(from), number }))
}

#[test]
fn a_message_waits_for_a_later_timestamp_from_all() {
    let mut p = process(0, 3);
    let data = Message::Data { time: 1, number: 1 };
    assert_eq!(p.ask(Request::Multicast(1)), [send(1, data), send(2, data)]);
    assert_eq!(p.hear(1, Message::Ack { time: 2 }), []);
    assert_eq!(p.hear(2, Message::Ack { time: 2 }), [delivered(0, 1)]);
}

#[test]
fn of_two_of_the_same_time_the_lower_id_comes_first() {
    let mut p = process(1, 2);
    p.ask(Request::Multicast(1));
    let heard = p.hear(0, Message::Data { time: 1, number: 1 });
    assert_eq!(heard, [send(0, Message::Ack { time: 2 }), delivered(0, 1)]);
    assert_eq!(p.hear(0, Message::Ack { time: 2 }), [delivered(1, 1)]);
}

#[test]
fn alone_a_message_is_due_at_once() {
    assert_eq!(process(0, 1).ask(Request::Multicast(1)), [delivered(0, 1)]);
}
