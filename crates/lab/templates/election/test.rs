// One run of a large ring, and every run of a small one.

use konklave_testkit::Case;
use my_algorithm::MyAlgorithm;

#[test]
fn hundred_processes_elect_the_highest_id() {
    let run = Case::<MyAlgorithm>::directed_ring(100).simulate();
    assert_eq!(run.well().summary.leader.map(|p| p.0), Some(99));
}

#[test]
fn every_run_of_three_processes_elects_one_leader() {
    let found = Case::<MyAlgorithm>::directed_ring(3).check();
    assert_eq!(found.verdict, "exhausted", "{found:?}");
}

#[test]
fn checker_finds_the_wrong_winner_if_lower_ids_pass() {
    let found = Case::<MyAlgorithm>::directed_ring(2)
        .mistake("passes-all")
        .check();
    assert_eq!(found.property, Some("right winner"), "{found:?}");
}
