use konklave_algorithms::mutex::token_ring::TokenRing;
use konklave_process::Rng;
use konklave_sim::{Delay, Pace};
use konklave_testkit::Case;

fn ring(n: usize) -> Case<TokenRing> {
    Case::directed_ring(n).fenced()
}

fn perpetual(n: usize) -> Case<TokenRing> {
    ring(n).set("mode", "perpetual")
}

/// Only this place wants in.
fn only(n: usize, place: usize, times: u32) -> Vec<u32> {
    (0..n).map(|i| if i == place { times } else { 0 }).collect()
}

/// The properties that hold even if crashed processes wait for ever.
const SAFETY: [&str; 5] =
    ["mutual exclusion", "one token", "growing fences", "expected inputs", "quiescence"];

#[test]
fn if_all_want_a_perpetual_token_costs_one_message_for_each_entry() {
    for n in [2, 3, 10, 100] {
        let rounds = n as f64 * 10.0;
        let case = perpetual(n).requests(&vec![20; n]).config(|c| c.time_limit = rounds);
        let seen = case.simulate();
        assert!(seen.violations.is_empty(), "{:?}", seen.violations);
        assert_eq!(seen.summary.entries, 10 * n as u64, "n = {n}");
        assert_eq!(seen.sent, 10 * n as u64 + 1, "n = {n}");
        assert_eq!(seen.summary.sync_delay.unwrap().max, 1.0);
        assert_eq!(seen.summary.max_bypass, n as u64 - 1);
    }
}

#[test]
fn a_perpetual_token_is_half_a_round_away_on_average() {
    for n in [2, 5, 20] {
        let case = perpetual(n).requests(&only(n, n / 2, 2000)).config(|c| {
            c.think = Pace::Uniform(0.0, 20.0 * n as f64);
            c.time_limit = 30.0 * n as f64 * 1000.0;
        });
        let wait = case.simulate().summary.wait.unwrap();
        assert!((wait.mean / n as f64 - 0.5).abs() < 0.02, "n = {n}: {wait:?}");
        assert!(wait.max <= n as f64);
    }
}

#[test]
fn a_perpetual_token_costs_messages_though_nobody_wants_it() {
    let seen = perpetual(5).requests(&[0; 5]).config(|c| c.time_limit = 1000.0).simulate();
    assert_eq!((seen.sent, seen.summary.entries), (1001, 0));
    perpetual(3).check().violated("livelock", 3);
}

#[test]
fn a_lone_request_costs_a_call_the_way_to_it_and_an_idle_round() {
    for n in [2, 3, 5, 10, 100] {
        assert_eq!(ring(n).requests(&only(n, 0, 1)).simulate().well().sent, n as u64);
        for place in 1..n {
            let seen = ring(n).requests(&only(n, place, 1)).simulate();
            let call = (n - place) as u64;
            assert_eq!(seen.well().kind("Wake"), call, "n = {n}, place {place}");
            // The processes that were called pass the token on once more.
            assert_eq!(seen.sent, 2 * n as u64 + call - 1, "n = {n}, place {place}");
            assert_eq!(seen.summary.wait.unwrap().max, n as f64);
        }
    }
}

#[test]
fn if_all_want_a_parking_token_costs_a_call_more() {
    for n in [2, 3, 10, 100] {
        let seen = ring(n).requests(&vec![10; n]).simulate();
        assert_eq!(seen.well().sent, 2 * 10 * n as u64 + n as u64 - 2, "n = {n}");
        assert_eq!(seen.summary.max_bypass, n as u64 - 1);
    }
}

#[test]
fn a_ring_of_one_needs_no_message() {
    for case in [ring(1), perpetual(1)] {
        let case = case.requests(&[3]);
        assert_eq!(case.simulate().well().sent, 0);
        case.check().exhausted(7);
    }
}

