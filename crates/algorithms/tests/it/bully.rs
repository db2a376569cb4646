use konklave_algorithms::Algorithm;
use konklave_algorithms::election::bully::Bully;
use konklave_algorithms::election::bully::hardened::Hardened;
use konklave_process::{ProcessId, Rng};
use konklave_sim::{Delay, Ending, Pace};
use konklave_testkit::{Case, Seen};

/// n processes, the highest down from the start; `detectors` are the processes that start an election.
fn headless(n: usize, detectors: &[u32]) -> Case<Bully> {
    Case::complete(n).down(&[n as u32 - 1]).initiators(detectors)
}

fn hardened(case: &Case<Bully>) -> Case<Hardened> {
    case.clone().set("mode", "hardened").of()
}

trait Follower {
    fn coordinator(&self) -> Option<ProcessId>;
}

impl Follower for Bully {
    fn coordinator(&self) -> Option<ProcessId> {
        self.coordinator()
    }
}

impl Follower for Hardened {
    fn coordinator(&self) -> Option<ProcessId> {
        self.coordinator()
    }
}

/// The leader that each process follows in the end.
fn followed<P: Algorithm + Follower>(seen: &Seen<P>) -> Vec<Option<u32>> {
    seen.processes.iter().map(|p| p.coordinator().map(|p| p.0)).collect()
}

#[test]
fn one_detector_costs_what_the_formula_says() {
    for n in 2..=12 {
        let mut total = 0;
        for i in 1..n {
            let seen = headless(n as usize, &[i - 1]).simulate();
            let (n, above) = (u64::from(n), u64::from(n - i));
            assert_eq!(seen.well().summary.leader, Some(ProcessId(n as u32 - 2)));
            assert_eq!(seen.sent, above * above + n - 2, "n = {n}, i = {i}");
            assert_eq!(seen.kind("Election"), above * (above + 1) / 2);
            assert_eq!(seen.kind("Answer"), above * (above - 1) / 2);
            assert_eq!(seen.kind("Coordinator"), n - 2);
            let hardened = hardened(&headless(n as usize, &[i - 1])).simulate();
            assert_eq!(hardened.well().sent, seen.sent + 1, "it tells the highest, too");
            total += seen.sent;
        }
        // Best n − 1, worst n² − n − 1, and the average of the formula.
        let sent = |i| headless(n as usize, &[i]).simulate().sent;
        assert_eq!((sent(n - 2), sent(0)), (u64::from(n) - 1, u64::from(n * n - n - 1)));
        let n = f64::from(n);
        let average = n * (2.0 * n - 1.0) / 6.0 + n - 2.0;
        assert!((total as f64 / (n - 1.0) - average).abs() < 1e-9, "n = {n}");
    }
}

#[test]
fn it_takes_a_timeout_and_two_delays() {
    for timeout in [3, 5, 20] {
        let seen = headless(6, &[0]).set("timeout", timeout).simulate();
        assert_eq!(seen.well().summary.time_to_all, Some(f64::from(timeout) + 2.0));
    }
}

#[test]
fn in_every_synchronous_run_one_detector_costs_the_same() {
    for n in 2..=4 {
        for i in 0..n - 1 {
            // No process crashes, so none needs the second timeout; it would only add to the count.
            let case = headless(n as usize, &[i]).mistake("no-second-timeout").counting();
            let above = n - 1 - i;
            let exact = above * above + n - 2;
            let found = case.clone().synchronous().check();
            assert_eq!((found.verdict, found.messages), ("exhausted", Some((exact, exact))));
            let found = hardened(&case).synchronous().check();
            assert_eq!(
                (found.verdict, found.messages),
                ("exhausted", Some((exact + 1, exact + 1)))
            );
        }
    }
}

#[test]
fn a_timer_that_fires_too_early_reopens_the_election() {
    // As many messages as in the untimed exploration of the specification.
    for (detectors, most) in [(&[0][..], (11, 14)), (&[0, 1], (6, 20)), (&[0, 1, 2], (3, 20))] {
        let case = headless(4, detectors).mistake("no-second-timeout").counting();
        let case = case.almost_synchronous(1).judge(&["agreement", "live leader", "deadlock"]);
        let found = case.check();
        assert_eq!((found.verdict, found.messages), ("exhausted", Some(most)), "{found:?}");
    }
}

