use konklave_process::{Effect, Group, Inspect as _, Topology};
use konklave_testkit::{Bench, send, set, tell};

use super::*;
use crate::{Algorithm, Setup};

fn process(me: u32, n: usize, chosen: &[(&'static str, &str)]) -> Bench<Sequencer> {
    let mut setup = Setup::new(Group::of(n), Topology::complete(n));
    setup.chosen.extend(chosen.iter().map(|(k, v)| (*k, (*v).to_owned())));
    Bench::new(Sequencer::new(ProcessId(me), &setup), ProcessId(me), &setup.group)
}

fn unit(from: u32, number: u32) -> Unit {
    Unit { from: ProcessId(from), number }
}

fn held(from: u32, number: u32) -> Effect<Sequencer> {
    tell(Indication::Note(Note::Held(unit(from, number))))
}

fn delivered(from: u32, number: u32) -> Effect<Sequencer> {
    tell(Indication::Delivered(unit(from, number)))
}

fn numbered(position: u32, from: u32, seq: u32) -> Message {
    Message::Numbered { position, from: ProcessId(from), seq, number: seq }
}

fn order(first: u32, ids: &[(u32, u32)]) -> Message {
    Message::Order { first, ids: ids.iter().map(|&(p, seq)| (ProcessId(p), seq)).collect() }
}

const fn data(seq: u32) -> Message {
    Message::Data { seq, number: seq }
}

#[test]
fn a_sender_asks_the_sequencer_and_waits_for_its_turn() {
    let mut p = process(1, 3, &[]);
    assert_eq!(p.ask(Request::Multicast(1)), [send(0, data(1))]);
    assert_eq!(p.hear(0, numbered(1, 1, 1)), []);
    let both = [held(2, 1), held(1, 1), delivered(2, 1), delivered(1, 1)];
    assert_eq!(p.hear(0, numbered(0, 2, 1)), both);
    assert!(p.process.at_rest());
}

#[test]
fn the_sequencer_numbers_in_the_order_of_each_sender() {
    let mut p = process(0, 2, &[]);
    assert_eq!(p.hear(1, data(2)), []);
    let both = [
        send(1, numbered(0, 1, 1)),
        held(1, 1),
        delivered(1, 1),
        send(1, numbered(1, 1, 2)),
        held(1, 2),
        delivered(1, 2),
    ];
    assert_eq!(p.hear(1, data(1)), both);
    assert_eq!(p.hear(1, data(1)), [], "what comes again gets no second number");
}

#[test]
fn with_bb_the_number_comes_apart_from_the_message() {
    let mut p = process(1, 3, &[("wire", "bb")]);
    assert_eq!(p.ask(Request::Multicast(1)), [send(0, data(1)), send(2, data(1))]);
    assert_eq!(p.hear(0, order(0, &[(2, 1), (1, 1)])), []);
    let both = [held(2, 1), held(1, 1), delivered(2, 1), delivered(1, 1)];
    assert_eq!(p.hear(2, data(1)), both);
}

#[test]
fn numbers_are_sent_in_full_batches_or_after_a_while() {
    let mut p = process(0, 2, &[("wire", "bb"), ("batch", "2")]);
    let half = std::time::Duration::from_micros(500);
    assert_eq!(p.hear(1, data(1)), [set(Timer::Batch, half), held(1, 1), delivered(1, 1)]);
    assert_eq!(p.fire(Timer::Batch).last(), Some(&send(1, order(0, &[(1, 1)]))));
    p.hear(1, data(2));
    assert!(p.hear(1, data(3)).contains(&send(1, order(1, &[(1, 2), (1, 3)]))));
}

#[test]
fn uniform_delivery_waits_for_a_majority() {
    let mut p = process(2, 5, &[("delivery", "uniform")]);
    let told = p.hear(0, numbered(0, 1, 1));
    assert_eq!(told[0], held(1, 1));
    assert_eq!(told[1..], [0, 1, 3, 4].map(|to| send(to, Message::Held(1))));
    assert_eq!(p.hear(0, Message::Held(1)), []);
    assert_eq!(p.hear(0, Message::Held(1)), [], "one that says it twice is still one");
    assert_eq!(p.hear(3, Message::Held(1)), [delivered(1, 1)]);
}

#[test]
fn committed_delivery_waits_for_the_commit_of_the_sequencer() {
    let mut p = process(1, 3, &[("delivery", "committed")]);
    assert_eq!(p.hear(0, numbered(0, 2, 1)), [held(2, 1), send(0, Message::Held(1))]);
    assert_eq!(p.hear(0, Message::Commit(1)), [delivered(2, 1)]);
    let mut p = process(0, 3, &[("delivery", "committed")]);
    p.hear(2, data(1));
    let told = p.hear(1, Message::Held(1));
    assert_eq!(told, [send(1, Message::Commit(1)), send(2, Message::Commit(1)), delivered(2, 1)]);
}

#[test]
fn alone_everything_is_delivered_at_once() {
    for delivery in ["agreed", "uniform", "committed"] {
        for wire in ["ub", "bb"] {
            let mut p = process(0, 1, &[("delivery", delivery), ("wire", wire)]);
            assert_eq!(p.ask(Request::Multicast(1)), [held(0, 1), delivered(0, 1)]);
        }
    }
}
