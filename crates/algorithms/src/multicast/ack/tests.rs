use std::time::Duration;

use konklave_process::{Effect, Group, Inspect as _, Topology};
use konklave_testkit::{Bench, send, set, tell};

use super::*;
use crate::{Algorithm, Setup};

fn process(me: u32, n: usize, chosen: &[(&'static str, &str)]) -> Bench<Ack> {
    let mut setup = Setup::new(Group::of(n), Topology::complete(n));
    setup.chosen.extend(chosen.iter().map(|(k, v)| (*k, (*v).to_owned())));
    Bench::new(Ack::new(ProcessId(me), &setup), ProcessId(me), &setup.group)
}

fn delivered(from: u32, number: u32) -> Effect<Ack> {
    tell(Indication::Delivered(Unit { from: ProcessId(from), number }))
}

fn note(note: fn(Unit) -> Note, from: u32, number: u32) -> Effect<Ack> {
    tell(Indication::Note(note(Unit { from: ProcessId(from), number })))
}

fn data(seq: u32) -> Message {
    Message::Data { life: 0, seq, number: seq }
}

fn ack(of: u32, upto: u32, beyond: &[u32]) -> Message {
    Message::Ack { of: ProcessId(of), life: 0, upto, beyond: beyond.to_vec() }
}

const T: Duration = Duration::from_millis(1);

#[test]
fn a_message_is_repeated_to_receivers_that_have_not_confirmed_it() {
    let mut p = process(0, 5, &[]);
    p.ask(Request::Multicast(1));
    for q in [1, 2, 4] {
        assert_eq!(p.hear(q, ack(0, 1, &[])), []);
    }
    let repeated = [note(Note::Repaired, 0, 1), send(3, data(1)), set(Timer::Retry(1), 6 * T)];
    assert_eq!(p.fire(Timer::Retry(1)), repeated);
    assert_eq!(p.hear(3, ack(0, 1, &[])), [Effect::CancelTimer { timer: Timer::Retry(1) }]);
    assert!(p.process.at_rest());
}

#[test]
fn a_message_that_many_lack_is_repeated_to_all() {
    let mut p = process(0, 5, &[]);
    p.ask(Request::Multicast(1));
    p.hear(1, ack(0, 1, &[]));
    let repeated = p.fire(Timer::Retry(1));
    assert_eq!(repeated.iter().filter(|e| matches!(e, Effect::Send { .. })).count(), 4);
}

#[test]
fn the_window_limits_unconfirmed_messages_and_counts_selective_confirmations() {
    let mut p = process(0, 2, &[("window", "2")]);
    for number in 1..=3 {
        p.ask(Request::Multicast(number));
    }
    assert_eq!(p.process.sending.as_ref().unwrap().outstanding.len(), 2);
    // The second is confirmed ahead of the first: the window still begins at the first.
    let cancel = |seq| Effect::CancelTimer { timer: Timer::Retry(seq) };
    assert_eq!(p.hear(1, ack(0, 0, &[2])), [cancel(2)]);
    let next = [cancel(1), send(1, data(3)), delivered(0, 3), set(Timer::Retry(3), 3 * T)];
    assert_eq!(p.hear(1, ack(0, 2, &[])), next);
}

#[test]
fn a_receiver_confirms_a_copy_again() {
    let mut p = process(1, 2, &[]);
    assert_eq!(p.hear(0, data(1)), [delivered(0, 1), send(0, ack(0, 1, &[]))]);
    let again = [note(Note::Unwanted, 0, 1), send(0, ack(0, 1, &[]))];
    assert_eq!(p.hear(0, data(1)), again);
    assert_eq!(p.hear(0, data(3)), [send(0, ack(0, 1, &[3]))]);
}

#[test]
fn confirmations_are_delayed_until_there_are_enough() {
    let mut p = process(1, 2, &[("every", "3")]);
    p.draw(&[127]);
    assert_eq!(p.hear(0, data(1)), [delivered(0, 1), set(Timer::Confirm(ProcessId(0)), T / 2)]);
    assert_eq!(p.hear(0, data(2)), [delivered(0, 2)]);
    let cancel = Effect::CancelTimer { timer: Timer::Confirm(ProcessId(0)) };
    assert_eq!(p.hear(0, data(3)), [delivered(0, 3), cancel, send(0, ack(0, 3, &[]))]);
}

#[test]
fn with_a_tree_a_parent_confirms_for_its_children() {
    // Of seven in a binary tree around 0, 1 speaks for 3 and 4.
    let mut p = process(1, 7, &[("fanout", "2")]);
    assert_eq!(p.hear(0, data(1)), [delivered(0, 1), send(0, ack(0, 0, &[]))]);
    assert_eq!(p.hear(3, ack(0, 1, &[])), [send(0, ack(0, 0, &[]))]);
    assert_eq!(p.hear(4, ack(0, 1, &[])), [send(0, ack(0, 1, &[]))]);
    let settings = &p.process.settings;
    let children: Vec<u32> = settings.children(ProcessId(5), ProcessId(5)).map(|p| p.0).collect();
    assert_eq!(children, [6, 0]);
    assert_eq!(settings.parent(ProcessId(5), ProcessId(0)), Some(ProcessId(5)));
    assert_eq!(settings.children(ProcessId(0), ProcessId(6)).count(), 0);
}

#[test]
fn a_silent_receiver_is_given_up_and_the_window_moves_on() {
    let mut p = process(0, 2, &[("limit", "1"), ("window", "1")]);
    p.ask(Request::Multicast(1));
    p.ask(Request::Multicast(2));
    p.fire(Timer::Retry(1));
    let given_up = p.fire(Timer::Retry(1));
    assert_eq!(given_up[0], tell(Indication::Suspected(ProcessId(1))));
    assert!(given_up.contains(&delivered(0, 2)) && p.process.at_rest());
}

#[test]
fn a_new_incarnation_begins_a_new_stream_and_the_old_one_is_over() {
    let mut p = process(1, 2, &[]);
    p.hear(0, data(1));
    let new = Message::Data { life: 1, seq: 1, number: 2 };
    assert_eq!(p.hear(0, new)[0], delivered(0, 2));
    assert_eq!(p.hear(0, data(2)), []);
}

#[test]
fn a_confirmation_of_an_unsent_message_changes_nothing() {
    let mut p = process(0, 2, &[]);
    assert_eq!(p.hear(1, ack(0, 9, &[])), []);
    p.ask(Request::Multicast(1));
    assert_eq!(p.hear(1, ack(0, 0, &[7])), []);
    assert!(!p.process.at_rest());
}
