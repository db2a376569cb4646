//! Steps of Sanders, one at a time.

use konklave_process::{Group, Inspect as _, ProcessId, Topology};
use konklave_testkit::{Bench, send, tell};

use super::*;
use crate::mutex::{Fence, Indication, Request};
use crate::{Algorithm as _, Setup};

fn bench(me: u32) -> Bench<Sanders> {
    let group = Group::of(4);
    let mut setup = Setup::new(group.clone(), Topology::complete(4));
    setup.chosen.insert("clock", "requests".into());
    Bench::new(Sanders::new(ProcessId(me), &setup), ProcessId(me), &group)
}

#[test]
fn an_arbiter_stays_free_for_one_who_will_not_inform_it() {
    let mut p0 = bench(0);
    // 1 does not inform 0, so 2 is granted, too; 2 does, so 3 has to wait.
    let locked = |p| [send(p, Message::Locked { request: 1, turn: 0, entries: 0, clock: 0 })];
    assert_eq!(p0.hear(1, Message::Request { time: 1 }), locked(1));
    assert!(p0.process.at_rest());
    assert_eq!(p0.hear(2, Message::Request { time: 1 }), locked(2));
    let waits = [send(3, Message::Failed { request: 1, clock: 0 })];
    assert_eq!(p0.hear(3, Message::Request { time: 1 }), waits);
}

#[test]
fn a_free_arbiter_grants_until_it_is_locked() {
    let mut p0 = bench(0);
    p0.hear(2, Message::Request { time: 1 });
    p0.hear(1, Message::Request { time: 4 });
    p0.hear(3, Message::Request { time: 5 });
    let release = Message::Release { request: 1, entries: 1, clock: 0 };
    let both = [(1, 4), (3, 5)]
        .map(|(p, request)| send(p, Message::Locked { request, turn: 0, entries: 1, clock: 0 }));
    assert_eq!(p0.hear(2, release), both);
}

#[test]
fn one_is_asked_and_not_informed() {
    let mut p0 = bench(0);
    assert_eq!(p0.ask(Request::Acquire), [send(1, Message::Request { time: 1 })]);
    let granted = tell(Indication::Granted { fence: Some(Fence(0, 1)) });
    assert_eq!(
        p0.hear(1, Message::Locked { request: 1, turn: 0, entries: 0, clock: 0 }),
        [granted]
    );
    // The lock that p0 kept for itself goes out at once.
    p0.hear(1, Message::Request { time: 2 });
    let locked = [send(1, Message::Locked { request: 2, turn: 0, entries: 1, clock: 0 })];
    assert_eq!(p0.ask(Request::Release), locked);
}
