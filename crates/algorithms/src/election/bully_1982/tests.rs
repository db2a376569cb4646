//! Steps of Bully of 1982, one at a time.

use std::time::Duration;

use konklave_process::{Group, Input, Inspect as _, Topology};
use konklave_testkit::{Bench, send, set, tell};

use super::*;
use crate::{Algorithm as _, Setup};

const T: Duration = Duration::from_millis(5);

fn process(me: u32) -> Bench<Bully1982> {
    let mut setup = Setup::new(Group::of(4), Topology::complete(4));
    setup.chosen.insert("check", "0".to_owned());
    Bench::new(Bully1982::new(ProcessId(me), &setup), ProcessId(me), &setup.group)
}

/// Lets `from` call `call`: whether it says yes, and what was told.
fn call(p: &mut Bench<Bully1982>, from: u32, call: Call) -> (bool, Option<ProcessId>) {
    let effects = p.hear(from, Message::Call(call));
    let yes = effects.last() == Some(&send(from, Message::Return(call, true)));
    (yes, p.process.coordinator())
}

#[test]
fn higher_processes_are_called_one_by_one_until_one_answers() {
    let mut p = process(1);
    let effects = p.ask(Request::Elect);
    let there = Message::Call(Call::AreYouThere);
    assert_eq!(effects[2..], [send(2, there), set(Timer::Return, T)]);
    assert_eq!(p.fire(Timer::Return), [send(3, there), set(Timer::Return, T)]);
    p.hear(3, Message::Return(Call::AreYouThere, true));
    assert_eq!(p.process.calling, None);
}

#[test]
fn lower_processes_are_halted_from_the_top_then_informed_then_started() {
    let mut p = process(3);
    p.ask(Request::Elect);
    for peer in [2, 1, 0] {
        assert_eq!(p.process.calling, Some((Loop::Halt, ProcessId(peer))));
        match peer {
            1 => p.fire(Timer::Return),
            peer => p.hear(peer, Message::Return(Call::Halt, true)),
        };
    }
    assert_eq!(p.process.coordinator(), Some(ProcessId(3)));
    for (which, peer) in [(Loop::Name, 0), (Loop::Name, 2), (Loop::Ready, 0), (Loop::Ready, 2)] {
        assert!(!p.process.at_rest());
        assert_eq!(p.process.calling, Some((which, ProcessId(peer))), "1 is not there");
        p.hear(peer, Message::Return(which.call(), true));
    }
    assert!(p.process.at_rest());
}

#[test]
fn only_who_halted_it_last_is_followed() {
    let mut p = process(0);
    assert_eq!(call(&mut p, 2, Call::NewCoordinator), (false, None));
    assert_eq!(call(&mut p, 2, Call::Halt), (true, None));
    assert_eq!(call(&mut p, 3, Call::Halt), (true, None));
    assert_eq!(call(&mut p, 2, Call::NewCoordinator), (false, None));
    assert_eq!(call(&mut p, 3, Call::NewCoordinator), (true, Some(ProcessId(3))));
    assert_eq!(call(&mut p, 2, Call::Ready), (false, Some(ProcessId(3))));
    assert_eq!(call(&mut p, 3, Call::AreYouNormal), (false, Some(ProcessId(3))));
    assert_eq!(call(&mut p, 3, Call::Ready), (true, Some(ProcessId(3))));
    assert_eq!(call(&mut p, 3, Call::AreYouNormal), (true, Some(ProcessId(3))));
}

#[test]
fn halted_process_gives_up_its_own_election() {
    let mut p = process(1);
    p.step(Input::Recover(None));
    assert!(p.process.calling.is_some());
    call(&mut p, 3, Call::Halt);
    assert_eq!(p.process.calling, None);
    assert_eq!(p.hear(2, Message::Return(Call::AreYouThere, true)), []);
}

#[test]
fn a_member_that_fails_during_the_reorganisation_makes_it_begin_anew() {
    let mut p = process(3);
    p.ask(Request::Elect);
    for peer in [2, 1, 0] {
        p.hear(peer, Message::Return(Call::Halt, true));
    }
    let effects = p.fire(Timer::Return);
    assert!(effects.contains(&tell(Indication::Deposed)), "{effects:?}");
    assert_eq!(p.process.calling, Some((Loop::Halt, ProcessId(2))));
}
