//! Steps of Ricart–Agrawala with a token, one at a time.

use konklave_process::{Effect, Group, Topology};
use konklave_testkit::{Bench, tell};

use super::*;
use crate::{Algorithm as _, Setup};

fn bench(me: u32) -> Bench<RicartAgrawalaToken> {
    let group = Group::of(3);
    let setup = Setup::new(group.clone(), Topology::complete(3));
    Bench::new(RicartAgrawalaToken::new(ProcessId(me), &setup), ProcessId(me), &group)
}

/// The token with these numbers.
fn token(numbers: [u32; 3]) -> Message {
    let mut served = ProcessMap::new(&Group::of(3), 0);
    for (p, number) in numbers.into_iter().enumerate() {
        served[ProcessId(p as u32)] = number;
    }
    Message::Token(Arc::new(served))
}

fn send(to: u32, message: Message) -> Effect<RicartAgrawalaToken> {
    konklave_testkit::send(to, message)
}

fn granted(number: u64) -> Effect<RicartAgrawalaToken> {
    tell(Indication::Granted { fence: Some(Fence(0, number)) })
}

#[test]
fn leaving_process_searches_the_ring_from_itself_on() {
    let mut p1 = bench(1);
    assert_eq!(
        p1.ask(Request::Acquire),
        [send(0, Message::Request(1)), send(2, Message::Request(1))]
    );
    p1.hear(0, Message::Request(1));
    p1.hear(2, Message::Request(1));
    assert_eq!(p1.hear(0, token([0, 0, 0])), [granted(1)]);
    assert_eq!(p1.ask(Request::Release), [send(2, token([0, 1, 0]))]);
}

#[test]
fn a_request_that_was_served_does_not_attract_the_token() {
    let mut p0 = bench(0);
    assert_eq!(p0.hear(1, Message::Request(1)), [send(1, token([0, 0, 0]))]);
    p0.ask(Request::Acquire);
    assert_eq!(p0.hear(1, token([0, 1, 0])), [granted(2)]);
    p0.ask(Request::Release);
    assert_eq!(p0.hear(1, Message::Request(1)), []);
    assert_eq!(p0.hear(1, Message::Request(2)), [send(1, token([1, 1, 0]))]);
}

#[test]
fn a_copy_of_an_earlier_token_is_ignored() {
    let mut p1 = bench(1);
    p1.ask(Request::Acquire);
    assert_eq!(p1.hear(0, token([0, 0, 0])), [granted(1)]);
    p1.hear(2, Message::Request(1));
    p1.ask(Request::Release);
    assert_eq!(p1.hear(0, token([0, 0, 0])), []);
    p1.ask(Request::Acquire);
    assert_eq!(p1.hear(0, token([0, 0, 0])), []);
    assert_eq!(p1.hear(2, token([0, 1, 1])), [granted(3)]);
}

#[test]
fn the_holder_enters_again_without_a_message_and_counts_that() {
    let mut p0 = bench(0);
    assert_eq!(p0.ask(Request::Acquire), [granted(1)]);
    assert_eq!(p0.ask(Request::Release), []);
    assert_eq!(p0.ask(Request::Acquire), [granted(2)]);
}
