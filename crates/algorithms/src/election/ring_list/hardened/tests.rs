//! Steps of the hardened form, one at a time.

use konklave_process::{Effect, Group, Input, Topology};
use konklave_testkit::{Bench, send, set, tell};

use super::*;
use crate::{Algorithm as _, Setup};

const PATIENCE: Duration = Duration::from_millis(18);

/// Process 1 of the ring 0 → 1 → 2.
fn one() -> Bench<Hardened> {
    let group = Group::of(3);
    let mut setup = Setup::new(group.clone(), Topology::directed_ring(3));
    setup.chosen.insert("mode", "hardened".to_owned());
    Bench::new(Hardened::new(ProcessId(1), &setup), ProcessId(1), &group)
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

fn following(leader: u32, epoch: u32) -> Effect<Hardened> {
    tell(Indication::Following { leader: Some(ProcessId(leader)), epoch })
}

#[test]
fn latest_election_counts() {
    let mut p1 = one();
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
    assert_eq!(behind, [send(2, coordinator(2, &[0, 2], &[1]))], "the result goes to its origin");
}

#[test]
fn dead_leader_is_replaced_and_never_followed() {
    let mut p1 = one();
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
fn restarted_process_opens_the_next_election() {
    let mut p1 = one();
    let opened = p1.step(Input::Recover(Some(Record(7))));
    assert_eq!(opened[0], Effect::Save(Record(8)));
    assert_eq!(opened[2], send(2, election(8, &[1])));
}
