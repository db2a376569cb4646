//! Steps of FireWire tree identification, one at a time.

use std::time::Duration;

use konklave_process::{Group, Inspect as _, Topology};
use konklave_testkit::{Bench, send, set, tell};

use super::*;
use crate::{Algorithm as _, Setup};

fn process(me: u32, topology: Topology, chosen: &[(&'static str, &str)]) -> Bench<FireWire> {
    let mut setup = Setup::new(Group::of(topology.len()), topology);
    setup.chosen.extend([("timeout", "0".to_owned()), ("reset", "wire".to_owned())]);
    setup.chosen.extend(chosen.iter().map(|(name, value)| (*name, (*value).to_owned())));
    assert_eq!(FireWire::check_setup(&setup), Ok(()));
    Bench::new(FireWire::new(ProcessId(me), &setup), ProcessId(me), &setup.group)
}

fn ask(generation: u32) -> Message {
    Message::BeMyParent { generation, id: None }
}

fn acknowledge(generation: u32) -> Message {
    Message::YouAreMyChild { generation }
}

const T: Duration = Duration::from_millis(1);

#[test]
fn a_leaf_asks_and_an_inner_process_waits() {
    let mut p1 = process(1, Topology::star(4), &[]);
    assert_eq!(p1.ask(Request::Elect), [set(Timer::Look, T / 5)]);
    assert_eq!(p1.fire(Timer::Look), [send(0, ask(1))]);
    let mut p0 = process(0, Topology::star(4), &[]);
    assert_eq!(p0.ask(Request::Elect), []);
}

#[test]
fn process_asked_on_all_sides_is_root() {
    let mut p0 = process(0, Topology::star(4), &[]);
    p0.ask(Request::Elect);
    for child in 1..=3 {
        p0.hear(child, ask(1));
    }
    let outcome = tell(Indication::Leading { epoch: 1 });
    let effects =
        [send(1, acknowledge(1)), send(2, acknowledge(1)), send(3, acknowledge(1)), outcome];
    assert_eq!(p0.fire(Timer::Look), effects);
}

#[test]
fn with_one_silent_edge_we_acknowledge_and_ask() {
    let mut p1 = process(1, Topology::path(3), &[]);
    p1.ask(Request::Elect);
    p1.hear(0, ask(1));
    assert_eq!(p1.fire(Timer::Look), [send(0, acknowledge(1)), send(2, ask(1))]);
    let outcome = Indication::Following { leader: None, epoch: 1 };
    assert_eq!(p1.hear(2, acknowledge(1)), [tell(outcome)]);
}

#[test]
fn f1_who_ask_each_other_wait_and_the_slower_is_asked_again() {
    let mut p1 = process(1, Topology::path(2), &[]);
    p1.ask(Request::Elect);
    p1.fire(Timer::Look);
    // Short: 240 to 260 ns, and T stands for 100.
    p1.draw(&[0, 20]);
    assert_eq!(p1.hear(0, ask(1)), [set(Timer::Contention, T * 13 / 5)]);
    assert_eq!(p1.fire(Timer::Contention), [send(0, ask(1))]);
    // The same choice once more; then a long time, and the other is faster.
    p1.draw(&[1, 0]);
    assert_eq!(p1.hear(0, ask(1)), [set(Timer::Contention, T * 57 / 10)]);
    assert_eq!(p1.hear(0, ask(1)), []);
    let root = tell(Indication::Leading { epoch: 1 });
    assert_eq!(p1.fire(Timer::Contention), [send(0, acknowledge(1)), root]);
}

#[test]
fn f2_by_id_the_higher_of_the_two_is_root() {
    let chosen = [("contention", "id")];
    let by = |id| Message::BeMyParent { generation: 1, id: Some(ProcessId(id)) };
    let mut p1 = process(1, Topology::path(2), &chosen);
    p1.ask(Request::Elect);
    assert_eq!(p1.fire(Timer::Look), [send(0, by(1))]);
    let root = tell(Indication::Leading { epoch: 1 });
    assert_eq!(p1.hear(0, by(0)), [send(0, acknowledge(1)), root]);
    let mut p0 = process(0, Topology::path(2), &chosen);
    p0.ask(Request::Elect);
    p0.fire(Timer::Look);
    assert_eq!(p0.hear(1, acknowledge(1)).len(), 1);
    // The question that was overtaken by its answer.
    assert_eq!(p0.hear(1, by(1)), []);
}

#[test]
fn f3_without_a_root_in_time_there_is_a_loop() {
    let mut p0 = process(0, Topology::ring(3), &[("timeout", "1000")]);
    assert_eq!(p0.ask(Request::Elect), [set(Timer::Configuration, T * 10)]);
    assert_eq!(p0.fire(Timer::Configuration), [tell(Indication::Loop)]);
    assert!(p0.process.at_rest());
}

#[test]
fn f4_a_question_of_an_earlier_generation_is_void() {
    let mut p1 = process(1, Topology::path(3), &[("reset", "message")]);
    p1.ask(Request::Elect);
    let reset = Message::Reset { generation: 2 };
    assert_eq!(p1.suspect(2), [send(0, reset), set(Timer::Look, T / 5)]);
    p1.hear(0, ask(1));
    assert_eq!(p1.fire(Timer::Look), [send(0, ask(2))]);
    // So is what was sent before the plug was pulled.
    assert_eq!(p1.hear(2, Message::Reset { generation: 7 }), []);
}

#[test]
fn f5_plugging_and_unplugging_the_root_edge_resets() {
    let mut p1 = process(1, Topology::path(2), &[("reset", "message")]);
    p1.ask(Request::Elect);
    p1.hear(0, ask(1));
    p1.fire(Timer::Look);
    let alone = [tell(Indication::Deposed), tell(Indication::Leading { epoch: 2 })];
    assert_eq!(p1.suspect(0), alone);
    let plugged = p1.step(konklave_process::Input::Trust(ProcessId(0)));
    let [newcomer, reset] = [0, 3].map(|generation| Message::Reset { generation });
    let deposed = tell(Indication::Deposed);
    assert_eq!(plugged, [send(0, newcomer), deposed, send(0, reset), set(Timer::Look, T / 5)]);
}
