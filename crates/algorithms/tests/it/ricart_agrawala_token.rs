use konklave_algorithms::mutex::ricart_agrawala_token::RicartAgrawalaToken;
use konklave_sim::{Delay, Pace};
use konklave_testkit::Case;

#[test]
fn n_messages_for_a_lone_entry_and_none_where_the_token_is() {
    for n in [1, 2, 3, 10, 50] {
        for place in [0, n - 1] {
            let times: Vec<u32> = (0..n).map(|p| if p == place { 3 } else { 0 }).collect();
            let seen = Case::<RicartAgrawalaToken>::complete(n).requests(&times).simulate();
            assert_eq!(seen.well().sent, if place == 0 { 0 } else { n as u64 });
        }
    }
}

#[test]
fn when_all_want_an_entry_costs_n_messages_and_the_token_goes_round() {
    for n in [2, 5, 40] {
        let case = Case::<RicartAgrawalaToken>::complete(n).requests(&vec![4; n]);
        let seen = case.config(|c| c.hold = Pace::Constant(2.0)).simulate();
        // All but the first entry of the first need the token from another.
        assert_eq!(seen.well().sent, (4 * n as u64 - 1) * n as u64);
        assert_eq!(seen.summary.max_bypass, n as u64 - 1);
        let delay = seen.summary.sync_delay.unwrap();
        assert_eq!((delay.min, delay.max), (1.0, 1.0));
    }
}

#[test]
fn every_run_of_three_is_right_in_any_order_of_messages() {
    let case = Case::<RicartAgrawalaToken>::complete(3).requests(&[2, 2, 2]).fenced();
    case.check().exhausted(11_008);
    case.clone().no_fifo().check().exhausted(41_533);
    let case = case.counting();
    assert_eq!(case.check().messages, Some((6, 18)));
    assert_eq!(case.no_fifo().check().messages, Some((6, 18)));
}

#[test]
fn a_duplicate_does_no_harm() {
    let case = Case::<RicartAgrawalaToken>::complete(3).fenced().mishaps(0, 1);
    case.check().exhausted(4126);
    case.no_fifo().check().exhausted(5794);
}

#[test]
fn order_is_not_kept() {
    let case = Case::<RicartAgrawalaToken>::complete(3).requests(&[0, 1, 1]).ordered();
    case.check().violated("happened-before order", 5);
}

#[test]
fn a_request_that_was_served_must_not_attract_the_token() {
    let case = Case::<RicartAgrawalaToken>::complete(3).requests(&[2, 1, 1]);
    case.check().exhausted(1197);
    case.mistake("stale-request").check().violated("deadlock", 19);
}

#[test]
fn an_entry_without_a_request_counts_as_one() {
    let case = Case::<RicartAgrawalaToken>::complete(2).requests(&[2, 0]).fenced();
    case.check().exhausted(5);
    case.mistake("uncounted-entry").check().violated("growing fences", 3);
}

#[test]
fn random_delays_any_order_and_duplicates_do_no_harm() {
    for seed in 0..300 {
        let case = Case::<RicartAgrawalaToken>::complete(7).requests(&[5; 7]).no_fifo();
        let case = case.config(|c| {
            c.seed = seed;
            c.delay = Delay::Exponential(1.0);
            c.duplicate = if seed % 2 == 0 { 0.2 } else { 0.0 };
        });
        assert_eq!(case.simulate().well().summary.entries, 35, "seed {seed}");
    }
}

#[test]
fn a_thousand_are_served_quickly() {
    let seen = Case::<RicartAgrawalaToken>::complete(1000).simulate();
    assert_eq!(seen.well().sent, 999 * 1000);
}
