use konklave_algorithms::multicast::isis::Isis;
use konklave_process::Inspect;
use konklave_sim::{Delay, Pace};
use konklave_testkit::Case;

use super::is_within_bounds;

#[test]
fn a_message_takes_three_rounds() {
    for n in [1, 2, 3, 10, 60] {
        let case = Case::<Isis>::complete(n).requests(&vec![3; n]);
        let seen = case.simulate();
        assert_eq!(is_within_bounds(&case, seen.well()), 2);
        assert_eq!(seen.sent, 9 * (n * (n - 1)) as u64);
    }
    let seen = Case::<Isis>::complete(5).requests(&[0, 0, 1, 0, 0]).simulate();
    assert_eq!((seen.sent, seen.summary.last_latency.unwrap().max), (12, 3.0));
}

const SAFE: &[&str] =
    &["total order", "fifo order", "causal order", "no creation", "no duplication"];

#[test]
fn every_run_of_three_with_a_crash_keeps_one_order() {
    let case = Case::<Isis>::complete(3);
    case.clone().requests(&[1, 1, 0]).check().exhausted(538);
    case.clone().requests(&[1, 1, 0]).crashes(1, 0).judge(SAFE).check().exhausted(9966);
    case.clone().requests(&[2, 0, 0]).crashes(1, 0).judge(SAFE).check().exhausted(1626);
    Case::<Isis>::complete(2).requests(&[2, 2]).check().exhausted(861);
    let no_fifo = Case::<Isis>::complete(3).requests(&[1, 1, 0]).no_fifo();
    no_fifo.judge(&["total order", "no duplication"]).check().exhausted(860);
}

#[test]
fn i1_a_final_priority_that_reached_one_member_stops_the_others() {
    let seen = Case::<Isis>::complete(3)
        .requests(&[1, 0, 0])
        .fault("lose:0>2/Final#1")
        .fault("crash:0@2.5")
        .simulate();
    let [left_over] = &seen.violations[..] else { panic!("{:?}", seen.violations) };
    assert!(left_over.starts_with("quiescence"), "{left_over}");
    // 2 holds the message with its own proposal: only a view change can tell it the final one.
    assert_eq!(seen.summary.delivered, 2);
    assert!(seen.processes[1].at_rest() && !seen.processes[2].at_rest());
}

#[test]
fn i2_the_id_orders_equal_priorities() {
    let case = Case::<Isis>::complete(2).requests(&[1, 1]);
    case.check().exhausted(36);
    case.mistake("no-tie-break").check().violated("total order", 6);
}

#[test]
fn i3_a_proposal_exceeds_every_final_priority_seen() {
    let case = Case::<Isis>::complete(3).requests(&[1, 1, 1]);
    case.check().exhausted(41_483);
    case.mistake("own-proposals-only").check().violated("total order", 11);
}

#[test]
fn i4_a_final_message_waits_behind_one_that_is_not() {
    let case = Case::<Isis>::complete(2).requests(&[1, 1]);
    case.mistake("skips").check().violated("total order", 6);
}

#[test]
fn random_delays_do_no_harm() {
    for seed in 0..200 {
        let case = Case::<Isis>::complete(5).requests(&[6; 5]).config(|c| {
            c.seed = seed;
            c.delay = Delay::Exponential(1.0);
            c.think = Pace::Exponential(2.0);
        });
        assert_eq!(case.simulate().well().summary.delivered, 150, "seed {seed}");
    }
}

/// A message waits behind each message that arrives before its final priority does. If delays vary, such a message may be
/// sent just before, and then needs three delays of its own: six in all, not five.
#[test]
fn a_message_may_wait_for_more_than_five_delays_if_they_vary() {
    let mut longest = 0.0_f64;
    for seed in 0..120 {
        let case = Case::<Isis>::complete(30).requests(&[6; 30]).config(|c| {
            c.seed = seed;
            c.delay = Delay::Uniform(0.01, 1.0);
            c.think = Pace::Exponential(15.0);
        });
        let seen = case.simulate();
        assert_eq!(is_within_bounds(&case, seen.well()), 2, "seed {seed}");
        longest = longest.max(seen.summary.last_latency.unwrap().max);
    }
    assert!(longest > 5.0, "{longest}");
}

#[test]
fn two_hundred_members_keep_one_order() {
    let mut requests = vec![0; 200];
    requests[..20].fill(5);
    let seen = Case::<Isis>::complete(200).requests(&requests).simulate();
    assert_eq!(seen.well().summary.delivered, 20_000);
}
