use konklave_process::{Effect, Group, Input, Inspect as _, Topology};
use konklave_testkit::{Bench, set, tell};

use super::*;
use crate::multicast::Note;
use crate::{Algorithm, Setup};

fn process(me: u32, n: usize) -> Bench<Srm> {
    let chain = Topology::from_edges("chain", n, (1..n).map(|i| (i - 1, i))).unwrap();
    let mut setup = Setup::new(Group::of(n), chain);
    for (name, value) in
        [("timers", "fixed"), ("c1", "1"), ("c2", "0"), ("d1", "1"), ("d2", "0"), ("sessions", "0")]
    {
        setup.chosen.insert(name, value.to_owned());
    }
    Bench::new(Srm::new(ProcessId(me), &setup), ProcessId(me), &setup.group)
}

const T: Duration = Duration::from_millis(1);
const LOST: Unit = Unit { from: ProcessId(0), number: 1 };

fn note(note: Note) -> Effect<Srm> {
    tell(Indication::Note(note))
}

fn request(distance: u32) -> Message {
    Message::Request { unit: LOST, distance, radius: EVERYWHERE }
}

#[test]
fn a_member_with_a_gap_waits_by_its_distance_and_asks_all() {
    let mut p = process(2, 4);
    let seen = p.hear(0, Message::Data(2));
    let told = tell(Indication::Delivered(Unit { number: 2, ..LOST }));
    assert_eq!(seen, [told, note(Note::Missing(LOST)), set(Timer::Ask(LOST), 2 * T)]);
    let asked = p.fire(Timer::Ask(LOST));
    assert_eq!(asked[0], note(Note::Asked(LOST)));
    assert_eq!(asked.iter().filter(|e| matches!(e, Effect::Send { .. })).count(), 3);
    // The next round takes twice as long, and other requests count after half of it.
    assert_eq!(asked[4..], [set(Timer::Ask(LOST), 4 * T), set(Timer::Listen(LOST), 2 * T)]);
}

#[test]
fn another_members_request_delays_ours_once_until_the_listen_timer() {
    let mut p = process(2, 4);
    p.hear(0, Message::Data(2));
    let put_off = [set(Timer::Ask(LOST), 4 * T), set(Timer::Listen(LOST), 2 * T)];
    assert_eq!(p.hear(1, request(1)), put_off);
    assert_eq!(p.hear(3, request(3)), []);
    p.fire(Timer::Listen(LOST));
    assert_eq!(p.hear(3, request(3))[0], set(Timer::Ask(LOST), 8 * T));
}

#[test]
fn s10_a_request_for_an_unnoticed_loss_starts_with_a_longer_wait() {
    let mut p = process(2, 4);
    let heard = p.hear(1, request(1));
    assert_eq!(heard[..2], [note(Note::Missing(LOST)), set(Timer::Ask(LOST), 4 * T)]);
}

#[test]
fn a_holder_repairs_unless_another_repair_arrives_first() {
    let mut p = process(1, 4);
    p.hear(0, Message::Data(1));
    assert_eq!(p.hear(3, request(3)), [set(Timer::Repair(LOST), 2 * T)]);
    assert_eq!(p.hear(2, request(2)), [], "one repair is enough");
    let repaired = p.fire(Timer::Repair(LOST));
    assert_eq!(repaired[0], note(Note::Repaired(LOST)));
    assert_eq!(repaired.last(), Some(&set(Timer::Rest(LOST), 3 * T)));
    assert_eq!(p.hear(2, request(2)), [], "a moment ago it was repaired");
    p.fire(Timer::Rest(LOST));
    assert_eq!(p.hear(2, request(2)), [set(Timer::Repair(LOST), T)]);
    let repair = Message::Repair { unit: LOST, asker: ProcessId(2), distance: 1 };
    let unwanted = p.hear(0, repair);
    assert_eq!(unwanted[0], Effect::CancelTimer { timer: Timer::Repair(LOST) });
    assert!(p.process.at_rest());
}

#[test]
fn a_repair_is_delivered_once() {
    let mut p = process(2, 4);
    p.hear(0, Message::Data(2));
    let repair = Message::Repair { unit: LOST, asker: ProcessId(2), distance: 1 };
    let told = p.hear(1, repair.clone());
    assert!(told.contains(&tell(Indication::Delivered(LOST))));
    assert_eq!(p.hear(1, repair)[0], note(Note::Unwanted(LOST)));
    assert!(p.process.at_rest());
}

#[test]
fn messages_about_unknown_or_impossible_units_do_no_harm() {
    let mut p = process(2, 4);
    let stranger = Unit { from: ProcessId(77), number: 1 };
    assert_eq!(p.hear(1, Message::Request { unit: stranger, distance: 1, radius: 9 }), []);
    assert_eq!(p.hear(1, Message::Repair { unit: stranger, asker: ProcessId(2), distance: 1 }), []);
    assert_eq!(p.hear(1, Message::Session { high: vec![(ProcessId(77), 3)], settled: false }), []);
    let own = Unit { from: ProcessId(2), number: 5 };
    assert_eq!(p.hear(1, Message::Request { unit: own, distance: 1, radius: 9 }), []);
    assert_eq!(p.hear(1, Message::Repair { unit: own, asker: ProcessId(2), distance: 1 }), []);
    assert!(p.process.at_rest());
}

#[test]
fn session_messages_go_on_until_all_members_sent_the_same_numbers() {
    let setup = Setup::new(Group::of(3), Topology::complete(3));
    let mut p = Bench::new(Srm::new(ProcessId(1), &setup), ProcessId(1), &setup.group);
    let news = p.hear(0, Message::Data(1));
    assert!(
        matches!(news.last(), Some(Effect::SetTimer { timer: Timer::Session, .. })),
        "{news:?}"
    );
    let session = |settled| Message::Session { high: vec![(ProcessId(0), 1)], settled };
    let spoken = |effects: &[Effect<Srm>], settled, again| {
        let sent = |e: &&Effect<Srm>| matches!(e, Effect::Send { message, .. } if *message == session(settled));
        let set = effects.iter().any(|e| matches!(e, Effect::SetTimer { .. }));
        assert_eq!((effects.iter().filter(sent).count(), set), (2, again), "{effects:?}");
    };
    spoken(&p.fire(Timer::Session), false, true);
    assert_eq!(p.hear(0, session(false)), [], "the next one is on its way");
    spoken(&p.fire(Timer::Session), false, true);
    assert_eq!(p.hear(2, session(true)), []);
    spoken(&p.fire(Timer::Session), true, false);
    assert_eq!(p.hear(2, session(true)), [], "all agree, and know it");
    // A member has not received our session message: we send another one.
    assert_eq!(p.hear(0, session(false)).len(), 1);
    spoken(&p.fire(Timer::Session), true, false);
    // No process waits for a suspected one.
    p.hear(0, Message::Data(2));
    p.suspect(2);
    p.hear(0, Message::Session { high: vec![(ProcessId(0), 2)], settled: false });
    let end = p.fire(Timer::Session);
    assert!(!end.iter().any(|e| matches!(e, Effect::SetTimer { .. })), "{end:?}");
    assert_eq!(p.step(Input::Trust(ProcessId(2))).len(), 1, "it may lack what was said meanwhile");
}
