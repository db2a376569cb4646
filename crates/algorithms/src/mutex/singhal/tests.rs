//! Steps of Singhal, one at a time.

use konklave_process::{Effect, Group, Inspect as _, Rng, Topology};
use konklave_testkit::{Bench, send, tell};

use super::*;
use crate::{Algorithm as _, Setup};

fn bench(me: u32, n: usize) -> Bench<Singhal> {
    let setup = Setup::new(Group::of(n), Topology::complete(n));
    Bench::new(Singhal::new(ProcessId(me), &setup), ProcessId(me), &setup.group)
}

fn is_marked(bench: &Bench<Singhal>, p: u32) -> bool {
    bench.process.known[ProcessId(p)].state == State::Requesting
}

fn granted(entries: u64) -> Effect<Singhal> {
    tell(Indication::Granted { fence: Some(Fence(0, entries)) })
}

/// Lets everything arrive that is on its way, and everyone leave who is inside.
fn settle(benches: &mut [Bench<Singhal>], flight: &mut Vec<(u32, u32, Message)>, rng: &mut Rng) {
    let mut inside = None;
    while !flight.is_empty() || inside.is_some() {
        let (at, effects) = match inside.take() {
            Some(at) if flight.is_empty() || rng.below(2) == 0 => {
                (at, benches[at as usize].ask(Request::Release))
            }
            waits => {
                inside = waits;
                let (from, to, message) =
                    flight.swap_remove(rng.below(flight.len() as u32) as usize);
                (to, benches[to as usize].hear(from, message))
            }
        };
        for effect in effects {
            match effect {
                Effect::Send { to, message } => flight.push((at, to.0, message)),
                Effect::Indicate(_) => assert_eq!(inside.replace(at), None),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn at_first_the_ith_asks_those_before_it() {
    let mut p3 = bench(3, 5);
    let asked = [0, 1, 2].map(|p| send(p, Message::Request(1)));
    assert_eq!(p3.ask(Request::Acquire), asked);
    assert_eq!(bench(0, 5).ask(Request::Acquire), [granted(1)]);
}

#[test]
fn idle_owner_of_the_token_sends_it_at_once() {
    let mut p0 = bench(0, 3);
    let effects = p0.hear(2, Message::Request(1));
    assert!(matches!(
        &effects[..],
        [Effect::Send { to: ProcessId(2), message: Message::Token(_) }]
    ));
    assert!(is_marked(&p0, 2) && p0.process.state == State::Nothing);
}

#[test]
fn waiting_process_sends_its_request_to_new_requesters() {
    let mut p1 = bench(1, 3);
    p1.ask(Request::Acquire);
    assert_eq!(p1.hear(2, Message::Request(1)), [send(2, Message::Request(1))]);
    assert_eq!(p1.hear(2, Message::Request(2)), []);
}

#[test]
fn an_old_request_is_a_hint_and_not_a_request() {
    let mut p0 = bench(0, 3);
    p0.ask(Request::Acquire);
    assert_eq!(p0.hear(2, Message::Request(0)), [send(2, Message::Hint)]);
    assert!(!is_marked(&p0, 2));
    let mut p1 = bench(1, 3);
    assert_eq!(p1.hear(2, Message::Hint), []);
    assert!(is_marked(&p1, 2));
}

#[test]
fn six_of_thirteen_asks_five_and_then_nobody() {
    let mut benches: Vec<Bench<Singhal>> = (0..13).map(|me| bench(me, 13)).collect();
    let asked = benches[5].ask(Request::Acquire);
    assert_eq!(asked, [0, 1, 2, 3, 4].map(|p| send(p, Message::Request(1))));
    let mut flight: Vec<(u32, u32, Message)> =
        (0..5).map(|p| (5, p, Message::Request(1))).collect();
    settle(&mut benches, &mut flight, &mut Rng::new(1));
    assert!((0..13).all(|p| !is_marked(&benches[5], p)));
    assert!((0..13).filter(|p| *p != 5).all(|p| is_marked(&benches[p as usize], 5) || p > 5));
    assert_eq!(benches[5].process.state, State::Holding);
}

#[test]
fn when_all_is_quiet_of_any_two_one_asks_the_other() {
    let n = 5;
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let mut benches: Vec<Bench<Singhal>> = (0..n).map(|me| bench(me, n as usize)).collect();
        for _ in 0..20 {
            let mut flight = Vec::new();
            let mut inside = false;
            for at in 0..n {
                // One who has the token would be inside while the others have not asked yet.
                let holds = benches[at as usize].process.token.is_some();
                if holds || rng.below(2) == 0 {
                    continue;
                }
                for effect in benches[at as usize].ask(Request::Acquire) {
                    match effect {
                        Effect::Send { to, message } => flight.push((at, to.0, message)),
                        _ => inside = true,
                    }
                }
            }
            assert!(!inside);
            settle(&mut benches, &mut flight, &mut rng);
            for i in 0..n {
                assert!(benches[i as usize].process.at_rest(), "seed {seed}");
                for j in 0..i {
                    let marks =
                        is_marked(&benches[i as usize], j) || is_marked(&benches[j as usize], i);
                    assert!(marks, "seed {seed}: {i} and {j}");
                }
            }
        }
    }
}
