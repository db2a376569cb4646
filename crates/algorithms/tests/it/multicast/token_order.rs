use konklave_algorithms::multicast::token_order::TokenOrder;
use konklave_process::Inspect;
use konklave_sim::{Delay, Pace};
use konklave_testkit::Case;

use super::is_within_bounds;

const WAYS: [&str; 2] = ["agreed", "safe"];

fn case(n: usize, delivery: &str) -> Case<TokenOrder> {
    Case::complete(n).set("delivery", delivery)
}

/// Only the member at `place` multicasts, once.
fn one(n: usize, place: usize, delivery: &str) -> Case<TokenOrder> {
    let mut requests = vec![0; n];
    requests[place] = 1;
    case(n, delivery).requests(&requests)
}

#[test]
fn a_message_costs_its_copies_and_three_rounds_of_the_token() {
    for n in [2usize, 3, 5, 20, 100] {
        for place in [0, 1, n / 2, n - 1] {
            let seen = one(n, place, "agreed").simulate();
            let latency = seen.well().summary.last_latency.unwrap().max;
            // Wake, the token's way to us, the message itself; the first has the token already.
            let (sent, time) = match place {
                0 => (4 * n - 2, 1.0),
                _ => (5 * n - 1, place as f64 + 2.0),
            };
            assert_eq!((seen.sent, latency), (sent as u64, time), "n = {n}, member {place}");
            assert_eq!(seen.kind("Data"), n as u64 - 1);
            assert_eq!(seen.kind("Token"), if place == 0 { 2 * n as u64 } else { 3 * n as u64 });
            assert!(seen.processes.iter().all(Inspect::at_rest));
        }
    }
}

#[test]
fn bounds_hold_and_an_idle_ring_sends_nothing() {
    for delivery in WAYS {
        for n in [1, 2, 3, 10] {
            let silent = case(n, delivery).requests(&vec![0; n]);
            assert_eq!(is_within_bounds(&silent, silent.simulate().well()), 2);
            let case = case(n, delivery).requests(&vec![3; n]);
            let seen = case.simulate();
            assert_eq!(is_within_bounds(&case, seen.well()), 1, "{delivery}, n = {n}");
            assert_eq!(seen.summary.delivered, 3 * (n * n) as u64);
        }
    }
    for seed in 0..100 {
        for delivery in WAYS {
            let case = case(6, delivery).requests(&[5; 6]).config(|c| {
                c.seed = seed;
                c.delay = Delay::Uniform(0.1, 1.0);
                c.think = Pace::Exponential(8.0);
            });
            assert_eq!(is_within_bounds(&case, case.simulate().well()), 1);
        }
    }
}

#[test]
fn under_load_from_all_a_message_costs_little_more_than_its_copies() {
    let n = 10;
    let seen = case(n, "agreed").requests(&[200; 10]).set("window", 1000).simulate();
    let per_message = seen.well().sent as f64 / 2000.0;
    assert!(per_message < n as f64, "{per_message} messages for each");
}

const SAFE: &[&str] = &[
    "total order",
    "fifo order",
    "causal order",
    "uniform delivery",
    "no creation",
    "no duplication",
];

#[test]
fn every_run_of_three_keeps_one_order() {
    for (delivery, states, any_order) in [("agreed", 2884, 123_751), ("safe", 2900, 119_861)] {
        let case = case(3, delivery).requests(&[1, 1, 0]).synchronous();
        case.check().exhausted(states);
        case.no_fifo().check().exhausted(any_order);
    }
}

#[test]
fn every_run_with_a_lost_or_doubled_message_keeps_one_order() {
    let found = [("agreed", 2, 0), ("safe", 2, 0), ("agreed", 0, 1), ("safe", 0, 1)].map(
        |(delivery, losses, copies)| {
            let case = case(2, delivery).requests(&[1, 1]).mishaps(losses, copies).synchronous();
            let found = case.check();
            (found.verdict, found.states)
        },
    );
    assert!(found.iter().all(|(verdict, _)| *verdict == "exhausted"), "{found:?}");
    assert_eq!(found[0].1, 2289);
    let case = case(3, "safe").requests(&[1, 1, 0]).mishaps(1, 0).synchronous();
    case.check().exhausted(22_822);
}

#[test]
fn every_run_of_three_with_a_crash_keeps_one_order() {
    for (delivery, states) in [("agreed", 37_456), ("safe", 37_403)] {
        let case = case(3, delivery).requests(&[1, 1, 0]).crashes(1, 0).synchronous();
        case.judge(SAFE).check().exhausted(states);
    }
}

