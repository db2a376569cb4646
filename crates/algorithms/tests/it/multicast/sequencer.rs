use konklave_algorithms::multicast::sequencer::Sequencer;
use konklave_sim::Delay;
use konklave_testkit::Case;

use super::is_within_bounds;

const WAYS: [(&str, &str); 6] = [
    ("ub", "agreed"),
    ("ub", "uniform"),
    ("ub", "committed"),
    ("bb", "agreed"),
    ("bb", "uniform"),
    ("bb", "committed"),
];

fn case(n: usize, (wire, delivery): (&str, &str)) -> Case<Sequencer> {
    Case::complete(n).set("wire", wire).set("delivery", delivery)
}

#[test]
fn messages_and_delays_are_as_the_table_says() {
    for way in WAYS {
        for n in [1, 2, 3, 5, 20] {
            let case = case(n, way).requests(&vec![3; n]);
            let seen = case.simulate();
            assert_eq!(is_within_bounds(&case, seen.well()), 2, "{way:?}, n = {n}");
            assert_eq!(seen.summary.delivered, 3 * (n * n) as u64);
        }
        // One message of the last: exactly what the book counts.
        for n in [3u64, 5, 20] {
            let mut requests = vec![0; n as usize];
            requests[n as usize - 1] = 1;
            let seen = case(n as usize, way).requests(&requests).simulate();
            let latency = seen.well().summary.last_latency.unwrap().max;
            let base = if way.0 == "ub" { n } else { 2 * (n - 1) };
            let expected = match way.1 {
                "agreed" => (base, 2.0),
                "uniform" => (base + n * (n - 1), 3.0),
                _ => (base + 2 * (n - 1), 4.0),
            };
            assert_eq!((seen.sent, latency), expected, "{way:?}, n = {n}");
        }
    }
}

#[test]
fn a_message_of_the_sequencer_itself_takes_one_delay() {
    for wire in ["ub", "bb"] {
        let seen = case(4, (wire, "agreed")).requests(&[1, 0, 0, 0]).simulate();
        assert_eq!(seen.well().summary.last_latency.unwrap().max, 1.0);
    }
}

const SAFE: &[&str] =
    &["total order", "fifo order", "uniform delivery", "no creation", "no duplication"];

#[test]
fn every_run_of_three_with_a_crash_keeps_one_order() {
    for (way, states) in [(("ub", "agreed"), 759), (("bb", "agreed"), 6139)] {
        let case = case(3, way).requests(&[1, 2, 1]);
        case.check().exhausted(states);
    }
    for (way, states) in [
        (("ub", "agreed"), 741),
        (("ub", "uniform"), 51_270),
        (("bb", "agreed"), 2384),
        (("bb", "committed"), 21_454),
    ] {
        let case = case(3, way).requests(&[0, 1, 1]).crashes(1, 0).judge(SAFE);
        case.check().exhausted(states);
    }
}

#[test]
fn without_fifo_channels_nothing_changes() {
    for (way, states) in
        [(("ub", "agreed"), 28), (("bb", "agreed"), 99), (("ub", "uniform"), 10_204)]
    {
        case(3, way).requests(&[0, 2, 0]).no_fifo().check().exhausted(states);
    }
}

#[test]
fn each_mistake_is_caught() {
    let way = ("ub", "agreed");
    let fifo = case(2, way).requests(&[0, 2]).no_fifo();
    fifo.check().exhausted(12);
    fifo.mistake("any-turn").check().violated("fifo order", 3);
    let total = case(3, way).requests(&[0, 1, 1]);
    total.check().exhausted(37);
    total.mistake("own-first").check().violated("total order", 2);
    let copy = case(2, way).requests(&[0, 1]).mishaps(0, 1);
    copy.check().exhausted(11);
    copy.mistake("twice").check().violated("no duplication", 4);
    let uniform = case(3, ("ub", "uniform")).requests(&[0, 1, 0]);
    uniform.check().exhausted(83);
    uniform.mistake("hasty").check().violated("uniform delivery", 2);
}

#[test]
fn agreed_delivery_is_not_uniform() {
    // The sequencer delivers a message that no other member has: if it crashes now, it alone has delivered it.
    let case = case(3, ("ub", "agreed")).requests(&[0, 1, 0]).ordered();
    case.judge(&["uniform delivery"]).check().violated("uniform delivery", 2);
}

#[test]
fn batched_numbers_take_fewer_messages() {
    let batched = case(5, ("bb", "agreed")).requests(&[10; 5]).set("batch", 10);
    let seen = batched.simulate();
    assert_eq!(seen.well().kind("Order"), 5 * 4);
    assert_eq!(seen.kind("Data"), 50 * 4);
}

#[test]
fn random_delays_copies_and_any_order_do_no_harm() {
    for seed in 0..200 {
        let way = WAYS[seed as usize % WAYS.len()];
        let case = case(5, way).requests(&[6; 5]).no_fifo().config(|c| {
            c.seed = seed;
            c.delay = Delay::Exponential(1.0);
            c.duplicate = 0.1;
        });
        let seen = case.simulate();
        assert_eq!(seen.well().summary.delivered, 150, "seed {seed}");
    }
}

#[test]
fn when_the_sequencer_crashes_all_members_stop_at_the_same_place() {
    for way in WAYS {
        let case = case(4, way).requests(&[5; 4]).fault("crash:0@2.5");
        let case = case.config(|c| c.think = konklave_sim::Pace::Constant(1.0));
        let seen = case.simulate();
        assert!(seen.violations.is_empty(), "{:?}", seen.violations);
        assert!(!seen.waiting.is_empty());
    }
}

#[test]
fn a_hundred_members_order_ten_thousand_messages() {
    let seen = case(100, ("ub", "agreed")).requests(&[100; 100]).simulate();
    assert_eq!(seen.well().summary.delivered, 1_000_000);
}
