// One run of a large group, and every run of a small one.

use konklave_testkit::Case;
use my_algorithm::MyAlgorithm;

#[test]
fn ten_processes_deliver_each_message_once() {
    let run = Case::<MyAlgorithm>::complete(10)
        .requests(&[5; 10])
        .simulate();
    assert_eq!(run.well().sent, 50 * 9);
}

#[test]
fn every_run_of_three_processes_delivers_in_fifo_order() {
    let found = Case::<MyAlgorithm>::complete(3)
        .requests(&[2, 1, 0])
        .no_fifo()
        .check();
    assert_eq!(found.verdict, "exhausted", "{found:?}");
}

#[test]
fn checker_finds_the_lost_message_if_early_ones_are_dropped() {
    let case = Case::<MyAlgorithm>::complete(2).requests(&[2, 0]).no_fifo();
    let found = case.mistake("drops-early").check();
    assert_eq!(found.property, Some("validity"), "{found:?}");
}
