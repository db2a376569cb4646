// One run of a large group, and every run of a small one.

use konklave_testkit::Case;
use my_algorithm::MyAlgorithm;

#[test]
fn ten_processes_count_to_a_hundred() {
    let run = Case::<MyAlgorithm>::complete(10)
        .requests(&[10; 10])
        .simulate();
    assert_eq!(run.well().summary.highest_value, 100);
}

#[test]
fn every_run_of_three_processes_loses_no_increment() {
    let found = Case::<MyAlgorithm>::complete(3)
        .requests(&[1, 2, 1])
        .check();
    assert_eq!(found.verdict, "exhausted", "{found:?}");
}

#[test]
fn checker_finds_the_lost_increment_if_processes_read_then_write() {
    let found = Case::<MyAlgorithm>::complete(2)
        .mistake("read-then-write")
        .check();
    assert_eq!(found.property, Some("no lost increment"), "{found:?}");
}
