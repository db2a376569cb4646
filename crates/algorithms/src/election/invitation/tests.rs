//! Steps of Invitation, one at a time.

use std::time::Duration;

use konklave_process::{Effect, Group, Input, Topology};
use konklave_testkit::{Bench, send, set, tell};

use super::*;
use crate::{Algorithm as _, Setup};

const W: Duration = Duration::from_millis(5);

fn process(me: u32, n: usize) -> Bench<Invitation> {
    let setup = Setup::new(Group::of(n), Topology::complete(n));
    let process = Invitation::new(ProcessId(me), &setup);
    let mut bench = Bench::new(process, ProcessId(me), &setup.group);
    bench.start();
    bench
}

fn number(count: u32, coordinator: u32) -> GroupNumber {
    GroupNumber { count, coordinator: ProcessId(coordinator) }
}

/// The effects of a step, without cancelled timers.
fn hear(bench: &mut Bench<Invitation>, from: u32, message: Message) -> Vec<Effect<Invitation>> {
    let effects = bench.hear(from, message);
    effects.into_iter().filter(|e| !matches!(e, Effect::CancelTimer { .. })).collect()
}

#[test]
fn everyone_begins_as_its_own_coordinator_and_counts_on_after_a_crash() {
    let mut p = process(1, 3);
    assert_eq!(p.process.leader(), Some(ProcessId(1)));
    let effects = p.step(Input::Recover(Some(7)));
    assert!(effects.contains(&Effect::Save(8)));
    assert!(effects.contains(&tell(Indication::Leading { epoch: 8 * 3 + 1 })));
}

#[test]
fn the_higher_the_id_the_shorter_the_wait() {
    for (me, wait) in [(2, 0), (1, 1), (0, 2)] {
        let mut p = process(me, 3);
        p.fire(Timer::Check);
        p.hear((me + 1) % 3, Message::Coordinator(true));
        assert_eq!(p.fire(Timer::Answers), [set(Timer::Merge, wait * W)]);
    }
    let mut alone = process(0, 3);
    alone.hear(1, Message::Coordinator(false));
    assert_eq!(alone.fire(Timer::Answers), [set(Timer::Check, 4 * W)]);
}

#[test]
fn a_coordinator_that_is_invited_brings_its_group_along() {
    let mut p = process(1, 4);
    p.process.status = Status::Coordinator {
        members: [ProcessId(0)].into_iter().collect(),
        found: ProcessSet::new(),
    };
    let effects = hear(&mut p, 3, Message::Invite(number(2, 3)));
    let accept = send(3, Message::Accept(number(2, 3)));
    let forward = send(0, Message::Invite(number(2, 3)));
    assert_eq!(effects[..3], [tell(Indication::Deposed), forward, accept]);
    assert_eq!(hear(&mut p, 2, Message::Invite(number(2, 2))), [], "one at a time");
}

#[test]
fn a_group_is_led_when_all_who_came_have_confirmed() {
    let mut p = process(2, 3);
    p.hear(0, Message::Coordinator(true));
    p.hear(1, Message::Coordinator(true));
    p.fire(Timer::Merge);
    let new = number(2, 2);
    assert_eq!(hear(&mut p, 0, Message::Accept(new)), [send(0, Message::Accepted(new, true))]);
    let effects = p.fire(Timer::Accepts);
    assert_eq!(effects[0], send(0, Message::Ready(new)));
    let late = send(1, Message::Accepted(new, false));
    assert_eq!(hear(&mut p, 1, Message::Accept(new)), [late]);
    assert_eq!(hear(&mut p, 0, Message::Confirm(number(1, 2))), [], "of another group");
    let effects = hear(&mut p, 0, Message::Confirm(new));
    assert_eq!(effects[0], tell(Indication::Leading { epoch: 2 * 3 + 2 }));
}

#[test]
fn only_the_ready_of_the_group_it_waits_for_makes_a_member() {
    let mut p = process(0, 2);
    p.hear(1, Message::Invite(number(5, 1)));
    assert_eq!(hear(&mut p, 1, Message::Ready(number(4, 1))), []);
    let effects = hear(&mut p, 1, Message::Ready(number(5, 1)));
    let following = Indication::Following { leader: Some(ProcessId(1)), epoch: 11 };
    assert_eq!(effects[0], tell(following));
    assert_eq!(effects.last(), Some(&send(1, Message::Confirm(number(5, 1)))));
}

#[test]
fn refused_or_unanswered_process_founds_its_own_group() {
    for timer in [None, Some(Timer::There)] {
        let mut p = process(0, 2);
        p.hear(1, Message::Invite(number(5, 1)));
        p.hear(1, Message::Ready(number(5, 1)));
        p.fire(Timer::Ask);
        let no = Message::There(number(5, 1), false);
        match timer {
            None => p.hear(1, no),
            Some(timer) => p.fire(timer),
        };
        assert_eq!((p.process.leader(), p.process.count), (Some(ProcessId(0)), 2));
    }
}
