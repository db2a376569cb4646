//! Steps of Franklin, one at a time.

use Direction::{Clockwise, Counterclockwise};
use konklave_process::{Effect, Group, Topology};
use konklave_testkit::{Bench, send, tell};

use super::*;
use crate::{Algorithm as _, Setup};

/// Process 2 of the ring 0 – 2 – 1.
fn two(chosen: &[(&'static str, &str)]) -> Bench<Franklin> {
    let group = Group::new([0, 2, 1].map(ProcessId).to_vec()).unwrap();
    let mut setup = Setup::new(group.clone(), Topology::ring(3));
    setup.chosen = chosen.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
    Bench::new(Franklin::new(ProcessId(2), &setup), ProcessId(2), &group)
}

fn id(id: u32, round: u32, way: Direction) -> Message {
    Message::Id { id: ProcessId(id), round, way }
}

fn both_ways(round: u32) -> [Effect<Franklin>; 2] {
    [send(1, id(2, round, Clockwise)), send(0, id(2, round, Counterclockwise))]
}

#[test]
fn process_above_both_neighbours_goes_on() {
    let mut p2 = two(&[]);
    assert_eq!(p2.ask(Request::Elect)[1..], both_ways(0));
    assert_eq!(p2.hear(0, id(0, 0, Clockwise)), [], "one side is not enough");
    assert_eq!(p2.hear(1, id(1, 0, Counterclockwise)), both_ways(0));
}

#[test]
fn lower_process_forwards_its_queued_messages() {
    let mut p2 = two(&[]);
    p2.ask(Request::Elect);
    p2.hear(0, id(0, 0, Clockwise));
    p2.hear(0, id(9, 0, Clockwise));
    assert_eq!(p2.hear(1, id(3, 0, Counterclockwise)), [send(1, id(9, 0, Clockwise))]);
    assert_eq!(p2.hear(0, id(8, 0, Clockwise)), [send(1, id(8, 0, Clockwise))]);
}

#[test]
fn only_ones_own_number_from_both_sides_is_the_end() {
    let mut p2 = two(&[]);
    p2.ask(Request::Elect);
    p2.hear(0, id(2, 0, Clockwise));
    let announced =
        [tell(Indication::Leading { epoch: 0 }), send(1, Message::Elected { id: ProcessId(2) })];
    assert_eq!(p2.hear(1, id(2, 0, Counterclockwise)), announced);
    assert_eq!(p2.hear(0, Message::Elected { id: ProcessId(2) }), []);
}

#[test]
fn process_that_forwarded_a_number_may_not_start_but_may_join_before() {
    let mut relay = two(&[]);
    assert_eq!(relay.hear(0, id(0, 0, Clockwise)), [send(1, id(0, 0, Clockwise))]);
    assert_eq!(relay.ask(Request::Elect), []);
    let mut joins = two(&[("join", "true")]);
    assert_eq!(joins.hear(0, id(0, 0, Clockwise))[1..], both_ways(0));
}

#[test]
fn numbers_that_tell_their_round_wait_for_it() {
    let mut p2 = two(&[("rounds", "told")]);
    assert_eq!(p2.ask(Request::Elect)[1..], both_ways(1));
    assert_eq!(p2.hear(0, id(3, 2, Clockwise)), []);
    assert_eq!(p2.hear(1, id(1, 1, Counterclockwise)), [], "the other is of the next round");
    assert_eq!(p2.hear(0, id(0, 1, Clockwise)), both_ways(2));
    assert_eq!(p2.hear(1, id(1, 2, Counterclockwise)), [], "now it counts: 3 is higher");
    assert_eq!(p2.process.role, Role::Passive);
}

#[test]
fn request_after_the_end_gets_the_outcome() {
    let mut p2 = two(&[]);
    p2.hear(0, Message::Elected { id: ProcessId(1) });
    let following = Indication::Following { leader: Some(ProcessId(1)), epoch: 0 };
    assert_eq!(p2.ask(Request::Elect), [tell(following)]);
}
