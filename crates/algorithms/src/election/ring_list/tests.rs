//! Steps of the list-collecting ring election, one at a time.

use konklave_process::{Effect, Group, Topology};
use konklave_testkit::{Bench, send, tell};

use super::*;
use crate::{Algorithm as _, Setup};

/// Process 1 of the ring 0 → 1 → 2.
fn one() -> Bench<RingList> {
    let group = Group::of(3);
    let setup = Setup::new(group.clone(), Topology::directed_ring(3));
    Bench::new(RingList::new(ProcessId(1), &setup), ProcessId(1), &group)
}

fn list(ids: &[u32]) -> List {
    Arc::new(ids.iter().copied().map(ProcessId).collect())
}

fn election(round: u32, ids: &[u32]) -> Message {
    Message::Election { round, list: list(ids) }
}

fn coordinator(round: u32, ids: &[u32], informed: &[u32]) -> Message {
    Message::Coordinator { round, list: list(ids), informed: list(informed) }
}

fn following(leader: u32) -> Effect<RingList> {
    tell(Indication::Following { leader: Some(ProcessId(leader)), epoch: 0 })
}

#[test]
fn process_that_is_not_on_the_list_adds_itself() {
    assert_eq!(one().hear(0, election(0, &[0])), [send(2, election(0, &[0, 1]))]);
}

#[test]
fn process_on_the_list_closes_it_and_sends_the_result() {
    let mut p1 = one();
    assert_eq!(p1.ask(Request::Elect), [send(2, election(0, &[1]))]);
    let told = [following(2), send(2, coordinator(0, &[1, 2, 0], &[1]))];
    assert_eq!(p1.hear(0, election(0, &[1, 2, 0])), told);
    assert_eq!(p1.hear(0, coordinator(0, &[1, 2, 0], &[1, 2, 0])), []);
}

#[test]
fn second_of_the_list_closes_it_if_the_first_is_suspected() {
    let mut p1 = one();
    p1.suspect(0);
    let told = [following(2), send(2, coordinator(0, &[0, 1, 2], &[1]))];
    assert_eq!(p1.hear(2, election(0, &[0, 1, 2])), told);
}

#[test]
fn suspected_processes_are_skipped_and_the_last_one_leads() {
    let mut p1 = one();
    p1.suspect(2);
    assert_eq!(p1.ask(Request::Elect), [send(0, election(0, &[1]))]);
    p1.suspect(0);
    assert_eq!(p1.ask(Request::Elect), [tell(Indication::Leading { epoch: 0 })]);
}

#[test]
fn empty_list_is_unexpected() {
    let nobody = Effect::Unexpected("an election that nobody opened");
    assert_eq!(one().hear(0, election(0, &[])), [nobody]);
}
