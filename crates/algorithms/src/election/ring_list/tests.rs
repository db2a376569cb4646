//! Steps of List-collecting ring election, one at a time.

use konklave_process::{Effect, Group, Input, Topology};
use konklave_testkit::{Bench, send, set, tell};

use super::*;
use crate::{Algorithm as _, Setup};

const PATIENCE: Duration = Duration::from_millis(18);

/// Process 1 of the ring 0 → 1 → 2.
fn one(mode: &str) -> Bench<RingList> {
    let group = Group::of(3);
    let mut setup = Setup::new(group.clone(), Topology::directed_ring(3));
    setup.chosen.insert("mode", mode.to_owned());
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

fn following(leader: u32, epoch: u32) -> Effect<RingList> {
    tell(Indication::Following { leader: Some(ProcessId(leader)), epoch })
}

#[test]
fn who_is_not_on_the_list_adds_itself() {
    assert_eq!(one("textbook").hear(0, election(0, &[0])), [send(2, election(0, &[0, 1]))]);
}

#[test]
fn who_is_on_the_list_closes_it_and_tells_the_ring() {
    let mut p1 = one("textbook");
    assert_eq!(p1.ask(Request::Elect), [send(2, election(0, &[1]))]);
    let told = [following(2, 0), send(2, coordinator(0, &[1, 2, 0], &[1]))];
    assert_eq!(p1.hear(0, election(0, &[1, 2, 0])), told);
    assert_eq!(p1.hear(0, coordinator(0, &[1, 2, 0], &[1, 2, 0])), []);
}

#[test]
fn the_second_closes_the_list_if_the_first_has_died() {
    let mut p1 = one("textbook");
    p1.suspect(0);
    let told = [following(2, 0), send(2, coordinator(0, &[0, 1, 2], &[1]))];
    assert_eq!(p1.hear(2, election(0, &[0, 1, 2])), told);
}

#[test]
fn the_dead_are_skipped_and_who_is_alone_leads() {
    let mut p1 = one("textbook");
    p1.suspect(2);
    assert_eq!(p1.ask(Request::Elect), [send(0, election(0, &[1]))]);
    p1.suspect(0);
    assert_eq!(p1.ask(Request::Elect), [tell(Indication::Leading { epoch: 0 })]);
}

#[test]
fn a_list_of_nobody_is_unexpected() {
    let nobody = Effect::Unexpected("an election that nobody opened");
    assert_eq!(one("textbook").hear(0, election(0, &[])), [nobody]);
}

#[test]
fn hardened_the_latest_election_counts() {
    let mut p1 = one("hardened");
    let takes_part =
        [Effect::Save(Record(2)), set(Timer::Outcome, PATIENCE), send(2, election(2, &[0, 1]))];
    assert_eq!(p1.hear(0, election(2, &[0])), takes_part);
    assert_eq!(p1.hear(0, election(2, &[0])), [], "a copy");
    assert_eq!(p1.hear(0, election(1, &[2, 0])), [], "an older one");
    let told = [
        Effect::CancelTimer { timer: Timer::Outcome },
        following(2, 2),
        send(2, coordinator(2, &[0, 1, 2], &[0, 1])),
    ];
    assert_eq!(p1.hear(0, coordinator(2, &[0, 1, 2], &[0])), told);
    let behind = p1.hear(0, election(1, &[2, 0]));
    assert_eq!(behind, [send(2, coordinator(2, &[0, 2], &[1]))], "who opened it is told");
}

#[test]
fn hardened_a_dead_leader_is_replaced_and_never_followed() {
    let mut p1 = one("hardened");
    p1.hear(0, election(1, &[0]));
    p1.hear(0, coordinator(1, &[0, 1, 2], &[0]));
    let opened = [
        Effect::Save(Record(2)),
        set(Timer::Outcome, PATIENCE),
        tell(Indication::Deposed),
        send(0, election(2, &[1])),
    ];
    assert_eq!(p1.suspect(2), opened);
    assert_eq!(p1.hear(0, election(2, &[1, 2, 0])), []);
    assert_eq!(p1.fire(Timer::Outcome)[2..], [send(0, election(3, &[1]))]);
}

#[test]
fn hardened_a_restarted_process_opens_the_next_election() {
    let mut p1 = one("hardened");
    let opened = p1.step(Input::Recover(Some(Record(7))));
    assert_eq!(opened[0], Effect::Save(Record(8)));
    assert_eq!(opened[2], send(2, election(8, &[1])));
}
