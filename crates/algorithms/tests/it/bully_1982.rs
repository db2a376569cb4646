use konklave_algorithms::election::bully_1982::Bully1982;
use konklave_process::{ProcessId, Rng};
use konklave_sim::{Delay, Ending};
use konklave_testkit::{Case, Seen};

fn for_time(n: usize, time: f64) -> Case<Bully1982> {
    Case::complete(n).config(|c| c.time_limit = time)
}

/// No process checks the others from time to time, so the run ends.
fn once(n: usize) -> Case<Bully1982> {
    Case::complete(n).set("check", 0)
}

/// The leader of each process in the end.
fn followed(seen: &Seen<Bully1982>) -> Vec<Option<u32>> {
    seen.processes.iter().map(|p| p.coordinator().map(|p| p.0)).collect()
}

#[test]
fn the_highest_makes_three_calls_to_each_other() {
    for n in [2, 3, 5, 20, 300] {
        let top = n as u32 - 1;
        let seen = once(n).initiators(&[top]).simulate();
        let others = u64::from(top);
        assert_eq!((seen.well().sent, seen.ending), (6 * others, Ending::Quiet));
        assert_eq!((seen.kind("Call"), seen.kind("Return")), (3 * others, 3 * others));
        assert_eq!(followed(&seen), vec![Some(top); n]);
        assert_eq!(seen.summary.time_to_all, Some(4.0 * f64::from(top) - 1.0));
    }
}

#[test]
fn a_dead_one_costs_one_call_and_a_timeout() {
    for n in [2, 3, 6] {
        let second = n as u32 - 2;
        let seen = once(n).down(&[n as u32 - 1]).initiators(&[second]).simulate();
        assert_eq!(seen.well().sent, 1 + 6 * u64::from(second), "n = {n}");
        assert_eq!(seen.summary.leader, Some(ProcessId(second)));
    }
    let seen = once(4).down(&[1]).initiators(&[3]).simulate();
    assert_eq!(seen.well().sent, 1 + 6 * 2);
}

#[test]
fn a_lower_one_leaves_it_to_those_above_who_miss_the_coordinator_themselves() {
    let seen = once(4).initiators(&[0]).simulate();
    assert_eq!((seen.sent, followed(&seen)), (2, vec![None; 4]), "nobody else was told");
    let seen = for_time(4, 400.0).initiators(&[0]).simulate();
    assert_eq!(followed(seen.well()), [Some(3); 4]);
}

#[test]
fn in_peace_a_check_costs_two_messages_for_each_other() {
    // The check lasts 2T for each other, and the next begins 20T later.
    let sent = |time| for_time(6, time).initiators(&[5]).simulate().well().sent;
    assert_eq!((sent(30.0 * 9.0 + 29.0), sent(30.0 * 10.0 + 29.0)), (30 + 9 * 10, 30 + 10 * 10));
}

#[test]
fn every_synchronous_run_has_one_leader_at_a_time_that_all_follow() {
    let judge = ["one leader at a time", "agreement", "live leader"];
    once(2).crashes(1, 1).synchronous().judge(&judge).check().exhausted(829);
    once(3).synchronous().judge(&judge).check().exhausted(246);
    once(3).crashes(1, 0).synchronous().judge(&judge).check().exhausted(3092);
    let restart = once(3).crashes(1, 1).synchronous().judge(&judge);
    restart.check().exhausted(40_971);
    restart.no_fifo().check().exhausted(102_169);
    once(4).synchronous().judge(&judge).check().exhausted(1854);
    let four = once(4).initiators(&[2, 3]).crashes(1, 1).synchronous();
    four.judge(&judge).check().exhausted(75_771);
}

#[test]
fn with_its_watches_on_there_is_still_one_leader_at_a_time() {
    let case = |n| Case::<Bully1982>::complete(n).synchronous().judge(&["one leader at a time"]);
    case(2).crashes(1, 1).check().exhausted(1684);
    case(3).check().exhausted(673);
    case(3).crashes(1, 0).check().exhausted(7591);
    case(3).crashes(1, 1).check().exhausted(92_305);
}

