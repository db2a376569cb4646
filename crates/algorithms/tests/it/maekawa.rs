use konklave_algorithms::mutex::coterie::Coterie;
use konklave_algorithms::mutex::maekawa::Maekawa;
use konklave_algorithms::{Algorithm, Setup};
use konklave_process::{Group, Topology};
use konklave_sim::{Delay, Pace};
use konklave_testkit::Case;

use crate::lock_schedule::LockSchedule;

/// Three clients, two arbiters; one client needs one of them only.
const TWO_TWO_ONE: &str = "0:3,4;1:3,4;2:3";
/// Three clients that all need both arbiters.
const BOTH: &str = "0:3,4;1:3,4;2:3,4";
/// Three that all ask all.
const ALL: &str = "0:0,1,2;1:0,1,2;2:0,1,2";

/// As in the sources, only requests move the clocks: fewer states, and no order is kept anyway.
fn small(n: usize, quorums: &str) -> Case<Maekawa> {
    Case::complete(n).set("quorums", quorums).set("clock", "requests")
}

fn arbiters(quorums: &str, requests: [u32; 3]) -> Case<Maekawa> {
    let [a, b, c] = requests;
    small(5, quorums).requests(&[a, b, c, 0, 0])
}

fn triangle(requests: [u32; 3]) -> Case<Maekawa> {
    small(3, "plane").requests(&requests)
}

#[test]
fn three_messages_for_each_other_member_of_the_quorum_when_requests_never_meet() {
    for n in [1, 2, 3, 4, 7, 10, 13, 21, 50, 57, 100] {
        for quorums in ["grid", "plane", "majority", "tree"] {
            let setup = Setup::new(Group::of(n), Topology::complete(n));
            let coterie = Coterie::named(quorums, &setup).unwrap();
            for p in [0, n / 2, n - 1] {
                let mut requests = vec![0; n];
                requests[p] = 2;
                let case = Case::<Maekawa>::complete(n).set("quorums", quorums).requests(&requests);
                let seen = case.simulate();
                let others = coterie.others(setup.group.id(p)) as u64;
                assert_eq!(seen.well().sent, 2 * 3 * others, "{quorums}, n = {n}, node {p}");
                let entry = seen.summary.wait.unwrap();
                let delay = if others > 0 { 2.0 } else { 0.0 };
                assert_eq!((entry.min, entry.max), (delay, delay));
            }
        }
    }
}

#[test]
fn the_thirteen_of_the_sources_cost_nine_messages_each() {
    let alone = Case::<Maekawa>::complete(13).set("quorums", "13").config(|c| {
        c.think = Pace::Exponential(1e6);
    });
    assert_eq!(alone.simulate().well().sent, 13 * 9);
}

#[test]
fn two_delays_between_entries_and_one_where_the_arbiter_is_among_the_two() {
    // The leaving and the entering process share an arbiter that is neither of them.
    let case = arbiters(TWO_TWO_ONE, [1, 1, 1]).config(|c| c.hold = Pace::Constant(9.0));
    let delay = case.simulate().well().summary.sync_delay.unwrap();
    assert_eq!((delay.min, delay.max), (2.0, 2.0));
    // On the triangle of 2 nodes each is the other's arbiter.
    let case = Case::<Maekawa>::complete(2).config(|c| c.hold = Pace::Constant(9.0));
    let delay = case.simulate().well().summary.sync_delay.unwrap();
    assert_eq!((delay.min, delay.max), (1.0, 1.0));
}

#[test]
fn every_run_of_the_triangle_is_right_in_any_order_of_messages() {
    triangle([2, 2, 2]).fenced().check().exhausted(11_628);
    triangle([2, 2, 2]).fenced().no_fifo().check().exhausted(88_857);
}

#[test]
fn every_run_of_three_that_all_ask_all_is_right() {
    let case = |requests: [u32; 3]| small(3, ALL).requests(&requests).fenced();
    case([1, 1, 1]).check().exhausted(15_231);
    case([1, 1, 1]).no_fifo().check().exhausted(41_113);
    case([2, 2, 1]).check().exhausted(207_589);
}

#[test]
fn every_run_of_three_clients_with_two_arbiters_is_right_in_any_order_of_messages() {
    for (quorums, requests, fifo, not_fifo) in [
        (TWO_TWO_ONE, [1, 1, 1], 2698, 3482),
        (TWO_TWO_ONE, [1, 1, 2], 6537, 13_072),
        (BOTH, [1, 1, 1], 9318, 13_050),
        (BOTH, [1, 1, 2], 28_784, 103_436),
    ] {
        arbiters(quorums, requests).fenced().check().exhausted(fifo);
        arbiters(quorums, requests).fenced().no_fifo().check().exhausted(not_fifo);
    }
    arbiters(TWO_TWO_ONE, [2, 2, 1]).check().exhausted(43_933);
    arbiters(BOTH, [2, 2, 1]).fenced().check().exhausted(154_687);
}