#[test]
fn every_run_of_small_rings_is_right_in_any_order_of_messages() {
    ring(2).requests(&[2, 2]).check().exhausted(282);
    ring(3).check().exhausted(597);
    ring(3).no_fifo().check().exhausted(2421);
    ring(3).requests(&[2, 2, 2]).check().exhausted(9043);
    ring(3).requests(&[2, 2, 2]).no_fifo().check().exhausted(210_223);
    ring(4).requests(&[1, 1, 2, 1]).check().exhausted(22_232);
    let safe = ["mutual exclusion", "one token", "growing fences", "deadlock"];
    perpetual(3).judge(&safe).check().exhausted(108);
    perpetual(3).no_fifo().judge(&safe).check().exhausted(108);
}

#[test]
fn every_run_of_three_entries_costs_seven_to_twenty_one() {
    assert_eq!(ring(3).counting().check().messages, Some((7, 21)));
    assert_eq!(ring(3).no_fifo().counting().check().messages, Some((7, 25)));
    assert_eq!(ring(4).counting().check().messages, Some((10, 40)));
}

#[test]
fn everyone_is_overtaken_at_most_once_by_each_other() {
    let mut parking = ring(3).requests(&[2, 2, 2]);
    parking.watch.bypass = Some(2);
    parking.check().exhausted(22_840);
    parking.watch.bypass = Some(1);
    parking.check().violated("bounded bypass", 5);
    let mut perpetual = perpetual(3).requests(&[2, 2, 2]).judge(&["bounded bypass"]);
    perpetual.watch.bypass = Some(2);
    perpetual.check().exhausted(1041);
    perpetual.watch.bypass = Some(1);
    perpetual.check().violated("bounded bypass", 6);
}

#[test]
fn process_that_keeps_the_token_overtakes_the_others() {
    let mut case = ring(2).requests(&[3, 1]);
    case.watch.bypass = Some(1);
    case.check().exhausted(299);
    case.mistake("keeps-token").check().violated("bounded bypass", 4);
}

#[test]
fn order_is_not_kept() {
    let mut case = ring(3).ordered();
    case.options.app_messages = 1;
    case.check().violated("happened-before order", 4);
    case.options.app_messages = 0;
    case.no_fifo().check().violated("happened-before order", 6);
}

#[test]
fn every_run_survives_the_crash_of_anyone() {
    ring(2).requests(&[2, 2]).crashes(1, 0).check().exhausted(1690);
    ring(3).crashes(1, 0).check().exhausted(47_024);
    ring(3).ids(&[7, 3, 5]).crashes(1, 0).check().exhausted(48_316);
    ring(3).requests(&[1, 1, 0]).no_fifo().crashes(1, 0).check().exhausted(19_517);
    ring(4).requests(&[0, 1, 1, 0]).crashes(1, 0).check().exhausted(85_251);
    perpetual(3).crashes(1, 0).judge(&SAFETY).check().exhausted(4917);
}

#[test]
fn every_run_survives_two_crashes() {
    ring(3).crashes(2, 0).check().exhausted(214_270);
}

#[test]
fn without_epochs_a_late_token_is_a_second_one() {
    let case = ring(3).requests(&[1, 1, 0]).crashes(1, 0);
    case.check().exhausted(5534);
    case.mistake("no-epoch").check().violated("one token", 6);
    let case = ring(3).crashes(1, 0).judge(&["mutual exclusion"]);
    case.check().exhausted(47_024);
    case.mistake("no-epoch").check().violated("mutual exclusion", 10);
}

#[test]
fn restarted_process_does_no_harm() {
    ring(2).crashes(2, 2).judge(&SAFETY).check().exhausted(4463);
    ring(3).requests(&[1, 0, 1]).crashes(1, 1).judge(&SAFETY).check().exhausted(67_490);
    ring(3).requests(&[1, 1, 0]).crashes(1, 1).judge(&SAFETY).check().exhausted(76_489);
}

#[test]
fn a_wrong_suspicion_lets_two_in_but_their_fences_grow() {
    let case = ring(3).config(|c| c.hold = Pace::Constant(20.0));
    // 0 is inside when 2 takes it for crashed.
    let seen = case.fault("suspect:2>0@1").fault("suspect:1>0@1").simulate();
    assert!(seen.violations[0].starts_with("mutual exclusion"), "{:?}", seen.violations);
    assert_eq!(seen.summary.fences_monotone, Some(true));
}

