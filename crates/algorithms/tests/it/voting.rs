use konklave_algorithms::Algorithm;
use konklave_algorithms::mutex::voting::Voting;
use konklave_process::ProcessId;
use konklave_sim::{Delay, Pace};
use konklave_testkit::Case;

use crate::lock_schedule::LockSchedule;

/// As in the sources, only requests move the clocks: fewer states, and no order is kept anyway.
fn three(requests: [u32; 3]) -> Case<Voting> {
    Case::complete(3).requests(&requests).set("clock", "requests")
}

#[test]
fn three_messages_for_each_other_voter_when_requests_never_meet() {
    for n in [1, 2, 3, 4, 10, 100, 1000] {
        let mut requests = vec![0; n];
        requests[n / 2] = 2;
        let seen = Case::<Voting>::complete(n).requests(&requests).simulate();
        assert_eq!(seen.well().sent, 2 * 3 * (n as u64 - 1), "n = {n}");
    }
    let few = Case::<Voting>::complete(5).set("votes", "1,0,1,1,0").requests(&[1, 1, 0, 0, 0]);
    assert_eq!(few.config(|c| c.think = Pace::Exponential(1e6)).simulate().well().sent, 6 + 9);
}

#[test]
fn two_delays_between_entries_of_those_who_do_not_vote() {
    let case = Case::<Voting>::complete(5).set("votes", "0,0,1,1,1").requests(&[5, 5, 0, 0, 0]);
    let seen = case.config(|c| c.hold = Pace::Constant(9.0)).simulate();
    let delay = seen.well().summary.sync_delay.unwrap();
    assert_eq!((delay.min, delay.max), (2.0, 2.0));
}

#[test]
fn every_run_of_three_is_right() {
    three([1, 1, 1]).fenced().check().exhausted(97_586);
    three([1, 1, 1]).fenced().set("failing", "eager").check().exhausted(134_236);
    three([1, 1, 1]).fenced().set("votes", "2,1,1").check().exhausted(61_264);
    three([1, 1, 0]).fenced().no_fifo().check().exhausted(4614);
    three([1, 1, 0]).fenced().set("clock", "full").check().exhausted(1690);
    three([1, 1, 0]).fenced().set("clock", "full").no_fifo().check().exhausted(5224);
}

#[test]
fn larger_spaces_are_right_too() {
    if !crate::long() {
        return;
    }
    three([2, 1, 1]).check().exhausted(784_272);
    three([2, 1, 1]).set("failing", "eager").check().exhausted(996_451);
    three([1, 1, 1]).no_fifo().check().exhausted(1_088_132);
    three([1, 1, 1]).no_fifo().set("votes", "2,1,1").check().exhausted(492_197);
    let case = three([1, 1, 1]).no_fifo().judge(&["deadlock"]);
    case.mistake("no-tombstone").check().violated("deadlock", 21);
}

#[test]
fn one_voter_with_all_votes_is_a_coordinator() {
    three([1, 1, 1]).set("votes", "1,0,0").fenced().check().exhausted(178);
    let seen = Case::<Voting>::complete(9).set("votes", "1,0,0,0,0,0,0,0,0").simulate();
    assert_eq!(seen.well().summary.entries, 9);
}

#[test]
fn votes_that_come_too_late_are_not_given() {
    assert_eq!(three([1, 0, 0]).counting().check().messages, Some((6, 6)));
    assert_eq!(three([1, 1, 0]).counting().check().messages, Some((11, 16)));
    assert_eq!(three([1, 1, 1]).counting().check().messages, Some((16, 25)));
}

#[test]
fn a_majority_of_replies_that_are_not_exclusive_lets_two_in() {
    three([1, 1, 0]).mistake("shared-votes").check().violated("mutual exclusion", 6);
    three([1, 1, 0]).check().exhausted(1502);
    let five = Case::<Voting>::complete(5).requests(&[1, 1, 0, 0, 0]).mistake("shared-votes");
    five.check().violated("mutual exclusion", 10);
}

#[test]
fn half_is_no_majority() {
    Case::<Voting>::complete(2).mistake("half-is-enough").check().violated("mutual exclusion", 2);
    Case::<Voting>::complete(2).check().exhausted(50);
}

#[test]
fn a_split_vote_must_be_undone() {
    three([1, 1, 1]).mistake("no-deadlock-handling").check().violated("deadlock", 9);
}