#[test]
fn a_late_election_reopens_a_textbook_election_but_not_a_hardened_one() {
    let case = headless(4, &[0]).fault("delay:0>2/Election+20");
    assert_eq!(case.simulate().well().sent, 11 + 3);
    assert_eq!(hardened(&case).simulate().well().sent, 11 + 1);
}

#[test]
fn without_the_guard_the_messages_grow_exponentially() {
    for n in 3..=12u32 {
        let case = headless(n as usize, &[0]).mistake("no-guard");
        let seen = case.simulate();
        let kinds = ["Election", "Answer", "Coordinator"].map(|kind| seen.well().kind(kind));
        let coordinator = (1 << (n - 3)) * (u64::from(n) - 2);
        assert_eq!(kinds, [(1 << (n - 1)) - 1, (1 << (n - 2)) - 1, coordinator], "n = {n}");
        let bound = u64::from(n * n - n - 1);
        assert_eq!(seen.sent > bound, n > 3, "n = {n}: {}", seen.sent);
        if n == 10 {
            assert_eq!((seen.sent, bound), (1790, 89));
        }
    }
}

#[test]
fn without_the_second_timeout_an_answer_may_be_the_last_word() {
    let case = headless(3, &[0]).crashes(1, 0).synchronous().judge(&["deadlock"]);
    case.check().exhausted(64);
    case.mistake("no-second-timeout").check().violated("deadlock", 7);
}

#[test]
fn every_synchronous_run_is_right() {
    let three = Case::<Bully>::complete(3).synchronous();
    three.check().exhausted(992);
    three.clone().no_fifo().check().exhausted(1368);
    three.clone().crashes(1, 0).check().exhausted(7085);
    three.clone().requests(&[2, 1, 1]).check().exhausted(11_197);
    hardened(&three).check().exhausted(321);
    hardened(&three).no_fifo().check().exhausted(875);
    hardened(&three).crashes(1, 0).check().exhausted(2743);
    hardened(&three).crashes(2, 0).check().exhausted(5266);
    hardened(&three).requests(&[2, 2, 2]).check().exhausted(7838);
}

#[test]
fn every_synchronous_run_of_four_with_a_crash_is_right() {
    let four = headless(4, &[0, 1, 2]).crashes(1, 0).synchronous();
    four.check().exhausted(18_513);
    hardened(&four).check().exhausted(22_286);
    hardened(&four).no_fifo().check().exhausted(94_958);
}

#[test]
fn every_synchronous_run_of_four_with_a_crash_of_anyone_is_right() {
    let four = Case::<Bully>::complete(4).crashes(1, 0).synchronous();
    for (starter, textbook, reigns) in [(1, 10_099, 9700), (2, 1132, 1141), (3, 991, 995)] {
        four.clone().initiators(&[starter]).check().exhausted(textbook);
        hardened(&four).initiators(&[starter]).check().exhausted(reigns);
    }
    if crate::long() {
        four.clone().initiators(&[0]).check().exhausted(792_929);
        hardened(&four).initiators(&[0]).check().exhausted(392_147);
    }
}

#[test]
fn hardened_it_survives_restarts_wrong_timers_and_duplicates() {
    let three = hardened(&Case::complete(3));
    three.clone().crashes(1, 1).synchronous().check().exhausted(47_510);
    three.clone().crashes(1, 1).initiators(&[1]).almost_synchronous(1).check().exhausted(96_357);
    three.clone().almost_synchronous(2).check().exhausted(138_027);
    three.clone().crashes(1, 0).almost_synchronous(1).check().exhausted(52_867);
    three.clone().mishaps(0, 2).synchronous().check().exhausted(9765);
    hardened(&Case::complete(4)).synchronous().check().exhausted(307_726);
}

