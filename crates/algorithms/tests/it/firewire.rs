use konklave_algorithms::election::firewire::FireWire;
use konklave_process::{ProcessId, Rng, Topology};
use konklave_sim::{Delay, Fault, What, When};
use konklave_testkit::Case;

use crate::graphs::long;

/// All processes feel the reset, no message is late, and each kind of wait occurs once.
fn bare(topology: Topology) -> Case<FireWire> {
    let case = Case::<FireWire>::on(topology).set("reset", "wire").set("timeout", 0);
    case.set("short-max", 240).set("long-max", 570)
}

/// A triangle with a tail of two.
fn tail() -> Topology {
    Topology::from_edges("tail", 5, [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4)]).unwrap()
}

#[test]
fn every_run_on_every_tree_has_one_root_by_chance() {
    // Also strictly: unless settled by id, nothing ever comes out of turn.
    for (n, states) in [(1, 2), (2, 26), (3, 480), (4, 11_008), (5, 319_840)] {
        for fifo in [true, false] {
            let check = |tree| {
                let case = bare(tree).mistake("no-ignore");
                let found = if fifo { case } else { case.no_fifo() }.check();
                assert_eq!(found.verdict, "exhausted", "{found:?}");
                found.states
            };
            assert_eq!(Topology::all_trees(n).map(check).sum::<u64>(), states);
        }
    }
}

#[test]
fn every_run_on_every_tree_has_one_root_by_id_and_at_most_one_contention() {
    let sizes = [(1, 2, 2), (2, 21, 22), (3, 332, 344), (4, 7288, 7528), (5, 210_424, 216_824)];
    for (n, in_order, out_of_order) in sizes {
        for (fifo, states) in [(true, in_order), (false, out_of_order)] {
            let check = |tree| {
                let case = bare(tree).set("contention", "id").counting();
                let found = if fifo { case } else { case.no_fifo() }.check();
                assert_eq!(found.verdict, "exhausted", "{found:?}");
                // n − 1 questions and as many answers; one more where two asked each other.
                let least = 2 * (n as u32 - 1);
                assert_eq!(found.messages, Some((least, least + u32::from(n > 1))));
                found.states
            };
            assert_eq!(Topology::all_trees(n).map(check).sum::<u64>(), states);
        }
    }
}

#[test]
fn a_reset_by_messages_costs_two_for_each_edge() {
    for n in 2..=3 {
        for tree in Topology::all_trees(n) {
            for initiators in crate::graphs::subsets(n as u32) {
                let case = bare(tree.clone()).set("contention", "id").set("reset", "message");
                let found = case.initiators(&initiators).counting().check();
                let least = 4 * (n as u32 - 1);
                assert_eq!(
                    (found.verdict, found.messages),
                    ("exhausted", Some((least, least + 1)))
                );
            }
        }
    }
}

#[test]
fn the_timeout_may_come_too_early_and_does_no_harm() {
    bare(Topology::path(3)).set("timeout", "auto").check().exhausted(648);
    bare(Topology::path(3)).set("timeout", "auto").no_fifo().check().exhausted(648);
}

/// How many rounds of contention each of many runs of two processes has.
fn rounds(case: &Case<FireWire>) -> Vec<u64> {
    let run = |seed| {
        let seen = case.clone().config(|c| c.seed = seed).simulate();
        assert_eq!(seen.well().kind("YouAreMyChild"), 1);
        // One question each, and two more for each round.
        let asked = seen.kind("BeMyParent");
        assert_eq!(asked % 2, 1);
        (asked - 1) / 2
    };
    (0..400).map(run).collect()
}

#[test]
fn f1_the_same_choice_again_and_again_ends_only_by_chance() {
    let rounds = rounds(&Case::on(Topology::path(2)));
    let mean = rounds.iter().sum::<u64>() as f64 / rounds.len() as f64;
    assert!((mean - 2.0).abs() < 0.2, "each round ends it with probability ½: {mean}");
    assert!(*rounds.iter().max().unwrap() >= 7);
}

#[test]
fn f1_waits_that_are_too_alike_for_the_cable_do_not_tell_apart() {
    // A split ends it for sure if a short wait and two ways are shorter than a long wait.
    let surely = rounds(&Case::on(Topology::path(2)).set("cable", 150));
    let hardly = rounds(&Case::on(Topology::path(2)).set("cable", 1000));
    let mean = |rounds: &[u64]| rounds.iter().sum::<u64>() as f64 / rounds.len() as f64;
    assert!(mean(&surely) < 2.2 && mean(&hardly) > 4.0, "{} {}", mean(&surely), mean(&hardly));
}

#[test]
fn f2_settled_by_id_an_answer_may_overtake_the_question() {
    let case = bare(Topology::path(2)).set("contention", "id").no_fifo();
    case.check().exhausted(20);
    case.mistake("no-ignore").check().violated("expected inputs", 7);
    let case = bare(Topology::path(2)).set("contention", "id").mistake("no-ignore");
    case.check().exhausted(19);
}

#[test]
fn f3_a_cycle_has_no_root_and_someone_says_so() {
    for (graph, states) in [(Topology::ring(3), 27), (Topology::complete(4), 81), (tail(), 1053)] {
        bare(graph.clone()).set("timeout", "auto").check().exhausted(states);
        let seen = Case::<FireWire>::on(graph).simulate();
        assert_eq!((seen.well().summary.leader, seen.summary.elections), (None, 0));
        assert!(seen.summary.loops >= 3);
    }
    let found = bare(Topology::ring(3)).set("reset", "message").set("timeout", "auto").check();
    found.exhausted(1359);
}

