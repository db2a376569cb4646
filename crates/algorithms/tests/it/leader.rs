use konklave_algorithms::group::leader::Leader;
use konklave_process::{ProcessId, Rng};
use konklave_sim::Delay;
use konklave_testkit::Case;

use crate::long;
use crate::play::storm;

fn calm(n: usize) -> Case<Leader> {
    Case::complete(n).requests(&vec![0; n]).set("retry", "off")
}

fn leased(n: usize, time: f64) -> Case<Leader> {
    let case = Case::complete(n).requests(&vec![0; n]).set("heartbeat", 2).set("lease", 20);
    case.config(|c| (c.time_limit, c.detect_after) = (time, None))
}

/// The processes that take themselves for the leader in the end.
fn leaders(seen: &konklave_testkit::Seen<Leader>) -> Vec<usize> {
    let all = seen.processes.iter().enumerate();
    all.filter(|(_, p)| p.leads().is_some()).map(|(i, _)| i).collect()
}

#[test]
fn the_most_senior_leads_and_the_next_one_after_it() {
    for n in 1..6 {
        let seen = calm(n).simulate();
        assert_eq!(seen.well().summary.leader, Some(ProcessId(0)));
    }
    let seen = calm(4).fault("crash:0@1").simulate();
    assert_eq!(seen.well().summary.leader, Some(ProcessId(1)));
    // Known after three, agreed after four more.
    assert_eq!(seen.processes[1].leads().map(|v| v.epoch), Some(1));
}

#[test]
fn every_run_has_one_leader_per_epoch() {
    let case = calm(3).crashes(1, 0).judge(&["one leader per epoch", "growing epochs"]);
    case.check().exhausted(369);
    let found = case.mistake("same-epoch").check();
    assert_eq!((found.verdict, found.property), ("violated", Some("one leader per epoch")));
}

#[test]
fn k12_a_leader_that_is_excluded_has_lost_its_lease_before_another_leads() {
    // 0 receives nothing any more and suspects no process: it counts itself as leader until its lease ends.
    let cut = Case::<Leader>::complete(3).requests(&[0; 3]).set("lease", 60);
    let cut = cut.config(|c| (c.time_limit, c.detect_after) = (300.0, None));
    let faults = ["cut:1>0@9", "cut:2>0@9", "suspect:1>0@10", "suspect:2>0@10"];
    let cut = faults.iter().fold(cut, |case, fault| case.fault(fault));
    let seen = cut.simulate();
    assert!(seen.violations.is_empty(), "{:?}", seen.violations);
    assert_eq!(leaders(&seen), [1]);
    let wrong = cut.clone().mistake("no-delay").simulate();
    assert!(wrong.violations.iter().any(|v| v.contains("one leader at a time")));
    // Clocks may differ by a tenth.
    for rates in [["0*0.95", "1*1.05"], ["0*1.05", "1*0.95"]] {
        let case = rates.iter().fold(cut.clone(), |c, rate| c.fault(&format!("rate:{rate}")));
        let seen = case.simulate();
        assert!(seen.violations.is_empty(), "{:?}", seen.violations);
        assert_eq!(leaders(&seen), [1]);
    }
}

#[test]
fn no_history_has_two_leased_leaders() {
    for seed in 0..if long() { 10_000 } else { 150 } {
        let mut rng = Rng::new(seed);
        let n = 3 + rng.below(3) as usize;
        let case =
            leased(n, 300.0).config(|c| (c.seed, c.delay) = (seed, Delay::Uniform(0.2, 1.8)));
        // A sleeping leader does not notice that its lease lapses: its clock is not steady.
        let (faults, up) = storm(&mut rng, n);
        let faults = faults.into_iter().filter(|f| !f.starts_with("pause"));
        let case = faults.fold(case, |case, fault| case.fault(&fault));
        let seen = case.simulate();
        assert!(seen.violations.is_empty(), "seed {seed}: {:?}", seen.violations);
        let leading = leaders(&seen).into_iter().filter(|p| up.contains(&(*p as u32)));
        assert!(leading.count() <= 1, "seed {seed}");
    }
}
