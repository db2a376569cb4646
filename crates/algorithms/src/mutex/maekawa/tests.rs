//! Steps of Maekawa, one at a time.

use konklave_process::{Effect, Group, Inspect as _, Topology};
use konklave_testkit::{Bench, send, tell};

use super::sheet::NO_DISPLACED_FAILED;
use super::*;
use crate::mutex::Fence;
use crate::{Algorithm as _, Setup};

/// Process 0 asks 0 and 1; it is an arbiter of all.
fn bench(mistake: Option<&'static str>) -> Bench<Maekawa> {
    bench_with("requests", mistake)
}

fn bench_with(clock: &str, mistake: Option<&'static str>) -> Bench<Maekawa> {
    let group = Group::of(4);
    let mut setup = Setup::new(group.clone(), Topology::complete(4));
    setup.chosen.insert("quorums", "0:0,1;1:0;2:0;3:0".into());
    setup.mistake = mistake;
    setup.chosen.insert("clock", clock.into());
    Bench::new(Maekawa::new(ProcessId(0), &setup), ProcessId(0), &group)
}

fn locked(to: u32, request: u32) -> Effect<Maekawa> {
    send(to, Message::Locked { request, turn: 0, entries: 0, clock: 0 })
}

#[test]
fn an_arbiter_locks_itself_for_one_request_and_has_younger_ones_wait() {
    let mut p0 = bench(None);
    assert_eq!(p0.hear(1, Message::Request { time: 1 }), [locked(1, 1)]);
    let waits = send(2, Message::Failed { request: 1, clock: 0 });
    assert_eq!(p0.hear(2, Message::Request { time: 1 }), [waits]);
    assert!(!p0.process.at_rest());
    let after = Message::Release { request: 1, entries: 7, clock: 0 };
    let next = send(2, Message::Locked { request: 1, turn: 0, entries: 7, clock: 0 });
    assert_eq!(p0.hear(1, after), [next]);
    assert_eq!(p0.hear(2, Message::Release { request: 1, entries: 8, clock: 0 }), []);
    assert!(p0.process.at_rest());
}

#[test]
fn arbiter_inquires_once_for_older_requests_and_fails_displaced_ones() {
    let mut p0 = bench(None);
    p0.hear(3, Message::Request { time: 5 });
    let inquire = send(3, Message::Inquire { request: 5, clock: 0 });
    assert_eq!(p0.hear(2, Message::Request { time: 4 }), [inquire]);
    let displaced = send(2, Message::Failed { request: 4, clock: 0 });
    assert_eq!(p0.hear(1, Message::Request { time: 4 }), [displaced]);
    assert_eq!(p0.hear(3, Message::Relinquish { request: 5, turn: 0, clock: 0 }), [locked(1, 4)]);
    // An old answer is none.
    assert_eq!(p0.hear(3, Message::Relinquish { request: 5, turn: 0, clock: 0 }), []);
    let mut flawed = bench(Some(NO_DISPLACED_FAILED.name));
    flawed.hear(3, Message::Request { time: 5 });
    flawed.hear(2, Message::Request { time: 4 });
    assert_eq!(flawed.hear(1, Message::Request { time: 4 }), []);
}

#[test]
fn with_all_locks_it_enters_with_the_next_number_and_writes_it_back() {
    let mut p0 = bench(None);
    let asks = send(1, Message::Request { time: 1 });
    assert_eq!(p0.ask(Request::Acquire), [asks]);
    let granted = tell(Indication::Granted { fence: Some(Fence(0, 5)) });
    assert_eq!(
        p0.hear(1, Message::Locked { request: 1, turn: 0, entries: 4, clock: 0 }),
        [granted]
    );
    let leaves = send(1, Message::Release { request: 1, entries: 5, clock: 0 });
    assert_eq!(p0.ask(Request::Release), [leaves]);
    assert!(p0.process.at_rest());
}

#[test]
fn waiting_process_relinquishes_a_lock_and_counts_it_as_missing() {
    let mut p0 = bench(None);
    p0.hear(2, Message::Request { time: 1 });
    // Its own arbiter is locked for 2, whose request is older.
    p0.ask(Request::Acquire);
    assert_eq!(p0.hear(1, Message::Inquire { request: 2, clock: 0 }), []);
    let back = |turn| [send(1, Message::Relinquish { request: 2, turn, clock: 0 })];
    let lock = |turn| Message::Locked { request: 2, turn, entries: 0, clock: 0 };
    assert_eq!(p0.hear(1, lock(0)), back(0));
    // The copy of a lock that it gave back is none.
    assert_eq!(p0.hear(1, lock(0)), []);
    assert_eq!(p0.clone().hear(1, Message::Inquire { request: 2, clock: 0 }), []);
    assert_eq!(p0.hear(1, lock(1)), []);
    assert_eq!(p0.hear(1, Message::Inquire { request: 2, clock: 0 }), back(1));
}

