//! Steps of Neilsen–Mizuno, one at a time.

use konklave_process::{Effect, Group, Inspect as _, Topology};
use konklave_testkit::{Bench, send, tell};

use super::*;
use crate::{Algorithm as _, Setup};

/// Process `me` of a path of four.
fn bench(me: u32) -> Bench<NeilsenMizuno> {
    let group = Group::of(4);
    let setup = Setup::new(group.clone(), Topology::path(4));
    Bench::new(NeilsenMizuno::new(ProcessId(me), &setup), ProcessId(me), &group)
}

fn request(origin: u32) -> Message {
    Message::Request(ProcessId(origin))
}

#[test]
fn a_request_goes_on_and_turns_its_edge() {
    let mut p1 = bench(1);
    assert_eq!(p1.hear(2, request(3)), [send(0, request(3))]);
    assert_eq!(p1.hear(0, request(0)), [send(2, request(0))]);
    assert_eq!(p1.ask(Request::Acquire), [send(0, request(1))]);
}

#[test]
fn the_idle_sink_sends_the_token_past_the_tree() {
    let mut p0 = bench(0);
    assert_eq!(p0.hear(1, request(3)), [send(3, Message::Token { entries: 0 })]);
    assert_eq!(p0.process.last, Some(ProcessId(1)));
}

#[test]
fn a_waiting_sink_queues_the_next_and_serves_it_when_it_leaves() {
    let mut p2 = bench(2);
    assert_eq!(p2.ask(Request::Acquire), [send(1, request(2))]);
    assert_eq!(p2.hear(1, request(0)), []);
    assert_eq!(p2.hear(3, request(3)), [send(1, request(3))]);
    let granted = tell(Indication::Granted { fence: Some(Fence(0, 6)) });
    assert_eq!(p2.hear(0, Message::Token { entries: 5 }), [granted]);
    assert_eq!(p2.ask(Request::Release), [send(0, Message::Token { entries: 6 })]);
    assert!(p2.process.at_rest());
}

#[test]
fn a_token_that_nobody_asked_for_is_unexpected() {
    let effects = bench(1).hear(0, Message::Token { entries: 0 });
    assert!(matches!(effects[..], [Effect::Unexpected(_)]));
}
