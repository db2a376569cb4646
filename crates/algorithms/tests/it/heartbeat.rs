use konklave_algorithms::detector::heartbeat::Heartbeat;
use konklave_process::ProcessSet;
use konklave_sim::Delay;
use konklave_testkit::Case;

#[test]
fn all_suspect_a_crashed_process_and_no_other() {
    for n in [2, 3, 20] {
        let case =
            Case::<Heartbeat>::complete(n).fault("crash:1@10").config(|c| c.time_limit = 50.0);
        let seen = case.simulate();
        seen.well();
        assert_eq!(seen.summary.suspicions, n as u64 - 1);
        assert_eq!(seen.summary.false_suspicions, 0);
        assert!(seen.summary.detection_max.unwrap() <= 8.0, "{:?}", seen.summary);
    }
}

#[test]
fn it_learns_from_wrong_suspicions() {
    let case = Case::<Heartbeat>::complete(3).set("misses", 1).config(|c| {
        c.delay = Delay::Uniform(0.5, 6.0);
        c.fifo = false;
        c.time_limit = 3000.0;
    });
    let patient = case.simulate();
    assert!(patient.well().summary.false_suspicions > 0);
    let impatient = case.mistake("impatient").simulate();
    assert!(impatient.summary.false_suspicions > 10 * patient.summary.false_suspicions);
}

#[test]
fn a_single_process_suspects_none() {
    let seen = Case::<Heartbeat>::complete(1).config(|c| c.time_limit = 20.0).simulate();
    assert_eq!(
        seen.well().summary.suspected,
        [(konklave_process::ProcessId(0), ProcessSet::new())]
    );
}
