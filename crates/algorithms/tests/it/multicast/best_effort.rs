use konklave_algorithms::multicast::best_effort::BestEffort;
use konklave_sim::Delay;
use konklave_testkit::Case;

use super::is_within_bounds;

#[test]
fn a_multicast_takes_n_minus_one_messages_and_one_delay() {
    for n in [1, 2, 3, 10, 200] {
        let case = Case::<BestEffort>::complete(n).requests(&vec![3; n]);
        let seen = case.simulate();
        assert_eq!(is_within_bounds(&case, seen.well()), 2);
        assert_eq!(seen.sent, 3 * n as u64 * (n as u64 - 1));
        assert_eq!(seen.summary.delivered, 3 * (n * n) as u64);
    }
}

#[test]
fn every_run_of_three_is_right_and_a_crash_of_one_harms_no_other() {
    let case = Case::<BestEffort>::complete(3).requests(&[2, 2, 2]);
    case.check().exhausted(2744);
    case.clone().crashes(1, 0).judge(SAFE).check().exhausted(107744);
    case.no_fifo().check().exhausted(9261);
}

const SAFE: &[&str] = &["validity", "agreement", "no creation", "no duplication"];

#[test]
fn no_order_is_kept() {
    let case = Case::<BestEffort>::complete(3).requests(&[1, 1, 0]).ordered();
    case.clone().judge(&["causal order"]).check().violated("causal order", 4);
    case.clone().judge(&["total order"]).check().violated("total order", 2);
    let case = Case::<BestEffort>::complete(2).requests(&[2, 0]).ordered().judge(&["fifo order"]);
    case.check().exhausted(6);
    case.no_fifo().check().violated("fifo order", 3);
}

#[test]
fn members_disagree_after_a_sender_crashed_half_way() {
    let case = Case::<BestEffort>::complete(3).requests(&[1, 0, 0]).ordered().crashes(1, 0);
    let case = case.mishaps(1, 0).judge(&["agreement"]);
    case.check().violated("agreement", 6);
}

#[test]
fn a_copy_that_the_network_makes_is_delivered_too() {
    let case = Case::<BestEffort>::complete(2).requests(&[1, 0]).mishaps(0, 1);
    case.check().violated("no duplication", 4);
}

#[test]
fn a_sender_delivers_its_own_message() {
    let case = Case::<BestEffort>::complete(2).requests(&[1, 0]);
    case.check().exhausted(3);
    case.mistake("forgets-itself").check().violated("deadlock", 2);
}

#[test]
fn random_delays_do_no_harm() {
    for seed in 0..200 {
        let case = Case::<BestEffort>::complete(6).requests(&[5; 6]).config(|c| {
            c.seed = seed;
            c.delay = Delay::Exponential(1.0);
            c.fifo = false;
        });
        assert_eq!(case.simulate().well().summary.delivered, 180);
    }
}

#[test]
fn ten_thousand_receivers_are_reached() {
    let mut requests = vec![0; 10_000];
    requests[0] = 3;
    let seen = Case::<BestEffort>::complete(10_000).requests(&requests).simulate();
    assert_eq!(seen.well().summary.delivered, 30_000);
}

#[test]
fn missing_deliveries_are_counted_for_any_claim_of_the_sheet() {
    let case = Case::<BestEffort>::complete(4).requests(&[3; 4]);
    assert_eq!(case.simulate().summary.undelivered, 0);
    let mut missing = 0;
    for seed in 0..20 {
        let lossy = case.clone().config(|c| (c.seed, c.loss) = (seed, 0.2));
        let summary = lossy.simulate().summary;
        assert_eq!(summary.undelivered, 3 * 16 - summary.delivered, "seed {seed}");
        missing += summary.undelivered;
    }
    assert!(missing > 0);
}
