use konklave_algorithms::mutex::singhal::Singhal;
use konklave_sim::{Delay, Pace};
use konklave_testkit::Case;

use crate::script::Script;

const ARBITRATIONS: [&str; 3] = ["round-robin", "smallest", "nearest"];

fn group(requests: &[u32]) -> Case<Singhal> {
    Case::complete(requests.len()).requests(requests).fenced()
}

#[test]
fn at_first_the_ith_pays_for_those_before_it_and_for_the_token() {
    for n in [1, 2, 3, 13, 50] {
        for place in 0..n {
            let lone: Vec<u32> = (0..n).map(|i| 3 * u32::from(i == place)).collect();
            let seen = group(&lone).simulate();
            let cost = if place == 0 { 0 } else { place as u64 + 1 };
            // After the first entry the token is where it is wanted.
            assert_eq!(seen.well().sent, cost, "n = {n}, place {place}");
            assert_eq!(seen.summary.wait.unwrap().max, if place == 0 { 0.0 } else { 2.0 });
        }
    }
}

#[test]
fn a_saturated_group_pays_n_for_each_entry_and_one_delay_between_entries() {
    for n in [2, 3, 10, 40] {
        let case = group(&vec![20; n]).config(|c| c.hold = Pace::Constant(3.0));
        let seen = case.simulate();
        let most = 20 * (n * n) as u64;
        assert!(
            seen.well().sent <= most && seen.sent + 2 * (n * n) as u64 >= most,
            "n = {n}: {}",
            seen.sent
        );
        let delay = seen.summary.sync_delay.unwrap();
        assert_eq!((delay.min, delay.max), (1.0, 1.0));
    }
}

#[test]
fn every_run_of_three_is_right_in_any_order_of_messages_and_by_any_arbitration() {
    let fifo = [10_539, 10_696, 11_469];
    let any_order = [98_408, 103_156, 67_682];
    for (i, arbitration) in ARBITRATIONS.iter().enumerate() {
        let case = group(&[2, 2, 2]).set("arbitration", arbitration);
        case.check().exhausted(fifo[i]);
        case.no_fifo().check().exhausted(any_order[i]);
    }
}

#[test]
fn every_run_of_three_with_three_entries_each_is_right() {
    group(&[3, 3, 3]).check().exhausted(148_072);
}

#[test]
fn every_run_of_four_is_right() {
    group(&[1, 1, 2, 1]).check().exhausted(102_980);
}

#[test]
fn every_run_of_four_is_right_in_any_order_of_messages() {
    group(&[1, 1, 1, 1]).no_fifo().check().exhausted(83_952);
}

#[test]
fn larger_spaces_are_right_by_any_arbitration() {
    if !crate::long() {
        return;
    }
    for (arbitration, three, four) in [("smallest", 145_003, 99_792), ("nearest", 153_153, 124_203)]
    {
        let case = |requests: &[u32]| {
            let case = Case::<Singhal>::complete(requests.len()).requests(requests);
            case.set("arbitration", arbitration)
        };
        case(&[3, 3, 3]).check().exhausted(three);
        case(&[1, 1, 2, 1]).check().exhausted(four);
    }
    Case::<Singhal>::complete(4).requests(&[1, 1, 2, 1]).no_fifo().check().exhausted(777_295);
    let four = Case::<Singhal>::complete(4).requests(&[1, 2, 2, 2]);
    four.reduced().check().exhausted(3_751_723);
    group(&[3, 3, 3]).no_fifo().check().exhausted(16_052_799);
}

#[test]
fn the_counts_are_those_of_the_table() {
    let printed = group(&[1; 4]).mistake("as-printed").judge(&["mutual exclusion"]).counting();
    assert_eq!(printed.check().messages, Some((9, 16)));
    assert_eq!(printed.no_fifo().check().messages, Some((9, 16)));
    assert_eq!(group(&[1; 4]).counting().check().messages, Some((9, 20)));
    assert_eq!(group(&[2; 3]).counting().check().messages, Some((5, 22)));
}

#[test]
fn without_fifo_six_entries_cost_up_to_thirty_three() {
    assert_eq!(group(&[2; 3]).no_fifo().counting().check().messages, Some((5, 33)));
}

#[test]
fn as_printed_and_half_repaired_requests_get_lost() {
    let case = group(&[1, 1, 2]);
    case.check().exhausted(986);
    case.clone().no_fifo().check().exhausted(1754);
    for mistake in ["as-printed", "only-merge", "only-hints"] {
        for arbitration in ARBITRATIONS {
            let case = group(&[1, 1, 2]).set("arbitration", arbitration).mistake(mistake);
            case.check().violated("deadlock", 15);
            case.no_fifo().check().violated("deadlock", 15);
            let case = group(&[2, 2, 2]).set("arbitration", arbitration).mistake(mistake);
            case.check().violated("deadlock", 15);
            case.no_fifo().check().violated("deadlock", 15);
        }
    }
}

