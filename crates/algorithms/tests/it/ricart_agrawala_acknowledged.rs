use konklave_algorithms::mutex::ricart_agrawala_acknowledged::RicartAgrawalaAcknowledged;
use konklave_process::{ProcessId, Rng};
use konklave_sim::{Delay, Ending, Pace};
use konklave_testkit::Case;

type Acknowledged = Case<RicartAgrawalaAcknowledged>;

/// A group in which timeouts are right, and are the only sign of a crash.
fn synchronous(n: usize) -> Acknowledged {
    asynchronous(n).synchronous()
}

/// A group in which a timeout may come at any time.
fn asynchronous(n: usize) -> Acknowledged {
    let mut case = Case::complete(n).fenced();
    case.options.detector = false;
    case.config.detect_after = None;
    case
}

#[test]
fn a_lone_request_costs_twice_the_others() {
    for n in [1, 2, 3, 10, 100] {
        let lone: Vec<u32> = (0..n).map(|i| 3 * u32::from(i == n / 2)).collect();
        let seen = synchronous(n).requests(&lone).simulate();
        assert_eq!(seen.well().sent, 3 * 2 * (n as u64 - 1), "n = {n}");
        assert_eq!(seen.summary.wait.unwrap().max, if n > 1 { 2.0 } else { 0.0 });
    }
}

#[test]
fn each_deferral_costs_one_more() {
    for n in [2, 3, 10, 40u64] {
        let seen = synchronous(n as usize).set("timeout", 1000).simulate();
        // All ask at once: of each pair, one defers the other.
        assert_eq!(seen.well().kind("Ack"), n * (n - 1) / 2, "n = {n}");
        assert_eq!(seen.sent, 2 * n * (n - 1) + n * (n - 1) / 2, "n = {n}");
        let delay = seen.summary.sync_delay.unwrap();
        assert_eq!((delay.min, delay.max), (1.0, 1.0));
    }
}

#[test]
fn a_long_wait_costs_two_messages_for_each_probe() {
    let case = synchronous(2).set("timeout", 3).config(|c| c.hold = Pace::Constant(9.5));
    let seen = case.simulate();
    // p0 is inside from 2 to 11.5; p1 asks at 0 and then at 3, 6, 9, 12 whether it is still there.
    assert_eq!((seen.well().kind("AreYouThere"), seen.kind("Ack")), (4, 4));
}

#[test]
fn every_run_is_right_where_timeouts_are() {
    synchronous(2).requests(&[2, 2]).check().exhausted(588);
    synchronous(3).check().exhausted(10_432);
    synchronous(3).no_fifo().check().exhausted(24_648);
}

#[test]
fn order_holds() {
    synchronous(3).requests(&[2, 1, 1]).ordered().check().exhausted(61_590);
}

#[test]
fn every_run_survives_the_crash_of_anyone() {
    synchronous(2).requests(&[2, 2]).crashes(1, 0).check().exhausted(1909);
    synchronous(3).crashes(1, 0).check().exhausted(51_977);
    synchronous(3).requests(&[1, 0, 1]).crashes(2, 0).check().exhausted(2483);
}

#[test]
fn crashed_process_may_come_back() {
    synchronous(2).requests(&[2, 2]).crashes(1, 1).check().exhausted(8134);
    synchronous(2).requests(&[2, 2]).crashes(1, 1).no_fifo().check().exhausted(50_404);
    synchronous(3).requests(&[1, 1, 0]).crashes(1, 1).ordered().check().exhausted(19_175);
}

#[test]
fn restarted_process_requests_before_it_has_a_time() {
    // It says so to one that then asks at once, with a time that is earlier than its own will be.
    let case = synchronous(3).requests(&[1, 1, 0]).crashes(1, 1).ordered();
    case.clone().app_messages(1).check().violated("happened-before order", 16);
    case.check().exhausted(19_175);
    if crate::long() {
        // Messages of the lock tell of the wish, too: p0 comes back and wishes, p2 learns of it by an
        // acknowledgement and p1 by a reply of p2.
        let case = synchronous(3).requests(&[1, 2, 1]).crashes(1, 1);
        case.judge(&["happened-before order"]).check().violated("happened-before order", 30);
    }
}

#[test]
fn if_all_crash_the_clock_starts_again_and_fences_with_it() {
    let case = synchronous(2).requests(&[2, 2]).crashes(2, 2);
    case.check().violated("growing fences", 10);
    case.judge(&["mutual exclusion", "deadlock", "quiescence"]).check().exhausted(60_820);
}

#[test]
fn where_delays_have_no_bound_a_slow_holder_is_taken_for_dead() {
    asynchronous(2).check().violated("mutual exclusion", 4);
    asynchronous(3).requests(&[1, 0, 1]).check().violated("mutual exclusion", 4);
}

