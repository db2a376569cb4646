//! Founding and forming: what they cost, what is explored, histories with faults.

use konklave_algorithms::group::forming::Forming;
use konklave_process::Rng;
use konklave_sim::Delay;
use konklave_testkit::Case;

use crate::long;
use crate::play::storm;

/// The properties that no crash, delay or wrong suspicion may break.
const SAFETY: &[&str] = &[
    "one group at a time",
    "grants before founding",
    "view agreement",
    "growing views",
    "self-inclusion",
    "expected inputs",
    "usage",
];

/// n processes; attempts of virtual synchrony are not repeated, since their numbers would grow without end.
fn calm(n: usize) -> Case<Forming> {
    Case::complete(n).requests(&vec![0; n]).set("retry", "off")
}

#[test]
fn founding_takes_four_delays() {
    for n in 1..=12 {
        let seen = calm(n).simulate();
        let time = if n == 1 { 0.0 } else { 4.0 };
        assert_eq!(seen.well().summary.all_time, Some(time), "n = {n}");
        assert_eq!((seen.summary.views, seen.summary.foundings), (1, 1), "n = {n}");
    }
}

/// Reports are repeated twice at most without news: a process that would wait for ever is a deadlock.
#[test]
fn every_order_of_crashes_and_restarts_is_explored() {
    let two = || calm(2).set("beats", 2).synchronous();
    two().crashes(1, 1).check().exhausted(1_269);
    two().crashes(2, 2).check().exhausted(29_888);
    two().set("grants", "outlive").crashes(2, 2).check().exhausted(52_775);
    two().set("alone", 0).crashes(2, 2).check().exhausted(109_847);
    two().crashes(1, 1).almost_synchronous(1).check().exhausted(9_736);
    calm(3).synchronous().check().exhausted(1_808);
    calm(3).set("founders", 2).set("beats", 1).synchronous().check().exhausted(51_547);
}

/// Without a record a process may have been in any view; one restart is explored.
#[test]
fn every_order_of_a_restart_without_memory_is_explored() {
    let mut case = calm(2).set("beats", 2).synchronous().crashes(1, 1);
    case.options.stable_storage = false;
    case.check().exhausted(1_963);
}

#[test]
fn no_history_has_two_groups() {
    for seed in 0..if long() { 10_000 } else { 150 } {
        let mut rng = Rng::new(seed);
        let founders = 1 + rng.below(3) as usize;
        let n = founders + rng.below(founders as u32) as usize;
        let (faults, up) = storm(&mut rng, n);
        let case = Case::<Forming>::complete(n).set("founders", founders).set("heartbeat", 2);
        let case = case.config(|c| {
            (c.seed, c.delay, c.time_limit) = (seed, Delay::Uniform(0.2, 1.8), 2000.0);
        });
        let case = faults.iter().fold(case, |case, fault| case.fault(fault)).judge(SAFETY);
        let seen = case.simulate();
        assert!(seen.violations.is_empty(), "seed {seed}: {:?}", seen.violations);
        if up.len() == n {
            let newest = seen.summary.last_view;
            let inside = |p: &Forming| Some(p.group().view().id) == newest && p.is_inside();
            assert!(seen.processes.iter().all(inside), "seed {seed} {faults:?}");
        }
    }
}

/// The mistakes that need so many events that not every order of them can be explored. With the mistake, a search breadth first
/// or random runs find a witness; without it, as many random runs find none.
#[test]
fn mistakes_of_larger_groups_are_caught() {
    let crowd = |n: usize, founders: u32, crashes: u8| {
        let case = calm(n).set("founders", founders).set("beats", 3).synchronous();
        case.crashes(crashes, crashes)
    };
    for mistake in ["volatile-promises", "promise-early"] {
        let found = crowd(3, 2, 1).mistake(mistake).check();
        assert_eq!((found.verdict, found.property), ("violated", Some("view agreement")));
    }
    let deadlocks = [
        ("keep-withdrawn", crowd(3, 2, 1)),
        ("keep-restarted", crowd(3, 2, 1)),
        ("insist", crowd(4, 3, 0)),
        ("own-generation", crowd(3, 2, 2)),
    ];
    for (mistake, case) in deadlocks {
        let found = case.clone().random_runs(20_000).mistake(mistake).check();
        assert_eq!((found.verdict, found.property), ("violated", Some("deadlock")), "{mistake}");
        let found = case.random_runs(if long() { 100_000 } else { 5_000 }).check();
        assert_eq!((found.verdict, found.property), ("bounded", None), "{mistake}: {found:?}");
    }
}
