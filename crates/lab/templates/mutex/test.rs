// One run of a large group, and every run of a small one.

use konklave_testkit::Case;
use my_algorithm::MyAlgorithm;

#[test]
fn ten_processes_enter_ten_times_each() {
    let run = Case::<MyAlgorithm>::complete(10)
        .requests(&[10; 10])
        .simulate();
    assert_eq!((run.well().summary.entries, run.sent), (100, 3 * 90));
}

#[test]
fn every_run_of_three_processes_keeps_them_apart() {
    let found = Case::<MyAlgorithm>::complete(3)
        .requests(&[1, 2, 1])
        .fenced()
        .check();
    assert_eq!(found.verdict, "exhausted", "{found:?}");
}

#[test]
fn checker_finds_two_inside_if_the_coordinator_grants_at_once() {
    let found = Case::<MyAlgorithm>::complete(2)
        .mistake("grants-at-once")
        .check();
    assert_eq!(found.property, Some("mutual exclusion"), "{found:?}");
}