#[test]
fn a_holder_whose_traffic_is_late_is_taken_for_dead() {
    // 0 is inside from 2 to 42, and its acknowledgements to 2 take longer.
    let slow = |more: f64| {
        let case = asynchronous(3).requests(&[1, 0, 1]);
        let case = case.config(|c| c.hold = Pace::Constant(40.0));
        (1..=9).fold(case, |case, i| case.fault(&format!("delay:0>2/Ack#{i}+{more}")))
    };
    // A round trip takes four, and five are allowed: no process is taken for crashed.
    slow(2.0).simulate().well();
    let seen = slow(20.0).simulate();
    assert!(seen.violations[0].starts_with("mutual exclusion at 10000"), "{:?}", seen.violations);
    // A process that does not rely on the clock waits as long as the answer takes; so does one with a long timeout.
    slow(20.0).set("model", "asynchronous").simulate().well();
    slow(20.0).set("timeout", 23).simulate().well();
}

#[test]
fn without_suspicions_it_is_safe_and_survives_losses() {
    let patient = |n| synchronous(n).set("model", "asynchronous");
    patient(2).mishaps(1, 0).check().exhausted(169);
    patient(2).mishaps(2, 0).check().exhausted(294);
    patient(3).requests(&[1, 1, 0]).mishaps(1, 0).check().exhausted(927);
    patient(2).mishaps(0, 1).no_fifo().check().exhausted(397);
    // A lost message is silence, too.
    synchronous(2).mishaps(1, 0).check().violated("mutual exclusion", 6);
    // Timers at any time: questions without end, so the search has none either.
    let mut case = asynchronous(2).set("model", "asynchronous");
    case.options.max_depth = 13;
    assert_eq!(case.check().verdict, "bounded");
}

#[test]
fn without_suspicions_a_process_waits_for_a_crashed_one_for_ever() {
    let case = asynchronous(3).fault("crash:1@0").config(|c| c.time_limit = 1000.0);
    let seen = case.clone().set("model", "asynchronous").simulate();
    assert_eq!(
        (seen.ending, &seen.waiting[..]),
        (Ending::CutOff, &[ProcessId(0), ProcessId(2)][..])
    );
    case.simulate().well();
}

#[test]
fn process_that_acknowledged_must_be_asked_again() {
    let case = synchronous(2).crashes(1, 0);
    case.check().exhausted(213);
    case.mistake("no-probe").check().violated("deadlock", 7);
}

#[test]
fn restarted_process_must_learn_the_time() {
    let case = synchronous(3).requests(&[1, 0, 1]).crashes(1, 1);
    case.check().exhausted(15_416);
    case.mistake("no-rejoin").check().violated("mutual exclusion", 13);
}

#[test]
fn crashes_and_restarts_at_random_times_do_no_harm() {
    for seed in 0..300 {
        let mut rng = Rng::new(seed);
        let mut case = synchronous(5).requests(&[6; 5]).no_fifo().config(|c| {
            c.seed = seed;
            c.delay = Delay::Uniform(0.1, 2.4);
            c.think = Pace::Exponential(4.0);
            c.hold = Pace::Exponential(1.0);
        });
        for victim in 0..3 {
            let crash = f64::from(rng.below(400)) / 10.0;
            case = case.fault(&format!("crash:{victim}@{crash}"));
            if rng.below(2) == 1 {
                let back = crash + 1.0 + f64::from(rng.below(200)) / 10.0;
                case = case.fault(&format!("restart:{victim}@{back}"));
            }
        }
        let seen = case.simulate();
        assert_eq!(seen.well().summary.fences_monotone, Some(true), "seed {seed}");
    }
}

#[test]
fn random_delays_do_no_harm() {
    for seed in 0..300 {
        let case = synchronous(7).ids(&[40, 7, 3, 19, 0, 88, 5]).requests(&[5; 7]).no_fifo();
        let case = case.ordered().config(|c| {
            c.seed = seed;
            c.delay = Delay::Uniform(0.1, 2.4);
            c.think = Pace::Exponential((seed % 10) as f64);
        });
        assert_eq!(case.simulate().well().summary.entries, 35, "seed {seed}");
    }
}

#[test]
fn ten_thousand_processes_serve_a_few_although_some_are_down() {
    let n = 10_000;
    let few: Vec<u32> = (0..n).map(|i| u32::from(i % 2500 == 7)).collect();
    let seen = synchronous(n).requests(&few).fault("crash:1@0").fault("crash:2@0").simulate();
    assert_eq!(seen.well().summary.entries, 4);
}

#[test]
fn rejoined_process_sends_no_reply_before_its_request_has_a_time() {
    // Two crash, so the first to come up again waits a whole timeout for the other's welcome.
    for tenths in 150..220 {
        let back = format!("restart:4@{}", f64::from(tenths) / 10.0);
        let case = Case::<RicartAgrawalaAcknowledged>::complete(6).requests(&[3; 6]).ordered();
        let case = case.fault("crash:4@10.9").fault(&back);
        let case = case.fault("crash:1@12.4").fault("restart:1@22.8");
        let seen = case.config(|c| c.time_limit = 1500.0).simulate();
        assert!(seen.violations.is_empty(), "{back}: {:?}", seen.violations);
    }
}
