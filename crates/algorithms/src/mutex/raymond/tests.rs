//! Steps of Raymond's tree, one at a time.

use konklave_process::{Group, Inspect as _, Topology};
use konklave_testkit::{Bench, send, tell};

use super::*;
use crate::{Algorithm as _, Setup};

/// Process `me` of a path of three.
fn bench(me: u32, greedy: &str) -> Bench<Raymond> {
    let group = Group::of(3);
    let mut setup = Setup::new(group.clone(), Topology::path(3));
    setup.chosen.insert("greedy", greedy.into());
    Bench::new(Raymond::new(ProcessId(me), &setup), ProcessId(me), &group)
}

fn granted(number: u64) -> konklave_process::Effect<Raymond> {
    tell(Indication::Granted { fence: Some(Fence(0, number)) })
}

#[test]
fn owner_of_the_token_enters_without_a_message() {
    let mut p0 = bench(0, "0");
    assert_eq!(p0.ask(Request::Acquire), [granted(1)]);
    assert_eq!(p0.ask(Request::Release), []);
    assert_eq!(p0.ask(Request::Acquire), [granted(2)]);
}

#[test]
fn one_request_goes_up_for_all_who_queue() {
    let mut p1 = bench(1, "0");
    assert_eq!(p1.hear(2, Message::Request), [send(0, Message::Request)]);
    assert_eq!(p1.ask(Request::Acquire), []);
}

#[test]
fn the_token_goes_to_the_first_and_is_asked_back_for_the_rest() {
    let mut p1 = bench(1, "0");
    p1.hear(2, Message::Request);
    p1.ask(Request::Acquire);
    let token = Message::Token { entries: 4 };
    assert_eq!(p1.hear(0, token), [send(2, token), send(2, Message::Request)]);
    assert_eq!(p1.hear(2, Message::Token { entries: 5 }), [granted(6)]);
    assert!(!p1.process.at_rest());
    assert_eq!(p1.ask(Request::Release), []);
    assert!(p1.process.at_rest());
}

#[test]
fn the_greedy_go_first_as_often_as_they_may() {
    let mut p1 = bench(1, "1");
    p1.hear(2, Message::Request);
    p1.ask(Request::Acquire);
    assert_eq!(p1.hear(0, Message::Token { entries: 0 }), [granted(1)]);
    assert_eq!(p1.ask(Request::Release), [send(2, Message::Token { entries: 1 })]);
    // The second time in a row it has to wait its turn.
    p1.hear(0, Message::Request);
    p1.ask(Request::Acquire);
    let token = Message::Token { entries: 2 };
    assert_eq!(p1.hear(2, token), [send(0, token), send(0, Message::Request)]);
    assert_eq!(p1.hear(0, Message::Token { entries: 2 }), [granted(3)]);
}

#[test]
fn a_request_may_overtake_the_token() {
    let mut p1 = bench(1, "0");
    p1.ask(Request::Acquire);
    assert_eq!(p1.hear(0, Message::Request), []);
    assert_eq!(p1.hear(0, Message::Token { entries: 0 }), [granted(1)]);
    assert_eq!(p1.ask(Request::Release), [send(0, Message::Token { entries: 1 })]);
}

#[test]
fn a_second_request_and_a_second_token_are_unexpected() {
    let mut p1 = bench(1, "0");
    p1.hear(2, Message::Request);
    let unexpected =
        |effects: Vec<_>| matches!(effects[..], [konklave_process::Effect::Unexpected(_)]);
    assert!(unexpected(p1.hear(2, Message::Request)));
    assert!(unexpected(p1.hear(2, Message::Token { entries: 0 })));
}

/// The example of the slides: S1 is the root with the token, S6 and S7 are below S3.
#[test]
fn on_the_slide_s3_asks_once_for_s6_and_s7_and_the_token_visits_both() {
    let group = Group::new((1..=7).map(ProcessId).collect()).unwrap();
    let setup = Setup::new(group.clone(), Topology::kary_tree(7, 2));
    let [mut s1, mut s3, mut s6, mut s7] =
        [1, 3, 6, 7].map(|s| Bench::new(Raymond::new(ProcessId(s), &setup), ProcessId(s), &group));
    let queue = |s: &Bench<Raymond>| s.process.queue.iter().map(|p| p.0).collect::<Vec<_>>();
    let token = |entries| Message::Token { entries };

    assert_eq!(s1.ask(Request::Acquire), [granted(1)]);
    assert_eq!(s6.ask(Request::Acquire), [send(3, Message::Request)]);
    assert_eq!(s3.hear(6, Message::Request), [send(1, Message::Request)]);
    assert_eq!(queue(&s3), [6]);
    assert_eq!(s7.ask(Request::Acquire), [send(3, Message::Request)]);
    assert_eq!(s3.hear(7, Message::Request), []);
    assert_eq!(queue(&s3), [6, 7]);
    assert_eq!(s1.hear(3, Message::Request), []);

    assert_eq!(s1.ask(Request::Release), [send(3, token(1))]);
    assert_eq!(s3.hear(1, token(1)), [send(6, token(1)), send(6, Message::Request)]);
    assert_eq!(queue(&s3), [7]);
    assert_eq!(s6.hear(3, token(1)), [granted(2)]);
    assert_eq!(s6.hear(3, Message::Request), []);

    assert_eq!(s6.ask(Request::Release), [send(3, token(2))]);
    assert_eq!(s3.hear(6, token(2)), [send(7, token(2))]);
    assert_eq!(s7.hear(3, token(2)), [granted(3)]);
    assert_eq!(s7.ask(Request::Release), []);
    assert!([&s1, &s3, &s6, &s7].iter().all(|s| s.process.at_rest()));
    assert_eq!(s1.process.holder, Holder::Neighbour(ProcessId(3)));
    assert_eq!(s3.process.holder, Holder::Neighbour(ProcessId(7)));
}
