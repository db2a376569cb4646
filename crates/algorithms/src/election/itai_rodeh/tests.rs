//! Steps of Itai–Rodeh, one at a time.

use konklave_process::{Group, Topology};
use konklave_testkit::{Bench, send, tell};

use super::*;
use crate::{Algorithm as _, Setup};

/// Process 0 of a ring of three, which draws 2.
fn with_a_two() -> Bench<ItaiRodeh> {
    let group = Group::of(3);
    let setup = Setup::new(group.clone(), Topology::directed_ring(3));
    let mut bench = Bench::new(ItaiRodeh::new(ProcessId(0), &setup), ProcessId(0), &group);
    assert_eq!(bench.draw(&[1, 0]).ask(Request::Elect), [send(1, token(1, 2, 1, true))]);
    bench
}

fn token(phase: u32, number: u32, hop: u32, unique: bool) -> Message {
    Message::Token { lot: Lot { phase, number }, hop, unique }
}

#[test]
fn a_lower_lot_is_stopped_an_equal_one_spoilt_a_higher_one_obeyed() {
    let mut p0 = with_a_two();
    assert_eq!(p0.hear(2, token(1, 1, 1, true)), []);
    assert_eq!(p0.hear(2, token(1, 2, 1, true)), [send(1, token(1, 2, 2, false))]);
    assert_eq!(p0.hear(2, token(1, 3, 1, true)), [send(1, token(1, 3, 2, true))]);
    assert_eq!(p0.process.role, Role::Passive);
}

#[test]
fn a_later_phase_counts_more_than_a_higher_number() {
    let mut p0 = with_a_two();
    assert_eq!(p0.hear(2, token(2, 1, 1, true)), [send(1, token(2, 1, 2, true))]);
    assert_eq!(p0.process.role, Role::Passive);
}

#[test]
fn unspoilt_token_that_returns_wins() {
    let mut p0 = with_a_two();
    let announced = [tell(Indication::Leading { epoch: 0 }), send(1, Message::Elected)];
    assert_eq!(p0.hear(2, token(1, 2, 3, true)), announced);
    assert_eq!(p0.hear(2, Message::Elected), []);
}

#[test]
fn spoilt_token_that_returns_is_drawn_anew() {
    let mut p0 = with_a_two();
    assert_eq!(p0.hear(2, token(1, 2, 3, false)), [send(1, token(2, 1, 1, true))]);
}

#[test]
fn nobody_learns_the_name_of_the_leader() {
    let mut p0 = with_a_two();
    let following = Indication::Following { leader: None, epoch: 0 };
    assert_eq!(p0.hear(2, Message::Elected), [tell(following), send(1, Message::Elected)]);
}
