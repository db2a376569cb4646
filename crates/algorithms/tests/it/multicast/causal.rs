use konklave_algorithms::multicast::causal::Causal;
use konklave_process::Inspect;
use konklave_sim::{Delay, Pace};
use konklave_testkit::Case;

use super::is_within_bounds;

#[test]
fn order_costs_no_message_and_no_delay() {
    for n in [1, 2, 3, 10, 60] {
        let case = Case::<Causal>::complete(n).requests(&vec![4; n]);
        let seen = case.simulate();
        assert_eq!(is_within_bounds(&case, seen.well()), 2);
        assert_eq!(seen.sent, 4 * n as u64 * (n as u64 - 1));
    }
}

const SAFE: &[&str] = &["validity", "fifo order", "causal order", "no creation", "no duplication"];

#[test]
fn every_run_of_three_with_a_crash_is_right() {
    let case = Case::<Causal>::complete(3);
    case.clone().requests(&[2, 2, 0]).check().exhausted(799);
    case.clone().requests(&[1, 1, 1]).check().exhausted(431);
    case.clone().requests(&[2, 1, 0]).crashes(1, 0).judge(SAFE).check().exhausted(3522);
    case.clone().requests(&[1, 1, 0]).no_fifo().mishaps(0, 1).check().exhausted(214);
}

#[test]
fn concurrent_messages_come_in_any_order() {
    let case = Case::<Causal>::complete(3).requests(&[1, 1, 0]).ordered();
    case.judge(&["total order"]).check().violated("total order", 2);
}

#[test]
fn c1_an_answer_that_overtakes_its_question_is_held() {
    let case = Case::<Causal>::complete(3).requests(&[1, 1, 0]);
    case.check().exhausted(39);
    case.mistake("fifo-only").check().violated("causal order", 4);
    let case = Case::<Causal>::complete(2).requests(&[2, 0]).no_fifo();
    case.check().exhausted(7);
    case.mistake("one-look").check().violated("validity", 4);
}

#[test]
fn c2_an_effect_of_a_message_lost_with_its_sender_is_never_delivered() {
    // 0's question reaches 1 but not 2, and 0 crashes; 1's answer stays held at 2.
    let seen = Case::<Causal>::complete(3)
        .requests(&[1, 1, 0])
        .fault("lose:0>2#1")
        .fault("crash:0@0.5")
        .config(|c| c.script = vec![(konklave_process::ProcessId(1), 2.0)])
        .simulate();
    let [left_over] = &seen.violations[..] else { panic!("{:?}", seen.violations) };
    assert!(left_over.starts_with("quiescence"), "{left_over}");
    assert!(seen.processes[1].at_rest() && !seen.processes[2].at_rest());
}

#[test]
fn c4_a_cause_outside_the_multicast_does_not_count() {
    use konklave_algorithms::multicast::{Indication, Request, Unit};
    use konklave_algorithms::{Algorithm, Setup};
    use konklave_process::{Effect, Group, ProcessId, Topology};
    use konklave_testkit::{Bench, tell};

    let setup = Setup::new(Group::of(3), Topology::complete(3));
    let member = |p| Bench::new(Causal::new(ProcessId(p), &setup), ProcessId(p), &setup.group);
    let to_2 = |effects: Vec<Effect<Causal>>| {
        effects.into_iter().find_map(|effect| match effect {
            Effect::Send { to: ProcessId(2), message } => Some(message),
            _ => None,
        })
    };
    let (mut p0, mut p1, mut p2) = (member(0), member(1), member(2));
    let question = p0.ask(Request::Multicast(1));
    // 0 tells 1 by telephone. 1's answer does not say that it knows the question.
    let answer = to_2(p1.ask(Request::Multicast(1))).unwrap();
    let delivered = tell(Indication::Delivered(Unit { from: ProcessId(1), number: 1 }));
    assert_eq!(p2.hear(1, answer), [delivered], "the answer before its question");
    // Told by multicast, it does, and 2 waits.
    let (mut p1, mut p2) = (member(1), member(2));
    p1.hear(0, to_2(question).unwrap());
    let answer = to_2(p1.ask(Request::Multicast(1))).unwrap();
    assert_eq!(p2.hear(1, answer), []);
}

#[test]
fn random_delays_copies_and_any_order_do_no_harm() {
    for seed in 0..200 {
        let case = Case::<Causal>::complete(5).requests(&[8; 5]).no_fifo().config(|c| {
            c.seed = seed;
            c.delay = Delay::Exponential(1.0);
            c.think = Pace::Exponential(1.0);
            c.duplicate = 0.2;
        });
        assert_eq!(case.simulate().well().summary.delivered, 200, "seed {seed}");
    }
}

#[test]
fn a_thousand_receivers_keep_the_order() {
    let mut requests = vec![0; 1000];
    requests[..10].fill(10);
    let case = Case::<Causal>::complete(1000).requests(&requests).no_fifo();
    let seen = case.config(|c| c.delay = Delay::Uniform(0.5, 5.0)).simulate();
    assert_eq!(seen.well().summary.delivered, 100_000);
}
