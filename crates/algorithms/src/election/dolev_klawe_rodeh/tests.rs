//! Steps of Dolev–Klawe–Rodeh / Peterson, one at a time.

use konklave_process::{Effect, Group, Topology};
use konklave_testkit::{Bench, send, tell};

use super::*;
use crate::{Algorithm as _, Setup};

/// Process 1 of the ring 0 → 1 → 2.
fn one() -> Bench<DolevKlaweRodeh> {
    let group = Group::of(3);
    let setup = Setup::new(group.clone(), Topology::directed_ring(3));
    Bench::new(DolevKlaweRodeh::new(ProcessId(1), &setup), ProcessId(1), &group)
}

fn message(of: fn(ProcessId) -> Message, id: u32) -> Effect<DolevKlaweRodeh> {
    send(2, of(ProcessId(id)))
}

#[test]
fn a_process_takes_the_place_of_a_predecessor_between_two_lower_ones() {
    let mut p1 = one();
    assert_eq!(p1.ask(Request::Elect)[1..], [message(Message::One, 1)]);
    assert_eq!(p1.hear(0, Message::One(ProcessId(9))), [message(Message::Two, 9)]);
    assert_eq!(p1.hear(0, Message::Two(ProcessId(5))), [message(Message::One, 9)]);
}

#[test]
fn otherwise_it_only_passes_on() {
    let mut p1 = one();
    p1.ask(Request::Elect);
    p1.hear(0, Message::One(ProcessId(9)));
    assert_eq!(p1.hear(0, Message::Two(ProcessId(10))), []);
    assert_eq!(p1.hear(0, Message::One(ProcessId(0))), [message(Message::One, 0)]);
    assert_eq!(p1.hear(0, Message::Two(ProcessId(3))), [message(Message::Two, 3)]);
}

#[test]
fn a_value_that_meets_itself_has_won_for_its_owner() {
    let mut p1 = one();
    p1.ask(Request::Elect);
    p1.hear(0, Message::One(ProcessId(2)));
    p1.hear(0, Message::Two(ProcessId(0)));
    let following = Indication::Following { leader: Some(ProcessId(2)), epoch: 0 };
    let announced = [tell(following), message(Message::Elected, 2)];
    assert_eq!(p1.hear(0, Message::One(ProcessId(2))), announced);
    assert_eq!(p1.hear(0, Message::Elected(ProcessId(2))), [], "it came round");
}

#[test]
fn the_owner_leads_when_it_hears_of_it() {
    let mut p1 = one();
    p1.ask(Request::Elect);
    let announced = [tell(Indication::Leading { epoch: 0 }), message(Message::Elected, 1)];
    assert_eq!(p1.hear(0, Message::Elected(ProcessId(1))), announced);
}

#[test]
fn a_value_that_overtook_another_is_unexpected() {
    let mut p1 = one();
    p1.ask(Request::Elect);
    let overtaken = Effect::Unexpected("a value that overtook another");
    assert_eq!(p1.hear(0, Message::Two(ProcessId(2))), [overtaken]);
}
