//! Steps of Lamport, one at a time.

use konklave_process::{Group, Inspect as _, Topology};
use konklave_testkit::{Bench, send, tell};

use super::*;
use crate::{Algorithm as _, Setup};

fn bench(me: u32, acks: &str) -> Bench<Lamport> {
    let mut setup = Setup::new(Group::of(3), Topology::complete(3));
    setup.chosen.insert("acks", acks.into());
    Bench::new(Lamport::new(ProcessId(me), &setup), ProcessId(me), &setup.group)
}

fn granted(time: u64, id: u64) -> konklave_process::Effect<Lamport> {
    tell(Indication::Granted { fence: Some(Fence(time, id)) })
}

#[test]
fn a_request_is_acknowledged_with_a_later_time() {
    let mut p1 = bench(1, "all");
    let asked = p1.hear(0, Message::Request { timestamp: 4 });
    assert_eq!(asked, [send(0, Message::Ack { clock: 5 })]);
    assert!(!p1.process.at_rest());
    p1.hear(0, Message::Release { request: 4, clock: 6 });
    assert!(p1.process.at_rest());
}

#[test]
fn the_first_of_the_queue_enters_when_all_have_been_heard() {
    let mut p1 = bench(1, "all");
    let request = Message::Request { timestamp: 1 };
    assert_eq!(p1.ask(Request::Acquire), [send(0, request), send(2, request)]);
    assert_eq!(p1.hear(0, Message::Ack { clock: 2 }), []);
    assert_eq!(p1.hear(2, Message::Ack { clock: 2 }), [granted(1, 1)]);
    let release = Message::Release { request: 1, clock: 3 };
    assert_eq!(p1.ask(Request::Release), [send(0, release), send(2, release)]);
}

#[test]
fn an_equal_request_of_a_higher_id_counts_as_later_and_of_a_lower_one_goes_first() {
    let mut p1 = bench(1, "suppressed");
    p1.ask(Request::Acquire);
    let younger = p1.hear(2, Message::Request { timestamp: 1 });
    assert_eq!(younger, [send(2, Message::Ack { clock: 2 })]);
    // p0's request is older: ours is on its way to p0, and tells it so.
    assert_eq!(p1.hear(0, Message::Request { timestamp: 1 }), []);
    assert_eq!(p1.hear(0, Message::Release { request: 1, clock: 3 }), [granted(1, 1)]);
}

#[test]
fn an_acknowledgement_of_an_earlier_request_does_not_count() {
    let mut p1 = bench(1, "all");
    p1.hear(0, Message::Request { timestamp: 6 });
    p1.hear(0, Message::Release { request: 6, clock: 7 });
    p1.ask(Request::Acquire);
    p1.hear(2, Message::Ack { clock: 9 });
    assert_eq!(p1.hear(0, Message::Ack { clock: 8 }), []);
    assert_eq!(p1.hear(0, Message::Ack { clock: 10 }), [granted(8, 1)]);
}