#[test]
fn a_release_that_overtakes_its_request_must_be_remembered() {
    let case = three([1, 1, 0]).no_fifo().mistake("no-tombstone");
    case.check().violated("quiescence", 8);
    three([1, 1, 1]).mistake("no-tombstone").check().exhausted(96_855);
}

#[test]
fn a_copy_of_any_message_does_no_harm_in_any_order() {
    let twice = |requests| three(requests).mishaps(0, 1).fenced();
    twice([1, 1, 0]).check().exhausted(13_612);
    twice([1, 1, 0]).no_fifo().check().exhausted(56_855);
    twice([1, 1, 1]).set("votes", "1,1,0").no_fifo().check().exhausted(29_164);
    three([1, 0, 0]).mishaps(0, 2).no_fifo().check().exhausted(698);
}

#[test]
fn many_copies_do_no_harm() {
    let all = [("equal", "exact"), ("equal", "eager"), ("3,1,1,2,0,1", "exact")];
    let case =
        |(votes, failing)| Case::<Voting>::complete(6).set("votes", votes).set("failing", failing);
    crate::many_copies_do_no_harm(all.map(case));
}

/// T-V1: 1 wins with the votes of 0 and itself; its release reaches 2 before its request.
#[test]
fn schedule_v1_a_release_before_its_request() {
    let schedule = "ask:1 1>0 0>1 ask:0 leave:1 1>2/Release 1>2/Request";
    let mut run = LockSchedule::new(&three([1, 1, 0]));
    run.play(schedule).finish().all_well();
    let mut run = LockSchedule::new(&three([1, 1, 0]).mistake("no-tombstone"));
    run.play(schedule).finish();
    // Both were served, but 2 voted for one that had left, and waits for it to leave.
    assert_eq!((run.waiting_ids(), run.restless_ids()), (vec![], vec![2]));
}

#[test]
fn order_is_not_kept_with_any_clock() {
    three([1, 1, 1]).ordered().check().violated("happened-before order", 15);
    // With a clock that every message carries, it takes one that overtakes another.
    let full = Case::<Voting>::complete(3).ordered();
    full.check().exhausted(173_726);
    full.no_fifo().check().violated("happened-before order", 11);
}

#[test]
fn after_any_crash_at_most_one_process_is_inside() {
    let case = three([1, 1, 0]).crashes(1, 0).judge(&["mutual exclusion"]);
    case.check().exhausted(21_800);
    if crate::long() {
        let case = three([1, 1, 1]).crashes(1, 0).judge(&["mutual exclusion"]);
        case.check().exhausted(1_321_634);
    }
}

#[test]
fn a_minority_of_voters_is_not_missed() {
    for failing in ["exact", "eager"] {
        let case = Case::<Voting>::complete(5).set("failing", failing).requests(&[4, 4, 4, 0, 0]);
        for seed in 0..100 {
            let delays = |c: &mut konklave_sim::Config| {
                c.seed = seed;
                c.delay = Delay::Exponential(1.0);
            };
            let down = case.clone().down(&[3, 4]).config(delays);
            assert_eq!(down.simulate().well().summary.entries, 12, "seed {seed}");
            let crash = case.clone().config(delays).fault("crash:3@7.5").fault("crash:4@2");
            assert_eq!(crash.simulate().well().summary.entries, 12, "seed {seed}");
        }
        let majority = case.down(&[2, 3, 4]).simulate();
        assert_eq!(majority.waiting, [ProcessId(0), ProcessId(1)]);
    }
}

#[test]
fn random_delays_and_any_order_do_no_harm() {
    for seed in 0..200 {
        for (votes, failing) in [("equal", "exact"), ("equal", "eager"), ("3,1,1,2,0,1", "exact")] {
            let case = Case::<Voting>::complete(6).set("votes", votes).set("failing", failing);
            let case = case.requests(&[3; 6]).no_fifo().config(|c| {
                c.seed = seed;
                c.delay = Delay::Exponential(1.0);
                c.hold = Pace::Exponential(1.0);
            });
            let seen = case.simulate();
            assert_eq!(seen.well().summary.entries, 18, "votes {votes}, seed {seed}");
            crate::messages_are_within_bounds(&case, &seen);
        }
    }
}

#[test]
fn votes_that_are_none_are_refused() {
    for votes in ["1,1", "0,0,0", "1,x,1"] {
        let case = three([1, 1, 1]).set("votes", votes);
        assert!(Voting::check_setup(&case.setup).is_err(), "{votes}");
    }
}
