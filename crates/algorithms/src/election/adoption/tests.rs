//! Steps of Adoption, one at a time.

use konklave_process::{Group, Topology};
use konklave_testkit::{Bench, send, tell};

use super::*;
use crate::{Algorithm as _, Setup};

/// Process `me` in the middle of a star of four.
fn centre(me: u32, others: [u32; 3]) -> Bench<Adoption> {
    let ids = [me, others[0], others[1], others[2]].map(ProcessId);
    let setup = Setup::new(Group::new(ids.to_vec()).unwrap(), Topology::star(4));
    Bench::new(Adoption::new(ProcessId(me), &setup), ProcessId(me), &setup.group)
}

fn explore(wave: u32) -> Message {
    Message::Explore(ProcessId(wave))
}

fn echo(wave: u32) -> Message {
    Message::Echo(ProcessId(wave))
}

#[test]
fn the_first_wave_goes_out_over_all_other_edges() {
    let mut p1 = centre(1, [2, 3, 4]);
    assert_eq!(p1.hear(3, explore(3)), [send(2, explore(3)), send(4, explore(3))]);
}

#[test]
fn case_1_an_explorer_that_meets_ours_closes_the_edge() {
    let mut p1 = centre(1, [2, 3, 4]);
    p1.hear(3, explore(3));
    assert_eq!(p1.hear(2, explore(3)), []);
    assert_eq!(p1.hear(4, explore(3)), [send(3, echo(3))]);
}

#[test]
fn case_2_a_weaker_explorer_than_ours_is_ignored() {
    let mut p1 = centre(1, [2, 3, 4]);
    p1.hear(3, explore(3));
    assert_eq!(p1.hear(2, explore(2)), []);
    assert_eq!(p1.process.open.len(), 2);
}

#[test]
fn case_3_who_lags_behind_is_told_the_strongest_wave() {
    let mut p1 = centre(1, [2, 3, 4]);
    p1.ask(Request::Elect);
    // Adopted without a former parent, it tells nobody: the edge to p2 still bears its mark.
    assert_eq!(p1.hear(3, explore(3)), []);
    assert_eq!(p1.hear(2, explore(2)), [send(2, explore(3))]);
    assert_eq!(p1.hear(2, echo(2)), []);
    p1.hear(4, echo(1));
    assert_eq!(p1.hear(2, echo(3)), [send(3, echo(3))]);
}

#[test]
fn case_4_adoption_explores_only_the_way_to_the_former_parent() {
    let mut p1 = centre(1, [2, 3, 4]);
    p1.hear(2, explore(2));
    p1.hear(3, echo(2));
    assert_eq!(p1.hear(4, explore(4)), [send(2, explore(4))]);
    // The explored part of the graph behind p1 is not explored again.
    assert_eq!(p1.hear(2, echo(4)), [send(4, echo(4))]);
}

#[test]
fn a2_who_has_echoed_echoes_again_when_it_is_adopted() {
    let mut p1 = centre(1, [2, 3, 4]);
    p1.hear(2, explore(2));
    p1.hear(3, echo(2));
    assert_eq!(p1.hear(4, echo(2)), [send(2, echo(2))]);
    assert_eq!(p1.hear(4, explore(4)), [send(2, explore(4))]);
    assert_eq!(p1.hear(2, echo(4)), [send(4, echo(4))]);
    // A stronger wave over the edge to the parent needs no new explorer at all.
    assert_eq!(p1.hear(4, explore(9)), [send(4, echo(9))]);
}

#[test]
fn a4_who_was_captured_is_no_candidate_any_more() {
    let mut p1 = centre(1, [2, 3, 4]);
    p1.hear(2, explore(2));
    assert_eq!(p1.ask(Request::Elect), []);
    assert_eq!(
        p1.hear(2, Message::Info(ProcessId(2)))[0],
        tell(Indication::Following { leader: Some(ProcessId(2)), epoch: 0 })
    );
}
