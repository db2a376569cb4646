use konklave_algorithms::multicast::ack::{
    Ack, deviation_of_transmissions, expected_transmissions,
};
use konklave_sim::{Delay, Pace};
use konklave_testkit::Case;

use super::is_within_bounds;

#[test]
fn without_loss_a_multicast_takes_two_messages_for_each_receiver() {
    for n in [1, 2, 3, 10, 100] {
        let case = Case::<Ack>::complete(n).requests(&vec![4; n]);
        let seen = case.simulate();
        assert_eq!(is_within_bounds(&case, seen.well()), 2);
        assert_eq!(seen.sent, 8 * n as u64 * (n as u64 - 1));
    }
}

#[test]
fn confirmations_for_k_messages_at_once_are_k_times_fewer() {
    let case = Case::<Ack>::complete(10).requests(&[64, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let seen = case.set("every", 8).simulate();
    assert_eq!((seen.well().kind("Data"), seen.kind("Ack")), (64 * 9, 8 * 9));
}

#[test]
fn with_a_tree_as_many_receivers_confirm_to_the_sender_as_the_degree() {
    let mut requests = vec![0; 40];
    requests[3] = 1;
    let case = Case::<Ack>::complete(40).requests(&requests).set("fanout", 3).set("timeout", 30);
    let seen = case.simulate();
    // All is confirmed, and stays so: nothing was repeated, though only three speak to the sender.
    assert_eq!((seen.well().summary.delivered, seen.kind("Data")), (40, 39));
    assert!(seen.processes.iter().all(konklave_process::Inspect::at_rest));
    let lossy = case.config(|c| {
        c.loss = 0.2;
        c.seed = 3;
    });
    assert_eq!(lossy.simulate().well().summary.delivered, 40);
}

/// How often a message is sent until all `r` have it, measured over `messages` messages: with a fixed
/// timeout, the last delivery comes one delay after the last transmission that anyone needed.
fn measured_transmissions(p: f64, r: usize, messages: u32, seed: u64) -> f64 {
    let mut requests = vec![0; r + 1];
    requests[0] = messages;
    let case = Case::<Ack>::complete(r + 1).requests(&requests).config(|c| {
        c.loss = p;
        c.seed = seed;
        // One after the other, so that no message waits for one before it.
        c.think = Pace::Constant(400.0);
    });
    let case = case.set("backoff", 1).set("limit", 100);
    let seen = case.simulate();
    assert_eq!(seen.well().summary.delivered, u64::from(messages) * (r as u64 + 1));
    let latency = seen.summary.last_latency.unwrap().mean;
    1.0 + (latency - 1.0) / 3.0
}

#[test]
fn the_table_of_expected_transmissions_is_met() {
    // The table of the spec, computed...
    for (p, row) in [
        (0.001, [1.001, 1.010, 1.095, 1.633, 2.010]),
        (0.01, [1.010, 1.097, 1.644, 2.096, 2.642]),
        (0.05, [1.053, 1.427, 2.229, 3.042, 3.777]),
        (0.1, [1.111, 1.758, 2.740, 3.738, 4.738]),
    ] {
        for (r, expected) in [1, 10, 100, 1000, 10_000].into_iter().zip(row) {
            let computed = expected_transmissions(p, r);
            assert!((computed - expected).abs() < 6e-4, "p = {p}, r = {r}: {computed}");
        }
    }
    // ... and measured, within four standard errors.
    for p in [0.001, 0.01, 0.05, 0.1] {
        for r in [1, 10, 100, 1000, 10_000] {
            let messages = (100_000 / r as u32).clamp(20, 10_000);
            let (measured, expected) =
                (measured_transmissions(p, r, messages, 7), expected_transmissions(p, r));
            let error = 4.0 * deviation_of_transmissions(p, r) / f64::from(messages).sqrt();
            assert!(
                (measured - expected).abs() < error,
                "p = {p}, r = {r}: {measured} ≠ {expected} ± {error}"
            );
        }
    }
}

#[test]
fn the_deviation_is_that_of_the_transmissions() {
    // One receiver: how often one throws until it succeeds.
    for p in [0.001, 0.1, 0.5_f64] {
        let expected = p.sqrt() / (1.0 - p);
        assert!((deviation_of_transmissions(p, 1) - expected).abs() < 1e-6, "p = {p}");
    }
    assert_eq!(deviation_of_transmissions(0.0, 100), 0.0);
}

#[test]
fn every_run_with_a_loss_a_copy_or_a_crash_is_right() {
    let case = Case::<Ack>::complete(3).requests(&[2, 0, 0]).synchronous();
    case.clone().mishaps(1, 0).check().exhausted(294);
    case.clone().mishaps(0, 1).no_fifo().check().exhausted(1292);
    case.crashes(1, 0).check().exhausted(772);
    let case = Case::<Ack>::complete(3).requests(&[1, 1, 0]).synchronous();
    case.mishaps(1, 0).crashes(1, 0).check().exhausted(12710);
}

#[test]
fn a1_a_lost_confirmation_is_repeated_and_nothing_is_delivered_twice() {
    let case = Case::<Ack>::complete(2).requests(&[1, 0]).synchronous().mishaps(1, 0);
    case.check().exhausted(10);
    case.clone().mistake("twice").check().violated("no duplication", 5);
    let accurate = case.ordered().judge(&["accuracy"]);
    accurate.check().exhausted(10);
    accurate.mistake("mute").check().violated("accuracy", 16);
    let seen = Case::<Ack>::complete(2).requests(&[1, 0]).fault("lose:/Ack#1").simulate();
    assert_eq!((seen.well().kind("Data"), seen.kind("Ack")), (2, 2));
    assert_eq!(seen.summary.delivered, 2);
}

#[test]
fn a2_a_silent_receiver_is_given_up_and_the_window_moves_on() {
    let case = Case::<Ack>::complete(3).requests(&[20, 0, 0]).set("window", 2);
    for detect in [None, Some(3.0)] {
        let case = case.clone().fault("crash:2@2.5").config(|c| {
            c.detect_after = detect;
            c.think = Pace::Constant(1.0);
        });
        let seen = case.simulate();
        assert!(seen.well().summary.suspected >= 1);
        assert!(seen.summary.delivered >= 40, "{}", seen.summary.delivered);
    }
    let crash = Case::<Ack>::complete(2).requests(&[2, 0]).synchronous().crashes(1, 0);
    let crash = crash.set("window", 1);
    crash.check().exhausted(55);
    crash.judge(&["deadlock"]).mistake("patient").check().violated("deadlock", 18);
}

#[test]
fn a3_receivers_disagree_after_a_sender_crashed_half_way() {
    let case = Case::<Ack>::complete(3).requests(&[1, 0, 0]).synchronous().ordered();
    let case = case.mishaps(1, 0).crashes(1, 0).judge(&["agreement"]);
    case.check().violated("agreement", 7);
    // It promises nothing else: what it claims holds.
    let claimed = Case::<Ack>::complete(3).requests(&[1, 0, 0]).synchronous();
    claimed.mishaps(1, 0).crashes(1, 0).check().exhausted(705);
}

#[test]
fn a4_a_restarted_sender_begins_a_new_stream() {
    let case = Case::<Ack>::complete(2).requests(&[2, 0]).synchronous().crashes(1, 1);
    case.check().exhausted(399);
    case.mistake("one-life").check().violated("validity", 12);
    let seen = Case::<Ack>::complete(3)
        .requests(&[6, 0, 0])
        .fault("crash:0@3.5")
        .fault("restart:0@20")
        .config(|c| c.think = Pace::Constant(1.0))
        .simulate();
    assert!(seen.violations.is_empty(), "{:?}", seen.violations);
    assert!(seen.summary.delivered >= 18);
}

#[test]
fn a5_delayed_confirmations_do_not_arrive_at_once() {
    // A hundred receivers answer within 20 T instead of at the same moment; nothing is repeated.
    let mut requests = vec![0; 101];
    requests[0] = 1;
    let case = Case::<Ack>::complete(101).requests(&requests).set("every", 2).set("jitter", 20);
    let seen = case.set("timeout", 25).simulate();
    assert_eq!((seen.well().kind("Data"), seen.kind("Ack")), (100, 100));
    assert!(seen.time > 15.0, "{}", seen.time);
    // At worst a message is repeated `limit` times, however many confirmations are lost.
    let mut lossy = Case::<Ack>::complete(101).requests(&requests);
    lossy.config.faults = (1..=100).map(|p| format!("cut:{p}>0@0").parse().unwrap()).collect();
    let seen = lossy.simulate();
    assert!(seen.kind("Data") <= 7 * 100, "{}", seen.kind("Data"));
}

#[test]
fn a6_a_restarted_receiver_confirms_no_earlier_messages() {
    let seen = Case::<Ack>::complete(3)
        .requests(&[10, 0, 0])
        .fault("crash:2@0.5")
        .fault("restart:2@5.5")
        .config(|c| {
            c.think = Pace::Constant(1.0);
            c.detect_after = None;
        })
        .simulate();
    assert!(seen.violations.is_empty(), "{:?}", seen.violations);
    assert_eq!(seen.summary.suspected, 0);
    assert!(seen.processes.iter().all(konklave_process::Inspect::at_rest));
    // 20 deliveries at the two that stayed up, and the messages to 2 after its restart was noticed.
    assert!((22..=26).contains(&seen.summary.delivered), "{}", seen.summary.delivered);
}

#[test]
fn a7_a_very_late_copy_is_recognised() {
    let case = Case::<Ack>::complete(2).requests(&[2, 0]).synchronous().mishaps(0, 1).no_fifo();
    case.check().exhausted(70);
    case.mistake("trimmed").check().violated("no duplication", 6);
    let seen = Case::<Ack>::complete(2)
        .requests(&[300, 0])
        .set("window", 4)
        .no_fifo()
        .fault("duplicate:0>1/Data#1")
        .config(|c| c.delay = Delay::Uniform(0.5, 20.0))
        .simulate();
    assert_eq!(seen.well().summary.delivered, 600);
}

#[test]
fn the_window_bounds_the_kept_messages() {
    let case = Case::<Ack>::complete(4).requests(&[50, 0, 0, 0]).set("window", 3);
    let seen = case.config(|c| c.loss = 0.2).simulate();
    assert_eq!(seen.well().summary.delivered, 200);
}

#[test]
fn losses_copies_and_any_order_do_no_harm() {
    for seed in 0..200 {
        let case = Case::<Ack>::complete(5).requests(&[5; 5]).no_fifo().config(|c| {
            c.seed = seed;
            c.delay = Delay::Exponential(1.0);
            c.loss = 0.2;
            c.duplicate = 0.1;
        });
        let case = case.set("limit", 30).set("window", 1 + seed % 7);
        let case = case.set("every", 1 + seed % 3).set("fanout", (seed % 2) * 2);
        let seen = case.simulate();
        assert_eq!(seen.well().summary.delivered, 125, "seed {seed}");
    }
}

#[test]
fn ten_thousand_receivers_confirm() {
    let mut requests = vec![0; 10_000];
    requests[0] = 2;
    let seen =
        Case::<Ack>::complete(10_000).requests(&requests).config(|c| c.loss = 0.01).simulate();
    assert_eq!(seen.well().summary.delivered, 20_000);
}
