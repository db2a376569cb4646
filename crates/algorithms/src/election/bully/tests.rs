//! Steps of Bully, one at a time.

use konklave_process::{Effect, Group, Input, Inspect as _, Topology};
use konklave_testkit::{Bench, send, set, tell};

use super::*;
use crate::{Algorithm as _, Setup};

const T: Duration = Duration::from_millis(5);

fn process(me: u32, n: usize, mode: &str) -> Bench<Bully> {
    let mut setup = Setup::new(Group::of(n), Topology::complete(n));
    setup.chosen.insert("mode", mode.to_owned());
    Bench::new(Bully::new(ProcessId(me), &setup), ProcessId(me), &setup.group)
}

fn election() -> Message {
    Message::Election(Reign::default())
}

/// Hears `message` and forgets timers that stop: only the rest is looked at.
fn hear(bench: &mut Bench<Bully>, from: u32, message: Message) -> Vec<Effect<Bully>> {
    let effects = bench.hear(from, message);
    effects.into_iter().filter(|e| !matches!(e, Effect::CancelTimer { .. })).collect()
}

#[test]
fn an_initiator_asks_all_above_it() {
    let mut p = process(1, 4, "textbook");
    let effects = p.ask(Request::Elect);
    assert_eq!(effects[..2], [send(2, election()), send(3, election())]);
    assert_eq!(effects.last(), Some(&set(Timer::Answer, T)));
    assert_eq!(p.ask(Request::Elect), [], "one election at a time");
}

#[test]
fn who_is_asked_answers_and_asks_those_above_but_only_once() {
    let mut p = process(1, 3, "textbook");
    let effects = hear(&mut p, 0, election());
    assert_eq!(effects, [send(0, Message::Answer), send(2, election()), set(Timer::Answer, T)]);
    assert_eq!(hear(&mut p, 0, election()), [send(0, Message::Answer)]);
}

#[test]
fn who_hears_no_answer_leads_those_below() {
    let mut p = process(1, 3, "textbook");
    p.ask(Request::Elect);
    let effects = p.fire(Timer::Answer);
    let leading = tell(Indication::Leading { epoch: 0 });
    assert_eq!(effects[1..], [leading, send(0, Message::Coordinator(0))]);
    assert_eq!(p.process.coordinator(), Some(ProcessId(1)));
}

#[test]
fn an_answer_is_waited_for_then_a_coordinator_then_all_begins_anew() {
    let mut p = process(0, 2, "textbook");
    p.ask(Request::Elect);
    assert_eq!(hear(&mut p, 1, Message::Answer), [set(Timer::Coordinator, 3 * T)]);
    assert!(!p.process.at_rest());
    let effects = p.fire(Timer::Coordinator);
    assert_eq!(effects[0], send(1, election()));
    let following = Indication::Following { leader: Some(ProcessId(1)), epoch: 0 };
    assert_eq!(hear(&mut p, 1, Message::Coordinator(0)), [tell(following)]);
    assert!(p.process.at_rest());
}

#[test]
fn only_the_loss_of_the_coordinator_matters() {
    let mut p = process(0, 3, "textbook");
    p.hear(2, Message::Coordinator(0));
    assert_eq!(p.suspect(1), []);
    let effects = p.suspect(2);
    assert_eq!(effects[..2], [tell(Indication::Deposed), send(1, election())]);
}

#[test]
fn the_highest_leads_as_soon_as_it_is_back() {
    let mut p = process(2, 3, "textbook");
    let effects = p.step(Input::Recover(None));
    assert_eq!(effects[0], tell(Indication::Leading { epoch: 0 }));
    assert_eq!(effects.len(), 3);
}

#[test]
fn a_hardened_leader_answers_for_itself() {
    let mut p = process(1, 2, "hardened");
    p.ask(Request::Elect);
    assert_eq!(hear(&mut p, 0, election()), [send(0, Message::Coordinator(1))]);
    // Who gave up this very reign follows only a new one.
    let over = Reign { round: 1, leader: ProcessId(1) };
    let effects = hear(&mut p, 0, Message::Election(over));
    assert_eq!(effects[1], send(0, Message::Coordinator(2)));
}

#[test]
fn an_old_reign_is_rejected_and_its_leader_begins_anew_above_it() {
    let mut p = process(0, 3, "hardened");
    p.hear(1, Message::Coordinator(7));
    let latest = Reign { round: 7, leader: ProcessId(1) };
    assert_eq!(hear(&mut p, 2, Message::Coordinator(1)), [send(2, Message::Reject(latest))]);
    let mut top = process(2, 3, "hardened");
    top.step(Input::Recover(None));
    let effects = hear(&mut top, 0, Message::Reject(latest));
    assert!(effects.contains(&send(0, Message::Coordinator(8))), "{effects:?}");
}
