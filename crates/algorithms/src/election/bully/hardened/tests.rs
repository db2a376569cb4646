//! Steps of the hardened form, one at a time.

use konklave_process::{Effect, Group, Input, Topology};
use konklave_testkit::{Bench, send};

use super::*;
use crate::{Algorithm as _, Setup};

fn process(me: u32, n: usize) -> Bench<Hardened> {
    let mut setup = Setup::new(Group::of(n), Topology::complete(n));
    setup.chosen.insert("mode", "hardened".to_owned());
    Bench::new(Hardened::new(ProcessId(me), &setup), ProcessId(me), &setup.group)
}

/// The effects of `message`, without the timers that it stops.
fn hear(bench: &mut Bench<Hardened>, from: u32, message: Message) -> Vec<Effect<Hardened>> {
    let effects = bench.hear(from, message);
    effects.into_iter().filter(|e| !matches!(e, Effect::CancelTimer { .. })).collect()
}

#[test]
fn leader_in_office_answers_an_election_itself() {
    let mut p = process(1, 2);
    p.ask(Request::Elect);
    assert_eq!(
        hear(&mut p, 0, Message::Election(Reign::default())),
        [send(0, Message::Coordinator(1))]
    );
    // A process that gave this reign up follows only a later one.
    let over = Reign { round: 1, leader: ProcessId(1) };
    let effects = hear(&mut p, 0, Message::Election(over));
    assert_eq!(effects[1], send(0, Message::Coordinator(2)));
}

#[test]
fn old_reign_is_rejected_and_its_leader_begins_a_later_one() {
    let mut p = process(0, 3);
    p.hear(1, Message::Coordinator(7));
    let latest = Reign { round: 7, leader: ProcessId(1) };
    assert_eq!(hear(&mut p, 2, Message::Coordinator(1)), [send(2, Message::Reject(latest))]);
    let mut top = process(2, 3);
    top.step(Input::Recover(None));
    let effects = hear(&mut top, 0, Message::Reject(latest));
    assert!(effects.contains(&send(0, Message::Coordinator(8))), "{effects:?}");
}
