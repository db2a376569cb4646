use konklave_algorithms::multicast::nack::Nack;
use konklave_process::Inspect;
use konklave_sim::{Delay, Pace};
use konklave_testkit::Case;

use super::is_within_bounds;

/// Heartbeats after 2 T; a tail is back within that and two delays, and the T before asking.
const TAIL: f64 = 2.0 + 1.0 + 1.0 + 2.0;

fn case(n: usize, requests: u32) -> Case<Nack> {
    let mut all = vec![0; n];
    all[0] = requests;
    Case::complete(n).requests(&all).set("suppression", "none")
}

#[test]
fn without_loss_only_heartbeats_are_added() {
    for n in [1, 2, 5, 100] {
        let case = case(n, 5);
        let seen = case.simulate();
        assert_eq!(is_within_bounds(&case, seen.well()), 2);
        assert_eq!(seen.kind("Nack") + seen.kind("Repair"), 0);
        assert_eq!(seen.kind("Heartbeat"), 12 * (n as u64 - 1));
        assert_eq!((seen.kind("Stop"), seen.kind("Whole")), (n as u64 - 1, n as u64 - 1));
    }
}

#[test]
fn every_run_with_losses_and_copies_is_right() {
    let small = |n, requests| {
        case(n, requests).synchronous().set("beats", 3).set("stops", 0).set("tries", 3)
    };
    small(2, 2).mishaps(1, 0).check().exhausted(102);
    small(2, 1).mishaps(3, 0).check().exhausted(175);
    small(3, 1).mishaps(1, 0).check().exhausted(89);
    small(2, 2).mishaps(0, 1).no_fifo().check().exhausted(59);
    small(3, 1).mishaps(1, 0).crashes(1, 0).check().exhausted(1302);
}

#[test]
fn n1_a_lost_tail_is_back_soon_after_the_first_heartbeat() {
    let seen = case(3, 4).fault("lose:0>2/Data#4").simulate();
    assert_eq!(seen.well().summary.delivered, 12);
    assert!(seen.summary.last_latency.unwrap().max <= TAIL, "{:?}", seen.summary.last_latency);
    assert_eq!((seen.kind("Nack"), seen.summary.repairs_per_loss), (1, Some(1.0)));
    let checked = case(2, 1).synchronous().set("beats", 2).set("stops", 0).mishaps(1, 0);
    checked.check().exhausted(22);
    checked.mistake("no-heartbeat").check().violated("validity", 2);
}

#[test]
fn n2_the_loss_of_the_tail_and_of_three_heartbeats_is_mended_by_the_fourth() {
    let lost = |case: Case<Nack>| {
        let case = case.fault("lose:0>1/Data#2").fault("lose:0>1/Heartbeat#1");
        case.fault("lose:0>1/Heartbeat#2").fault("lose:0>1/Heartbeat#3")
    };
    let seen = lost(case(2, 2)).simulate();
    assert_eq!(seen.well().summary.delivered, 4);
    // Heartbeats after 2, 6, 14 and 30 T.
    assert!(seen.summary.last_latency.unwrap().max <= 30.0 + 4.0);
    // A single signal at the end is not enough.
    let once = lost(case(2, 2).set("beats", 1).set("stops", 0)).simulate();
    assert_eq!((once.violations.len(), once.summary.delivered), (1, 3));
}

#[test]
fn a_stop_is_repeated_until_all_receivers_have_the_stream() {
    // All heartbeats fall into the outage, however long it is.
    for until in [600, 5000] {
        let cut = |case: Case<Nack>| case.fault(&format!("cut:0>1@0-{until}"));
        let seen = cut(case(3, 1)).simulate();
        assert_eq!(seen.well().summary.delivered, 3, "until {until}");
        // No other member gets a message.
        assert_eq!(seen.kind("Whole"), 2, "until {until}");
        assert!(seen.kind("Stop") <= 5 + until / 64, "{}", seen.kind("Stop"));
        let without = cut(case(3, 1).set("stops", 0)).simulate();
        assert_eq!(without.violations.len(), 1, "until {until}");
    }
    // Three copies follow each other at once, the others at the rate of the rarest heartbeats.
    let seen = case(2, 1).set("beats", 0).fault("cut:0>1@0-100").simulate();
    assert_eq!((seen.well().kind("Stop"), seen.kind("Heartbeat")), (3 + 2 + 1, 0));
    // Answers can get lost, too.
    let seen = case(2, 1).set("beats", 0).fault("cut:1>0@0-300").simulate();
    assert_eq!(seen.well().summary.delivered, 2);
}

#[test]
fn a_sender_does_not_wait_for_a_crashed_receiver() {
    let crashed = case(3, 1).fault("crash:1@0.5");
    let seen = crashed.simulate();
    assert!(seen.violations.is_empty(), "{:?}", seen.violations);
    assert_eq!((seen.kind("Stop"), seen.kind("Whole")), (1, 1));
    // Back again, it answers, and what was sent before its time it need not have.
    let seen = crashed.fault("restart:1@900").simulate();
    assert!(seen.violations.is_empty(), "{:?}", seen.violations);
    assert_eq!(seen.kind("Whole"), 2);
}

