//! Steps of Bully, one at a time.

use std::time::Duration;

use konklave_process::{Effect, Group, Input, Inspect as _, Topology};
use konklave_testkit::{Bench, send, set, tell};

use super::*;
use crate::{Algorithm as _, Setup};

const T: Duration = Duration::from_millis(5);

fn process(me: u32, n: usize) -> Bench<Bully> {
    let setup = Setup::new(Group::of(n), Topology::complete(n));
    Bench::new(Bully::new(ProcessId(me), &setup), ProcessId(me), &setup.group)
}

/// The effects of `message`, without the timers that it stops.
fn hear(bench: &mut Bench<Bully>, from: u32, message: Message) -> Vec<Effect<Bully>> {
    let effects = bench.hear(from, message);
    effects.into_iter().filter(|e| !matches!(e, Effect::CancelTimer { .. })).collect()
}

#[test]
fn an_initiator_asks_all_above_it() {
    let mut p = process(1, 4);
    let effects = p.ask(Request::Elect);
    assert_eq!(effects[..2], [send(2, Message::Election), send(3, Message::Election)]);
    assert_eq!(effects.last(), Some(&set(Timer::Answer, T)));
    assert_eq!(p.ask(Request::Elect), [], "one election at a time");
}

#[test]
fn process_with_an_election_message_answers_and_asks_higher_ones_once() {
    let mut p = process(1, 3);
    let effects = hear(&mut p, 0, Message::Election);
    assert_eq!(
        effects,
        [send(0, Message::Answer), send(2, Message::Election), set(Timer::Answer, T)]
    );
    assert_eq!(hear(&mut p, 0, Message::Election), [send(0, Message::Answer)]);
}

#[test]
fn process_without_an_answer_leads_the_lower_ones() {
    let mut p = process(1, 3);
    p.ask(Request::Elect);
    let effects = p.fire(Timer::Answer);
    let leading = tell(Indication::Leading { epoch: 0 });
    assert_eq!(effects[1..], [leading, send(0, Message::Coordinator)]);
    assert_eq!(p.process.coordinator(), Some(ProcessId(1)));
}

#[test]
fn an_answer_is_waited_for_then_a_coordinator_then_all_begins_anew() {
    let mut p = process(0, 2);
    p.ask(Request::Elect);
    assert_eq!(hear(&mut p, 1, Message::Answer), [set(Timer::Coordinator, 3 * T)]);
    assert!(!p.process.at_rest());
    let effects = p.fire(Timer::Coordinator);
    assert_eq!(effects[0], send(1, Message::Election));
    let following = Indication::Following { leader: Some(ProcessId(1)), epoch: 0 };
    assert_eq!(hear(&mut p, 1, Message::Coordinator), [tell(following)]);
    assert!(p.process.at_rest());
}

#[test]
fn only_the_loss_of_the_coordinator_matters() {
    let mut p = process(0, 3);
    p.hear(2, Message::Coordinator);
    assert_eq!(p.suspect(1), []);
    let effects = p.suspect(2);
    assert_eq!(effects[..2], [tell(Indication::Deposed), send(1, Message::Election)]);
}

#[test]
fn the_highest_leads_as_soon_as_it_is_back() {
    let mut p = process(2, 3);
    let effects = p.step(Input::Recover(None));
    assert_eq!(effects[0], tell(Indication::Leading { epoch: 0 }));
    assert_eq!(effects.len(), 3);
}
