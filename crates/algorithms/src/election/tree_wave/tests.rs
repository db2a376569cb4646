//! Steps of Wave election on trees, one at a time.

use konklave_process::{Group, Topology};
use konklave_testkit::{Bench, send, tell};

use super::*;
use crate::{Algorithm as _, Setup};

#[test]
fn two_fill_a_line() {
    assert_eq!(size_of::<TreeWave>(), 32);
}

fn process(me: u32, tree: Topology) -> Bench<TreeWave> {
    let setup = Setup::new(Group::of(tree.len()), tree);
    Bench::new(TreeWave::new(ProcessId(me), &setup), ProcessId(me), &setup.group)
}

fn echo(best: u32) -> Message {
    Message::Echo(ProcessId(best))
}

#[test]
fn an_explorer_wakes_a_process_once() {
    let mut p0 = process(0, Topology::star(4));
    assert_eq!(
        p0.hear(2, Message::Explore),
        [send(1, Message::Explore), send(3, Message::Explore)]
    );
    assert_eq!(p0.hear(1, Message::Explore), []);
}

#[test]
fn a_leaf_that_starts_echoes_at_once() {
    let mut p3 = process(3, Topology::star(4));
    assert_eq!(p3.ask(Request::Elect), [send(0, Message::Explore), send(0, echo(3))]);
}

#[test]
fn the_maximum_goes_over_the_last_edge() {
    let mut p0 = process(0, Topology::star(4));
    p0.hear(2, Message::Explore);
    assert_eq!(p0.hear(3, echo(3)), []);
    assert_eq!(p0.hear(1, echo(1)), [send(2, echo(3))]);
}

#[test]
fn where_two_echoes_meet_the_election_is_decided() {
    let mut p0 = process(0, Topology::star(4));
    p0.hear(2, Message::Explore);
    p0.hear(3, echo(3));
    p0.hear(1, echo(1));
    let info = Message::Info(ProcessId(3));
    let outcome = Indication::Following { leader: Some(ProcessId(3)), epoch: 0 };
    assert_eq!(p0.hear(2, echo(2)), [tell(outcome), send(1, info), send(3, info)]);
    assert_eq!(p0.hear(2, info), []);
}

#[test]
fn an_echo_that_is_faster_than_its_explorer_wakes_and_decides() {
    let mut p1 = process(1, Topology::path(2));
    let effects = p1.hear(0, echo(0));
    assert_eq!(
        effects,
        [tell(Indication::Leading { epoch: 0 }), send(0, Message::Info(ProcessId(1)))]
    );
    assert_eq!(p1.hear(0, Message::Explore), []);
}

#[test]
fn one_process_alone_leads_without_a_message() {
    let mut p0 = process(0, Topology::path(1));
    assert_eq!(p0.ask(Request::Elect), [tell(Indication::Leading { epoch: 0 })]);
    assert_eq!(p0.ask(Request::Elect), [tell(Indication::Leading { epoch: 0 })]);
}