#[test]
fn every_run_with_a_stop_is_right() {
    let small = |n| case(n, 1).synchronous().set("beats", 0).set("stops", 2).set("tries", 3);
    for case in [small(2).mishaps(3, 0), small(3).mishaps(1, 1), small(3).crashes(1, 0)] {
        let found = case.check();
        assert_eq!(found.verdict, "exhausted", "{found:?}");
    }
}

#[test]
fn n3_an_overtaken_message_is_not_asked_for() {
    // 1, 3, 2: the second takes half a T longer than the third.
    let seen = case(2, 3)
        .no_fifo()
        .fault("delay:0>1/Data#2+0.6")
        .config(|c| c.think = Pace::Constant(0.1))
        .simulate();
    assert_eq!((seen.well().summary.delivered, seen.kind("Nack")), (6, 0));
}

#[test]
fn n4_lost_requests_and_repairs_are_repeated_or_reported() {
    let mut faults = vec!["lose:0>1/Data#1".to_owned()];
    for i in 1..=5u32 {
        let kind = if i % 2 == 1 { "1>0/Nack" } else { "0>1/Repair" };
        faults.push(format!("lose:{kind}#{}", i.div_ceil(2)));
    }
    let all = |case: Case<Nack>| faults.iter().fold(case, |case, fault| case.fault(fault));
    assert_eq!(all(case(2, 2)).simulate().well().summary.delivered, 4);
    // With fewer attempts the gap is reported to the client, and later messages are delivered.
    let seen = all(case(2, 2).set("tries", 2)).simulate();
    assert_eq!((seen.well().summary.gone, seen.summary.delivered), (1, 3));
    let checked = case(2, 1).synchronous().set("beats", 3).set("stops", 0).set("tries", 1);
    let checked = checked.mishaps(3, 0);
    checked.check().exhausted(86);
    checked.mistake("silent-hole").check().violated("validity", 11);
}

#[test]
fn n5_a_late_receiver_asks_for_no_earlier_message() {
    let seen = case(3, 1000)
        .fault("crash:2@0.5")
        .fault("restart:2@900")
        .config(|c| c.think = Pace::Constant(1.0))
        .simulate();
    assert!(seen.violations.is_empty(), "{:?}", seen.violations);
    assert_eq!(seen.kind("Nack"), 0);
    assert!((2090..2110).contains(&seen.summary.delivered), "{}", seen.summary.delivered);
}

#[test]
fn n6_a_message_no_longer_kept_is_reported_as_gone() {
    let seen = case(2, 20).set("keep", 4).fault("lose:0>1/Data#3").simulate();
    assert_eq!((seen.well().summary.gone, seen.summary.delivered), (1, 39));
    assert!(seen.kind("Nack") <= 2, "{}", seen.kind("Nack"));
}

#[test]
fn n7_a_message_lost_with_its_sender_is_reported_as_gone() {
    let seen = case(3, 9).fault("lose:0>2/Data#8").fault("crash:0@0.5").simulate();
    assert!(seen.violations.is_empty(), "{:?}", seen.violations);
    assert_eq!(seen.summary.gone, 1);
    assert!(seen.processes[2].at_rest());
}

#[test]
fn n8_when_500_members_lose_a_message_few_ask_and_one_repair_serves_all() {
    let lossy = |case: Case<Nack>| {
        (1..=500).fold(case, |case, p| case.fault(&format!("lose:0>{p}/Data#1")))
    };
    let all = lossy(case(501, 2)).simulate();
    assert_eq!((all.well().kind("Nack"), all.kind("Repair")), (500, 500));
    let mut asked = 0;
    for seed in 0..10 {
        let spread = lossy(case(501, 2).set("suppression", "exponential"));
        let seen = spread.config(|c| c.seed = seed).simulate();
        assert_eq!(seen.well().summary.delivered, 2 * 501);
        asked += seen.kind("Nack");
        assert_eq!(seen.kind("Repair"), 500, "one repair to each");
    }
    assert!((10..=200).contains(&asked), "{asked} requests in ten runs");
}

#[test]
fn n9_a_repair_triggers_no_other_request() {
    // 2 lacks the first message only; its repair causes no further request.
    let seen = case(5, 3).fault("lose:0>2/Data#1").simulate();
    assert_eq!((seen.well().kind("Nack"), seen.kind("Repair")), (1, 4));
    assert_eq!(seen.summary.unwanted_per_member, 3.0 / 5.0);
}

#[test]
fn losses_copies_and_any_order_do_no_harm() {
    for seed in 0..200 {
        let case = Case::<Nack>::complete(5).requests(&[6; 5]).no_fifo().config(|c| {
            c.seed = seed;
            c.delay = Delay::Exponential(1.0);
            c.loss = 0.2;
            c.duplicate = 0.1;
            c.think = Pace::Exponential(3.0);
        });
        let case = if seed % 2 == 0 { case } else { case.set("suppression", "none") };
        let seen = case.simulate();
        assert_eq!(seen.well().summary.delivered + seen.summary.gone, 150, "seed {seed}");
    }
}

#[test]
fn ten_thousand_receivers_are_served() {
    let seen = case(10_000, 3).set("beats", 4).config(|c| c.loss = 0.01).simulate();
    assert_eq!(seen.well().summary.delivered, 30_000);
}
