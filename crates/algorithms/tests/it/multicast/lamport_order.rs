use konklave_algorithms::multicast::lamport_order::LamportOrder;
use konklave_sim::{Delay, Pace};
use konklave_testkit::Case;

use super::is_within_bounds;

#[test]
fn all_members_acknowledge_and_a_message_is_due_after_two_delays() {
    for n in [1, 2, 3, 10, 30] {
        let case = Case::<LamportOrder>::complete(n).requests(&vec![3; n]);
        let seen = case.simulate();
        assert_eq!(is_within_bounds(&case, seen.well()), 2);
        assert_eq!(seen.sent, 3 * (n * n * (n - 1)) as u64);
    }
    let seen = Case::<LamportOrder>::complete(5).requests(&[0, 0, 1, 0, 0]).simulate();
    assert_eq!(seen.summary.last_latency.unwrap().max, 2.0);
}

const SAFE: &[&str] =
    &["total order", "fifo order", "causal order", "no creation", "no duplication"];

#[test]
fn every_run_of_three_with_a_crash_keeps_one_order() {
    let case = Case::<LamportOrder>::complete(3);
    case.clone().requests(&[1, 1, 0]).check().exhausted(2900);
    case.clone().requests(&[2, 0, 0]).crashes(1, 0).judge(SAFE).check().exhausted(27214);
    Case::<LamportOrder>::complete(2).requests(&[2, 2]).check().exhausted(379);
}

#[test]
fn l1_without_fifo_channels_an_older_time_comes_too_late() {
    let case = Case::<LamportOrder>::complete(3).requests(&[0, 1, 1]).no_fifo();
    case.judge(&["total order"]).check().violated("total order", 6);
}

#[test]
fn l2_an_idle_member_without_acknowledgements_stops_all() {
    let case = Case::<LamportOrder>::complete(3).requests(&[1, 0, 0]);
    case.check().exhausted(42);
    case.mistake("silent").check().violated("deadlock", 3);
}

#[test]
fn l3_a_clock_that_ignores_received_timestamps_puts_effects_before_causes() {
    let case = Case::<LamportOrder>::complete(3).requests(&[2, 1, 0]);
    case.check().exhausted(113_140);
    case.mistake("deaf-clock").check().violated("total order", 6);
}

#[test]
fn a_message_needs_a_later_timestamp_from_every_member() {
    let case = Case::<LamportOrder>::complete(2).requests(&[1, 1]);
    case.check().exhausted(22);
    case.mistake("hasty").check().violated("total order", 2);
}

#[test]
fn random_delays_do_no_harm() {
    for seed in 0..200 {
        let case = Case::<LamportOrder>::complete(5).requests(&[6; 5]).config(|c| {
            c.seed = seed;
            c.delay = Delay::Exponential(1.0);
            c.think = Pace::Exponential(2.0);
        });
        assert_eq!(case.simulate().well().summary.delivered, 150, "seed {seed}");
    }
}

#[test]
fn a_hundred_members_keep_one_order() {
    let seen = Case::<LamportOrder>::complete(100).requests(&[1; 100]).simulate();
    assert_eq!(seen.well().summary.delivered, 10_000);
}
