//! Verdicts name the assumptions that did not hold.

use konklave_catalog::{Assumption, Plan, Scenario, Verdict};

use crate::find;

/// The plan of a run with these wishes.
fn plan(name: &str, change: impl FnOnce(&mut Scenario)) -> Plan {
    let mut scenario = Scenario { nodes: Some(4), ..Scenario::default() };
    change(&mut scenario);
    find(name).unwrap().plan(scenario).unwrap()
}

fn broken(plan: &Plan) -> Vec<Assumption> {
    plan.broken.iter().map(|(assumption, _)| *assumption).collect()
}

#[test]
fn delays_longer_than_timeouts_allow_for_break_known_time_bounds() {
    for (name, longest) in [
        ("bully", 2.5),
        ("bully --set mode=hardened", 2.5),
        ("ricart-agrawala-acknowledged", 2.5),
        ("ring-list --set mode=hardened", 2.0),
        ("chang-roberts --set mode=hardened", 2.0),
    ] {
        let (name, set) = name.split_once(" --set ").unwrap_or((name, ""));
        let with = |delay: String| {
            plan(name, |s| {
                s.delay = Some(delay);
                s.set = vec![set.to_owned()];
            })
        };
        assert_eq!(broken(&with(format!("uniform:0.1..{longest}"))), [], "{name} {set}");
        let late = with(format!("uniform:0.1..{}", longest + 0.1));
        assert_eq!(broken(&late), [Assumption::Synchronous], "{name} {set}");
    }
    let patient = plan("bully", |s| {
        s.delay = Some("uniform:1..20".into());
        s.set = vec!["timeout=40".into()];
    });
    assert_eq!(broken(&patient), []);
}

#[test]
fn restart_breaks_an_assumption_of_the_textbook() {
    let again = |s: &mut Scenario| s.faults = vec!["crash:3@10".into(), "restart:3@30".into()];
    assert_eq!(broken(&plan("bully", again)), [Assumption::NoRestart]);
    assert_eq!(broken(&plan("token-ring", again)), [Assumption::NoRestart]);
    let hardened = plan("bully", |s| {
        again(s);
        s.set = vec!["mode=hardened".into()];
    });
    assert_eq!(broken(&hardened), []);
}

#[test]
fn a_wrong_suspicion_breaks_the_assumption_that_the_detector_is_right() {
    let wrong = |s: &mut Scenario| s.faults = vec!["suspect:3>0@1.9".into()];
    for name in ["ring-list", "chang-roberts", "firewire"] {
        assert_eq!(broken(&plan(name, wrong)), [Assumption::AccurateDetector], "{name}");
    }
    let silent = plan("firewire", |s| {
        s.faults = vec!["break:0-1@5".into()];
        s.topology = Some("path".into());
        s.detect_after = Some("never".into());
    });
    let why = (Assumption::AccurateDetector, "no process learns of break:0-1@5".to_owned());
    assert_eq!(silent.broken, [why]);
}

/// An algorithm that uses the host's detector either survives its errors or assumes that it makes none.
#[test]
fn a_wrong_suspicion_does_no_harm_where_no_assumption_is_broken() {
    let mut failures = Vec::new();
    for entry in crate::catalog().entries() {
        for seed in 1..=30 {
            let (n, at) = (3 + seed % 3, seed as f64 / 4.0);
            let (who, whom) = (seed % n, (seed / 2 + 1) % n);
            let scenario = Scenario {
                nodes: Some(n as usize),
                seed: Some(seed),
                faults: vec![format!("suspect:{who}>{whom}@{at}")],
                time_limit: Some(1000.0),
                step_limit: Some(200_000),
                ..Scenario::default()
            };
            let Ok(plan) = entry.plan(scenario) else { continue };
            if who == whom || !plan.broken.is_empty() {
                continue;
            }
            let report = entry.simulate(&plan, false).unwrap().report;
            if matches!(report.verdict, Verdict::Violated | Verdict::Stuck) {
                failures.push(format!("{}: {:?}", report.command, report.violations.first()));
                break;
            }
        }
    }
    assert!(failures.is_empty(), "run again:\n{}", failures.join("\n"));
}

#[test]
fn a_run_with_quorums_says_how_large_they_are() {
    for (name, least, most, load) in [("maekawa", 3, 3, 3), ("cao-singhal", 3, 3, 3)] {
        let plan = plan(name, |_| {});
        let report = find(name).unwrap().simulate(&plan, false).unwrap().report;
        let quorums = &report.problem["mutex"]["quorums"];
        assert_eq!(
            (quorums["least"].as_u64(), quorums["most"].as_u64()),
            (Some(least), Some(most))
        );
        assert_eq!(quorums["heaviest_load"].as_u64(), Some(load));
        assert_eq!(quorums["words"], "of 3, each process in 3");
    }
}
