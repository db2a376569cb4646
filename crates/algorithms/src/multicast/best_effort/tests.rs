//! Steps of Best-effort multicast, one at a time.

use konklave_process::{Group, Topology};
use konklave_testkit::{Bench, send, tell};

use super::*;
use crate::{Algorithm as _, Setup};

fn process(n: usize) -> Bench<BestEffort> {
    let setup = Setup::new(Group::of(n), Topology::complete(n));
    Bench::new(BestEffort::new(ProcessId(0), &setup), ProcessId(0), &setup.group)
}

#[test]
fn a_message_goes_to_each_member_once_and_is_delivered_at_once() {
    let own = tell(Indication::Delivered(Unit { from: ProcessId(0), number: 1 }));
    let data = Message::Data(1);
    assert_eq!(process(1).ask(Request::Multicast(1)), std::slice::from_ref(&own));
    assert_eq!(process(3).ask(Request::Multicast(1)), [send(1, data), send(2, data), own]);
}

#[test]
fn a_message_is_delivered_on_arrival() {
    for number in [7, 2] {
        let told = tell(Indication::Delivered(Unit { from: ProcessId(1), number }));
        assert_eq!(process(2).hear(1, Message::Data(number)), [told]);
    }
}
