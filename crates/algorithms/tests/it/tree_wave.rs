use konklave_algorithms::election::tree_wave::TreeWave;
use konklave_process::{Rng, Topology};
use konklave_testkit::Case;

fn subsets(n: u32) -> impl Iterator<Item = Vec<u32>> {
    (1u32..1 << n).map(move |set| (0..n).filter(|i| set >> i & 1 == 1).collect())
}

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
    for tree in Topology::all_trees(5) {
        let found = Case::<TreeWave>::on(tree).check();
        assert_eq!(found.verdict, "exhausted", "{found:?}");
    }
}

#[test]
fn large_random_trees_cost_what_the_formula_says() {
    for seed in 0..100 {
        let mut rng = Rng::new(seed);
        let n = 2 + rng.below(200) as usize;
        let tree = Topology::random_tree(n, &mut rng);
        let seen = Case::<TreeWave>::on(tree).config(|c| c.seed = seed).simulate();
        assert_eq!(seen.well().sent, 4 * n as u64 - 4, "seed {seed}");
    }
}

#[test]
fn a_leaf_that_waits_for_an_explorer_waits_for_ever() {
    let case = Case::<TreeWave>::on(Topology::path(4)).initiators(&[0, 3]);
    case.check().exhausted(160);
    case.mistake("leaf-rule").check().violated("deadlock", 6);
}
