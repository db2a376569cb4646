//! The examples run, and stay as short as a page of the textbook.

#![allow(unreachable_pub, missing_docs, reason = "an example is a program")]

#[path = "../examples/election.rs"]
mod election;
#[path = "../examples/lock.rs"]
mod lock;

/// The lines of a file that are not blank.
fn lines(text: &str) -> usize {
    text.lines().filter(|line| !line.trim().is_empty()).count()
}

#[test]
fn an_election_of_ones_own_takes_eighty_lines() {
    election::main();
    let lines = lines(include_str!("../examples/election.rs"));
    assert!(lines <= 80, "{lines}");
}

#[test]
fn a_lock_of_ones_own_takes_a_hundred_and_twenty() {
    lock::main();
    let lines = lines(include_str!("../examples/lock.rs"));
    assert!(lines <= 120, "{lines}");
}
