//! Options of `check` that choose what is searched: ends of the scale, shares, who may crash.

use serde_json::Value;

use super::konklave_line;

fn found(line: &str, code: i32) -> Value {
    let said = konklave_line(&format!("{line} --format json"));
    assert_eq!(said.code, code, "{line}: {}", said.err);
    serde_json::from_str(&said.out).expect("a report")
}

fn sends(report: &Value) -> usize {
    let steps = report["witness"].as_array().expect("steps").iter();
    steps.map(|step| step.as_str().unwrap_or_default().matches("sends").count()).sum()
}

#[test]
fn the_cheapest_and_the_dearest_run_are_shown_and_cost_what_is_said() {
    let least = found("check chang-roberts -n 3 --minimise messages", 0);
    let most = found("check chang-roberts -n 3 --maximise messages", 0);
    assert_eq!(least["messages"], most["messages"]);
    let (low, high) = (&least["messages"][0], &least["messages"][1]);
    assert!(low.as_u64() < high.as_u64(), "{low} … {high}");
    assert!(least["witness_length"].as_u64() > Some(0));
    assert!(sends(&least) < sends(&most), "{least:#} {most:#}");
    let said = konklave_line("check chang-roberts -n 3 --minimise messages");
    assert!(said.out.starts_with("A run with the fewest messages, "), "{}", said.out);
    assert!(said.out.contains("--minimise messages"), "it says how to find it again");
    let both = "check chang-roberts --minimise messages --maximise messages";
    assert_eq!(konklave_line(both).code, 64);
}

#[test]
fn a_share_of_random_runs_finds_a_mistake_or_proves_nothing() {
    let wrong = "check ricart-agrawala -n 3 --mistake no-tie-break --runs 2000 --seed 7";
    for shard in ["1/2", "2/2"] {
        let report = found(&format!("{wrong} --shard {shard}"), 1);
        assert_eq!(report["verdict"], "violated");
        let again = found(&format!("{wrong} --shard {shard}"), 1);
        assert_eq!(again["witness"], report["witness"], "a share is the same every time");
    }
    let right = found("check ricart-agrawala -n 3 --shard 1/2 --runs 20", 2);
    assert_eq!((&right["verdict"], &right["bound"]), (&"bounded".into(), &"sample".into()));
    for bad in ["0/2", "3/2", "1", "x/y"] {
        let said = konklave_line(&format!("check ricart-agrawala --shard {bad}"));
        assert_eq!(said.code, 64, "{bad}: {}", said.err);
    }
}

#[test]
fn who_may_crash_decides_what_breaks() {
    let lock = "check central -n 3 --crash 1 --property deadlock";
    let holder = found(&format!("{lock} --victim holder"), 1);
    assert_eq!(holder["property"], "deadlock");
    let command = holder["command"].as_str().expect("a command");
    assert!(command.contains("--crash 1 --victim holder"), "{command}");
    let anyone = found(lock, 1);
    assert!(anyone["witness_length"].as_u64() <= holder["witness_length"].as_u64());
    assert_eq!(konklave_line(&format!("{lock} --victim nobody")).code, 64);
}