#[test]
fn b1_a_late_message_of_a_dead_coordinator() {
    // 2 wins and crashes; its COORDINATOR reaches 1 only after 1 has announced itself.
    let case = headless(4, &[0]).crashes(1, 0).judge(&["agreement", "live leader"]);
    let case = case.almost_synchronous(2);
    case.check().violated("agreement", 15);
    hardened(&headless(4, &[0])).crashes(1, 0).almost_synchronous(1).check().exhausted(29_188);
    // The same as a story, without a report of the crash by a detector.
    let story = headless(4, &[0])
        .fault("delay:2>0/Coordinator+5")
        .fault("delay:2>1/Coordinator+30")
        .fault("crash:2@6.5")
        .config(|c| c.detect_after = None);
    let seen = story.simulate();
    assert_eq!(followed(&seen)[..2], [Some(1), Some(2)], "0 believes 1, and 1 a dead one");
    assert_eq!(seen.violations.len(), 1, "{:?}", seen.violations);
    // If the leader sends a regular reminder, its death is noticed.
    let seen = hardened(&story).set("ping", 10).config(|c| c.time_limit = 300.0).simulate();
    assert_eq!(followed(&seen)[..2], [Some(1), Some(1)]);
}

#[test]
fn b2_a_restart_during_an_election() {
    let case = Case::<Bully>::complete(3).initiators(&[1]).crashes(1, 1).synchronous();
    case.clone().judge(&["agreement"]).check().violated("agreement", 13);
    case.clone().check().violated("one leader at a time", 8);
    hardened(&case).check().exhausted(2957);
    // The story: 0 takes 2's word, then 1's; 1 takes 2's.
    let story = headless(3, &[0]).fault("restart:2@6.5").fault("delay:2>1/Coordinator+2");
    let story = story.fault("delay:1>0/Coordinator+1").config(|c| c.detect_after = None);
    let seen = story.simulate();
    assert_eq!(followed(&seen), [Some(1), Some(2), Some(2)]);
    let seen = hardened(&story).simulate();
    assert_eq!(followed(seen.well()), [Some(2); 3]);
}

#[test]
fn b3_a_false_suspicion_makes_two_coordinators() {
    let case = Case::<Bully>::complete(3).initiators(&[0]);
    case.clone().almost_synchronous(1).check().violated("one leader at a time", 3);
    // All are well and follow 2; 0 suspects it, and the answers are slow.
    let story = case.fault("suspect:0>2@20").fault("delay:1>0/Answer#2+10");
    let story = story.fault("delay:2>0/Answer#2+10");
    let seen = story.simulate();
    assert_eq!(seen.violations.len(), 1);
    assert!(seen.violations[0].starts_with("one leader at a time"), "{:?}", seen.violations);
    // Hardened, the incumbent answers for itself, in a new reign.
    let seen = hardened(&story).simulate();
    assert_eq!((followed(seen.well()), seen.summary.elections), (vec![Some(2); 3], 2));
}

#[test]
fn b4_a_partition_leaves_two_coordinators_unless_they_remind_everyone() {
    let story = Case::<Bully>::complete(4)
        .initiators(&[0])
        .fault("partition:0,1|2,3@20-60")
        .fault("suspect:0>3@25")
        .fault("suspect:1>3@25");
    let seen = story.simulate();
    assert_eq!(followed(&seen), [Some(1), Some(1), Some(3), Some(3)]);
    let pinged = hardened(&story).set("ping", 10).config(|c| c.time_limit = 40.0);
    assert_eq!(followed(&pinged.simulate()), [Some(1), Some(1), Some(3), Some(3)]);
    let seen = pinged.config(|c| c.time_limit = 200.0).simulate();
    assert_eq!((followed(seen.well()), seen.ending), (vec![Some(3); 4], Ending::CutOff));
}

#[test]
fn b5_a_flapping_highest_deposes_the_incumbent_each_time() {
    for n in [2, 5, 9] {
        let top = n as u32 - 1;
        let mut story = Case::<Bully>::complete(n).down(&[top]).initiators(&[0]);
        for k in 0..4 {
            story = story.fault(&format!("restart:{top}@{}", 50 * k + 40));
            story = story.fault(&format!("crash:{top}@{}", 50 * k + 60));
        }
        let story = story.fault(&format!("restart:{top}@300")).config(|c| c.detect_after = None);
        let (seen, first) = (story.simulate(), headless(n, &[0]).simulate().sent);
        assert_eq!(seen.sent - first, 5 * (n as u64 - 1), "it only announces itself");
        assert_eq!((seen.summary.elections, seen.summary.leader), (6, Some(ProcessId(top))));
        // In the hardened form, a restarted process may announce an old reign; the others correct it.
        let seen = hardened(&story).simulate();
        assert_eq!(followed(seen.well()), vec![Some(top); n]);
    }
}

