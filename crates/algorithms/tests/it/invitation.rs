use konklave_algorithms::election::invitation::Invitation;
use konklave_process::Rng;
use konklave_sim::{Delay, Ending};
use konklave_testkit::{Case, Seen};

fn for_time(n: usize, time: f64) -> Case<Invitation> {
    Case::complete(n).config(|c| c.time_limit = time)
}

/// A small group in which a process invites no more after it has founded `max_count` groups.
fn small(n: usize, max_count: u32) -> Case<Invitation> {
    let mut case = Case::complete(n).set("max-count", max_count);
    case.options.detector = false;
    case.judge(&["one leader per epoch", "growing epochs"])
}

/// The leader of each process in the end.
fn followed(seen: &Seen<Invitation>) -> Vec<Option<u32>> {
    seen.processes.iter().map(|p| p.leader().map(|p| p.0)).collect()
}

/// All follow the same one.
#[track_caller]
fn agreed(seen: &Seen<Invitation>) -> u32 {
    let all = followed(seen);
    assert!(all[0].is_some() && all.iter().all(|leader| *leader == all[0]), "{all:?}");
    all[0].unwrap()
}

const MERGE: [&str; 5] = ["Invite", "Accept", "Accepted", "Ready", "Confirm"];

#[test]
fn at_first_all_check_and_the_highest_invites_all() {
    for n in [2, 3, 5, 20] {
        let seen = for_time(n, 38.0).simulate();
        let others = n as u64 - 1;
        assert_eq!(seen.well().kind("AreYouCoordinator"), n as u64 * others);
        assert_eq!(seen.kind("Coordinator"), n as u64 * others);
        assert_eq!(MERGE.map(|kind| seen.kind(kind)), [others; 5]);
        assert_eq!(seen.sent, (2 * n as u64 + 5) * others, "and nothing else");
        assert_eq!(followed(&seen), vec![Some(n as u32 - 1); n]);
    }
}

#[test]
fn two_groups_merge_with_five_messages_for_each_but_the_coordinator() {
    for (low, high) in [(1, 1), (2, 2), (1, 4), (5, 3)] {
        let n: usize = low + high;
        let sides: Vec<String> = (0..low).map(|p| p.to_string()).collect();
        let case = for_time(n, 90.0).fault(&format!("partition:{}@0-90", sides.join(",")));
        let apart = case.simulate();
        let mut leaders = vec![Some(low as u32 - 1); low];
        leaders.extend(vec![Some(n as u32 - 1); high]);
        assert_eq!(followed(&apart), leaders);
        let united = case.config(|c| c.time_limit = 200.0).simulate();
        agreed(united.well());
        for kind in MERGE {
            assert_eq!(
                united.kind(kind) - apart.kind(kind),
                n as u64 - 1,
                "{low} + {high}: {kind}"
            );
        }
    }
}

#[test]
fn in_peace_the_coordinator_checks_and_the_members_ask() {
    // A check takes 4 + 1 timeouts of 5T, a member asks 10T after each answer, which takes 2T.
    let (long, short) = (for_time(3, 3500.0).simulate(), for_time(3, 500.0).simulate());
    let more = |kind| long.kind(kind) - short.kind(kind);
    assert_eq!((more("AreYouCoordinator"), more("Coordinator")), (240, 240));
    assert_eq!((more("AreYouThere"), more("There")), (500, 500));
    assert_eq!(MERGE.map(more), [0; 5]);
}

#[test]
fn every_almost_synchronous_run_has_one_leader_per_group_number() {
    small(2, 3).crashes(1, 1).almost_synchronous(1).check().exhausted(8951);
    small(3, 2).almost_synchronous(1).check().exhausted(31_829);
    small(3, 2).crashes(1, 0).almost_synchronous(1).check().exhausted(95_570);
    small(3, 2).crashes(1, 1).synchronous().check().exhausted(58_896);
    small(3, 3).synchronous().check().exhausted(65_937);
    small(3, 2).mishaps(1, 1).synchronous().check().exhausted(259_024);
    small(3, 2).no_fifo().almost_synchronous(1).check().exhausted(30_905);
}

