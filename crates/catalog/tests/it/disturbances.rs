//! Cost formulas in runs with faults: what disturbs a run ends the formula's condition, so no fault turns
//! a formula into a violation. `KONKLAVE_LONG=1` tries ten times as many runs.

use konklave_catalog::{Entry, RunReport, Scenario, Verdict};
use konklave_process::Rng;

use crate::{catalog, find};

fn seeds() -> u64 {
    if std::env::var_os("KONKLAVE_LONG").is_some() { 400 } else { 40 }
}

fn simulate(entry: &Entry, scenario: Scenario) -> Option<RunReport> {
    let plan = entry.plan(scenario).ok()?;
    Some(entry.simulate(&plan, false).ok()?.report)
}

/// The report of `konklave run` with these words: algorithm, nodes, further options by name.
fn run(name: &str, nodes: usize, change: impl FnOnce(&mut Scenario)) -> RunReport {
    let mut scenario = Scenario { nodes: Some(nodes), ..Scenario::default() };
    change(&mut scenario);
    simulate(find(name).unwrap(), scenario).unwrap()
}

fn breaks_formula(report: &RunReport) -> bool {
    report.violations.iter().any(|violation| violation.property == "bound")
}

/// One to three faults on members and messages, at times at which a run of `n` is busy.
fn faults(n: u32, kinds: &[String], rng: &mut Rng) -> Vec<String> {
    let mut faults = Vec::new();
    for _ in 0..=rng.below(2) {
        let (p, q) = (rng.below(n), rng.below(n));
        let at = f64::from(rng.below(120)) / 10.0;
        let kind = &kinds[rng.below(kinds.len() as u32) as usize];
        let nth = 1 + rng.below(6);
        match rng.below(9) {
            0 => faults.push(format!("crash:{p}@{at}")),
            1 => {
                faults.push(format!("crash:{p}@{at}"));
                faults.push(format!("restart:{p}@{}", at + 1.0));
            }
            2 if p != q => faults.push(format!("suspect:{p}>{q}@{at}")),
            3 => faults.push(format!("pause:{p}@{at}-{}", at + 5.0)),
            4 => faults.push(format!("rate:{p}*{}", 1 + rng.below(5))),
            5 => faults.push(format!("lose:/{kind}#{nth}")),
            6 => faults.push(format!("duplicate:/{kind}#{nth}")),
            7 => faults.push(format!("delay:/{kind}#{nth}+7")),
            8 if p != q => faults.push(format!("cut:{p}>{q}@{at}-{}", at + 4.0)),
            _ => faults.push(format!("crash:{p}@#{}", 1 + rng.below(60))),
        }
    }
    faults
}

#[test]
fn random_faults_break_no_formula_that_the_same_run_keeps_without_them() {
    let mut failures = Vec::new();
    for entry in catalog().entries() {
        for seed in 1..=seeds() {
            let mut rng = Rng::new(seed).fork(7);
            let n = 2 + rng.below(5) as usize;
            let quiet = Scenario {
                nodes: Some(n),
                seed: Some(seed),
                initiators: (rng.below(2) == 0 && entry.problem.asks).then(|| "1x".to_owned()),
                down: (rng.below(3) == 0).then(|| (n - 1).to_string()),
                time_limit: Some(400.0),
                step_limit: Some(200_000),
                ..Scenario::default()
            };
            let Some(without) = simulate(entry, quiet.clone()) else { continue };
            let kinds: Vec<String> = without.messages.by_kind.keys().cloned().collect();
            if kinds.is_empty() {
                continue;
            }
            let faults = faults(n as u32, &kinds, &mut rng);
            let Some(with) = simulate(entry, Scenario { faults, ..quiet }) else { continue };
            if breaks_formula(&with) && !breaks_formula(&without) {
                failures.push(with.command);
                break;
            }
        }
    }
    assert!(failures.is_empty(), "run again:\n{}", failures.join("\n"));
}

#[test]
fn a_second_crash_ends_the_condition_of_bully_s_formulas() {
    let crashed = |at: &str| {
        run("bully", 5, |s| {
            s.down = Some("4".into());
            s.initiators = Some("0".into());
            s.faults = vec![format!("crash:3@{at}")];
        })
    };
    let report = crashed("2");
    assert_eq!((report.verdict, report.violations), (Verdict::Ok, Vec::new()));
    let why = report.bounds[0].why.as_deref();
    assert_eq!(why, Some("it holds for runs without faults, and crash:3@2 struck"));
    // A crash that never happens leaves the formulas as they are.
    let report = crashed("#100000");
    assert_eq!((report.bounds[0].holds, report.messages.sent), (Some(true), 19));
    assert_eq!(report.faults_without_effect, ["crash:3@#100000: the run ended before"]);
}

#[test]
fn crash_and_restart_end_the_condition_that_nobody_crashes() {
    let report = run("virtual-tree", 2, |s| {
        s.seed = Some(863);
        let faults = ["crash:0@0.5", "restart:0@1.5", "crash:1@3.9", "restart:1@4.9"];
        s.faults = faults.map(str::to_owned).to_vec();
    });
    assert!(report.bounds.iter().all(|bound| bound.holds.is_none()), "{:?}", report.bounds);
}

#[test]
fn a_fault_that_changes_nothing_is_told_with_its_reason() {
    let told = |fault: &str| {
        run("bully", 4, |s| {
            s.down = Some("3".into());
            s.faults = vec![fault.to_owned()];
        })
        .faults_without_effect
    };
    assert_eq!(told("lose:/Election#99"), ["lose:/Election#99: only 6 such messages were sent"]);
    assert_eq!(told("lose:0>3/Answer"), ["lose:0>3/Answer#1: no such message was sent"]);
    assert_eq!(told("crash:3@1"), ["crash:3@1: the process was down"]);
    assert_eq!(told("pause:3@1-2"), ["pause:3@1-2: the process was down"]);
    assert_eq!(told("suspect:3>0@1"), ["suspect:3>0@1: the process was down"]);
    assert_eq!(told("rate:1*1"), ["rate:1*1: it changes no rate"]);
    assert_eq!(told("crash:2@1"), [""; 0]);
    assert_eq!(told("lose:/Election#2"), [""; 0]);
}

#[test]
fn no_formula_is_exceeded_where_nobody_can_enter() {
    let report = run("voting", 3, |s| s.down = Some("1,2".into()));
    assert_eq!(report.verdict, Verdict::Stuck);
    let messages = &report.bounds[0];
    assert_eq!((messages.holds, messages.why.as_deref()), (None, Some("a client waits for ever")));
}