#[test]
fn larger_spaces_are_right_too() {
    if !crate::long() {
        return;
    }
    arbiters(TWO_TWO_ONE, [2, 2, 1]).fenced().no_fifo().check().exhausted(342_472);
    arbiters(BOTH, [2, 2, 1]).fenced().no_fifo().check().exhausted(952_039);
}

#[test]
fn every_run_on_the_plane_of_seven_is_right() {
    let case = |requests: &[u32]| small(7, "plane").requests(requests).fenced();
    case(&[1, 1, 1, 0, 0, 0, 0]).check().exhausted(6302);
    case(&[1, 1, 1, 1, 0, 0, 0]).check().exhausted(186_730);
}

#[test]
fn runs_cost_at_most_six_messages_for_each_request_and_arbiter() {
    let range = |case: Case<Maekawa>| case.counting().check().messages.unwrap();
    assert_eq!(range(arbiters(BOTH, [1, 1, 1])), (18, 28));
    assert_eq!(range(arbiters(BOTH, [1, 1, 1]).no_fifo()), (18, 28));
    assert_eq!(range(small(3, ALL)), (18, 26));
    assert_eq!(range(triangle([1, 1, 1])), (9, 11));
}

#[test]
fn displaced_head_of_a_queue_must_get_failed() {
    for case in [arbiters(TWO_TWO_ONE, [1, 1, 1]), arbiters(TWO_TWO_ONE, [1, 1, 1]).no_fifo()] {
        case.mistake("no-displaced-failed").check().violated("deadlock", 15);
    }
    // A beautiful coterie shows it as well, but takes its time.
    let plane = small(7, "plane").requests(&[1, 1, 1, 1, 0, 0, 0]).mistake("no-displaced-failed");
    plane.check().violated("deadlock", 17);
}

#[test]
fn a_lock_that_was_given_back_must_count_as_missing() {
    let case = arbiters(BOTH, [1, 1, 1]).mistake("yield-forgotten");
    case.check().violated("deadlock", 21);
    let case = arbiters(BOTH, [2, 2, 1]).mistake("yield-forgotten");
    case.check().violated("deadlock", 21);
    arbiters(BOTH, [1, 1, 1]).set("failed", "for-good").check().exhausted(10_268);
}

#[test]
fn without_stamps_an_old_inquiry_lets_two_in_even_if_messages_keep_their_order() {
    for mistake in ["as-printed", "unstamped-no-yield-held"] {
        let case = arbiters(TWO_TWO_ONE, [1, 1, 2]).judge(&["mutual exclusion"]);
        case.mistake(mistake).check().violated("mutual exclusion", 24);
        // The configuration in which it was found first is larger, and its run longer.
        if crate::long() {
            let case = arbiters(BOTH, [2, 2, 1]).judge(&["mutual exclusion"]);
            case.mistake(mistake).check().violated("mutual exclusion", 31);
        }
    }
}

#[test]
fn without_stamps_inquiries_for_missing_locks_may_be_dropped_only_if_messages_keep_their_order() {
    let case = |requests| arbiters(TWO_TWO_ONE, requests).mistake("drop-early-inquire");
    case([1, 1, 1]).check().exhausted(2698);
    case([1, 1, 2]).check().exhausted(6537);
    case([1, 1, 1]).no_fifo().check().violated("deadlock", 10);
}

#[test]
fn without_inquiries_three_wait_for_each_other() {
    triangle([1, 1, 1]).mistake("no-deadlock-handling").check().violated("deadlock", 6);
}

/// The right form: every message carries the clock.
fn full(quorums: &str, requests: &[u32]) -> Case<Maekawa> {
    Case::complete(requests.len()).set("quorums", quorums).requests(requests)
}

#[test]
fn with_a_clock_that_only_requests_move_order_is_lost_by_messages_of_the_protocol_alone() {
    triangle([2, 1, 1]).ordered().check().violated("happened-before order", 16);
    triangle([2, 1, 1]).ordered().no_fifo().check().violated("happened-before order", 15);
    full("plane", &[2, 1, 1]).ordered().check().exhausted(1831);
    full("plane", &[2, 1, 1]).ordered().no_fifo().check().exhausted(5133);
}

