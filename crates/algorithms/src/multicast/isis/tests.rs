//! Steps of ISIS ABCAST, one at a time.

use konklave_process::{Effect, Group, Inspect as _, Topology};
use konklave_testkit::{Bench, send, tell};

use super::*;
use crate::{Algorithm as _, Setup};

fn process(me: u32, n: usize) -> Bench<Isis> {
    let setup = Setup::new(Group::of(n), Topology::complete(n));
    Bench::new(Isis::new(ProcessId(me), &setup), ProcessId(me), &setup.group)
}

fn delivered(from: u32, number: u32) -> Effect<Isis> {
    tell(Indication::Delivered(Unit { from: ProcessId(from), number }))
}

const DATA: Message = Message::Data { seq: 1, number: 1 };

fn propose(priority: u32) -> Message {
    Message::Propose { seq: 1, priority }
}

fn settled(number: u32, p: u32) -> Message {
    Message::Final { seq: 1, priority: (number, ProcessId(p)) }
}

#[test]
fn the_highest_proposal_is_final_and_all_must_have_proposed() {
    let mut p = process(0, 3);
    assert_eq!(p.ask(Request::Multicast(1)), [send(1, DATA), send(2, DATA)]);
    assert_eq!(p.hear(1, propose(4)), []);
    assert_eq!(p.hear(1, propose(4)), [], "one that proposes twice is still one");
    let last = [send(1, settled(4, 1)), send(2, settled(4, 1)), delivered(0, 1)];
    assert_eq!(p.hear(2, propose(2)), last);
    assert!(p.process.at_rest());
}

#[test]
fn i3_a_proposal_exceeds_every_final_priority_seen() {
    let mut p = process(2, 3);
    assert_eq!(p.hear(0, DATA), [send(0, propose(1))]);
    p.hear(0, settled(7, 1));
    assert_eq!(p.hear(1, DATA), [send(1, propose(8))]);
}

#[test]
fn i4_a_final_message_waits_behind_one_that_is_not() {
    let mut p = process(2, 3);
    p.hear(0, DATA);
    p.hear(1, DATA);
    assert_eq!(p.hear(1, settled(2, 2)), []);
    assert_eq!(p.hear(0, settled(3, 0)), [delivered(1, 1), delivered(0, 1)]);
}

#[test]
fn i2_of_equal_numbers_the_lower_id_comes_first() {
    let mut p = process(2, 3);
    p.hear(0, DATA);
    p.hear(1, DATA);
    p.hear(0, settled(5, 1));
    assert_eq!(p.hear(1, settled(5, 0)), [delivered(1, 1), delivered(0, 1)]);
}

#[test]
fn alone_a_message_is_final_at_once() {
    assert_eq!(process(0, 1).ask(Request::Multicast(1)), [delivered(0, 1)]);
}
