//! How runs end, and what their verdicts say of that.

use konklave_catalog::{RunReport, Scenario, Verdict};

use crate::find;

#[test]
fn a_group_that_only_watches_when_everyone_is_served_ends_well() {
    for name in ["lifted", "lock-table", "virtual-synchrony"] {
        let run = |heartbeat: u32, time: f64| {
            let scenario = Scenario {
                nodes: Some(3),
                entries: Some(2),
                time_limit: Some(time),
                set: vec![format!("heartbeat={heartbeat}")],
                ..Scenario::default()
            };
            let entry = find(name).unwrap();
            entry.simulate(&entry.plan(scenario).unwrap(), false).unwrap().report.verdict
        };
        assert_eq!(run(4, 300.0), Verdict::Ok, "{name}");
        assert_eq!(run(0, 300.0), Verdict::Ok, "{name} without heartbeats");
        // Cut off while someone still wants something.
        assert_eq!(run(4, 1.5), Verdict::Unfinished, "{name}");
    }
}

/// The report of a run of `nodes` nodes with a further change of the scenario.
fn report(name: &str, nodes: usize, change: impl FnOnce(&mut Scenario)) -> RunReport {
    let mut scenario = Scenario { nodes: Some(nodes), ..Scenario::default() };
    change(&mut scenario);
    let entry = find(name).unwrap();
    entry.simulate(&entry.plan(scenario).unwrap(), false).unwrap().report
}

#[test]
fn time_ends_with_the_last_event_that_mattered() {
    let bus = report("firewire", 2, |s| {
        s.topology = Some("path".into());
        s.seed = Some(3);
    });
    // All know at 7.92 T; the timer of 1670 T was cancelled.
    assert_eq!(bus.problem["election"]["time_to_all"], bus.time);
    assert!(bus.time < 10.0, "{}", bus.time);
    // A fault after the last step matters, and so does a message that a crashed process does not get.
    let late = report("chang-roberts", 3, |s| s.faults = vec!["crash:0@500".into()]);
    assert_eq!(late.time, 503.0, "the others learn of it after 3 T");
}

#[test]
fn a_run_in_which_no_client_learns_anything_new_ends_by_itself() {
    // p2 never learns that it is a child, and contends with p1 for ever.
    for lost in ["lose:#5", "lose:#6"] {
        let contended = |limit| {
            report("firewire", 3, |s| {
                s.topology = Some("path".into());
                s.faults = vec![lost.into()];
                s.time_limit = limit;
            })
        };
        let run = contended(None);
        let why = run.unfinished.unwrap_or_default();
        let told = "it was cut off: no client learned anything new for ";
        assert_eq!(run.verdict, Verdict::Unfinished, "{lost}");
        assert!(why.starts_with(told) && why.contains(" BeMyParent)"), "{lost}: {why}");
        assert!(run.steps < 100_000 && run.time > 10_000.0, "{lost}: {} steps", run.steps);
        let limited = contended(Some(500_000.0));
        assert_eq!((limited.verdict, limited.time), (Verdict::Unfinished, 500_000.0), "{lost}");
    }
    // Members without a majority send the same messages again and again.
    for (name, change) in [
        ("lifted", (|s| s.down = Some("1,2".into())) as fn(&mut Scenario)),
        ("virtual-synchrony", |s| {
            s.down = Some("1,2".into());
            s.set = vec!["heartbeat=4".into()];
        }),
    ] {
        let run = report(name, 3, change);
        assert_eq!(run.verdict, Verdict::Unfinished, "{name}");
        assert!(run.steps < 100_000, "{name}: {} steps", run.steps);
    }
}

#[test]
fn a_run_ends_well_if_only_cancelled_timers_are_left_at_its_limit() {
    for limit in [None, Some(10.0), Some(2000.0)] {
        let bus = report("firewire", 3, |s| {
            s.topology = Some("path".into());
            s.time_limit = limit;
        });
        assert_eq!(bus.verdict, Verdict::Ok, "{limit:?}");
        assert!(bus.time < 10.0, "{limit:?}: {}", bus.time);
    }
}

#[test]
fn a_perpetual_token_ring_ends_when_all_requests_are_served() {
    for n in [1, 2, 5] {
        let ring = |limit| {
            report("token-ring", n, |s| {
                s.set = vec!["mode=perpetual".into()];
                s.entries = Some(2);
                s.time_limit = limit;
            })
        };
        let (own_end, limited) = (ring(None), ring(Some(1000.0)));
        assert_eq!((own_end.verdict, limited.verdict), (Verdict::Ok, Verdict::Ok), "n = {n}");
        assert_eq!(own_end.problem["mutex"]["entries"], 2 * n);
        assert!(own_end.time < 100.0, "n = {n}: {}", own_end.time);
    }
}

#[test]
fn a_run_that_only_watches_ends_some_time_after_the_last_fault() {
    let group = report("lock-table", 3, |s| {
        s.set = vec!["heartbeat=4".into()];
        s.faults = vec!["crash:2@50".into()];
    });
    assert_eq!(group.verdict, Verdict::Ok);
    assert!((150.0..200.0).contains(&group.time), "{}", group.time);
    assert_eq!(group.problem["group"]["views"], 5, "the survivors installed a view without p2");
}

