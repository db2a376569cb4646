use konklave_algorithms::Algorithm;
use konklave_algorithms::mutex::maekawa::Maekawa;
use konklave_algorithms::mutex::sanders::Sanders;
use konklave_process::ProcessId;
use konklave_sim::{Delay, Pace};
use konklave_testkit::Case;

use crate::lock_schedule::LockSchedule;

/// The new algorithm of the sources: 0 and 1 ask each other; 2 and 3 ask and inform both.
fn new(requests: [u32; 4]) -> Case<Sanders> {
    instance("new", 4).requests(&requests)
}

/// As in the sources, only requests move the clocks: fewer states.
fn instance(structure: &str, n: usize) -> Case<Sanders> {
    Case::complete(n).set("structure", structure).set("clock", "requests")
}

#[test]
fn every_run_of_the_new_algorithm_is_right_in_any_order_of_messages() {
    new([1, 1, 1, 1]).fenced().check().exhausted(37_987);
    new([1, 1, 1, 1]).fenced().no_fifo().check().exhausted(61_924);
    new([1, 1, 1, 1]).fenced().set("clock", "full").check().exhausted(105_426);
    new([1, 1, 1, 1]).fenced().set("clock", "full").no_fifo().check().exhausted(193_488);
}

#[test]
fn runs_of_the_new_algorithm_cost_what_the_table_says() {
    for (requests, range) in [
        ([1, 0, 0, 0], (2, 2)),
        ([0, 0, 1, 0], (6, 6)),
        ([1, 1, 0, 0], (4, 5)),
        ([0, 0, 1, 1], (12, 16)),
        ([1, 0, 1, 1], (14, 24)),
        ([1, 1, 1, 1], (16, 27)),
    ] {
        assert_eq!(new(requests).counting().check().messages, Some(range), "{requests:?}");
    }
    assert_eq!(new([1, 1, 1, 1]).counting().no_fifo().check().messages, Some((16, 27)));
}

#[test]
fn each_correction_of_deadlocks_is_needed_with_one_request_each() {
    for (mistake, length) in
        [("no-deadlock-handling", 4), ("no-displaced-failed", 15), ("yield-forgotten", 17)]
    {
        new([1, 1, 1, 1]).mistake(mistake).check().violated("deadlock", length);
        new([1, 1, 1, 1]).mistake(mistake).no_fifo().check().violated("deadlock", length);
    }
    let case = instance("ricart-agrawala", 3).mistake("no-deadlock-handling");
    case.check().violated("deadlock", 8);
}

#[test]
fn to_inform_one_that_is_not_asked_lets_two_in() {
    let case = instance("0:0/0,2;1:1/1,2;2:2", 3).requests(&[1, 1, 0]);
    let error = Sanders::check_setup(&case.setup).unwrap_err();
    assert!(error.0.contains("p0 informs p2 but does not ask it"), "{error}");
    case.mistake("inform-unasked").check().violated("mutual exclusion", 2);
    instance("0:0,2;1:1,2;2:2", 3).requests(&[1, 1, 0]).check().exhausted(45);
}

#[test]
fn every_run_of_the_classic_instances_is_right() {
    for (structure, requests, fifo, not_fifo) in [
        ("ricart-agrawala", [2, 1, 1], 17_753, 63_288),
        ("central", [1, 1, 1], 178, 230),
        ("central", [2, 1, 1], 339, 459),
        ("lamport", [1, 1, 1], 15_231, 41_113),
    ] {
        let case = instance(structure, 3).requests(&requests).fenced();
        case.check().exhausted(fifo);
        case.no_fifo().check().exhausted(not_fifo);
    }
}

#[test]
fn messages_of_the_protocol_keep_order_by_a_clock_that_all_of_them_carry() {
    let case = instance("ricart-agrawala", 3).requests(&[2, 1, 1]).ordered();
    case.check().violated("happened-before order", 15);
    case.clone().no_fifo().check().violated("happened-before order", 15);
    let full = case.set("clock", "full");
    full.check().exhausted(29_449);
    full.no_fifo().check().exhausted(119_259);
    let new = new([1, 1, 1, 1]).ordered();
    new.check().violated("happened-before order", 22);
    new.set("clock", "full").check().exhausted(183_495);
}

#[test]
fn order_is_lost_with_any_clock_where_two_can_do_without_each_other() {
    for clock in ["full", "requests"] {
        let case = instance("central", 3).set("clock", clock).ordered();
        case.clone().requests(&[2, 1, 1]).check().exhausted(538);
        case.app_messages(1).check().violated("happened-before order", 6);
        let case = new([1, 1, 1, 1]).set("clock", clock).ordered().app_messages(1);
        case.check().violated("happened-before order", 8);
    }
}

