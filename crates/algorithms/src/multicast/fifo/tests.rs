//! Steps of FIFO multicast, one at a time.

use konklave_process::{Group, Inspect as _, Topology};
use konklave_testkit::{Bench, tell};

use super::*;
use crate::{Algorithm as _, Setup};

fn process() -> Bench<Fifo> {
    let setup = Setup::new(Group::of(3), Topology::complete(3));
    Bench::new(Fifo::new(ProcessId(0), &setup), ProcessId(0), &setup.group)
}

fn data(seq: u32) -> Message {
    Message::Data { seq, number: seq }
}

fn delivered(from: u32, number: u32) -> konklave_process::Effect<Fifo> {
    tell(Indication::Delivered(Unit { from: ProcessId(from), number }))
}

#[test]
fn a_message_waits_for_the_ones_that_it_overtook() {
    let mut p = process();
    assert_eq!(p.hear(1, data(2)), []);
    assert!(!p.process.at_rest());
    assert_eq!(p.hear(2, data(1)), [delivered(2, 1)]);
    assert_eq!(p.hear(1, data(1)), [delivered(1, 1), delivered(1, 2)]);
    assert!(p.process.at_rest());
}

#[test]
fn a_copy_is_not_delivered_again() {
    let mut p = process();
    assert_eq!(p.hear(1, data(1)), [delivered(1, 1)]);
    assert_eq!(p.hear(1, data(1)), []);
    assert_eq!(p.hear(1, data(3)), []);
    assert_eq!(p.hear(1, data(3)), []);
    assert_eq!(p.hear(1, data(2)), [delivered(1, 2), delivered(1, 3)]);
}