#[test]
fn each_mistake_is_caught() {
    let twice = case(2, "agreed").requests(&[1, 2]).mishaps(0, 1).synchronous();
    twice.check().exhausted(3100);
    twice.mistake("token-twice").check().violated("total order", 10);
    let lost = case(2, "agreed").requests(&[1, 0]).mishaps(1, 0).synchronous();
    lost.check().exhausted(45);
    lost.mistake("no-copy").check().violated("quiescence", 3);
    let safe = case(2, "safe").requests(&[1, 0]).synchronous();
    safe.check().exhausted(8);
    safe.mistake("one-visit").check().violated("uniform delivery", 1);
    let lag = case(2, "safe").requests(&[1, 0]).mishaps(1, 0).synchronous();
    lag.check().exhausted(45);
    lag.mistake("silent-lag").check().violated("uniform delivery", 4);
}

#[test]
fn r1_a_lost_token_is_sent_again_from_the_copy() {
    for nth in 1..=12 {
        let case = case(4, "safe").requests(&[1; 4]).fault(&format!("lose:/Token#{nth}"));
        let seen = case.simulate();
        assert_eq!(seen.well().summary.delivered, 16, "token {nth} lost");
    }
}

#[test]
fn r2_of_a_doubled_token_one_is_dropped() {
    for nth in 1..=12 {
        let case = case(4, "safe").requests(&[1; 4]).fault(&format!("duplicate:/Token#{nth}"));
        let seen = case.simulate();
        assert_eq!((seen.well().summary.delivered, seen.kind("Data")), (16, 12), "token {nth}");
        assert_eq!(seen.kind("Got"), 1);
    }
}

#[test]
fn r3_a_token_that_overtakes_the_messages_asks_for_nothing() {
    // Each message takes two delays longer than the token.
    let slow = |asking: &str| {
        let mut case = case(4, "agreed").requests(&[2; 4]).set("asking", asking).no_fifo();
        for nth in 1..=24 {
            case = case.fault(&format!("delay:/Data#{nth}+2"));
        }
        let seen = case.simulate();
        assert_eq!(seen.well().summary.delivered, 32);
        seen.kind("Data")
    };
    assert_eq!(slow("patient"), 24);
    assert!(slow("at-once") > 24, "whoever does not wait has messages sent again for nothing");
}

#[test]
fn r4_where_messages_are_dropped_and_the_token_passes_repairs_are_few() {
    // 0 sends one message, and none of its messages reach 2 for a long time: only the token does.
    let storm = |until: u64| {
        let mut case = one(3, 0, "safe");
        for nth in 1..=until {
            case =
                case.fault(&format!("lose:0>2/Data#{nth}")).fault(&format!("lose:1>2/Data#{nth}"));
        }
        let seen = case.simulate();
        assert_eq!(seen.well().summary.delivered, 3, "it comes in the end");
        (seen.kind("Data") as f64 / 2.0, seen.time)
    };
    let (repairs, time) = storm(8);
    assert!(repairs <= 18.0, "{repairs} repairs");
    // Each further round of repairs waits twice as long as the one before.
    assert!(time / repairs > 4.0 * 3.0, "{repairs} repairs in {time} T");
}

#[test]
fn losses_copies_and_any_order_do_no_harm() {
    for seed in 0..200 {
        let delivery = WAYS[seed as usize % 2];
        let case = case(5, delivery).requests(&[6; 5]).no_fifo().config(|c| {
            c.seed = seed;
            c.delay = Delay::Exponential(1.0);
            c.think = Pace::Exponential(5.0);
            (c.loss, c.duplicate) = (0.1, 0.1);
        });
        let seen = case.simulate();
        assert_eq!(seen.well().summary.delivered, 150, "seed {seed}");
        assert!(seen.processes.iter().all(Inspect::at_rest), "seed {seed}");
    }
}

#[test]
fn a_crash_stops_the_ring_and_members_still_agree() {
    for victim in 0..4 {
        for delivery in WAYS {
            let case = case(4, delivery).requests(&[5; 4]).fault(&format!("crash:{victim}@7.5"));
            let seen = case.config(|c| c.think = Pace::Constant(3.0)).simulate();
            assert!(seen.violations.is_empty(), "{:?}", seen.violations);
        }
    }
}

#[test]
fn a_hundred_members_keep_one_order() {
    let mut requests = vec![0; 100];
    requests[..20].fill(5);
    let seen = case(100, "agreed").requests(&requests).simulate();
    assert_eq!(seen.well().summary.delivered, 10_000);
}
