use konklave_process::{Effect, Group, Topology};
use konklave_testkit::{Bench, send, tell};

use super::*;
use crate::{Algorithm, Setup};

/// Process 1 of the ring 0 → 1 → 2.
fn one(mode: &str) -> Bench<ChangRoberts> {
    let group = Group::of(3);
    let mut setup = Setup::new(group.clone(), Topology::directed_ring(3));
    setup.chosen.insert("mode", mode.to_owned());
    Bench::new(ChangRoberts::new(ProcessId(1), &setup), ProcessId(1), &group)
}

fn propose(id: u32, hops: u32) -> Message {
    Message::Propose { id: ProcessId(id), hops }
}

fn elected(id: u32, hops: u32) -> Message {
    Message::Elected { id: ProcessId(id), hops }
}

fn following(leader: u32, epoch: u32) -> Effect<ChangRoberts> {
    tell(Indication::Following { leader: Some(ProcessId(leader)), epoch })
}

#[test]
fn a_process_of_a_large_ring_is_small() {
    assert_eq!((size_of::<ChangRoberts>(), size_of::<Message>()), (16, 12));
}

#[test]
fn a_lower_number_is_replaced_once_and_then_stopped() {
    let mut p1 = one("textbook");
    assert_eq!(p1.hear(0, propose(0, 1)), [send(2, propose(1, 1))]);
    assert_eq!(p1.hear(0, propose(0, 1)), []);
    assert_eq!(p1.hear(0, propose(2, 2)), [send(2, propose(2, 3))]);
}

#[test]
fn ones_own_number_wins_only_while_one_takes_part() {
    let mut p1 = one("textbook");
    p1.ask(Request::Elect);
    let won = [tell(Indication::Leading { epoch: 0 }), send(2, elected(1, 1))];
    assert_eq!(p1.hear(0, propose(1, 3)), won);
    assert_eq!(p1.hear(0, propose(1, 3)), [], "a copy changes nothing");
    assert_eq!(p1.hear(0, propose(2, 1))[0], tell(Indication::Deposed));
}

#[test]
fn proposal_that_passed_all_processes_is_dropped() {
    let mut p1 = one("textbook");
    assert_eq!(p1.hear(0, propose(2, 4)), []);
    assert_eq!(p1.hear(0, elected(2, 4)), []);
}

#[test]
fn in_the_original_form_who_did_not_start_only_passes_on() {
    let mut p1 = one("original");
    assert_eq!(p1.hear(0, propose(0, 1)), [send(2, propose(0, 2))]);
    assert_eq!(p1.ask(Request::Elect), [], "too late to start");
    assert_eq!(p1.hear(0, elected(0, 1)), [following(0, 0), send(2, elected(0, 2))]);
    let started = [tell(Indication::Candidate), send(2, propose(1, 1))];
    assert_eq!(p1.ask(Request::Elect), started, "the next election is open again");
}