#[test]
fn i1_two_that_wait_equally_long_invite_each_other_for_ever() {
    for n in [2, 3, 8] {
        let case = for_time(n, 10_000.0);
        assert_eq!(case.simulate().well().summary.elections, n as u64 + 1);
        let seen = case.mistake("equal-waits").simulate();
        assert!(seen.violations[0].starts_with("agreement"), "{:?}", seen.violations);
        let everyone: Vec<Option<u32>> = (0..n as u32).map(Some).collect();
        assert_eq!(followed(&seen), everyone, "all are alone");
        assert!(seen.summary.elections > 200 * n as u64, "though they never gave up");
    }
}

#[test]
fn i2_a_count_that_is_not_saved_is_used_again() {
    let case = small(2, 2).crashes(1, 1).synchronous();
    case.check().exhausted(912);
    case.mistake("no-persist").check().violated("growing epochs", 3);
    // The story: a READY of the group that 1 founded before its crash is 39T late.
    let case = for_time(2, 78.0).no_fifo().fault("delay:1>0/Ready+39");
    let case = case.fault("crash:1@36").fault("restart:1@45");
    assert_eq!(followed(&case.simulate()), [None, None], "both are on the way to a new group");
    let seen = case.mistake("no-persist").simulate();
    assert_eq!(followed(&seen), [Some(1), None], "0 takes the old READY for the new one");
}

#[test]
fn a_wrong_suspicion_only_splits_the_group() {
    // Nothing from or to 2 for a while: it founds its own group, and is invited again.
    let case = for_time(3, 150.0).fault("partition:2@50-150");
    let seen = case.simulate();
    assert_eq!(followed(seen.well()), [Some(1), Some(1), Some(2)]);
    agreed(case.config(|c| c.time_limit = 300.0).simulate().well());
}

#[test]
fn a_dead_coordinator_is_missed() {
    let seen = for_time(4, 300.0).fault("crash:3@60").simulate();
    assert_eq!(followed(seen.well())[..3], [Some(2); 3]);
    let seen = for_time(4, 300.0).fault("crash:3@60").fault("restart:3@90").simulate();
    assert_eq!(agreed(seen.well()), 2, "who comes back is invited like any other");
}

#[test]
fn the_smallest_and_large_groups_work() {
    let alone = Case::<Invitation>::complete(1).simulate();
    assert_eq!((alone.well().sent, alone.ending), (0, Ending::Quiet));
    let many = for_time(500, 38.0).simulate();
    assert_eq!(followed(many.well()), vec![Some(499); 500]);
    let ids = for_time(3, 38.0).ids(&[70, 9, 12]).simulate();
    assert_eq!(followed(ids.well()), [Some(70); 3]);
}

#[test]
fn asked_to_elect_a_coordinator_checks_at_once() {
    let seen = for_time(2, 18.0).requests(&[2, 2]).simulate();
    assert_eq!(followed(seen.well()), [Some(1); 2]);
}

#[test]
fn group_number_has_one_leader_under_any_network() {
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let n = 1 + rng.below(6);
        let mut case = for_time(n as usize, 600.0).config(|c| {
            c.seed = seed;
            c.delay = Delay::Exponential(1.5);
            c.fifo = false;
            c.loss = 0.1;
            c.duplicate = 0.1;
        });
        for _ in 0..6 {
            let (p, q, at) = (rng.below(n), rng.below(n), rng.below(400));
            case = match rng.below(4) {
                0 => case.fault(&format!("partition:{p},{q}@{at}-{}", at + 50)),
                1 => case.fault(&format!("cut:{p}>{q}@{at}-{}", at + 70)),
                2 => case.fault(&format!("pause:{p}@{at}-{}", at + 20)),
                _ => case
                    .fault(&format!("crash:{p}@{at}"))
                    .fault(&format!("restart:{p}@{}.5", at + rng.below(30))),
            };
        }
        case.simulate().well();
    }
}

#[test]
fn when_the_faults_are_over_one_group_is_left() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let n = 2 + rng.below(5);
        let mut case = for_time(n as usize, 2000.0).config(|c| {
            c.seed = seed;
            c.delay = Delay::Uniform(0.1, 1.9);
        });
        for _ in 0..5 {
            let (p, at) = (rng.below(n), rng.below(300));
            case =
                case.fault(&format!("crash:{p}@{at}")).fault(&format!("restart:{p}@{}", at + 40));
            case = case.fault(&format!("partition:{p}@{}-{}", at + 60, at + 99));
        }
        agreed(case.simulate().well());
    }
}
