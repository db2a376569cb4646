use std::time::Duration;

use konklave_process::{Effect, Group, Topology};
use konklave_testkit::{Bench, send, set, tell};

use super::*;
use crate::{Algorithm, Setup};

fn process(me: u32, n: usize, chosen: &[(&'static str, &str)]) -> Bench<TokenOrder> {
    let mut setup = Setup::new(Group::of(n), Topology::complete(n));
    setup.chosen = chosen.iter().map(|&(k, v)| (k, v.to_owned())).collect();
    Bench::new(TokenOrder::new(ProcessId(me), &setup), ProcessId(me), &setup.group)
}

fn unit(from: u32, number: u32) -> Unit {
    Unit { from: ProcessId(from), number }
}

fn held(from: u32, number: u32) -> Effect<TokenOrder> {
    tell(Indication::Note(Note::Held(unit(from, number))))
}

fn delivered(from: u32, number: u32) -> Effect<TokenOrder> {
    tell(Indication::Delivered(unit(from, number)))
}

fn data(seq: u32, from: u32, number: u32) -> Message {
    Message::Data { seq, unit: unit(from, number) }
}

fn token(serial: u32, seq: u32, aru: u32) -> Token {
    Token { serial, seq, aru, ..Token::default() }
}

fn cancel(timer: Timer) -> Effect<TokenOrder> {
    Effect::CancelTimer { timer }
}

/// The last token that these effects pass on.
fn passed(effects: &[Effect<TokenOrder>]) -> Token {
    let mut tokens = effects.iter().filter_map(|e| match e {
        Effect::Send { message: Message::Token(token), .. } => Some(token.clone()),
        _ => None,
    });
    tokens.next_back().expect("the token was passed on")
}

const ROUND: Duration = Duration::from_millis(6);

#[test]
fn the_first_numbers_its_own_at_once_while_the_token_rests() {
    let mut p = process(0, 3, &[]);
    let one = [
        cancel(Timer::Wake),
        send(1, data(1, 0, 1)),
        send(2, data(1, 0, 1)),
        held(0, 1),
        delivered(0, 1),
        send(1, Message::Token(Token { flow: 1, ..token(1, 1, 1) })),
        set(Timer::Token, ROUND),
    ];
    assert_eq!(p.ask(Request::Multicast(1)), one);
}

#[test]
fn another_wakes_the_token_and_sends_when_it_comes() {
    let mut p = process(2, 3, &[]);
    let wake = [send(0, Message::Wake), set(Timer::Wake, ROUND)];
    assert_eq!(p.ask(Request::Multicast(1)), wake);
    assert_eq!(p.ask(Request::Multicast(2)), [], "one word wakes for both");
    assert_eq!(p.fire(Timer::Wake), wake, "and is said again while the token does not come");
    let sent = p.hear(1, Message::Token(token(2, 0, 0)));
    assert!(sent.contains(&send(0, data(1, 2, 1))) && sent.contains(&send(1, data(2, 2, 2))));
    assert_eq!(passed(&sent), Token { flow: 2, ..token(3, 2, 2) });
    let mut first = process(0, 3, &[]);
    assert_eq!(passed(&first.hear(2, Message::Wake)), token(1, 0, 0));
    assert_eq!(first.hear(2, Message::Wake), [], "a token that is up needs no waking");
}

#[test]
fn r1_the_token_is_repeated_until_it_is_known_to_have_arrived() {
    let mut p = process(1, 3, &[]);
    let copy = passed(&p.hear(0, Message::Token(token(1, 0, 0))));
    let again = [send(2, Message::Token(copy)), set(Timer::Token, ROUND)];
    assert_eq!(p.fire(Timer::Token), again);
    assert_eq!(p.hear(2, Message::Got(1)), [], "that was about an earlier one");
    assert_eq!(p.fire(Timer::Token), again);
    // A number that the token had not given with us: someone behind us has it.
    assert_eq!(p.hear(2, data(1, 2, 1))[0], cancel(Timer::Token));
    assert_eq!(p.fire(Timer::Token), []);
}

#[test]
fn r2_a_repeated_token_is_answered_and_dropped() {
    let mut p = process(1, 3, &[]);
    p.hear(0, Message::Token(token(4, 0, 0)));
    assert_eq!(p.hear(0, Message::Token(token(4, 0, 0))), [send(0, Message::Got(4))]);
    assert_eq!(p.hear(0, Message::Token(token(1, 0, 0))), [send(0, Message::Got(4))]);
}

#[test]
fn r3_a_message_that_the_token_overtook_is_requested_on_the_second_visit() {
    let mut p = process(1, 3, &[]);
    let first = passed(&p.hear(0, Message::Token(token(1, 2, 2))));
    assert_eq!((first.lacking, first.aru, first.signed), (vec![], 0, Some(ProcessId(1))));
    p.hear(0, data(1, 0, 1));
    let second = passed(&p.hear(0, Message::Token(token(4, 3, 0))));
    assert_eq!(second.lacking, [2], "3 is as young as the round");
    let mut hasty = process(1, 3, &[("asking", "at-once")]);
    assert_eq!(passed(&hasty.hear(0, Message::Token(token(1, 2, 2)))).lacking, [1, 2]);
}

#[test]
fn r4_a_burst_limits_repairs_and_a_token_that_only_repairs_is_held_back() {
    let mut p = process(0, 2, &[("burst", "1")]);
    p.ask(Request::Multicast(1));
    p.ask(Request::Multicast(2));
    let lacking = |serial, seq| Token {
        lacking: vec![1, 2],
        signed: Some(ProcessId(1)),
        ..token(serial, seq, 0)
    };
    let once = p.hear(1, Message::Token(lacking(2, 1)));
    assert_eq!(passed(&once).lacking, [2], "the second is not repaired in the same visit");
    p.hear(1, Message::Token(lacking(4, 2)));
    let held = p.hear(1, Message::Token(lacking(6, 2)));
    assert!(!held.iter().any(|e| matches!(e, Effect::Send { message: Message::Token(_), .. })));
    assert!(held.contains(&set(Timer::Hold, Duration::from_millis(5 * 4))), "{held:?}");
    assert_eq!(passed(&p.fire(Timer::Hold)).serial, 7);
}

#[test]
fn a_message_is_safe_after_two_visits_report_it_received() {
    let mut p = process(1, 3, &[("delivery", "safe")]);
    assert_eq!(p.hear(0, data(1, 0, 1)), [held(0, 1)]);
    let one = p.hear(0, Message::Token(token(1, 1, 1)));
    assert!(!one.contains(&delivered(0, 1)));
    let two = p.hear(0, Message::Token(token(4, 1, 1)));
    assert!(two.contains(&delivered(0, 1)));
}

#[test]
fn all_members_share_the_window() {
    let mut p = process(1, 3, &[("window", "3"), ("burst", "2")]);
    for number in 1..=5 {
        p.ask(Request::Multicast(number));
    }
    let left = passed(&p.hear(0, Message::Token(Token { flow: 2, ..token(1, 2, 2) })));
    assert_eq!((left.seq, left.flow), (3, 3));
    let left = passed(&p.hear(0, Message::Token(Token { flow: 1, ..token(4, 3, 0) })));
    assert_eq!((left.seq, left.flow), (5, 2));
}

#[test]
fn alone_a_message_is_delivered_at_once() {
    assert_eq!(process(0, 1, &[]).ask(Request::Multicast(1)), [held(0, 1), delivered(0, 1)]);
}

#[test]
fn a_ring_without_a_member_stops_asking() {
    let mut p = process(1, 3, &[]);
    p.hear(0, Message::Token(token(1, 0, 0)));
    p.suspect(2);
    assert_eq!(p.fire(Timer::Token), []);
    assert_eq!(p.ask(Request::Multicast(1)), []);
}