#[test]
fn a_lost_token_is_noticed_by_nobody() {
    ring(3).mishaps(1, 0).check().violated("deadlock", 2);
    ring(3).mishaps(1, 0).judge(&["mutual exclusion", "one token"]).check().exhausted(1228);
}

#[test]
fn impatient_process_detects_a_lost_token() {
    let patient = |n| ring(n).set("patience", 4).synchronous();
    // All properties but quiescence: a process that has waited in vain for a report waits until a request is made.
    let properties = ["mutual exclusion", "growing fences", "expected inputs", "deadlock"];
    // One asks: while two do, epochs follow each other for as long as the one stays inside.
    let once = |n, place| patient(n).requests(&only(n, place, 1)).judge(&properties);
    once(2, 1).mishaps(2, 0).check().exhausted(39);
    once(3, 1).mishaps(2, 0).check().exhausted(233);
    once(3, 2).mishaps(2, 0).crashes(1, 0).check().exhausted(2777);
    for seed in 0..200 {
        let case = ring(5).set("patience", 8).requests(&[6; 5]).config(|c| {
            c.seed = seed;
            c.delay = Delay::Exponential(1.0);
            c.think = Pace::Exponential(5.0);
            c.loss = 0.02;
        });
        let seen = case.simulate();
        let others: Vec<_> =
            seen.violations.iter().filter(|v| !v.starts_with("quiescence")).collect();
        assert!(others.is_empty(), "seed {seed}: {others:?}");
        assert_eq!(seen.summary.entries, 30, "seed {seed}");
    }
}

#[test]
fn random_delays_and_any_order_do_no_harm() {
    for seed in 0..300 {
        let case = ring(7).ids(&[40, 7, 3, 19, 0, 88, 5]).requests(&[5; 7]).no_fifo();
        let case = case.config(|c| {
            c.seed = seed;
            c.delay = Delay::Exponential(1.0);
            c.think = Pace::Exponential((seed % 30) as f64);
        });
        let seen = case.simulate();
        assert_eq!(seen.well().summary.entries, 35, "seed {seed}");
        assert!(seen.summary.max_bypass <= 6, "seed {seed}");
    }
}

#[test]
fn crashes_at_random_times_do_no_harm() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let modes = ["parking", "perpetual"];
        let mut case = ring(7).set("mode", modes[seed as usize % 2]).requests(&[4; 7]);
        case = case.ids(&[40, 7, 3, 19, 0, 88, 5]).no_fifo().config(|c| {
            c.seed = seed;
            c.delay = Delay::Exponential(1.0);
            c.think = Pace::Exponential(10.0);
            c.hold = Pace::Exponential(1.0);
            c.detect_after = Some(f64::from(rng.below(6)));
            c.time_limit = 3000.0;
        });
        for victim in [40, 3, 88, 5] {
            if rng.below(2) == 0 {
                case = case.fault(&format!("crash:{victim}@{}", rng.below(80)));
            }
        }
        let seen = case.simulate();
        assert_eq!(seen.well().summary.fences_monotone, Some(true), "seed {seed}");
    }
}

#[test]
fn a_hundred_thousand_processes_serve_a_few() {
    let n = 100_000;
    let few: Vec<u32> = (0..n).map(|i| u32::from(i % 25_000 == 7)).collect();
    let seen = ring(n).requests(&few).simulate();
    assert_eq!(seen.well().summary.entries, 4);
}

#[test]
fn a_large_ring_survives_a_crash() {
    let n = 10_000;
    let few: Vec<u32> = (0..n).map(|i| u32::from(i % 2500 == 7)).collect();
    let seen = ring(n).requests(&few).fault("crash:0@1").fault("crash:9999@5").simulate();
    assert_eq!(seen.well().summary.entries, 4);
}

#[test]
fn impatience_does_not_keep_the_token_from_those_who_wait() {
    for (n, hold) in [(2, 3.0), (4, 3.0), (4, 30.0), (20, 3.0)] {
        let case = ring(n).set("patience", 1).requests(&vec![3; n]).config(|c| {
            c.hold = Pace::Constant(hold);
            c.step_limit = 1_000_000;
        });
        let seen = case.simulate();
        assert_eq!(seen.well().summary.entries, 3 * n as u64, "n = {n}, hold {hold}");
    }
}
