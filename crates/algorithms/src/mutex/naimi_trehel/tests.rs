//! Steps of Naimi–Tréhel, one at a time.

use konklave_process::{Effect, Group, Inspect as _, Topology};
use konklave_testkit::{Bench, send, tell};

use super::*;
use crate::{Algorithm as _, Setup};

fn bench(me: u32) -> Bench<NaimiTrehel> {
    let group = Group::of(4);
    let setup = Setup::new(group.clone(), Topology::complete(4));
    Bench::new(NaimiTrehel::new(ProcessId(me), &setup), ProcessId(me), &group)
}

fn request(origin: u32) -> Message {
    Message::Request(ProcessId(origin))
}

fn granted(number: u64) -> Effect<NaimiTrehel> {
    tell(Indication::Granted { fence: Some(Fence(0, number)) })
}

#[test]
fn the_idle_root_gives_the_token_to_who_asks() {
    let mut p0 = bench(0);
    assert_eq!(p0.hear(2, request(2)), [send(2, Message::Token { entries: 0 })]);
    assert_eq!(p0.process.last, Some(ProcessId(2)));
}

#[test]
fn a_request_is_passed_on_and_turns_the_pointer() {
    let mut p1 = bench(1);
    assert_eq!(p1.hear(2, request(2)), [send(0, request(2))]);
    assert_eq!(p1.hear(0, request(3)), [send(2, request(3))]);
    assert_eq!(p1.ask(Request::Acquire), [send(3, request(1))]);
}

#[test]
fn a_waiting_root_queues_the_next_and_serves_it_when_it_leaves() {
    let mut p1 = bench(1);
    assert_eq!(p1.ask(Request::Acquire), [send(0, request(1))]);
    assert_eq!(p1.hear(0, request(3)), []);
    assert_eq!(p1.hear(0, request(2)), [send(3, request(2))]);
    assert_eq!(p1.hear(0, Message::Token { entries: 7 }), [granted(8)]);
    assert_eq!(p1.ask(Request::Release), [send(3, Message::Token { entries: 8 })]);
    assert!(p1.process.at_rest());
}

#[test]
fn the_root_enters_again_without_a_message() {
    let mut p0 = bench(0);
    assert_eq!(p0.ask(Request::Acquire), [granted(1)]);
    assert_eq!(p0.ask(Request::Release), []);
    assert_eq!(p0.ask(Request::Acquire), [granted(2)]);
}

#[test]
fn impossible_message_is_unexpected() {
    let mut p1 = bench(1);
    let unexpected = |effects: Vec<_>| matches!(effects[..], [Effect::Unexpected(_)]);
    assert!(unexpected(p1.hear(0, Message::Token { entries: 0 })));
    p1.ask(Request::Acquire);
    assert!(unexpected(p1.hear(0, request(1))));
}