#[test]
fn where_all_ask_all_order_is_kept_by_a_clock_that_every_message_carries() {
    let requests = small(3, ALL).ordered();
    requests.check().violated("happened-before order", 20);
    requests.no_fifo().check().violated("happened-before order", 18);
    full(ALL, &[1, 1, 1]).ordered().check().exhausted(20_853);
    full(ALL, &[1, 1, 1]).ordered().no_fifo().check().exhausted(81_409);
    full(ALL, &[1, 1, 0]).ordered().app_messages(1).check().exhausted(5825);
    full(ALL, &[1, 1, 0]).ordered().app_messages(1).no_fifo().check().exhausted(14_644);
}

#[test]
fn where_an_arbiter_may_not_have_heard_of_a_request_order_is_lost_with_any_clock() {
    let plane = full("plane", &[1, 1, 0, 0, 0, 0, 0]).ordered().app_messages(1);
    plane.check().violated("happened-before order", 9);
    let triangle = full("plane", &[1, 1, 1]).ordered().app_messages(1);
    triangle.check().exhausted(11_110);
    triangle.no_fifo().check().violated("happened-before order", 6);
}

#[test]
fn every_run_is_right_with_a_clock_that_every_message_carries() {
    for (quorums, requests, fifo, not_fifo) in [
        ("plane", &[2, 2, 2][..], 15_826, 156_659),
        (ALL, &[1, 1, 1], 18_512, 68_773),
        (TWO_TWO_ONE, &[1, 1, 2, 0, 0], 7632, 20_536),
        (BOTH, &[1, 1, 1, 0, 0], 9318, 13_050),
    ] {
        full(quorums, requests).fenced().check().exhausted(fifo);
        full(quorums, requests).fenced().no_fifo().check().exhausted(not_fifo);
    }
}

#[test]
fn a_copy_of_any_message_does_no_harm_in_any_order() {
    let twice = |case: Case<Maekawa>| case.mishaps(0, 1).fenced();
    twice(triangle([2, 1, 0])).check().exhausted(615);
    twice(triangle([2, 1, 0])).no_fifo().check().exhausted(2122);
    twice(triangle([1, 1, 1])).no_fifo().check().exhausted(6027);
    twice(arbiters(TWO_TWO_ONE, [1, 1, 1])).check().exhausted(30_733);
    twice(arbiters(TWO_TWO_ONE, [1, 1, 1])).no_fifo().check().exhausted(60_760);
    twice(small(3, "tree").requests(&[1, 1, 0])).no_fifo().check().exhausted(334);
    triangle([1, 1, 0]).mishaps(0, 2).no_fifo().check().exhausted(1187);
}

#[test]
fn without_a_count_of_returns_a_copy_lets_two_in() {
    let case = arbiters("0:3;1:3,4;2:3,4", [1, 1, 1]).mishaps(0, 1).no_fifo();
    case.check().exhausted(68_315);
    case.mistake("uncounted-returns").check().violated("mutual exclusion", 21);
}

#[test]
fn many_copies_do_no_harm() {
    let all = [(7, "plane"), (9, "grid"), (6, "tree"), (5, "majority")];
    let case = |(n, quorums)| Case::<Maekawa>::complete(n).set("quorums", quorums);
    crate::many_copies_do_no_harm(all.map(case));
}

/// T-M1: q = 3, r = 4. Request 1 heads the queue of q when 0 displaces it.
#[test]
fn schedule_1_a_displaced_request() {
    let schedule = "ask:0 ask:1 ask:2 1>4 0>4 2>3 1>3 0>3 3>2 leave:2 2>3 3>0 4>1 4>1";
    let case = arbiters(TWO_TWO_ONE, [1, 1, 1]);
    LockSchedule::new(&case).play(schedule).finish().all_well();
    let mut run = LockSchedule::new(&case.mistake("no-displaced-failed"));
    assert_eq!(run.play(schedule).finish().waiting_ids(), [0, 1]);
}

/// T-M2: an inquiry for the first lock of 2 arrives after its second request.
#[test]
fn schedule_2_a_stale_inquiry() {
    let schedule = "ask:0 ask:1 ask:2 0>4 2>3 0>3 3>2 leave:2 ask:2 2>3 2>3 3>2 3>2 \
                    3>0 4>0 leave:0 0>3 0>4 3>2";
    let case = arbiters(TWO_TWO_ONE, [1, 1, 2]);
    LockSchedule::new(&case).play(schedule).finish().all_well();
    let mut run = LockSchedule::new(&case.mistake("as-printed"));
    // 1 asks for both locks, gets 4, and the relinquishment of 2 brings it 3.
    run.play(schedule).play("1>4 4>1 1>3 2>3 3>1");
    assert_eq!(run.inside.iter().map(|p| p.0).collect::<Vec<_>>(), [1, 2]);
}

