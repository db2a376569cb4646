//! Steps of Hardened, one at a time.

use konklave_process::{Effect, Group, Input, Inspect as _, Topology};
use konklave_testkit::{Bench, send, set, tell};

use super::*;
use crate::{Algorithm as _, Setup};

/// Process 1 of the ring 0 → 1 → 2.
fn one() -> Bench<Hardened> {
    let group = Group::of(3);
    let setup = Setup::new(group.clone(), Topology::directed_ring(3));
    Bench::new(Hardened::new(ProcessId(1), &setup), ProcessId(1), &group)
}

fn following(leader: u32, epoch: u32) -> Effect<Hardened> {
    tell(Indication::Following { leader: Some(ProcessId(leader)), epoch })
}

fn propose(epoch: u32, id: u32, hops: u32) -> Message {
    Message::Propose { epoch, id: ProcessId(id), hops }
}

fn elected(epoch: u32, id: u32, hops: u32) -> Message {
    Message::Elected { epoch, id: ProcessId(id), hops }
}

const PATIENCE: Duration = Duration::from_millis(18);

#[test]
fn the_latest_election_counts() {
    let mut p1 = one();
    let takes_part =
        [Effect::Save(Record(2)), set(Timer::Election, PATIENCE), send(2, propose(2, 1, 1))];
    assert_eq!(p1.hear(0, propose(2, 0, 1)), takes_part);
    assert_eq!(p1.hear(0, propose(1, 2, 1)), [], "an older one");
    assert_eq!(p1.hear(0, propose(2, 2, 1)), [send(2, propose(2, 2, 2))]);
    assert_eq!(p1.hear(0, propose(2, 1, 3)), [], "ours is home, but a higher one passed");
    let told = [
        Effect::CancelTimer { timer: Timer::Election },
        following(2, 2),
        send(2, elected(2, 2, 3)),
    ];
    assert_eq!(p1.hear(0, elected(2, 2, 2)), told);
    let behind = p1.hear(0, propose(1, 2, 1));
    assert_eq!(behind, [send(2, elected(2, 2, 1))], "who is behind is told");
}

#[test]
fn the_winner_repeats_its_word_until_it_comes_home() {
    let mut p1 = one();
    p1.ask(Request::Elect);
    let repeated = [set(Timer::Announcement, PATIENCE), send(2, elected(1, 1, 1))];
    assert_eq!(p1.hear(0, propose(1, 1, 3))[2..], repeated);
    assert_eq!(p1.fire(Timer::Announcement), repeated);
    let home = [Effect::CancelTimer { timer: Timer::Announcement }];
    assert_eq!(p1.hear(0, elected(1, 1, 3)), home);
    assert!(p1.process.at_rest());
}

#[test]
fn a_dead_leader_is_replaced_and_never_followed() {
    let mut p1 = one();
    p1.hear(0, elected(1, 2, 1));
    let opened = [
        Effect::Save(Record(2)),
        set(Timer::Election, PATIENCE),
        tell(Indication::Deposed),
        send(0, propose(2, 1, 1)),
    ];
    assert_eq!(p1.suspect(2), opened);
    assert_eq!(p1.hear(0, elected(2, 2, 1)), []);
    assert_eq!(p1.hear(0, propose(2, 2, 1)), []);
    assert_eq!(p1.fire(Timer::Election)[2..], [send(0, propose(3, 1, 1))]);
}

#[test]
fn a_restarted_process_opens_the_next_election() {
    let mut p1 = one();
    let opened = p1.step(Input::Recover(Some(Record(7))));
    assert_eq!(opened[0], Effect::Save(Record(8)));
    assert_eq!(opened[2], send(2, propose(8, 1, 1)));
}
