use konklave_process::{Effect, Group, Input, Inspect as _, Topology};
use konklave_testkit::{Bench, send, set, tell};

use super::*;
use crate::{Algorithm, Setup};

fn process(me: u32, n: usize, chosen: &[(&'static str, &str)]) -> Bench<Nack> {
    let mut setup = Setup::new(Group::of(n), Topology::complete(n));
    setup.chosen.insert("suppression", "none".to_owned());
    setup.chosen.extend(chosen.iter().map(|(k, v)| (*k, (*v).to_owned())));
    Bench::new(Nack::new(ProcessId(me), &setup), ProcessId(me), &setup.group)
}

fn unit(number: u32) -> Unit {
    Unit { from: ProcessId(0), number }
}

fn delivered(number: u32) -> Effect<Nack> {
    tell(Indication::Delivered(unit(number)))
}

fn note(note: fn(Unit) -> Note, number: u32) -> Effect<Nack> {
    tell(Indication::Note(note(unit(number))))
}

fn data(seq: u32) -> Message {
    Message::Data { life: 0, seq, number: seq }
}

fn repair(seq: u32) -> Message {
    Message::Repair { life: 0, seq, number: seq }
}

fn nack(ranges: &[(u32, u32)]) -> Message {
    Message::Nack { life: 0, ranges: ranges.to_vec() }
}

const T: Duration = Duration::from_millis(1);
const ASK: Timer = Timer::Ask(ProcessId(0));

#[test]
fn a_gap_is_noticed_requested_and_repaired() {
    let mut p = process(1, 2, &[]);
    assert_eq!(p.hear(0, data(1)), [delivered(1)]);
    let seen = [note(Note::Missing, 2), note(Note::Missing, 3), set(ASK, T)];
    assert_eq!(p.hear(0, data(4)), seen);
    let asked =
        [note(Note::Asked, 2), note(Note::Asked, 3), send(0, nack(&[(2, 3)])), set(ASK, 3 * T)];
    assert_eq!(p.fire(ASK), asked);
    assert_eq!(p.hear(0, repair(2)), [delivered(2)]);
    let cancel = Effect::CancelTimer { timer: ASK };
    assert_eq!(p.hear(0, repair(3)), [delivered(3), delivered(4), cancel]);
    assert_eq!(p.hear(0, repair(3)), [note(Note::Unwanted, 3)]);
}

#[test]
fn a_heartbeat_shows_what_is_missing_at_the_end_and_becomes_rarer() {
    let mut p = process(1, 2, &[]);
    let beat = Message::Heartbeat { life: 0, high: 1 };
    assert_eq!(p.hear(0, beat.clone()), [note(Note::Missing, 1), set(ASK, T)]);
    assert_eq!(p.hear(0, beat.clone()), []);
    let mut p = process(0, 2, &[("rarest", "5"), ("beats", "3")]);
    assert_eq!(p.ask(Request::Multicast(1))[2], set(Timer::Beat, 2 * T));
    assert_eq!(p.fire(Timer::Beat), [send(1, beat.clone()), set(Timer::Beat, 4 * T)]);
    assert_eq!(p.fire(Timer::Beat), [send(1, beat.clone()), set(Timer::Beat, 5 * T)]);
    assert_eq!(p.fire(Timer::Beat), [send(1, beat), set(Timer::Beat, 5 * T)]);
    // Then it stops: often at first, rarely for ever, until it is answered.
    let stop = || send(1, Message::Stop { life: 0, last: 1 });
    for wait in [3, 3, 5, 5, 5] {
        assert_eq!(p.fire(Timer::Beat), [stop(), set(Timer::Beat, wait * T)]);
    }
    assert_eq!(p.hear(1, Message::Whole { life: 0, last: 0 }), [], "that was an earlier end");
    let over = [Effect::CancelTimer { timer: Timer::Beat }];
    assert_eq!(p.hear(1, Message::Whole { life: 0, last: 1 }), over);
}

#[test]
fn a_suspected_receiver_is_not_waited_for_until_it_is_trusted() {
    let mut p = process(0, 2, &[("beats", "0")]);
    p.ask(Request::Multicast(1));
    assert_eq!(p.suspect(1), [Effect::CancelTimer { timer: Timer::Beat }]);
    assert_eq!(p.step(Input::Trust(ProcessId(1))), [set(Timer::Beat, 2 * T)]);
}

#[test]
fn a_receiver_of_the_whole_stream_answers_a_stop() {
    let stop = Message::Stop { life: 0, last: 1 };
    let whole = || send(0, Message::Whole { life: 0, last: 1 });
    let mut p = process(1, 2, &[]);
    assert_eq!(p.hear(0, stop.clone()), [note(Note::Missing, 1), set(ASK, T)]);
    p.hear(0, repair(1));
    assert_eq!(p.hear(0, stop.clone()), [whole()]);
    assert_eq!(p.hear(0, stop), [whole()], "the answer may have been lost");
}

#[test]
fn one_repair_serves_all_requests_within_a_round_trip() {
    let mut p = process(0, 3, &[]);
    p.ask(Request::Multicast(1));
    let repaired = p.hear(1, nack(&[(1, 1)]));
    assert!(repaired.contains(&send(2, repair(1))));
    assert_eq!(p.hear(2, nack(&[(1, 1)])), []);
    p.fire(Timer::Cool(1));
    assert_eq!(p.hear(2, nack(&[(1, 1)])).len(), 4);
}

#[test]
fn a_message_not_kept_is_reported_as_gone() {
    let mut p = process(0, 2, &[("keep", "1")]);
    p.ask(Request::Multicast(1));
    p.ask(Request::Multicast(2));
    let gone = Message::Gone { life: 0, below: 2 };
    assert_eq!(p.hear(1, nack(&[(1, 1)])), [send(1, gone.clone())]);
    let mut p = process(1, 2, &[]);
    p.hear(0, data(2));
    let told = p.hear(0, gone);
    assert_eq!(told[..2], [tell(Indication::Gone(unit(1))), delivered(2)]);
    assert!(p.process.at_rest());
}

#[test]
fn after_the_last_try_a_gap_is_reported_as_gone() {
    let mut p = process(1, 2, &[("tries", "2")]);
    p.hear(0, data(2));
    p.fire(ASK);
    assert_eq!(p.fire(ASK)[2], set(ASK, 6 * T));
    assert_eq!(p.fire(ASK), [tell(Indication::Gone(unit(1))), delivered(2)]);
}

#[test]
fn ranges_that_make_no_sense_do_no_harm() {
    let mut p = process(0, 2, &[]);
    p.ask(Request::Multicast(1));
    assert_eq!(p.hear(1, nack(&[(5, 2), (9, 9)])), []);
    assert_eq!(p.hear(1, Message::Nack { life: 7, ranges: vec![(1, 1)] }), []);
}

#[test]
fn the_spread_lies_within_four_round_trips_and_few_are_short() {
    let all: Vec<u32> = (0..1024).map(|draw| stream::spread(1000, draw)).collect();
    assert!(all.iter().all(|d| (1..=8 * 1024 + 1).contains(d)));
    assert!(all.is_sorted());
    let short = all.iter().filter(|d| **d < 4 * 1024).count();
    assert!(short < 1024 / 20, "{short}");
}
