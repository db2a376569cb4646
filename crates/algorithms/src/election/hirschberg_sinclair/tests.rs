//! Steps of Hirschberg–Sinclair, one at a time.

use Direction::{Clockwise, Counterclockwise};
use konklave_process::{Group, Topology};
use konklave_testkit::{Bench, send, tell};

use super::*;
use crate::{Algorithm as _, Setup};

/// Process 2 of the ring 0 – 2 – 1, or of 0 – 2.
fn two_of(ids: &[u32]) -> Bench<HirschbergSinclair> {
    let group = Group::new(ids.iter().copied().map(ProcessId).collect()).unwrap();
    let setup = Setup::new(group.clone(), Topology::ring(ids.len()));
    Bench::new(HirschbergSinclair::new(ProcessId(2), &setup), ProcessId(2), &group)
}

fn probe(id: u32, phase: u8, hop: u32, way: Direction) -> Message {
    Message::Probe { id: ProcessId(id), phase, hop, way }
}

fn reply(id: u32, phase: u8, way: Direction) -> Message {
    Message::Reply { id: ProcessId(id), phase, way }
}

#[test]
fn a_candidate_doubles_its_reach_when_both_sides_have_answered() {
    let mut p2 = two_of(&[0, 2, 1]);
    let probes = |phase| {
        [send(1, probe(2, phase, 1, Clockwise)), send(0, probe(2, phase, 1, Counterclockwise))]
    };
    assert_eq!(p2.ask(Request::Elect)[1..], probes(0));
    assert_eq!(p2.hear(1, reply(2, 0, Counterclockwise)), []);
    assert_eq!(p2.hear(1, reply(2, 0, Counterclockwise)), [], "a copy counts once");
    assert_eq!(p2.hear(0, reply(2, 0, Clockwise)), probes(1));
    assert_eq!(p2.hear(0, reply(2, 0, Clockwise)), [], "of an earlier phase");
}

#[test]
fn a_probe_goes_on_up_to_its_reach_and_is_answered_there() {
    let mut p2 = two_of(&[0, 2, 1]);
    assert_eq!(p2.hear(0, probe(0, 1, 1, Clockwise)), [send(1, probe(0, 1, 2, Clockwise))]);
    let answer = send(0, reply(0, 1, Counterclockwise));
    assert_eq!(p2.hear(0, probe(0, 1, 2, Clockwise)), [answer]);
    assert_eq!(p2.hear(1, reply(0, 1, Counterclockwise)), [send(0, reply(0, 1, Counterclockwise))]);
}

#[test]
fn only_a_candidate_stops_lower_numbers() {
    let mut p2 = two_of(&[0, 2, 1]);
    p2.ask(Request::Elect);
    assert_eq!(p2.hear(0, probe(0, 1, 1, Clockwise)), []);
    assert_eq!(p2.hear(0, probe(3, 1, 1, Clockwise)), [send(1, probe(3, 1, 2, Clockwise))]);
}

#[test]
fn process_that_forwarded_a_probe_may_not_start() {
    let mut p2 = two_of(&[0, 2, 1]);
    p2.hear(0, probe(0, 1, 1, Clockwise));
    assert_eq!(p2.ask(Request::Elect), []);
}

#[test]
fn of_two_copies_that_come_home_the_first_is_announced() {
    let mut p2 = two_of(&[0, 2]);
    p2.ask(Request::Elect);
    let announced =
        [tell(Indication::Leading { epoch: 0 }), send(0, Message::Elected { id: ProcessId(2) })];
    assert_eq!(p2.hear(0, probe(2, 1, 2, Clockwise)), announced);
    assert_eq!(p2.hear(0, probe(2, 1, 2, Counterclockwise)), []);
    assert_eq!(p2.hear(0, Message::Elected { id: ProcessId(2) }), []);
}

#[test]
fn no_phase_is_too_high() {
    let mut p2 = two_of(&[0, 2]);
    let far = probe(0, u8::MAX, u32::MAX, Clockwise);
    assert_eq!(p2.hear(0, far), [send(0, far)]);
}
