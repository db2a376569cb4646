//! Steps of Token ring, one at a time.

use konklave_process::{Effect, Group, Input, Inspect as _, Topology};
use konklave_testkit::{Bench, send, tell};

use super::*;
use crate::{Algorithm as _, Setup};

fn bench(me: u32, mode: &str) -> Bench<TokenRing> {
    let mut setup = Setup::new(Group::of(4), Topology::directed_ring(4));
    setup.chosen.insert("mode", mode.into());
    Bench::new(TokenRing::new(ProcessId(me), &setup), ProcessId(me), &setup.group)
}

fn token(epoch: u32, entries: u32, idle: u32) -> Message {
    Message::Token { epoch, token: Token { entries, idle } }
}

fn granted(epoch: u64, entries: u64) -> Effect<TokenRing> {
    tell(Indication::Granted { fence: Some(Fence(epoch, entries)) })
}

fn crashed(ids: &[u32]) -> Arc<[ProcessId]> {
    ids.iter().copied().map(ProcessId).collect()
}

#[test]
fn the_token_is_used_once_and_passed_on() {
    let mut p1 = bench(1, "perpetual");
    assert_eq!(p1.ask(Request::Acquire), []);
    assert_eq!(p1.hear(0, token(0, 6, 0)), [granted(0, 7)]);
    assert_eq!(p1.ask(Request::Release), [send(2, token(0, 7, 0))]);
    assert_eq!(p1.hear(0, token(0, 7, 0)), [send(2, token(0, 7, 0))]);
}

#[test]
fn after_an_idle_round_the_token_rests_until_it_is_called() {
    let mut p1 = bench(1, "parking");
    assert_eq!(p1.hear(0, token(0, 1, 2)), [send(2, token(0, 1, 3))]);
    assert_eq!(p1.hear(0, token(0, 1, 3)), []);
    assert!(p1.process.at_rest());
    assert_eq!(p1.hear(0, Message::Wake { hops: 1 }), [send(2, token(0, 1, 0))]);
}

#[test]
fn a_call_goes_once_round_and_keeps_the_token_going() {
    let mut p1 = bench(1, "parking");
    assert_eq!(p1.ask(Request::Acquire), [send(2, Message::Wake { hops: 2 })]);
    let mut p2 = bench(2, "parking");
    assert_eq!(p2.hear(1, Message::Wake { hops: 2 }), [send(3, Message::Wake { hops: 1 })]);
    assert_eq!(p2.hear(1, Message::Wake { hops: 0 }), []);
    assert_eq!(p2.hear(1, token(0, 0, 3)), [send(3, token(0, 0, 0))]);
}

#[test]
fn crashed_process_is_skipped_and_calls_are_repeated() {
    let mut p1 = bench(1, "parking");
    p1.hear(0, Message::Wake { hops: 2 });
    assert_eq!(p1.suspect(2), [send(3, Message::Wake { hops: 2 })]);
    assert_eq!(p1.hear(0, token(0, 0, 0)), [send(3, token(0, 0, 0))]);
    assert_eq!(p1.hear(2, token(0, 0, 0)), []);
}

#[test]
fn the_coordinator_makes_a_new_token_if_nobody_has_it() {
    let mut p3 = bench(3, "parking");
    let probe = Message::Probe { epoch: 7, crashed: crashed(&[1]) };
    assert_eq!(p3.suspect(1), [send(0, probe.clone()), send(2, probe)]);
    assert_eq!(p3.hear(0, Message::Report { epoch: 7, token: false }), []);
    // A token of the first epoch comes too late.
    assert_eq!(p3.hear(2, token(0, 5, 0)), []);
    let joined = p3.hear(2, Message::Report { epoch: 7, token: false });
    assert_eq!(joined, [send(0, token(7, 0, 1))]);
}

#[test]
fn owner_brings_the_token_once_all_have_joined() {
    let mut p0 = bench(0, "parking");
    p0.ask(Request::Acquire);
    let probed = p0.hear(3, Message::Probe { epoch: 7, crashed: crashed(&[1]) });
    assert_eq!(probed, [send(3, Message::Report { epoch: 7, token: true })]);
    assert_eq!(p0.ask(Request::Release), []);
    assert_eq!(p0.ask(Request::Acquire), []);
    assert_eq!(p0.hear(3, Message::Resume { epoch: 3 }), []);
    assert_eq!(p0.hear(3, Message::Resume { epoch: 7 }), [granted(7, 2)]);
    assert_eq!(p0.ask(Request::Release), [send(2, token(7, 2, 0))]);
}

#[test]
fn process_of_an_earlier_epoch_learns_the_later_one() {
    let mut p0 = bench(0, "parking");
    p0.hear(3, Message::Probe { epoch: 11, crashed: crashed(&[1]) });
    let late = p0.hear(2, Message::Probe { epoch: 6, crashed: crashed(&[1, 3]) });
    assert_eq!(late, [send(2, Message::Outdated { epoch: 11 })]);
    let mut p2 = bench(2, "parking");
    p2.suspect(1);
    p2.suspect(3);
    let again = Message::Probe { epoch: 14, crashed: crashed(&[1, 3]) };
    assert_eq!(p2.hear(0, Message::Outdated { epoch: 11 }), [send(0, again)]);
}

#[test]
fn restarted_process_announces_that_it_crashed() {
    let mut p0 = bench(0, "parking");
    let gone = [1, 2, 3].map(|p| send(p, Message::Gone));
    assert_eq!(p0.step(Input::Recover(None)), gone);
    assert_eq!(p0.process.tokens(), 0);
    assert_eq!(p0.hear(3, token(0, 0, 0)), []);
}
