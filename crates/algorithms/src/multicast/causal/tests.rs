//! Steps of Causal multicast, one at a time.

use konklave_process::{Effect, Group, Inspect as _, Topology};
use konklave_testkit::{Bench, tell};

use super::*;
use crate::{Algorithm as _, Setup};

fn process() -> Bench<Causal> {
    let setup = Setup::new(Group::of(3), Topology::complete(3));
    Bench::new(Causal::new(ProcessId(2), &setup), ProcessId(2), &setup.group)
}

fn data(clock: &[(u32, u32)], number: u32) -> Message {
    Message::Data { clock: clock.iter().map(|&(p, k)| (ProcessId(p), k)).collect(), number }
}

fn delivered(from: u32, number: u32) -> Effect<Causal> {
    tell(Indication::Delivered(Unit { from: ProcessId(from), number }))
}

#[test]
fn an_answer_waits_for_its_question() {
    let mut p = process();
    assert_eq!(p.hear(1, data(&[(0, 1), (1, 1)], 1)), []);
    assert!(!p.process.at_rest());
    assert_eq!(p.hear(0, data(&[(0, 1)], 1)), [delivered(0, 1), delivered(1, 1)]);
    assert!(p.process.at_rest());
}

#[test]
fn concurrent_messages_are_delivered_on_arrival() {
    let mut p = process();
    assert_eq!(p.hear(1, data(&[(1, 1)], 1)), [delivered(1, 1)]);
    assert_eq!(p.hear(0, data(&[(0, 1)], 1)), [delivered(0, 1)]);
    assert_eq!(p.hear(0, data(&[(0, 1)], 1)), [], "twice is once");
}

#[test]
fn a_clock_counts_the_deliveries_of_its_sender() {
    let mut p = process();
    p.hear(1, data(&[(1, 1)], 1));
    let sent = p.ask(Request::Multicast(1));
    let expected = data(&[(1, 1), (2, 1)], 1);
    assert!(sent.contains(&Effect::Send { to: ProcessId(0), message: expected }));
}
