//! Steps of Carvalho–Roucairol, one at a time.

use konklave_process::{Effect, Group, Inspect as _, Rng, Topology};
use konklave_testkit::{Bench, send, tell};

use super::*;
use crate::mutex::Fence;
use crate::{Algorithm as _, Setup};

fn bench(me: u32) -> Bench<CarvalhoRoucairol> {
    let setup = Setup::new(Group::of(3), Topology::complete(3));
    let process = CarvalhoRoucairol::new(ProcessId(me), &setup);
    Bench::new(process, ProcessId(me), &setup.group)
}

fn granted(fence: u64) -> Effect<CarvalhoRoucairol> {
    tell(Indication::Granted { fence: Some(Fence(0, fence)) })
}

#[test]
fn process_with_all_permissions_enters_without_messages() {
    let mut p0 = bench(0);
    for time in 1..5 {
        assert_eq!(p0.ask(Request::Acquire), [granted(time)]);
        assert_eq!(p0.ask(Request::Release), []);
    }
}

#[test]
fn only_those_who_have_the_permission_are_asked() {
    let mut p1 = bench(1);
    assert_eq!(p1.ask(Request::Acquire), [send(0, Message::Request { timestamp: 1, clock: 1 })]);
    // The fence goes on where that of the other has stopped.
    assert_eq!(p1.hear(0, Message::Reply { clock: 4, fence: 7 }), [granted(8)]);
}

#[test]
fn waiting_process_gives_permission_to_an_older_request_and_asks_for_it_again() {
    let mut p1 = bench(1);
    p1.hear(2, Message::Request { timestamp: 3, clock: 3 });
    p1.hear(2, Message::Reply { clock: 3, fence: 1 });
    p1.ask(Request::Acquire);
    let older = p1.hear(2, Message::Request { timestamp: 2, clock: 5 });
    let back = Message::Request { timestamp: 4, clock: 5 };
    assert_eq!(older, [send(2, Message::Reply { clock: 5, fence: 1 }), send(2, back)]);
}

#[test]
fn process_inside_gives_permission_when_it_leaves() {
    let mut p0 = bench(0);
    p0.ask(Request::Acquire);
    assert_eq!(p0.hear(2, Message::Request { timestamp: 1, clock: 1 }), []);
    assert_eq!(p0.ask(Request::Release), [send(2, Message::Reply { clock: 1, fence: 1 })]);
    assert!(p0.process.at_rest() && p0.process.lacking.contains(ProcessId(2)));
}

#[test]
fn each_pair_has_exactly_one_permission_at_every_moment() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let mut benches = [bench(0), bench(1), bench(2)];
        let mut flight: Vec<(u32, u32, Message)> = Vec::new();
        for _ in 0..200 {
            // Mostly let something arrive, in any order.
            let (at, effects) = if !flight.is_empty() && rng.below(3) > 0 {
                let (from, to, message) =
                    flight.swap_remove(rng.below(flight.len() as u32) as usize);
                (to, benches[to as usize].hear(from, message))
            } else {
                let at = rng.below(3);
                let request = match benches[at as usize].process.state {
                    State::Released => Request::Acquire,
                    State::Held => Request::Release,
                    State::Wanted { .. } => continue,
                };
                (at, benches[at as usize].ask(request))
            };
            flight.extend(effects.into_iter().filter_map(|effect| match effect {
                Effect::Send { to, message } => Some((at, to.0, message)),
                _ => None,
            }));
            for (i, j) in [(0, 1), (0, 2), (1, 2)] {
                let has = |a: u32, b: u32| {
                    usize::from(!benches[a as usize].process.lacking.contains(ProcessId(b)))
                };
                let moving = flight.iter().filter(|(from, to, message)| {
                    [(i, j), (j, i)].contains(&(*from, *to))
                        && matches!(message, Message::Reply { .. })
                });
                assert_eq!(has(i, j) + has(j, i) + moving.count(), 1, "seed {seed}");
            }
        }
    }
}