#[test]
fn as_printed_requests_get_lost_among_four() {
    let case = group(&[1, 1, 2, 1]).mistake("as-printed");
    case.check().violated("deadlock", 15);
    case.no_fifo().check().violated("deadlock", 15);
}

/// T-S1: 0 holds the token. 2's first request to 1 is late; meanwhile the token has brought 1 the news of it.
fn late_request(run: &mut Script<Singhal>) {
    run.acquire(1).acquire(2).deliver(2, 0).acquire(0).deliver(0, 2);
    assert_eq!(run.inside, [2]);
    // The token has no news of 1: so 2 forgets that it has asked 1.
    run.leave(2).deliver(0, 2).acquire(2).deliver(2, 0);
    assert_eq!(run.inside, [0]);
    run.leave(0).deliver(1, 0).deliver(0, 1);
    assert_eq!(run.inside, [1]);
    // The token rests at 1. 2's second request reaches 0, which does not have it any more.
    run.leave(1).deliver(2, 0);
    assert_eq!((run.on_the_way(2, 0), run.on_the_way(2, 1)), (0, 1));
}

#[test]
fn t_s1_a_late_request_is_ignored_as_printed_and_2_waits_for_ever() {
    for mistake in ["as-printed", "only-merge"] {
        let mut run = Script::<Singhal>::mistaken(3, mistake);
        late_request(&mut run);
        run.settle();
        assert!(run.inside.is_empty(), "{mistake}");
    }
}

#[test]
fn t_s1_a_late_request_is_a_hint_and_2_is_served() {
    let mut run = Script::<Singhal>::new(3);
    late_request(&mut run);
    // 1 answers the late request with a hint, 2 asks 1, and 1 sends the token.
    run.deliver(2, 1).deliver(1, 2).deliver(2, 1).deliver(1, 2);
    assert_eq!(run.inside, [2]);
}

#[test]
fn without_the_staircase_or_the_echo_requests_get_lost() {
    let case = group(&[0, 1, 1]);
    case.check().exhausted(64);
    case.clone().mistake("no-staircase").check().violated("deadlock", 6);
    case.mistake("no-echo").check().violated("deadlock", 7);
    let case = group(&[1, 1, 1]);
    case.check().exhausted(404);
    case.clone().mistake("no-staircase").check().violated("deadlock", 6);
    case.mistake("no-echo").check().violated("deadlock", 7);
}

#[test]
fn order_is_not_kept() {
    group(&[0, 1, 1]).ordered().check().violated("happened-before order", 5);
    group(&[0, 1, 1]).no_fifo().ordered().check().violated("happened-before order", 5);
}

#[test]
fn distant_process_starves_by_nearest_but_not_by_round_robin() {
    // 0 and 1 want in again and again, and are near each other; 2 wants in once.
    let overtaken = |arbitration: &str, times: u32| {
        let case = group(&[times, times, 1]).set("arbitration", arbitration);
        let seen = case.config(|c| c.hold = Pace::Constant(3.0)).simulate();
        seen.well().summary.max_bypass
    };
    for times in [5, 50, 500] {
        assert_eq!(overtaken("round-robin", times), 2);
        assert_eq!(overtaken("smallest", times), 2);
        assert_eq!(overtaken("nearest", times), 2 * u64::from(times) - 1);
    }
}

#[test]
fn random_delays_and_any_order_do_no_harm() {
    for seed in 0..300 {
        let arbitration = ARBITRATIONS[seed as usize % 3];
        let case = group(&[5; 7]).ids(&[40, 7, 3, 19, 0, 88, 5]).set("arbitration", arbitration);
        let case = case.no_fifo().config(|c| {
            c.seed = seed;
            c.delay = Delay::Exponential(1.0);
            c.think = Pace::Exponential((seed % 10) as f64);
        });
        let seen = case.simulate();
        assert_eq!(seen.well().summary.entries, 35, "seed {seed}");
        assert_eq!(seen.summary.fences_monotone, Some(true), "seed {seed}");
    }
}

#[test]
fn two_thousand_processes_serve_a_few() {
    let n = 2000;
    let few: Vec<u32> = (0..n).map(|i| u32::from(i % 500 == 7)).collect();
    let seen = group(&few).simulate();
    assert_eq!(seen.well().summary.entries, 4);
    // Each of the four asks all lower processes, and each of these echoes to the others at most once.
    assert!(seen.sent <= 7 + 507 + 1007 + 1507 + 4 + 12, "{}", seen.sent);
}