#[test]
fn the_smallest_and_large_groups_work() {
    let (alone, two) = (Case::<Bully>::complete(1), Case::<Bully>::complete(2));
    assert_eq!(alone.simulate().well().sent, 0);
    assert_eq!(hardened(&alone).simulate().well().sent, 0);
    assert_eq!(two.simulate().well().summary.leader, Some(ProcessId(1)));
    assert_eq!(hardened(&two).simulate().well().summary.leader, Some(ProcessId(1)));
    assert_eq!(headless(300, &[0]).simulate().well().sent, 300 * 300 - 300 - 1);
    let many = headless(100_000, &[99_998]);
    assert_eq!(many.simulate().well().sent, 99_999);
    assert_eq!(hardened(&many).simulate().well().sent, 100_000);
}

#[test]
fn ids_of_any_kind_in_any_order_will_do() {
    let case = Case::<Bully>::complete(4).ids(&[70, 12, 999, 31]).down(&[999]).initiators(&[12]);
    let seen = case.simulate();
    assert_eq!((seen.well().sent, seen.summary.leader), (11, Some(ProcessId(70))));
}

#[test]
fn crashes_within_the_time_bounds_do_no_harm() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let n = 2 + rng.below(8);
        let mut case = Case::<Bully>::complete(n as usize).config(|c| {
            c.seed = seed;
            c.delay = Delay::Uniform(0.1, 2.0);
            c.think = Pace::Exponential(10.0);
            c.fifo = seed % 2 == 0;
        });
        for _ in 0..rng.below(n) {
            case = case.fault(&format!("crash:{}@{}", rng.below(n), rng.below(100)));
        }
        case.simulate().well();
        hardened(&case).simulate().well();
    }
}

#[test]
fn hardened_and_reminded_all_follow_the_highest_in_the_end() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let n = 2 + rng.below(5);
        let mut case = hardened(&Case::complete(n as usize)).set("ping", 10).config(|c| {
            c.seed = seed;
            c.delay = Delay::Exponential(1.0);
            c.fifo = false;
            c.detect_after = None;
            c.time_limit = 600.0;
        });
        for _ in 0..4 {
            let (p, at) = (rng.below(n), rng.below(200));
            case = match rng.below(3) {
                0 => case.fault(&format!("partition:{p}@{at}-{}", at + 50)),
                1 => case.fault(&format!("pause:{p}@{at}-{}", at + 30)),
                _ => case
                    .fault(&format!("crash:{p}@{at}"))
                    .fault(&format!("restart:{p}@{}", at + 30)),
            };
        }
        assert_eq!(followed(case.simulate().well()), vec![Some(n - 1); n as usize], "seed {seed}");
    }
}

/// All start at once, the highest stands first in node order, so that its announcement is there
/// first; each ELECTION that comes after it re-opens the election, and each announcement after that
/// lets the next do so. The guard cannot help: it counts only while an election is open. Numbered
/// reigns do: a leader answers for itself.
#[test]
fn late_elections_reopen_a_textbook_election_over_and_over() {
    let descending = |n: u32| {
        let ids: Vec<u32> = (0..n).rev().collect();
        Case::<Bully>::complete(n as usize).ids(&ids)
    };
    let exponential = [16, 41, 90, 180, 342, 628, 1128, 1995, 3490, 6056, 10_444];
    assert!(exponential.windows(2).all(|w| 10 * w[1] > 17 * w[0]));
    for (n, expected) in (3..).zip(exponential) {
        assert_eq!(descending(n).simulate().sent, expected, "n = {n}");
        let sent = hardened(&descending(n)).simulate().sent;
        assert_eq!(sent, u64::from(2 * n * n - 2 * n - 1), "n = {n}");
    }
}
