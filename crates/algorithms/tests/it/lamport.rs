use konklave_algorithms::mutex::lamport::Lamport;
use konklave_sim::{Delay, Pace};
use konklave_testkit::Case;

use crate::script::Script;

#[test]
fn three_times_the_others_for_each_entry_and_one_delay_between_entries() {
    for n in [1, 2, 3, 10, 40] {
        let seen = Case::<Lamport>::complete(n).requests(&vec![4; n]).simulate();
        assert_eq!(seen.well().sent, 4 * n as u64 * 3 * (n as u64 - 1), "n = {n}");
        for kind in ["Request", "Ack", "Release"] {
            assert_eq!(seen.kind(kind), 4 * n as u64 * (n as u64 - 1), "n = {n}: {kind}");
        }
        if n > 1 {
            let delay = seen.summary.sync_delay.unwrap();
            assert_eq!((delay.min, delay.max), (1.0, 1.0));
        }
    }
}

#[test]
fn a_lone_request_is_granted_after_two_delays() {
    let seen = Case::<Lamport>::complete(5).requests(&[0, 0, 1, 0, 0]).simulate();
    assert_eq!(seen.well().summary.wait.unwrap().max, 2.0);
}

#[test]
fn suppressed_acknowledgements_save_one_for_each_concurrent_pair() {
    for n in [1, 2, 3, 10, 40u64] {
        let case = Case::<Lamport>::complete(n as usize).set("acks", "suppressed");
        let seen = case.simulate();
        assert_eq!(seen.well().sent, 3 * n * (n - 1) - n * (n - 1) / 2, "n = {n}");
        let lone: Vec<u32> = (0..n).map(|i| u32::from(i == 0)).collect();
        assert_eq!(case.requests(&lone).simulate().well().sent, 3 * (n - 1));
    }
}

#[test]
fn every_run_of_three_is_right_and_costs_eighteen() {
    let case = Case::<Lamport>::complete(3).fenced();
    case.check().exhausted(113_150);
    assert_eq!(case.counting().check().messages, Some((18, 18)));
}

#[test]
fn every_run_of_two_is_right_and_costs_the_same() {
    let found = Case::<Lamport>::complete(2).requests(&[2, 2]).fenced().counting().check();
    assert_eq!(found.messages, Some((12, 12)));
    found.exhausted(936);
}

#[test]
fn with_suppression_three_entries_cost_fifteen_to_eighteen() {
    let case = Case::<Lamport>::complete(3).set("acks", "suppressed").fenced().counting();
    let found = case.check();
    assert_eq!(found.messages, Some((15, 18)));
    found.exhausted(55_324);
}

#[test]
fn order_holds_by_protocol_messages() {
    Case::<Lamport>::complete(3).ordered().check().exhausted(113_517);
    Case::<Lamport>::complete(3).set("acks", "suppressed").ordered().check().exhausted(50_042);
    Case::<Lamport>::complete(2).requests(&[3, 3]).fenced().ordered().check().exhausted(4228);
}

#[test]
fn order_holds_with_messages_of_the_application_that_carry_the_clock() {
    let mut case = Case::<Lamport>::complete(3).requests(&[0, 1, 1]).ordered();
    case.options.app_messages = 1;
    case.check().exhausted(17_056);
    let mut case = Case::<Lamport>::complete(2).ordered();
    case.options.app_messages = 2;
    case.check().exhausted(1361);
    if crate::long() {
        let mut case = Case::<Lamport>::complete(3).ordered();
        case.options.app_messages = 1;
        case.check().exhausted(2_382_762);
    }
}

#[test]
fn without_fifo_two_enter_after_four_steps() {
    for acks in ["all", "suppressed"] {
        let case = Case::<Lamport>::complete(2).set("acks", acks);
        case.no_fifo().check().violated("mutual exclusion", 4);
        let case = Case::<Lamport>::complete(3).set("acks", acks);
        case.no_fifo().check().violated("mutual exclusion", 7);
    }
}

#[test]
fn an_acknowledgement_that_overtakes_a_request_lets_both_in() {
    let mut run = Script::<Lamport>::new(2);
    // 1's request proves to 0 that no older one comes from 1: 0 enters, and acknowledges.
    run.acquire(0).acquire(1).deliver(1, 0);
    assert_eq!(run.inside, [0]);
    // The acknowledgement proves the same to 1 about 0, although it has overtaken 0's request.
    run.deliver_after(0, 1, 1);
    assert_eq!(run.inside, [0, 1]);
    // In their order, 1 waits until 0 has left.
    let mut run = Script::<Lamport>::new(2);
    run.acquire(0).acquire(1).settle();
    assert_eq!(run.inside, [0]);
    run.leave(0).settle();
    assert_eq!(run.inside, [1]);
}

#[test]
fn an_acknowledgement_must_be_later_than_the_request() {
    let case = Case::<Lamport>::complete(2).requests(&[0, 1]);
    case.check().exhausted(6);
    case.mistake("equal-ack").check().violated("deadlock", 3);
}

#[test]
fn ids_break_ties() {
    let case = Case::<Lamport>::complete(2);
    case.check().exhausted(70);
    case.mistake("no-tie-break").check().violated("mutual exclusion", 5);
}

#[test]
fn a_crash_stops_the_others_but_a_lost_request_lets_two_in() {
    let case = Case::<Lamport>::complete(3).requests(&[1, 0, 1]).crashes(1, 0);
    case.check().violated("deadlock", 7);
    case.judge(&["mutual exclusion"]).check().exhausted(13_275);
    // A process that lost a request takes the next message as proof that no request was sent.
    let case = Case::<Lamport>::complete(2).mishaps(1, 0);
    case.judge(&["mutual exclusion"]).check().violated("mutual exclusion", 5);
}

#[test]
fn random_delays_do_no_harm_on_fifo_channels() {
    for seed in 0..300 {
        let case = Case::<Lamport>::complete(7).ids(&[40, 7, 3, 19, 0, 88, 5]).requests(&[5; 7]);
        let case = case.ordered().config(|c| {
            c.seed = seed;
            c.delay = Delay::Exponential(1.0);
            c.think = Pace::Exponential((seed % 10) as f64);
            c.app_messages = 1;
        });
        let seen = case.simulate();
        assert_eq!(seen.well().sent, 7 * 5 * 18, "seed {seed}");
        assert_eq!(seen.summary.order_inversions, Some(0));
        let seen = case.set("acks", "suppressed").simulate();
        assert!((7 * 5 * 12..=7 * 5 * 18).contains(&seen.well().sent), "seed {seed}");
    }
}

#[test]
fn ten_thousand_processes_serve_a_few() {
    let n = 10_000;
    let few: Vec<u32> = (0..n).map(|i| u32::from(i % 2500 == 7)).collect();
    let seen = Case::<Lamport>::complete(n).requests(&few).simulate();
    assert_eq!(seen.well().sent, 4 * 3 * (n as u64 - 1));
}
