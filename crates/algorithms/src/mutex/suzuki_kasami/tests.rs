//! Steps of Suzuki–Kasami, one at a time.

use konklave_process::{Effect, Group, Inspect as _, Topology};
use konklave_testkit::{Bench, tell};

use super::*;
use crate::{Algorithm as _, Setup};

fn bench(me: u32) -> Bench<SuzukiKasami> {
    let group = Group::of(3);
    let setup = Setup::new(group.clone(), Topology::complete(3));
    Bench::new(SuzukiKasami::new(ProcessId(me), &setup), ProcessId(me), &group)
}

/// The token with these numbers and this queue.
fn token(numbers: [u32; 3], queue: &[u32]) -> Message {
    let mut served = ProcessMap::new(&Group::of(3), 0);
    for (p, number) in numbers.into_iter().enumerate() {
        served[ProcessId(p as u32)] = number;
    }
    let queue = queue.iter().copied().map(ProcessId).collect();
    Message::Token(Arc::new(Token { served, queue }))
}

fn send(to: u32, message: Message) -> Effect<SuzukiKasami> {
    konklave_testkit::send(to, message)
}

fn granted(number: u64) -> Effect<SuzukiKasami> {
    tell(Indication::Granted { fence: Some(Fence(0, number)) })
}

#[test]
fn leaving_process_queues_open_requests_from_its_successor_on() {
    let mut p1 = bench(1);
    let request = |number| Message::Request(number);
    assert_eq!(p1.ask(Request::Acquire), [send(0, request(1)), send(2, request(1))]);
    p1.hear(0, request(3));
    p1.hear(2, request(1));
    assert_eq!(p1.hear(0, token([2, 0, 0], &[])), [granted(3)]);
    assert_eq!(p1.ask(Request::Release), [send(2, token([2, 1, 0], &[0]))]);
}

#[test]
fn an_idle_holder_gives_the_token_to_an_open_request_only() {
    let mut p0 = bench(0);
    assert_eq!(p0.hear(1, Message::Request(1)), [send(1, token([0, 0, 0], &[]))]);
    p0.ask(Request::Acquire);
    assert_eq!(p0.hear(1, token([0, 1, 0], &[])), [granted(2)]);
    p0.ask(Request::Release);
    assert_eq!(p0.hear(1, Message::Request(1)), []);
    assert!(p0.process.at_rest());
}

#[test]
fn a_copy_of_an_earlier_token_is_ignored() {
    let mut p1 = bench(1);
    p1.ask(Request::Acquire);
    assert_eq!(p1.hear(0, token([0, 0, 0], &[])), [granted(1)]);
    p1.hear(2, Message::Request(1));
    assert_eq!(p1.ask(Request::Release), [send(2, token([0, 1, 0], &[]))]);
    assert_eq!(p1.hear(0, token([0, 0, 0], &[])), []);
    p1.ask(Request::Acquire);
    assert_eq!(p1.hear(0, token([0, 0, 0], &[])), []);
    assert_eq!(p1.hear(2, token([0, 1, 1], &[])), [granted(3)]);
}
