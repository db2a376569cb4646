use konklave_algorithms::Algorithm;
use konklave_algorithms::group::leader::{Leader, NAMES};
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

/// A group whose views elect their leader.
fn electing(n: usize, election: &str) -> Case<Leader> {
    Case::complete(n).requests(&vec![0; n]).set("election", election)
}

#[test]
fn each_election_leads_views_of_every_size() {
    for election in NAMES {
        for n in 1..=9 {
            let seen = electing(n, election).simulate();
            let highest = ProcessId(n as u32 - 1);
            assert_eq!(seen.well().summary.leader, Some(highest), "{election}, n = {n}");
            if *election == "tree-wave" {
                // 3n + k − 4 messages, and all k = n members of the view start.
                assert_eq!(seen.sent, 4 * n as u64 - 4, "n = {n}");
            }
        }
    }
}

#[test]
fn any_member_may_crash_at_any_step_of_an_election() {
    for election in NAMES {
        for n in 3..=5 {
            for (crashed, step) in (0..n).flat_map(|p| (0..10 * n).map(move |step| (p, step))) {
                let case = electing(n, election).fault(&format!("crash:{crashed}@#{step}"));
                let seen = case.simulate();
                let why = format!("{election}, n = {n}: p{crashed} at step {step}");
                assert!(seen.violations.is_empty(), "{why}: {:?}", seen.violations);
                let highest = (0..n).rev().find(|p| *p != crashed);
                // An election may end before that step: then the crashed process led to the end.
                let leaders = leaders(&seen);
                let survivors = leaders.iter().copied().filter(|p| *p != crashed);
                let led_to_the_end =
                    leaders == [crashed] && seen.processes[0].view().members.len() == n;
                assert!(led_to_the_end || survivors.eq(highest), "{why}: {leaders:?}");
            }
        }
    }
}

#[test]
fn every_run_of_an_election_inside_a_view_has_one_leader() {
    let states = [
        ("franklin", 50_644),
        ("dolev-klawe-rodeh", 16_019),
        ("tree-wave", 30_155),
        ("adoption", 37_476),
    ];
    for (election, states) in states {
        let case = electing(3, election).set("retry", "off").crashes(1, 0);
        case.check().exhausted(states);
    }
}

#[test]
fn a_message_of_an_earlier_election_is_refused() {
    // The request asks for a new view while the election of the first one goes on.
    let case = electing(3, "dolev-klawe-rodeh").requests(&[1, 0, 0]).set("retry", "off");
    assert_eq!(case.check().verdict, "exhausted");
    case.mistake("old-election").check().violated("expected inputs", 10);
}

#[test]
fn elections_inside_views_survive_faults_at_random() {
    let mut led = 0;
    let runs = if long() { 10_000 } else { 160 };
    for seed in 0..runs {
        let mut rng = Rng::new(seed);
        let n = 3 + rng.below(3) as usize;
        let election = NAMES[seed as usize % NAMES.len()];
        let case = electing(n, election).set("heartbeat", 2).config(|c| {
            (c.time_limit, c.detect_after, c.seed) = (300.0, None, seed);
            c.delay = Delay::Uniform(0.2, 1.8);
            (c.loss, c.duplicate) = (0.02, 0.1);
        });
        let (faults, up) = storm(&mut rng, n);
        let case = faults.iter().fold(case, |case, fault| case.fault(fault));
        let seen = case.simulate();
        let why = format!("seed {seed}, {election}, {faults:?}");
        assert!(seen.violations.is_empty(), "{why}: {:?}", seen.violations);
        let leading = leaders(&seen).into_iter().filter(|p| up.contains(&(*p as u32)));
        led += u64::from(leading.count() > 0);
    }
    assert!(10 * led > 8 * runs, "{led} of {runs}");
}

#[test]
fn a_lost_message_of_an_election_is_sent_again() {
    for election in NAMES {
        let lost = |heartbeat: u32| {
            let case = electing(3, election).set("heartbeat", heartbeat);
            let case = case.config(|c| (c.time_limit, c.detect_after) = (300.0, None));
            case.fault("lose:/Inside#1").simulate().summary.agreeing
        };
        // Without heartbeats, some process never learns of the leader.
        assert!(lost(0) < 3, "{election}");
        assert_eq!(lost(2), 3, "{election}");
    }
}

#[test]
fn a_lease_needs_seniority() {
    let refused = |election: &str, lease: u32| {
        let case = electing(3, election).set("lease", lease);
        Leader::check_setup(&case.setup).err().map(|e| e.to_string())
    };
    assert_eq!((refused("seniority", 20), refused("franklin", 0)), (None, None));
    assert!(refused("franklin", 20).is_some_and(|why| why.contains("needs election=seniority")));
}