/// T-M4: an inquiry overtakes the lock it asks about.
#[test]
fn schedule_4_an_inquiry_before_its_lock() {
    let schedule = "ask:1 ask:0 1>3 0>4 0>3 1>4 3>1/Inquire 4>1 3>1/Locked";
    let case = arbiters(TWO_TWO_ONE, [1, 1, 0]);
    let mut run = LockSchedule::new(&case);
    // 1 has failed at 4 and gives 3 back as soon as it has it.
    run.play(schedule).play("1>3/Relinquish 3>0 4>0 leave:0").finish().all_well();
    let mut run = LockSchedule::new(&case.mistake("drop-early-inquire"));
    assert_eq!(run.play(schedule).finish().waiting_ids(), [0, 1]);
}

/// T-M5: a failure arrives after the lock that was sent later.
#[test]
fn schedule_5_a_failure_after_its_lock() {
    let mut run = LockSchedule::new(&arbiters(TWO_TWO_ONE, [1, 1, 1]));
    run.play("ask:0 ask:2 0>3 2>3 0>4 3>0 4>0 leave:0 0>3 3>2/Locked");
    assert!(run.inside.contains(konklave_process::ProcessId(2)));
    run.play("3>2/Failed").finish().all_well();
}

/// T-M6: a release is overtaken by the next request of the same process.
#[test]
fn schedule_6_two_requests_of_one_process_at_one_arbiter() {
    let mut run = LockSchedule::new(&arbiters(TWO_TWO_ONE, [0, 0, 2]));
    run.play("ask:2 2>3 3>2 leave:2 ask:2 2>3/Request 2>3/Release").finish().all_well();
    let mut run = LockSchedule::new(&arbiters(TWO_TWO_ONE, [1, 0, 2]));
    run.play("ask:2 ask:0 2>3 0>3 3>2/Locked leave:2 ask:2 2>3/Request 2>3/Release");
    run.finish().all_well();
}

#[test]
fn random_delays_and_any_order_do_no_harm() {
    let all = [
        (7, "plane"),
        (9, "plane"),
        (9, "grid"),
        (7, "grid"),
        (6, "tree"),
        (5, "majority"),
        (13, "13"),
        (5, "weighted:3,1,1,1,1"),
        (6, "wall:1,2,3"),
    ];
    for seed in 0..200 {
        for (n, quorums) in all {
            let case = Case::<Maekawa>::complete(n).set("quorums", quorums);
            let case = case.requests(&vec![3; n]).no_fifo().config(|c| {
                c.seed = seed;
                c.delay = Delay::Exponential(1.0);
                c.hold = Pace::Exponential(1.0);
            });
            let seen = case.simulate();
            assert_eq!(seen.well().summary.entries, 3 * n as u64, "{quorums}, seed {seed}");
            crate::messages_are_within_bounds(&case, &seen);
        }
    }
}

#[test]
fn trees_and_majorities_do_without_those_that_are_down() {
    let case = |n, quorums, down: &[u32]| {
        Case::<Maekawa>::complete(n).set("quorums", quorums).down(down).simulate()
    };
    assert_eq!(case(7, "tree", &[0, 4]).well().summary.entries, 5);
    assert_eq!(case(5, "majority", &[1, 3]).well().summary.entries, 3);
    assert!(!case(9, "grid", &[4]).waiting.is_empty());
}

#[test]
fn ids_need_not_be_places() {
    let ids = [70, 3, 900, 12, 41, 8, 5];
    for quorums in ["grid", "plane", "70:3,900;3:900,12;900:900"] {
        let case = Case::<Maekawa>::complete(7).ids(&ids).set("quorums", quorums);
        assert_eq!(case.simulate().well().summary.entries, 7);
    }
}

#[test]
fn ten_thousand_processes_enter_by_grid_and_by_plane() {
    for (quorums, n, k) in [("grid", 10_000, 199), ("plane", 10_303, 102)] {
        let requests: Vec<u32> = (0..n).map(|i| u32::from(i % 5 == 0)).collect();
        let case = Case::<Maekawa>::complete(n).set("quorums", quorums).requests(&requests);
        let seen = case.simulate();
        let entries = u64::from(requests.iter().sum::<u32>());
        assert_eq!(seen.well().summary.entries, entries);
        assert!(seen.sent >= entries * 3 * (k - 1) && seen.sent <= entries * (6 * (k - 1) + 3));
    }
}

#[test]
fn coterie_that_cannot_be_built_is_refused() {
    let case = Case::<Maekawa>::complete(4).set("quorums", "0:1;1:2;2:1;3:1,2");
    let error = Maekawa::check_setup(&case.setup).unwrap_err();
    assert!(error.0.contains("the quorums of p0 = {p1} and of p1 = {p2}"), "{error}");
}
