//! Steps of Majority voting, one at a time.

use konklave_process::{Group, Inspect as _, Topology};
use konklave_testkit::{Bench, send, tell};

use super::*;
use crate::Algorithm as _;
use crate::mutex::{Fence, Indication, Request};

fn bench(votes: &str) -> Bench<Voting> {
    let group = Group::of(5);
    let mut setup = Setup::new(group.clone(), Topology::complete(5));
    setup.chosen.insert("votes", votes.into());
    setup.chosen.insert("clock", "requests".into());
    Bench::new(Voting::new(ProcessId(0), &setup), ProcessId(0), &group)
}

fn locked() -> Message {
    Message::Locked { request: 1, turn: 0, entries: 0, clock: 0 }
}

#[test]
fn more_than_half_of_the_votes_is_enough() {
    let granted = || tell(Indication::Granted { fence: Some(Fence(0, 1)) });
    let mut p0 = bench("equal");
    assert_eq!(p0.ask(Request::Acquire).len(), 4);
    assert_eq!(p0.hear(3, locked()), []);
    assert_eq!(p0.hear(1, locked()), [granted()]);
    // A vote that comes late is not needed; its voter will hear of our release.
    assert_eq!(p0.hear(4, locked()), []);
    let mut p0 = bench("2,3,0,0,0");
    p0.ask(Request::Acquire);
    assert_eq!(p0.hear(1, locked()), [granted()]);
}

#[test]
fn a_vote_is_given_back_only_when_the_others_cannot_be_enough() {
    let mut p0 = bench("equal");
    p0.ask(Request::Acquire);
    p0.hear(1, locked());
    assert_eq!(p0.hear(1, Message::Inquire { request: 1, clock: 0 }), []);
    assert_eq!(p0.hear(2, Message::Failed { request: 1, clock: 0 }), []);
    assert_eq!(p0.hear(3, Message::Failed { request: 1, clock: 0 }), []);
    let back = [send(1, Message::Relinquish { request: 1, turn: 0, clock: 0 })];
    assert_eq!(p0.clone().hear(4, Message::Failed { request: 1, clock: 0 }), back);
    // A voter that crashed will not vote either.
    assert_eq!(p0.suspect(4), back);
}

#[test]
fn a_release_before_its_request_voids_it() {
    let mut p0 = bench("equal");
    assert_eq!(p0.hear(2, Message::Release { request: 3, entries: 1, clock: 0 }), []);
    assert_eq!(p0.hear(2, Message::Request { time: 3 }), []);
    assert!(p0.process.at_rest());
    let next = [send(2, Message::Locked { request: 4, turn: 0, entries: 1, clock: 0 })];
    assert_eq!(p0.hear(2, Message::Request { time: 4 }), next);
}

#[test]
fn a_release_takes_a_waiting_request_away() {
    let mut p0 = bench("equal");
    p0.hear(1, Message::Request { time: 1 });
    p0.hear(2, Message::Request { time: 1 });
    assert_eq!(p0.hear(2, Message::Release { request: 1, entries: 1, clock: 0 }), []);
    assert_eq!(p0.hear(1, Message::Release { request: 1, entries: 2, clock: 0 }), []);
    assert!(p0.process.at_rest());
}
