use konklave_algorithms::multicast::fifo::Fifo;
use konklave_sim::Delay;
use konklave_testkit::Case;

use super::is_within_bounds;

#[test]
fn order_costs_no_message_and_no_delay() {
    for n in [1, 2, 3, 10, 100] {
        let case = Case::<Fifo>::complete(n).requests(&vec![4; n]);
        let seen = case.simulate();
        assert_eq!(is_within_bounds(&case, seen.well()), 2);
        assert_eq!(seen.sent, 4 * n as u64 * (n as u64 - 1));
    }
}

#[test]
fn every_run_of_three_with_two_messages_each_and_a_crash_is_right() {
    let case = Case::<Fifo>::complete(3).requests(&[2, 2, 2]);
    case.check().exhausted(2744);
    case.crashes(1, 0).judge(SAFE).check().exhausted(107744);
    let case = Case::<Fifo>::complete(3).requests(&[2, 1, 0]).no_fifo();
    case.clone().mishaps(0, 1).check().exhausted(732);
    case.crashes(1, 0).judge(SAFE).check().exhausted(2373);
}

const SAFE: &[&str] = &["validity", "fifo order", "no creation", "no duplication"];

#[test]
fn f1_of_two_connections_the_faster_does_not_decide() {
    let case = Case::<Fifo>::complete(2).requests(&[2, 0]).no_fifo();
    case.check().exhausted(7);
    case.clone().mistake("arrival-order").check().violated("fifo order", 3);
    case.mistake("drops-early").check().violated("validity", 4);
}

#[test]
fn causes_may_come_after_their_effects() {
    let case = Case::<Fifo>::complete(3).requests(&[1, 1, 0]).ordered();
    case.clone().judge(&["causal order"]).check().violated("causal order", 4);
    case.judge(&["total order"]).check().violated("total order", 2);
}

#[test]
fn any_order_of_arrival_and_any_copies_do_no_harm() {
    for seed in 0..200 {
        let case = Case::<Fifo>::complete(5).requests(&[8; 5]).no_fifo().config(|c| {
            c.seed = seed;
            c.delay = Delay::Exponential(1.0);
            c.duplicate = 0.2;
        });
        let seen = case.simulate();
        assert_eq!(seen.well().summary.delivered, 200, "seed {seed}");
        assert_eq!(seen.summary.order_violations, 0);
    }
}

#[test]
fn ten_thousand_receivers_keep_the_order() {
    let mut requests = vec![0; 10_000];
    requests[17] = 10;
    let case = Case::<Fifo>::complete(10_000).requests(&requests).no_fifo();
    let seen = case.config(|c| c.delay = Delay::Uniform(0.5, 5.0)).simulate();
    assert_eq!(seen.well().summary.delivered, 100_000);
}
