use konklave_algorithms::election::tree_wave::TreeWave;
use konklave_process::{ProcessId, Rng, Topology};
use konklave_sim::{Delay, Ending};
use konklave_testkit::Case;

use crate::graphs::{long, subsets};

#[test]
fn the_count_is_exact_in_every_run_on_every_tree() {
    let mut cases = 0;
    for n in 1..=4u32 {
        for tree in Topology::all_trees(n as usize) {
            for initiators in subsets(n) {
                for fifo in [true, false] {
                    let case =
                        Case::<TreeWave>::on(tree.clone()).initiators(&initiators).counting();
                    let case = if fifo { case } else { case.no_fifo() };
                    let found = case.check();
                    assert_eq!(found.verdict, "exhausted", "{tree:?} {initiators:?} {found:?}");
                    let (least, most) = found.messages.unwrap();
                    // A starter that is woken first is none; so k runs from 1 to all.
                    let total = |k: u32| if n == 1 { 0 } else { 3 * n + k - 4 };
                    assert_eq!((least, most), (total(1), total(initiators.len() as u32)));
                    cases += 1;
                }
            }
        }
    }
    assert_eq!(cases, 2 * (1 + 3 + 3 * 7 + 16 * 15));
}

#[test]
fn every_run_on_every_tree_of_five_is_right() {
    // All start; in the long run, every set of initiators does, and the counts are exact.
    for tree in Topology::all_trees(5) {
        let found = Case::<TreeWave>::on(tree.clone()).check();
        assert_eq!(found.verdict, "exhausted", "{found:?}");
        for initiators in subsets(5).filter(|_| long()) {
            let found =
                Case::<TreeWave>::on(tree.clone()).initiators(&initiators).counting().check();
            assert_eq!(found.verdict, "exhausted", "{found:?}");
            assert_eq!(found.messages, Some((12, 11 + initiators.len() as u32)));
        }
    }
}

#[test]
fn with_fifo_each_kind_of_message_has_its_own_count() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let n = 2 + rng.below(60);
        let tree = Topology::random_tree(n as usize, &mut rng);
        let mut ids: Vec<u32> = (0..n).collect();
        rng.shuffle(&mut ids);
        let k = 1 + rng.below(n);
        let case = Case::<TreeWave>::on(tree).ids(&ids).initiators(&ids[..k as usize]);
        let seen = case.config(|c| {
            c.seed = seed;
            c.delay = Delay::Exponential(1.0);
        });
        let seen = seen.simulate();
        let kinds = ["Explore", "Echo", "Info"].map(|kind| seen.well().kind(kind) as u32);
        assert_eq!(kinds, [n + k - 2, n, n - 2], "seed {seed}");
        assert_eq!(seen.summary.leader, Some(ProcessId(n - 1)), "seed {seed}");
    }
}

#[test]
fn without_fifo_the_split_may_shift_but_the_total_is_exact() {
    let mut shifted = 0;
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let n = 2 + rng.below(60);
        let tree = Topology::random_tree(n as usize, &mut rng);
        let k = 1 + rng.below(n);
        let starters: Vec<u32> = (0..k).collect();
        let seen = Case::<TreeWave>::on(tree).initiators(&starters).no_fifo().config(|c| {
            c.seed = seed;
            c.delay = Delay::Exponential(1.0);
        });
        let seen = seen.simulate();
        assert_eq!(seen.well().sent, u64::from(3 * n + k - 4), "seed {seed}");
        shifted += u32::from(seen.kind("Echo") != u64::from(n));
    }
    assert!(shifted > 0);
}

#[test]
fn it_takes_at_most_three_diameters() {
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let tree = Topology::random_tree(2 + rng.below(100) as usize, &mut rng);
        let diameter = tree.diameter() as f64;
        let starter = rng.below(tree.len() as u32);
        let case = Case::<TreeWave>::on(tree).initiators(&[starter]).config(|c| {
            c.seed = seed;
            c.delay = Delay::Uniform(0.0, 1.0);
        });
        assert!(case.simulate().well().summary.time_to_all.unwrap() <= 3.0 * diameter);
    }
}

#[test]
fn one_and_two_processes_elect() {
    let seen = Case::<TreeWave>::on(Topology::path(1)).simulate();
    assert_eq!((seen.well().sent, seen.summary.leader), (0, Some(ProcessId(0))));
    let case = Case::<TreeWave>::on(Topology::path(2)).requests(&[2, 2]);
    case.check().exhausted(25);
    case.no_fifo().check().exhausted(69);
}

#[test]
fn large_trees_cost_what_the_formula_says() {
    let n = if long() { 1_000_000 } else { 100_000 };
    let trees = [
        Topology::random_tree(n, &mut Rng::new(3)),
        Topology::path(n),
        Topology::star(n),
        Topology::kary_tree(n, 3),
    ];
    for tree in trees {
        let seen = Case::<TreeWave>::on(tree).simulate();
        assert_eq!((seen.well().ending, seen.sent), (Ending::Quiet, 4 * n as u64 - 4));
        assert_eq!(seen.summary.informed, n);
    }
}

#[test]
fn a_leaf_that_waits_for_an_explorer_waits_for_ever() {
    let case = Case::<TreeWave>::on(Topology::path(4)).initiators(&[0, 3]);
    case.check().exhausted(160);
    case.mistake("leaf-rule").check().violated("deadlock", 6);
}

#[test]
fn the_leaf_rule_of_the_slide_fails_often() {
    let (mut failed, mut cases) = (0, 0);
    for n in 1..=4u32 {
        for tree in Topology::all_trees(n as usize) {
            for initiators in subsets(n) {
                let case = Case::<TreeWave>::on(tree.clone()).initiators(&initiators);
                let found = case.mistake("leaf-rule").check();
                cases += 1;
                failed += u32::from(found.property == Some("deadlock"));
            }
        }
    }
    assert_eq!((failed, cases), (48, 265));
}

#[test]
fn on_a_cycle_it_waits_for_ever() {
    Case::<TreeWave>::ring(3).check().violated("deadlock", 5);
}