#[test]
fn an_arbiter_that_took_a_copy_for_a_request_is_told_that_it_is_over() {
    let mut p0 = bench(None);
    p0.ask(Request::Acquire);
    let lock = Message::Locked { request: 1, turn: 0, entries: 0, clock: 0 };
    p0.hear(1, lock);
    assert_eq!(p0.hear(1, lock), []);
    let release = send(1, Message::Release { request: 1, entries: 1, clock: 0 });
    assert_eq!(p0.ask(Request::Release), std::slice::from_ref(&release));
    assert_eq!(p0.hear(1, lock), [release]);
}

#[test]
fn the_copy_of_a_return_does_not_give_the_next_lock_back() {
    let mut p0 = bench(None);
    p0.hear(3, Message::Request { time: 5 });
    p0.hear(2, Message::Request { time: 4 });
    let back = Message::Relinquish { request: 5, turn: 0, clock: 0 };
    assert_eq!(p0.hear(3, back), [locked(2, 4)]);
    let again = Message::Locked { request: 5, turn: 1, entries: 1, clock: 0 };
    let release = Message::Release { request: 4, entries: 1, clock: 0 };
    assert_eq!(p0.hear(2, release), [send(3, again)]);
    p0.hear(1, Message::Request { time: 4 });
    assert_eq!(p0.hear(3, back), []);
}

#[test]
fn messages_about_an_earlier_request_are_ignored() {
    let mut p0 = bench(None);
    p0.ask(Request::Acquire);
    p0.hear(1, Message::Locked { request: 1, turn: 0, entries: 0, clock: 0 });
    assert_eq!(p0.hear(1, Message::Inquire { request: 1, clock: 0 }), []);
    p0.ask(Request::Release);
    p0.ask(Request::Acquire);
    for old in [Message::Inquire { request: 1, clock: 0 }, Message::Failed { request: 1, clock: 0 }]
    {
        let before = p0.process.clone();
        assert_eq!(p0.hear(1, old), []);
        assert_eq!(p0.process, before);
    }
}

#[test]
fn every_message_carries_the_clock_and_moves_that_of_its_receiver() {
    let mut p0 = bench_with("full", None);
    let locked = send(1, Message::Locked { request: 7, turn: 0, entries: 0, clock: 7 });
    assert_eq!(p0.hear(1, Message::Request { time: 7 }), [locked]);
    assert_eq!(p0.hear(1, Message::Release { request: 7, entries: 1, clock: 9 }), []);
    assert_eq!(p0.ask(Request::Acquire), [send(1, Message::Request { time: 10 })]);
    p0.hear(1, Message::Locked { request: 10, turn: 0, entries: 1, clock: 12 });
    let leaves = Message::Release { request: 10, entries: 2, clock: 12 };
    assert_eq!(p0.ask(Request::Release), [send(1, leaves)]);
    // As the sources have it, answers carry no time.
    let mut p0 = bench(None);
    p0.hear(1, Message::Request { time: 7 });
    p0.hear(1, Message::Release { request: 7, entries: 1, clock: 0 });
    assert_eq!(p0.ask(Request::Acquire), [send(1, Message::Request { time: 8 })]);
}

#[test]
fn an_answer_from_a_stranger_is_unexpected() {
    let mut p0 = bench(None);
    p0.ask(Request::Acquire);
    let effects = p0.hear(3, Message::Locked { request: 1, turn: 0, entries: 0, clock: 0 });
    assert_eq!(effects, [Effect::Unexpected("an answer of a process that was not asked")]);
}

#[test]
fn in_a_tree_those_below_stand_in_for_one_that_crashed() {
    let mut setup = Setup::new(Group::of(3), Topology::complete(3));
    setup.chosen.extend([("quorums", "tree".into()), ("clock", "requests".into())]);
    let mut p1 = Bench::new(Maekawa::new(ProcessId(1), &setup), ProcessId(1), &setup.group);
    let request = Message::Request { time: 1 };
    assert_eq!(p1.ask(Request::Acquire), [send(0, request)]);
    assert_eq!(p1.suspect(0), [send(2, request)]);
    // Its own lock and that of p2 will do; p0 may only be slow, and is told as well.
    let granted = tell(Indication::Granted { fence: Some(Fence(0, 1)) });
    let lock = Message::Locked { request: 1, turn: 0, entries: 0, clock: 0 };
    assert_eq!(p1.hear(2, lock), [granted]);
    let release = Message::Release { request: 1, entries: 1, clock: 0 };
    assert_eq!(p1.ask(Request::Release), [send(0, release), send(2, release)]);
    // From now on p0 is not even asked.
    let request = Message::Request { time: 2 };
    assert_eq!(p1.ask(Request::Acquire), [send(2, request)]);
}