#[test]
fn halted_process_must_stop_its_own_election() {
    let case =
        once(3).initiators(&[1]).crashes(1, 1).synchronous().judge(&["one leader at a time"]);
    case.check().exhausted(899);
    case.mistake("keeps-running").check().violated("one leader at a time", 14);
}

#[test]
fn b2_who_was_halted_last_by_another_takes_no_coordinator() {
    let case = once(3).initiators(&[1]).crashes(1, 1).synchronous().judge(&["agreement"]);
    case.check().exhausted(899);
    case.mistake("no-halted-by").check().violated("agreement", 26);
    // The story of the slides' form: 2 comes back while 1 elects itself.
    for at in 0..60 {
        let story = for_time(3, 600.0).down(&[2]).initiators(&[0, 1]);
        let story = story.fault(&format!("restart:2@{}", f64::from(at) * 0.5));
        assert_eq!(followed(story.simulate().well()), [Some(2); 3], "restart at {at}/2");
    }
}

#[test]
fn b1_and_b3_timers_that_fire_too_early_deceive_it() {
    let case = once(2).judge(&["one leader at a time"]).almost_synchronous(1);
    case.check().violated("one leader at a time", 5);
}

#[test]
fn b4_after_a_partition_both_sides_are_normal_and_nobody_looks_further() {
    let story = for_time(4, 100.0).initiators(&[3]).fault("partition:0,1|2,3@100-400");
    assert_eq!(followed(story.simulate().well()), [Some(3); 4]);
    for time in [400.0, 2000.0] {
        let seen = story.clone().config(|c| c.time_limit = time).simulate();
        assert_eq!(followed(&seen), [Some(1), Some(1), Some(3), Some(3)], "at {time}");
        assert!(seen.violations[0].starts_with("one leader at a time"), "{:?}", seen.violations);
    }
}

#[test]
fn b5_a_flapping_highest_halts_all_each_time() {
    let mut story = for_time(4, 1000.0).down(&[3]).initiators(&[2]);
    for k in 0..4 {
        story = story.fault(&format!("restart:3@{}", 150 * k + 100));
        story = story.fault(&format!("crash:3@{}", 150 * k + 150));
    }
    let seen = story.simulate();
    assert_eq!(followed(seen.well())[..3], [Some(2); 3]);
    assert!(seen.summary.elections >= 9, "{}", seen.summary.elections);
}

#[test]
fn the_smallest_groups_any_ids_and_requests_again_work() {
    let alone = Case::<Bully1982>::complete(1).simulate();
    assert_eq!((alone.well().sent, alone.ending), (0, Ending::Quiet));
    let ids = for_time(3, 300.0).ids(&[70, 9, 12]).simulate();
    assert_eq!(followed(ids.well()), [Some(70); 3]);
    let again = for_time(3, 300.0).requests(&[3, 3, 3]).simulate();
    assert_eq!(followed(again.well()), [Some(2); 3]);
}

#[test]
fn after_crashes_and_restarts_all_follow_the_highest() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let n = 2 + rng.below(6);
        let mut case = for_time(n as usize, 3000.0).config(|c| {
            c.seed = seed;
            c.delay = Delay::Uniform(0.1, 2.0);
            c.detect_after = None;
            c.fifo = seed % 2 == 0;
        });
        let (mut up, mut at) = (vec![true; n as usize], 0);
        for _ in 0..rng.below(8) {
            let p = rng.below(n);
            at += 1 + rng.below(100);
            let others = up.iter().enumerate().any(|(q, up)| *up && q != p as usize);
            if up[p as usize] && !others {
                continue;
            }
            let what = if up[p as usize] { "crash" } else { "restart" };
            case = case.fault(&format!("{what}:{p}@{at}"));
            up[p as usize] = !up[p as usize];
        }
        let seen = case.simulate();
        let highest = up.iter().rposition(|up| *up).map(|p| p as u32);
        for (p, leader) in followed(seen.well()).iter().enumerate().filter(|(p, _)| up[*p]) {
            assert_eq!(*leader, highest, "seed {seed}, {p}");
        }
    }
}
