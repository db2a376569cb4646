use konklave_algorithms::detector::phi_accrual::PhiAccrual;
use konklave_process::{ProcessId, ProcessSet, Rng};
use konklave_sim::Delay;
use konklave_testkit::Case;

fn for_time(n: usize, time: f64) -> Case<PhiAccrual> {
    Case::complete(n).config(|c| {
        c.time_limit = time;
        c.detect_after = None;
    })
}

#[test]
fn all_suspect_a_crashed_process_and_no_other() {
    for n in [2, 3, 20] {
        let seen = for_time(n, 100.0).fault("crash:1@50").simulate();
        seen.well();
        assert_eq!((seen.summary.suspicions, seen.summary.false_suspicions), (n as u64 - 1, 0));
        // At most 11 ticks of half a T after the last message, which may be a delay under way.
        assert!(seen.summary.detection_max.unwrap() <= 7.0, "{:?}", seen.summary);
    }
}

#[test]
fn one_message_to_everyone_in_every_period() {
    for n in [1, 2, 5] {
        let messages = |time| for_time(n, time).simulate().well().sent;
        assert_eq!(messages(1000.5) - messages(500.5), 250 * (n * (n - 1)) as u64);
    }
}

#[test]
fn a_higher_threshold_makes_fewer_mistakes_and_notices_later() {
    let run = |threshold: u32| {
        let (mut mistakes, mut detection) = (0, 0.0);
        for seed in 0..30 {
            let case = for_time(4, 400.0).set("threshold", threshold).fault("crash:1@300");
            let case = case.config(|c| {
                c.seed = seed;
                c.delay = Delay::Exponential(2.0);
                c.fifo = false;
            });
            let summary = case.simulate().summary;
            mistakes += summary.false_suspicions;
            detection += summary.detection_mean.unwrap_or(0.0);
        }
        (mistakes, detection / 30.0)
    };
    let (few, some, many) = (run(12), run(4), run(1));
    assert!(few.0 < some.0 && some.0 < many.0, "{few:?} {some:?} {many:?}");
    assert!(few.1 > some.1 && some.1 > many.1, "{few:?} {some:?} {many:?}");
}

#[test]
fn irregular_heartbeats_are_allowed_more_silence_than_regular_ones() {
    let detection = |delay| {
        let case = for_time(3, 400.0).fault("crash:1@350").config(|c| c.delay = delay);
        case.simulate().well().summary.detection_mean.unwrap()
    };
    let (regular, irregular) =
        (detection(Delay::Constant(1.0)), detection(Delay::Uniform(0.1, 8.0)));
    assert!(irregular > regular + 3.0, "{regular} {irregular}");
}

#[test]
fn a_slower_process_is_learned_unless_late_arrivals_are_skipped() {
    let case = for_time(3, 4000.0).fault("rate:1*0.2");
    let seen = case.simulate();
    let false_suspicions = seen.well().summary.false_suspicions;
    assert!((1..20).contains(&false_suspicions), "{false_suspicions}");
    let skipping = case.mistake("skip-late").simulate();
    assert!(skipping.summary.false_suspicions > 20 * false_suspicions);
}

#[test]
fn with_bounded_delays_wrong_suspicions_are_bounded() {
    // Two messages are at most 2 + 11.9T apart, which are 28 ticks; each mistake earns one.
    let most = 6 * 28;
    let case = for_time(3, 3000.0).set("threshold", 1).config(|c| {
        c.delay = Delay::Uniform(0.1, 12.0);
        c.fifo = false;
    });
    for seed in 0..200 {
        let mistakes = case.clone().config(|c| c.seed = seed).simulate().summary.false_suspicions;
        assert!((1..=most).contains(&mistakes), "seed {seed}: {mistakes}");
    }
    assert!(case.mistake("skip-late").simulate().summary.false_suspicions > most);
}

#[test]
fn a_restarted_process_is_restored() {
    for seed in 0..200 {
        let mut rng = Rng::new(seed);
        let (p, at) = (rng.below(4), 20 + rng.below(100));
        let case = for_time(4, 400.0)
            .fault(&format!("crash:{p}@{at}"))
            .fault(&format!("restart:{p}@{}", at + 100))
            .config(|c| {
                c.seed = seed;
                c.delay = Delay::Uniform(0.5, 1.5);
            });
        assert_eq!(case.simulate().well().summary.false_suspicions, 0, "seed {seed}");
    }
}

#[test]
fn the_smallest_and_large_groups_work() {
    let seen = for_time(1, 20.0).simulate();
    assert_eq!(seen.well().summary.suspected, [(ProcessId(0), ProcessSet::new())]);
    for_time(300, 20.0).simulate().well();
}
