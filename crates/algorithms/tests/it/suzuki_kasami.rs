use konklave_algorithms::mutex::suzuki_kasami::SuzukiKasami;
use konklave_sim::{Delay, Pace};
use konklave_testkit::Case;

#[test]
fn n_messages_for_an_entry_and_none_where_the_token_is() {
    for n in [1, 2, 3, 10, 50] {
        let others: Vec<u32> = (0..n as u32).map(|i| u32::from(i > 0) * 3).collect();
        let seen = Case::<SuzukiKasami>::complete(n).requests(&others).simulate();
        let entries = 3 * (n as u64 - 1);
        assert!(seen.well().sent <= entries * n as u64, "n = {n}");
        let alone: Vec<u32> = (0..n as u32).map(|i| u32::from(i == 0) * 3).collect();
        assert_eq!(Case::<SuzukiKasami>::complete(n).requests(&alone).simulate().well().sent, 0);
    }
}

#[test]
fn every_run_of_three_is_right_in_any_order_of_messages() {
    let case = Case::<SuzukiKasami>::complete(3).requests(&[2, 2, 2]);
    case.check().exhausted(14_346);
    case.clone().no_fifo().check().exhausted(60_449);
    let case = case.fenced().counting();
    for case in [case.clone(), case.no_fifo()] {
        let found = case.check();
        assert_eq!((found.verdict, found.messages), ("exhausted", Some((6, 18))), "{found:?}");
    }
}

#[test]
fn order_is_not_kept() {
    let case = Case::<SuzukiKasami>::complete(3).requests(&[0, 1, 1]).ordered();
    case.check().violated("happened-before order", 5);
}

#[test]
fn a_request_that_was_served_must_not_attract_the_token() {
    let case = Case::<SuzukiKasami>::complete(3).requests(&[2, 1, 1]);
    case.check().exhausted(1368);
    case.mistake("stale-request").check().violated("deadlock", 19);
}

#[test]
fn random_delays_and_any_order_do_no_harm() {
    for seed in 0..300 {
        let case = Case::<SuzukiKasami>::complete(7).requests(&[5; 7]).no_fifo().config(|c| {
            c.seed = seed;
            c.delay = Delay::Exponential(1.0);
        });
        assert_eq!(case.simulate().well().summary.entries, 35, "seed {seed}");
    }
}

#[test]
fn when_all_want_an_entry_costs_n_messages_and_takes_one_delay() {
    for n in [2, 5, 40] {
        let case = Case::<SuzukiKasami>::complete(n).requests(&vec![4; n]);
        let seen = case.config(|c| c.hold = Pace::Constant(2.0)).simulate();
        // All but the first entry of the first need the token from another.
        assert_eq!(seen.well().sent, (4 * n as u64 - 1) * n as u64);
        assert_eq!(seen.summary.max_bypass, n as u64 - 1);
        let delay = seen.summary.sync_delay.unwrap();
        assert_eq!((delay.min, delay.max), (1.0, 1.0));
    }
}

#[test]
fn a_duplicate_does_no_harm() {
    let case = Case::<SuzukiKasami>::complete(3).requests(&[2, 2, 1]).fenced().mishaps(0, 1);
    case.check().exhausted(41622);
    let case = Case::<SuzukiKasami>::complete(3).fenced().mishaps(0, 1).no_fifo();
    case.check().exhausted(6522);
    for seed in 0..200 {
        let case = Case::<SuzukiKasami>::complete(6).requests(&[5; 6]).no_fifo().config(|c| {
            c.seed = seed;
            c.delay = Delay::Exponential(1.0);
            c.duplicate = 0.3;
        });
        assert_eq!(case.simulate().well().summary.entries, 30, "seed {seed}");
    }
}

#[test]
fn a_lost_request_is_served_by_a_later_holder_that_heard_of_it() {
    // 2's request to the holder 0 is lost. 1 has received it; 1 is served and sends the token on.
    let case = Case::<SuzukiKasami>::complete(3).requests(&[0, 1, 1]).fault("lose:2>0#1");
    assert_eq!(case.simulate().well().summary.entries, 2);
    // If no other process wants the token, it stays where the request is unknown.
    let seen =
        Case::<SuzukiKasami>::complete(3).requests(&[0, 0, 1]).fault("lose:2>0#1").simulate();
    assert_eq!(seen.waiting.len(), 1);
}

#[test]
fn a_request_moves_the_number_of_who_asked() {
    let case = Case::<SuzukiKasami>::complete(2).requests(&[1, 1]);
    case.check().exhausted(20);
    case.mistake("own-number").check().violated("deadlock", 4);
}

#[test]
fn an_entry_without_a_request_counts_as_one() {
    let case = Case::<SuzukiKasami>::complete(2).requests(&[2, 0]).fenced();
    case.check().exhausted(5);
    case.mistake("uncounted-entry").check().violated("growing fences", 3);
}

#[test]
fn a_thousand_are_served_quickly() {
    let seen = Case::<SuzukiKasami>::complete(1000).simulate();
    assert_eq!(seen.well().sent, 999 * 1000);
    assert_eq!(seen.summary.fences_monotone, Some(true));
}
