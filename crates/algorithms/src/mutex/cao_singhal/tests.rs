//! Steps of Cao–Singhal, one at a time.

use konklave_process::{Effect, Group, Inspect as _, Topology};
use konklave_testkit::{Bench, send, tell};

use super::*;
use crate::mutex::Fence;
use crate::{Algorithm as _, Setup};

/// Process 0 asks 3 and 4 and is asked by 3, 4 and 5.
fn bench() -> Bench<CaoSinghal> {
    let group = Group::of(6);
    let mut setup = Setup::new(group.clone(), Topology::complete(6));
    setup.chosen.insert("quorums", "0:3,4;1:3;2:3;3:0,3;4:0,3;5:0,3".into());
    setup.chosen.insert("clock", "requests".into());
    Bench::new(CaoSinghal::new(ProcessId(0), &setup), ProcessId(0), &group)
}

fn at(time: u32, p: u32) -> Timestamp {
    Timestamp { time, process: ProcessId(p) }
}

fn locked(by: u32, lock: u32, request: u32, next: Option<Timestamp>, entries: u32) -> Message {
    Message::Locked { by: ProcessId(by), lock, request, next, entries, clock: 0 }
}

#[test]
fn a_holder_passes_its_lock_on_to_the_oldest_that_was_announced() {
    let mut p0 = bench();
    p0.ask(Request::Acquire);
    p0.hear(3, locked(3, 7, 1, Some(at(9, 5)), 0));
    let granted = tell(Indication::Granted { fence: Some(Fence(0, 3)) });
    // From whom it comes is all one: 2 had the lock of 4 before.
    assert_eq!(p0.hear(2, locked(4, 2, 1, None, 2)), [granted]);
    p0.hear(3, Message::Transfer { lock: 7, next: at(4, 2), clock: 0 });
    p0.hear(3, Message::Transfer { lock: 7, next: at(6, 1), clock: 0 });
    p0.hear(3, Message::Transfer { lock: 5, next: at(1, 1), clock: 0 });
    let forwarded = Some(at(4, 2));
    assert_eq!(
        p0.ask(Request::Release),
        [
            send(2, locked(3, 8, 4, None, 3)),
            send(3, Message::Release { lock: 7, forwarded, entries: 3, clock: 0 }),
            send(4, Message::Release { lock: 2, forwarded: None, entries: 3, clock: 0 }),
        ]
    );
    assert_eq!(p0.hear(3, Message::Transfer { lock: 7, next: at(1, 1), clock: 0 }), []);
    assert!(p0.process.at_rest());
}

#[test]
fn an_arbiter_announces_who_is_next_and_inquires_for_older_requests() {
    let mut p0 = bench();
    let first = locked(0, 1, 5, None, 0);
    assert_eq!(p0.hear(4, Message::Request { time: 5 }), [send(4, first)]);
    let younger = p0.hear(5, Message::Request { time: 5 });
    let waits = send(5, Message::Failed { request: 5, clock: 0 });
    let transfer = Message::Transfer { lock: 1, next: at(5, 5), clock: 0 };
    assert_eq!(younger, [send(4, transfer), waits]);
    let older = p0.hear(3, Message::Request { time: 5 });
    assert_eq!(older, [send(4, Message::Inquire { lock: 1, next: at(5, 3), clock: 0 })]);
    let next = locked(0, 2, 5, Some(at(5, 4)), 0);
    assert_eq!(p0.hear(4, Message::Yield { lock: 1, clock: 0 }), [send(3, next)]);
    assert_eq!(p0.hear(4, Message::Yield { lock: 1, clock: 0 }), []);
}

#[test]
fn releases_out_of_order_are_put_in_order() {
    let mut p0 = bench();
    p0.hear(4, Message::Request { time: 1 });
    p0.hear(5, Message::Request { time: 1 });
    // 5 got the lock from 4, and has left already.
    let release = |lock, forwarded| Message::Release { lock, forwarded, entries: lock, clock: 0 };
    assert_eq!(p0.hear(5, release(2, None)), []);
    assert!(!p0.process.at_rest());
    assert_eq!(p0.hear(4, release(1, Some(at(1, 5)))), []);
    assert!(p0.process.at_rest());
}

#[test]
fn an_older_request_that_came_too_late_for_a_transfer_has_the_new_holder_inquired() {
    let mut p0 = bench();
    p0.hear(4, Message::Request { time: 1 });
    p0.hear(5, Message::Request { time: 2 });
    p0.hear(3, Message::Request { time: 1 });
    let release = Message::Release { lock: 1, forwarded: Some(at(2, 5)), entries: 1, clock: 0 };
    let inquire = Message::Inquire { lock: 2, next: at(1, 3), clock: 0 };
    assert_eq!(p0.hear(4, release), [send(5, inquire)]);
}

#[test]
fn an_inquiry_may_come_before_its_lock_and_one_of_an_earlier_lock_is_void() {
    let mut p0 = bench();
    p0.ask(Request::Acquire);
    p0.hear(4, Message::Failed { request: 1, clock: 0 });
    assert_eq!(p0.hear(3, Message::Inquire { lock: 6, next: at(1, 1), clock: 0 }), []);
    let back = [send(3, Message::Yield { lock: 6, clock: 0 })];
    assert_eq!(p0.clone().hear(3, locked(3, 6, 1, None, 0)), back);
    assert_eq!(p0.hear(3, locked(3, 8, 1, None, 0)), []);
}

#[test]
fn a_lock_that_was_not_asked_for_is_unexpected() {
    let mut p0 = bench();
    let what = "a message about a lock that was not asked for";
    assert_eq!(p0.hear(3, locked(5, 1, 1, None, 0)), [Effect::Unexpected(what)]);
}
