//! Steps of Central coordinator, one at a time.

use konklave_process::{Group, Inspect as _, Topology};
use konklave_testkit::{Bench, send, tell};

use super::*;
use crate::{Algorithm as _, Setup};

fn bench(me: u32) -> Bench<Central> {
    let setup = Setup::new(Group::of(3), Topology::complete(3));
    Bench::new(Central::new(ProcessId(me), &setup), ProcessId(me), &setup.group)
}

fn granted(number: u64) -> Indication {
    Indication::Granted { fence: Some(Fence(0, number)) }
}

#[test]
fn the_coordinator_grants_in_the_order_of_arrival() {
    let mut p0 = bench(0);
    assert_eq!(p0.hear(2, Message::Request(1)), [send(2, Message::Grant { request: 1, fence: 1 })]);
    assert_eq!(p0.hear(1, Message::Request(1)), []);
    assert_eq!(p0.ask(Request::Acquire), []);
    assert_eq!(p0.hear(2, Message::Release(1)), [send(1, Message::Grant { request: 1, fence: 2 })]);
    assert_eq!(p0.hear(1, Message::Release(1)), [tell(granted(3))]);
}

#[test]
fn the_coordinator_pays_nothing() {
    let mut p0 = bench(0);
    assert_eq!(p0.ask(Request::Acquire), [tell(granted(1))]);
    assert_eq!(p0.ask(Request::Release), []);
    assert!(p0.process.at_rest());
}

#[test]
fn a_duplicate_changes_nothing() {
    let mut p0 = bench(0);
    p0.hear(1, Message::Request(1));
    p0.hear(2, Message::Request(1));
    assert_eq!(p0.hear(1, Message::Request(1)), []);
    assert_eq!(p0.hear(1, Message::Release(1)).len(), 1);
    assert_eq!(p0.hear(1, Message::Release(1)), []);
}

#[test]
fn a_grant_for_an_older_request_is_ignored() {
    let mut p1 = bench(1);
    assert_eq!(p1.ask(Request::Acquire), [send(0, Message::Request(1))]);
    assert_eq!(p1.hear(0, Message::Grant { request: 0, fence: 7 }), []);
    assert_eq!(p1.hear(0, Message::Grant { request: 1, fence: 8 }), [tell(granted(8))]);
}