#[test]
fn a_group_without_a_majority_says_why_it_is_unfinished() {
    let group = report("lifted", 3, |s| {
        s.down = Some("1,2".into());
        s.time_limit = Some(300.0);
    });
    let why = "1 of 3 members is up, and the next view needs a majority of the last one";
    assert_eq!((group.verdict, group.unfinished.as_deref()), (Verdict::Unfinished, Some(why)));
    let slow = report("lifted", 3, |s| s.time_limit = Some(1.5));
    let why = "it was cut off at 1.5 T; --time-limit allows for more";
    assert_eq!((slow.verdict, slow.unfinished.as_deref()), (Verdict::Unfinished, Some(why)));
}

#[test]
fn a_loop_is_a_verdict_of_its_own() {
    for (n, topology) in [(3, "ring"), (4, "complete")] {
        let bus = report("firewire", n, |s| s.topology = Some(topology.into()));
        assert_eq!((bus.verdict, bus.verdict.exit_code()), (Verdict::Loop, 0), "{topology}");
        assert_eq!(bus.problem["election"]["looped"], n);
    }
    let tree = report("firewire", 4, |s| s.topology = Some("path".into()));
    assert_eq!(tree.verdict, Verdict::Ok);
}

#[test]
fn a_divided_bus_names_the_root_of_each_part() {
    let bus = report("firewire", 4, |s| {
        s.topology = Some("path".into());
        s.faults = vec!["break:1-2@20".into()];
    });
    assert_eq!((bus.verdict, bus.broken_assumptions), (Verdict::Ok, Vec::new()));
    let leaders = bus.problem["election"]["leaders"].as_array().unwrap();
    let part = |id: &serde_json::Value| id.as_u64().unwrap() / 2;
    assert_eq!(leaders.iter().map(part).collect::<Vec<_>>(), [0, 1], "{leaders:?}");
}

#[test]
fn plugging_and_unplugging_a_bus_breaks_no_assumption_and_no_property() {
    for seed in 0..200u32 {
        let at = f64::from(seed % 130) / 10.0;
        let fault = match seed % 3 {
            0 => vec![format!("break:1-{}@{at}-{}", seed % 2 * 2, at + f64::from(seed % 29) + 1.0)],
            1 => vec![format!("crash:{}@{at}", seed % 7)],
            _ => vec![
                format!("crash:{}@{at}", seed % 7),
                format!("restart:{}@{}", seed % 7, at + f64::from(seed % 17)),
            ],
        };
        let bus = report("firewire", 7, |s| {
            s.topology = Some(if seed % 2 == 0 { "path" } else { "random-tree" }.into());
            s.seed = Some(u64::from(seed));
            s.faults = fault;
            if seed % 3 == 0 {
                s.topology = Some("path".into());
            }
        });
        assert_eq!((bus.verdict, bus.violations), (Verdict::Ok, Vec::new()), "{}", bus.command);
        assert_eq!(bus.broken_assumptions, [""; 0], "{}", bus.command);
    }
}

#[test]
fn bully_runs_as_on_the_slide_unless_options_say_otherwise() {
    let bully = find("bully").unwrap();
    let usual = |change: &dyn Fn(&mut Scenario)| {
        let mut scenario = Scenario { nodes: Some(4), ..Scenario::default() };
        change(&mut scenario);
        let usual = bully.usual(scenario).unwrap();
        (usual.down, usual.initiators)
    };
    let words = |down: Option<&str>, starts: Option<&str>| {
        (down.map(str::to_owned), starts.map(str::to_owned))
    };
    assert_eq!(usual(&|_| {}), words(Some("3"), Some("0")));
    assert_eq!(usual(&|s| s.ids = Some("7,2,9,4".into())), words(Some("9"), Some("2")));
    assert_eq!(usual(&|s| s.nodes = Some(1)), words(None, None));
    assert_eq!(usual(&|s| s.initiators = Some("all".into())), words(None, Some("all")));
    assert_eq!(usual(&|s| s.entries = Some(2)), words(None, None));
    assert_eq!(usual(&|s| s.down = Some("0,1".into())), words(Some("0,1"), Some("2")));
    assert_eq!(usual(&|s| s.faults = vec!["crash:3@2".into()]), words(None, Some("0")));
    let others = find("ring-list").unwrap().usual(Scenario::default()).unwrap();
    assert_eq!(others, Scenario::default());
}

#[test]
fn a_suspicion_of_a_restarted_process_is_no_detection() {
    for name in ["heartbeat", "phi-accrual"] {
        let told = |faults: &[&str]| {
            let run = report(name, 3, |s| {
                s.faults = faults.iter().map(|fault| (*fault).to_owned()).collect();
                s.time_limit = Some(200.0);
            });
            let measured = &run.problem["detector"];
            (measured["detection_mean"].is_null(), measured["false_suspicions"].as_u64())
        };
        assert_eq!(told(&["crash:2@50"]), (false, Some(0)), "{name}");
        // It is back before anyone misses it, and cannot be heard later.
        let (undetected, wrong) = told(&["crash:2@50", "restart:2@51", "cut:2>0@100-150"]);
        assert!(undetected && wrong > Some(0), "{name}: {wrong:?}");
    }
}
