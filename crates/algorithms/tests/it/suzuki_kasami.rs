use konklave_algorithms::mutex::suzuki_kasami::SuzukiKasami;
use konklave_sim::Delay;
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
    let case = Case::<SuzukiKasami>::complete(3).requests(&[2, 2, 2]).fenced().counting();
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
