//! Quorums that are paths of a tree lead around arbiters that crash, also while one waits for them.

use konklave_algorithms::mutex::maekawa::Maekawa;
use konklave_process::Rng;
use konklave_sim::{Delay, Pace};
use konklave_testkit::Case;

fn tree(n: usize) -> Case<Maekawa> {
    Case::complete(n).set("quorums", "tree").set("clock", "requests")
}

#[test]
fn after_any_crash_one_process_is_inside_and_no_message_is_unexpected() {
    let judged = ["mutual exclusion", "expected inputs", "growing fences"];
    let case = |requests: &[u32]| tree(3).requests(requests).judge(&judged).crashes(1, 0);
    let found = [
        case(&[0, 1, 1]),
        case(&[0, 1, 1]).no_fifo(),
        case(&[1, 1, 0]),
        case(&[1, 1, 1]),
        case(&[0, 2, 1]),
        case(&[0, 2, 1]).no_fifo(),
    ]
    .map(|case| case.check());
    assert!(found.iter().all(|found| found.verdict == "exhausted"), "{found:?}");
    assert_eq!(found.map(|found| found.states), [2021, 2670, 1558, 24_284, 6825, 17_546]);
}

#[test]
fn an_arbiter_that_crashes_at_any_step_holds_nobody_up() {
    for n in [3, 7, 12] {
        for seed in 0..20 {
            let mut rng = Rng::new(seed);
            let victim = rng.below(n as u32);
            let requests: Vec<u32> = (0..n as u32).map(|p| u32::from(p != victim) * 2).collect();
            let case = tree(n).requests(&requests).config(|c| {
                (c.seed, c.fifo) = (seed, seed % 2 == 0);
                (c.delay, c.hold) = (Delay::Uniform(0.2, 1.8), Pace::Constant(1.0));
            });
            let steps = case.simulate().steps;
            for step in (1..steps).step_by(1 + steps as usize / 40) {
                let seen = case.clone().fault(&format!("crash:{victim}@#{step}")).simulate();
                let wrong = (seen.violations.first(), seen.waiting.first());
                assert_eq!(wrong, (None, None), "n {n} seed {seed}: p{victim} after {step}");
                assert_eq!(seen.summary.entries, 2 * (n as u64 - 1));
            }
        }
    }
}

#[test]
fn a_wrong_suspicion_costs_messages_and_no_more() {
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let mut case = tree(7).requests(&[2; 7]).config(|c| {
            (c.seed, c.fifo) = (seed, seed % 2 == 0);
            (c.delay, c.hold) = (Delay::Exponential(1.0), Pace::Exponential(1.0));
        });
        for _ in 0..1 + rng.below(3) {
            let (who, whom, when) = (rng.below(7), rng.below(3), rng.below(60));
            if who != whom {
                case = case.fault(&format!("suspect:{who}>{whom}@{when}"));
            }
        }
        let seen = case.simulate();
        let wrong = (seen.violations.first(), seen.waiting.first());
        assert_eq!(wrong, (None, None), "seed {seed}");
        assert_eq!(seen.summary.entries, 14, "seed {seed}");
    }
}

#[test]
fn a_path_that_is_down_whole_stops_everyone() {
    let case = tree(7).requests(&[0, 0, 0, 0, 1, 1, 1]);
    let case = ["crash:0@0.1", "crash:1@0.1", "crash:3@0.1"].iter().fold(case, |c, f| c.fault(f));
    assert_eq!(case.simulate().waiting.len(), 3);
    // Any other two may go, be it two of three on a path.
    for (a, b) in [(0, 1), (1, 3), (0, 3), (0, 2), (1, 2)] {
        let case = tree(7).requests(&[0, 0, 0, 0, 1, 1, 1]);
        let case = [a, b].iter().fold(case, |c, p| c.fault(&format!("crash:{p}@0.1")));
        assert_eq!(case.simulate().waiting, [], "{a} and {b}");
    }
}