#[test]
fn the_classic_instances_cost_what_the_classics_do_and_sometimes_a_failure_more() {
    let range = |structure: &str| instance(structure, 3).counting().check().messages.unwrap();
    assert_eq!(range("ricart-agrawala"), (12, 16));
    assert_eq!(range("central"), (6, 8));
    assert_eq!(range("lamport"), (18, 26));
    for n in [1, 2, 3, 10, 40] {
        for (structure, each) in
            [("central", 3), ("ricart-agrawala", 2 * (n - 1)), ("lamport", 3 * (n - 1))]
        {
            let alone: Vec<u32> = (0..n as u32).map(|i| u32::from(i + 1 == n as u32)).collect();
            let sent = instance(structure, n).requests(&alone).simulate().well().sent;
            assert_eq!(sent, if n > 1 { each as u64 } else { 0 }, "{structure}, n = {n}");
        }
    }
}

#[test]
fn maekawa_is_an_instance_message_by_message() {
    for seed in 0..50 {
        let run = |c: &mut konklave_sim::Config| {
            c.seed = seed;
            c.delay = Delay::Uniform(0.1, 2.0);
        };
        let sanders = instance("maekawa", 9).requests(&[3; 9]).config(run).simulate();
        let maekawa = Case::<Maekawa>::complete(9).set("clock", "requests").requests(&[3; 9]);
        let maekawa = maekawa.config(run).simulate();
        assert_eq!((&sanders.well().kinds, sanders.time), (&maekawa.well().kinds, maekawa.time));
    }
}

/// From the exit of one to the entry of another whose requests have arrived everywhere.
#[test]
fn the_delay_matrix_is_that_of_the_sources() {
    for leaver in 0..4 {
        for entrant in (0..4).filter(|p| *p != leaver) {
            let mut run = LockSchedule::new(&new([1, 1, 1, 1]));
            run.ask(leaver);
            while run.round() {}
            run.ask(entrant);
            while run.round() {}
            assert!(run.inside.contains(ProcessId(leaver)));
            run.leave(leaver);
            let mut rounds = 0;
            while !run.inside.contains(ProcessId(entrant)) {
                assert!(run.round());
                rounds += 1;
            }
            let delay = if leaver < 2 { 1 } else { 2 };
            assert_eq!(rounds, delay, "from {leaver} to {entrant}");
        }
    }
}

/// T-M3: 3 gives the lock of 1 back because 0 let it fail; then 0 locks itself for it and inquires.
#[test]
fn schedule_3_a_forgotten_yield() {
    let schedule = "ask:0 ask:2 ask:3 0>1 ask:1 1>0 1>0 0>1 3>0 leave:0 0>3 2>0 3>1 1>3 2>1 1>3 \
                    0>3 0>3 3>1 1>2";
    let case = new([1, 1, 1, 1]);
    LockSchedule::new(&case).play(schedule).finish().all_well();
    let mut run = LockSchedule::new(&case.mistake("yield-forgotten"));
    assert_eq!(run.play(schedule).finish().waiting_ids(), [1, 2, 3]);
}

#[test]
fn a_copy_of_any_message_does_no_harm_in_any_order() {
    new([1, 0, 1, 1]).mishaps(0, 1).fenced().check().exhausted(51_335);
    new([1, 0, 1, 1]).mishaps(0, 1).fenced().no_fifo().check().exhausted(91_483);
    let case = instance("ricart-agrawala", 3).requests(&[2, 1, 0]).mishaps(0, 1);
    case.no_fifo().check().exhausted(12_737);
}

#[test]
fn many_copies_do_no_harm() {
    let structures = ["new", "central", "ricart-agrawala", "lamport", "maekawa"];
    crate::many_copies_do_no_harm(structures.map(|structure| instance(structure, 6)));
}

#[test]
fn random_delays_and_any_order_do_no_harm() {
    let structures = ["new", "central", "ricart-agrawala", "lamport", "maekawa"];
    for seed in 0..200 {
        for structure in structures {
            let case = instance(structure, 6).requests(&[3; 6]).no_fifo().config(|c| {
                c.seed = seed;
                c.delay = Delay::Exponential(1.0);
                c.hold = Pace::Exponential(1.0);
            });
            let seen = case.simulate();
            assert_eq!(seen.well().summary.entries, 18, "{structure}, seed {seed}");
            crate::messages_are_within_bounds(&case, &seen);
        }
    }
}

#[test]
fn structures_of_any_size_and_any_ids_work() {
    for structure in ["new", "central", "ricart-agrawala", "lamport", "maekawa"] {
        for n in [1, 2, 3, 5, 30] {
            let ids: Vec<u32> = (0..n).map(|i| (i * 37 + 11) % 101).collect();
            let case = instance(structure, n as usize).ids(&ids);
            assert_eq!(
                case.simulate().well().summary.entries,
                u64::from(n),
                "{structure}, n = {n}"
            );
        }
    }
    let requests: Vec<u32> = (0..10_000).map(|i| u32::from(i % 10 == 0)).collect();
    for structure in ["new", "central"] {
        let seen = instance(structure, 10_000).requests(&requests).simulate();
        assert_eq!(seen.well().summary.entries, 1000);
    }
}
