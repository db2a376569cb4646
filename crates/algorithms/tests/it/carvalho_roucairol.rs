use konklave_algorithms::mutex::carvalho_roucairol::CarvalhoRoucairol;
use konklave_sim::{Delay, Pace};
use konklave_testkit::Case;

use crate::script::Script;

#[test]
fn repeated_use_by_one_costs_nothing_after_the_first_time() {
    for n in [1, 2, 3, 10, 100] {
        for place in [0, n / 2, n - 1] {
            let only: Vec<u32> = (0..n).map(|i| 5 * u32::from(i == place)).collect();
            let seen = Case::<CarvalhoRoucairol>::complete(n).requests(&only).simulate();
            // At first it lacks the permissions of all lower ids.
            assert_eq!(seen.well().sent, 2 * place as u64, "n = {n}, place {place}");
            assert_eq!(seen.summary.entries, 5);
        }
    }
}

#[test]
fn a_round_robin_costs_twice_the_others_and_one_delay_between_entries() {
    for n in [2, 3, 10, 40] {
        let case = Case::<CarvalhoRoucairol>::complete(n).requests(&vec![20; n]);
        let seen = case.config(|c| c.hold = Pace::Constant(3.0)).simulate();
        let most = 20 * n as u64 * 2 * (n as u64 - 1);
        // Only the first round is cheaper: half of the permissions are where they are needed.
        assert_eq!(seen.well().sent, most - n as u64 * (n as u64 - 1), "n = {n}");
        let delay = seen.summary.sync_delay.unwrap();
        assert_eq!((delay.min, delay.max), (1.0, 1.0));
    }
}

#[test]
fn every_run_of_three_is_right_in_any_order_of_messages() {
    let case = Case::<CarvalhoRoucairol>::complete(3).requests(&[2, 2, 2]).fenced();
    case.check().exhausted(16_334);
    case.no_fifo().check().exhausted(26_130);
}

#[test]
fn six_entries_cost_six_to_twenty_four() {
    let case = Case::<CarvalhoRoucairol>::complete(3).requests(&[2, 2, 2]).counting();
    assert_eq!(case.check().messages, Some((6, 24)));
    assert_eq!(case.no_fifo().check().messages, Some((6, 24)));
}

#[test]
fn process_that_does_not_ask_again_waits_for_ever() {
    let case = Case::<CarvalhoRoucairol>::complete(3).requests(&[2, 2, 1]);
    case.check().exhausted(3778);
    case.clone().no_fifo().check().exhausted(5849);
    case.clone().mistake("no-re-request").check().violated("deadlock", 13);
    case.no_fifo().mistake("no-re-request").check().violated("deadlock", 13);
    let case = Case::<CarvalhoRoucairol>::complete(3).mistake("no-re-request");
    case.check().violated("deadlock", 13);
}

#[test]
fn timestamps_are_no_fence() {
    let case = Case::<CarvalhoRoucairol>::complete(2).requests(&[2, 1]).fenced();
    case.check().exhausted(37);
    case.clone().no_fifo().check().exhausted(39);
    case.clone().mistake("timestamp-fence").check().violated("growing fences", 7);
    case.no_fifo().mistake("timestamp-fence").check().violated("growing fences", 7);
    let case = Case::<CarvalhoRoucairol>::complete(3).requests(&[2, 2, 2]).fenced();
    let case = case.mistake("timestamp-fence").judge(&["growing fences"]);
    assert_eq!(case.check().property, Some("growing fences"));
    assert_eq!(case.no_fifo().check().property, Some("growing fences"));
}

#[test]
fn order_is_lost_although_all_messages_carry_the_clock() {
    let case = Case::<CarvalhoRoucairol>::complete(3).requests(&[0, 2, 1]).ordered();
    case.check().violated("happened-before order", 7);
    case.no_fifo().check().violated("happened-before order", 7);
}

#[test]
fn a_kept_permission_overtakes_a_request_that_it_knows_of() {
    let mut run = Script::<CarvalhoRoucairol>::new(3);
    // 0 receives 2's request, then answers 1. So 1 has received the request, too, before it asks again.
    run.acquire(1).acquire(2).deliver(2, 0).deliver(1, 0).deliver(0, 1);
    assert_eq!(run.inside, [1]);
    run.leave(1).acquire(1);
    assert_eq!((&run.inside[..], run.on_the_way(2, 1)), (&[1][..], 1));
    // But 2 does not starve: the permission goes as soon as its request arrives.
    run.deliver(2, 1).leave(1).acquire(1).settle();
    assert_eq!(run.inside, [2]);
}

#[test]
fn a_duplicate_permission_lets_two_in() {
    let case = Case::<CarvalhoRoucairol>::complete(2).requests(&[2, 2]).mishaps(0, 1);
    case.check().violated("mutual exclusion", 11);
    case.no_fifo().check().violated("mutual exclusion", 10);
}

#[test]
fn random_delays_and_any_order_do_no_harm() {
    for seed in 0..300 {
        let case = Case::<CarvalhoRoucairol>::complete(7).ids(&[40, 7, 3, 19, 0, 88, 5]);
        let case = case.requests(&[5; 7]).no_fifo().config(|c| {
            c.seed = seed;
            c.delay = Delay::Exponential(1.0);
            c.think = Pace::Exponential((seed % 10) as f64);
        });
        let seen = case.simulate();
        assert_eq!(seen.well().summary.fences_monotone, Some(true), "seed {seed}");
        assert_eq!(seen.summary.entries, 35, "seed {seed}");
        assert!(seen.sent <= 35 * 12, "seed {seed}");
    }
}

#[test]
fn ten_thousand_processes_serve_a_few() {
    let n = 10_000;
    let few: Vec<u32> = (0..n).map(|i| u32::from(i % 2500 == 7)).collect();
    let seen = Case::<CarvalhoRoucairol>::complete(n).requests(&few).simulate();
    assert_eq!(seen.well().summary.entries, 4);
}