#[test]
fn f3_without_the_timeout_everyone_on_the_cycle_waits_for_ever() {
    bare(tail()).check().violated("deadlock", 10);
}

#[test]
fn f4_unplugging_and_plugging_in_begins_a_new_generation() {
    // Each part of the bus has its own root, so nothing is said of how many there are.
    let judged = ["deadlock", "termination", "expected inputs", "quiescence", "acyclic parents"];
    let bus = |n| bare(Topology::path(n)).set("reset", "message").initiators(&[0]).judge(&judged);
    bus(3).crashes(1, 0).check().exhausted(5700);
    bus(2).crashes(1, 1).check().exhausted(15_796);
    if long() {
        bus(3).crashes(1, 0).no_fifo().check().exhausted(64_803);
        bus(3).crashes(1, 1).check().exhausted(9_672_307);
    }
}

#[test]
fn f4_a_stale_question_that_counts_makes_a_second_root() {
    let case = bare(Topology::path(2)).set("contention", "id").requests(&[2, 2]).no_fifo();
    let case = case.judge(&["one leader at a time"]);
    case.check().exhausted(167);
    case.mistake("no-generation").check().violated("one leader at a time", 9);
}

#[test]
fn f5_pulling_the_root_edge_leaves_two_buses_and_plugging_it_in_makes_one() {
    let pulled = |who: u32, whom: u32, until| Fault {
        what: What::Suspect(ProcessId(who), ProcessId(whom)),
        when: When::Time(100.0),
        until,
    };
    for until in [None, Some(200.0)] {
        let case = Case::<FireWire>::on(Topology::path(6)).set("timeout", 0).config(|c| {
            c.faults = vec![pulled(2, 3, until), pulled(3, 2, until)];
        });
        let seen = case.simulate();
        let roots = seen.processes.iter().filter(|p| format!("{p:?}").contains("Root")).count();
        assert_eq!(roots, if until.is_none() { 2 } else { 1 });
        assert!(seen.waiting.is_empty());
    }
}

#[test]
fn only_inner_processes_as_roots_is_too_few() {
    let case = bare(Topology::path(2));
    case.check().exhausted(26);
    case.mistake("inner-only").check().violated("deadlock", 5);
    // It deadlocks on every tree but that of one.
    let fails = |tree| bare(tree).mistake("inner-only").check().property == Some("deadlock");
    let failed = (1..=5).flat_map(Topology::all_trees).filter(|tree| fails(tree.clone())).count();
    assert_eq!(failed, 145);
}

#[test]
fn trees_by_chance_have_one_root() {
    for seed in 0..400 {
        let mut rng = Rng::new(seed);
        let n = 1 + rng.below(60);
        let tree = Topology::random_tree(n as usize, &mut rng);
        let k = 1 + rng.below(n);
        let starters: Vec<u32> = (0..k).collect();
        let by_id = seed.is_multiple_of(2);
        let case = Case::<FireWire>::on(tree).initiators(&starters);
        let case = case.set("contention", if by_id { "id" } else { "random" }).config(|c| {
            c.seed = seed;
            c.delay = Delay::Uniform(0.1, 1.0);
        });
        let case = if seed.is_multiple_of(3) { case.no_fifo() } else { case };
        let seen = case.simulate();
        let kind = |kind: &str| seen.well().kind(kind) as u32;
        let [resets, asked, answered] = ["Reset", "BeMyParent", "YouAreMyChild"].map(kind);
        assert_eq!((resets, answered), (2 * (n - 1), n - 1), "seed {seed}");
        let more = asked - (n - 1);
        assert!(if by_id { more <= 1 } else { more.is_multiple_of(2) }, "seed {seed}: {more} more");
        assert_eq!((seen.summary.elections, seen.summary.loops), (1, 0), "seed {seed}");
    }
}

#[test]
fn large_trees_have_one_root() {
    let n = if long() { 1_000_000 } else { 50_000 };
    for tree in [Topology::random_tree(n, &mut Rng::new(3)), Topology::star(n), Topology::path(n)] {
        let seen = Case::<FireWire>::on(tree).simulate();
        assert_eq!(seen.well().kind("YouAreMyChild"), n as u64 - 1);
        assert_eq!((seen.summary.informed, seen.summary.loops), (n, 0));
    }
}

#[test]
fn a_bus_may_be_reset_again_and_again() {
    let seen =
        Case::<FireWire>::on(Topology::path(7)).requests(&[3, 0, 0, 0, 0, 0, 2]).config(|c| {
            c.think = konklave_sim::Pace::Constant(500.0);
        });
    let seen = seen.simulate();
    assert_eq!(seen.well().summary.epoch, Some(3));
    bare(Topology::path(2)).set("reset", "message").requests(&[2, 2]).check().exhausted(280);
}

#[test]
fn two_halves_of_a_bus_have_a_root_each() {
    let path = || Topology::from_edges("path", 4, [(0, 1), (1, 2), (2, 3)]).unwrap();
    for seed in 0..50 {
        for fault in ["break:1-2@10-60", "break:1-2@10", "break:0-1@10-60"] {
            let case = Case::<FireWire>::on(path()).fault(fault).config(|c| c.seed = seed);
            let seen = case.simulate();
            assert!(seen.violations.is_empty(), "{fault}, seed {seed}: {:?}", seen.violations);
        }
    }
}
