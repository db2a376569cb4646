//! How runs end that have no end of their own.

use konklave_catalog::{Scenario, Verdict};

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
