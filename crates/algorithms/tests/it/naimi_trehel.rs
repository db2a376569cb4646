use konklave_algorithms::mutex::naimi_trehel::NaimiTrehel;
use konklave_sim::{Delay, Pace};
use konklave_testkit::Case;

/// The sum of 1/i for i up to `n`.
fn harmonic(n: usize) -> f64 {
    (1..=n).map(|i| 1.0 / i as f64).sum()
}

/// Messages for each entry if requests hardly ever meet.
fn at_low_load(n: usize, times: u32) -> f64 {
    let case = Case::<NaimiTrehel>::complete(n).requests(&vec![times; n]);
    let seen = case.config(|c| c.think = Pace::Exponential(500.0 * n as f64)).simulate();
    assert_eq!(seen.summary.entries, n as u64 * u64::from(times));
    seen.well().sent as f64 / seen.summary.entries as f64
}

#[test]
fn two_messages_for_a_first_entry_and_none_where_the_token_is() {
    for n in [1, 2, 3, 10] {
        for place in 0..n {
            let times: Vec<u32> = (0..n).map(|p| if p == place { 3 } else { 0 }).collect();
            let seen = Case::<NaimiTrehel>::complete(n).requests(&times).simulate();
            assert_eq!(seen.well().sent, if place == 0 { 0 } else { 2 });
        }
    }
}

#[test]
fn requester_at_the_end_of_a_chain_pays_for_its_length() {
    // All but the first ask at once: each is sent on to the one before it, and in the end each
    // points at the next. So the request that the second makes after its first entry visits all.
    for n in [3, 4, 10, 100, 1000] {
        let times: Vec<u32> = (0..n).map(|p| [0, 2].get(p).copied().unwrap_or(1)).collect();
        let seen = Case::<NaimiTrehel>::complete(n).requests(&times).config(|c| {
            c.hold = Pace::Constant(2.0);
        });
        let (first, others, again) = (2, 3 * (n as u64 - 2), n as u64 - 1);
        assert_eq!(seen.simulate().well().sent, first + others + again, "n = {n}");
    }
}

#[test]
fn on_average_an_entry_costs_as_many_messages_as_the_harmonic_number_says() {
    for (n, times) in [(2, 3000), (10, 1000), (100, 300), (1000, 60)] {
        let (measured, formula) = (at_low_load(n, times), harmonic(n - 1));
        // At the end only a few still ask, and ways are shorter.
        let ratio = measured / formula;
        assert!((0.95..1.02).contains(&ratio), "n = {n}: {measured}, not {formula}");
    }
    // Before all have asked a few times, ways are shorter, too.
    let measured = at_low_load(100_000, 3);
    assert!((9.0..harmonic(99_999)).contains(&measured), "{measured}");
}

#[test]
fn when_all_want_an_entry_costs_four_messages_for_any_n() {
    for n in [100, 1000, 10_000] {
        let case = Case::<NaimiTrehel>::complete(n).requests(&[20].repeat(n));
        let seen = case.config(|c| c.hold = Pace::Constant(1.0)).simulate();
        let per_entry = seen.well().sent as f64 / seen.summary.entries as f64;
        assert!((3.8..4.0).contains(&per_entry), "n = {n}: {per_entry}");
        let delay = seen.summary.sync_delay.unwrap();
        assert_eq!((delay.min, delay.max), (1.0, 1.0));
    }
}

#[test]
fn every_run_is_right_in_any_order_of_messages() {
    let three = Case::<NaimiTrehel>::complete(3).requests(&[2, 2, 2]).fenced();
    three.check().exhausted(1432);
    three.no_fifo().check().exhausted(1530);
    let four = Case::<NaimiTrehel>::complete(4).requests(&[1, 2, 1, 1]).fenced();
    four.check().exhausted(2824);
    four.no_fifo().check().exhausted(3018);
    Case::<NaimiTrehel>::complete(4).ids(&[7, 3, 9, 1]).fenced().check().exhausted(1386);
}

#[test]
fn six_entries_of_three_cost_5_to_15_messages_and_five_of_four_8_to_14() {
    let three = Case::<NaimiTrehel>::complete(3).requests(&[2, 2, 2]).counting();
    assert_eq!(three.check().messages, Some((5, 15)));
    assert_eq!(three.no_fifo().check().messages, Some((5, 15)));
    let four = Case::<NaimiTrehel>::complete(4).requests(&[1, 2, 1, 1]).counting();
    assert_eq!(four.check().messages, Some((8, 14)));
    assert_eq!(four.no_fifo().check().messages, Some((8, 14)));
}

#[test]
fn order_holds_for_three_with_fifo_and_breaks_for_four_and_without() {
    let case = Case::<NaimiTrehel>::complete(3).requests(&[2, 2, 2]).ordered();
    case.check().exhausted(2236);
    case.no_fifo().check().violated("happened-before order", 9);
    // A request that was forwarded to a waiting process may arrive after the token, which took another way.
    let case = Case::<NaimiTrehel>::complete(4).requests(&[1, 2, 2, 1]).ordered();
    case.check().violated("happened-before order", 14);
    let mut case = Case::<NaimiTrehel>::complete(3).requests(&[0, 1, 1]).ordered();
    case.check().exhausted(30);
    case.options.app_messages = 1;
    case.check().violated("happened-before order", 6);
}

#[test]
fn requester_is_the_root_before_its_request_leaves() {
    let case = Case::<NaimiTrehel>::complete(3);
    case.check().exhausted(154);
    case.mistake("last-after-send").check().violated("expected inputs", 7);
}

#[test]
fn process_that_sends_the_token_is_no_root_any_more() {
    let case = Case::<NaimiTrehel>::complete(2);
    case.check().exhausted(20);
    case.mistake("no-path-reversal").check().violated("one token", 3);
}

#[test]
fn a_root_that_waits_has_no_token_to_give() {
    let case = Case::<NaimiTrehel>::complete(3);
    case.check().exhausted(154);
    case.mistake("only-holders-queue").check().violated("one token", 5);
}

#[test]
fn a_duplicate_is_noticed() {
    Case::<NaimiTrehel>::complete(3).mishaps(0, 1).check().violated("expected inputs", 5);
}

#[test]
fn random_delays_and_any_order_do_no_harm() {
    for seed in 0..300 {
        let n = 1 + seed as usize % 12;
        let case = Case::<NaimiTrehel>::complete(n).requests(&vec![5; n]).no_fifo().config(|c| {
            c.seed = seed;
            c.delay = Delay::Exponential(1.0);
            c.think = Pace::Exponential((seed % 20) as f64);
        });
        let seen = case.simulate();
        assert_eq!(seen.well().summary.entries, 5 * n as u64, "seed {seed}");
        assert!(seen.sent <= 5 * (n * n) as u64);
    }
}

#[test]
fn a_hundred_thousand_are_served_quickly() {
    let n = 100_000;
    let seen = Case::<NaimiTrehel>::complete(n).requests(&vec![2; n]).simulate();
    assert_eq!(seen.well().summary.entries, 2 * n as u64);
}
