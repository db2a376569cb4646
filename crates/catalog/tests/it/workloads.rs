//! One seed means one workload, whatever the algorithm; loads of all kinds, and nodes that need time.

use std::collections::BTreeMap;

use konklave_catalog::{Outcome, Scenario};
use serde_json::Value;

use crate::find;

fn outcome(algorithm: &str, text: &str) -> Outcome {
    let entry = find(algorithm).unwrap();
    let scenario = Scenario::parse(text, "test").unwrap();
    let scenario = Scenario { algorithm: Some(entry.name()), ..scenario };
    entry.simulate(&entry.plan(scenario).unwrap(), true).unwrap()
}

fn measures(algorithm: &str, text: &str) -> Value {
    let report = outcome(algorithm, text).report;
    assert_eq!(report.verdict.name(), "ok", "{algorithm}: {:?}", report.violations);
    serde_json::to_value(report).unwrap()
}

fn why(algorithm: &str, text: &str) -> String {
    let scenario = Scenario::parse(text, "test").unwrap();
    find(algorithm).unwrap().plan(scenario).unwrap_err().to_string()
}

/// The pauses and the hold times of each client, in ticks, in their order.
fn wishes(algorithm: &str, text: &str) -> BTreeMap<u64, Vec<u64>> {
    let run = outcome(algorithm, text).run.unwrap().to_text();
    let (mut wishes, mut since) = (BTreeMap::<u64, Vec<u64>>::new(), BTreeMap::new());
    for line in run.lines().skip(1) {
        let step: Value = serde_json::from_str(line).unwrap();
        let (Some(node), Some(at)) = (step["node"].as_u64(), step["at"].as_u64()) else { continue };
        if step["in"]["request"].is_string() {
            let from = since.insert(node, at).unwrap_or(0);
            wishes.entry(node).or_default().push(at - from);
        }
        let grants = step["do"].as_array().into_iter().flatten();
        if grants.filter(|effect| !effect["indicate"].is_null()).count() > 0 {
            since.insert(node, at);
        }
    }
    wishes
}

#[test]
fn algorithms_meet_the_same_clients_with_one_seed() {
    let text = "nodes = 5\nentries = 6\nseed = 9\nthink = 'exponential:20'\nhold = 'uniform:1..4'\n\
                delay = 'exponential'\n";
    let central = wishes("central", text);
    assert_eq!(central.len(), 5);
    assert!(central.values().all(|pauses| pauses.len() == 12), "{central:?}");
    for other in ["raymond", "suzuki-kasami", "maekawa", "ricart-agrawala", "token-ring"] {
        assert_eq!(wishes(other, text), central, "{other}");
    }
    // Losses and delays of messages leave clients alone, too.
    assert_eq!(wishes("central", &text.replace("'exponential'\n", "'uniform'\n")), central);
    assert_ne!(wishes("central", &text.replace("seed = 9", "seed = 10")), central);
}

#[test]
fn response_of_open_load_begins_with_the_arrival() {
    let load = |mean: &str| {
        let text = format!("nodes = 8\nentries = 200\nhold = 1\nthink = 'arrivals:{mean}'\n");
        measures("raymond", &text)["mutex"].clone()
    };
    let (idle, overloaded) = (load("100"), load("2"));
    let open = |run: &Value, key: &str| run["open_load"][key].as_f64().unwrap();
    assert_eq!(idle["open_load"]["saturated"], false, "{idle}");
    assert_eq!(overloaded["open_load"]["saturated"], true, "{overloaded}");
    assert!((open(&overloaded, "offered") - 4.0).abs() < 0.3, "{overloaded}");
    // Requests that nobody serves pile up: with each lock, 1600 requests arrive in 400 T.
    assert!(open(&overloaded, "backlog_max") > 1000.0 && open(&idle, "backlog_max") < 10.0);
    let response = |run: &Value| run["response"]["mean"].as_f64().unwrap();
    assert!(response(&overloaded) > 20.0 * response(&idle), "{overloaded}");
    // Little's law, for the part of the response before the entry.
    let wait = overloaded["wait"]["mean"].as_f64().unwrap();
    let arrivals = 1600.0 / open(&overloaded, "backlog_mean");
    let span = wait * arrivals;
    let served = 1600.0 / overloaded["throughput"].as_f64().unwrap();
    assert!((span / served - 1.0).abs() < 0.02, "{span} {served}");
}

#[test]
fn steady_state_leaves_out_warm_up_and_end() {
    let text = "nodes = 4\nentries = 20\n";
    let whole = measures("central", text);
    let steady = measures("central", &format!("{text}warm-up = 5\n"));
    assert_eq!(whole["mutex"].get("measured"), None);
    let measured = &steady["mutex"]["measured"];
    // 80 entries: 20 are warm-up, and the first client ends with entry 77.
    assert_eq!(measured["entries"], 57, "{measured}");
    assert_eq!(steady["messages"], whole["messages"], "the run is the same");
    assert_eq!(steady["mutex"]["entries"], 80);
    let (from, until) = (measured["from"].as_f64().unwrap(), measured["until"].as_f64().unwrap());
    let throughput = steady["mutex"]["throughput"].as_f64().unwrap();
    assert!((throughput - 57.0 / (until - from)).abs() < 1e-9);
    let sent = measured["messages"].as_f64().unwrap();
    assert_eq!(steady["mutex"]["messages_per_entry"].as_f64().unwrap(), sent / 57.0);
    assert_eq!(steady["mutex"]["wait"]["count"], 57);
    assert!(why("central", "entries = 5\nwarm-up = 5").contains("less than the 5 requests"));
    assert!(why("central", "entries = 1\nwarm-up = 1").contains("less than the 1 request of"));
}

#[test]
fn one_node_and_two_have_a_steady_state() {
    for n in [1, 2] {
        for lock in ["central", "raymond", "maekawa", "lamport"] {
            let report = measures(lock, &format!("nodes = {n}\nentries = 10\nwarm-up = 2\n"));
            let entries = report["mutex"]["measured"]["entries"].as_u64().unwrap();
            assert!((8 * n - n..=8 * n).contains(&entries), "{lock} {n}: {entries}");
        }
    }
}

#[test]
fn a_skew_lets_the_first_node_ask_most() {
    let text = "nodes = 4\nentries = 30\nskew = 1\nthink = 'exponential:50'\n";
    let report = measures("central", text);
    let entries: Vec<u64> = report["mutex"]["entries_per_node"]
        .as_array()
        .unwrap()
        .iter()
        .map(|pair| pair[1].as_u64().unwrap())
        .collect();
    // 1, 1/2, 1/3 and 1/4 of 57.6.
    assert_eq!(entries, [58, 29, 19, 14]);
    let plan = find("central").unwrap().plan(Scenario::parse(text, "t").unwrap()).unwrap();
    let mean = plan.config.weights.iter().sum::<f64>() / 4.0;
    assert!((mean - 1.0).abs() < 1e-9, "{:?}", plan.config.weights);
    assert!(why("central", "skew = -1").contains("--skew"));
}

#[test]
fn a_trace_is_replayed_at_its_times() {
    let folder = std::env::temp_dir().join(format!("konklave-trace-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("trace.csv");
    let write = |text: &str| std::fs::write(&file, text).unwrap();
    let scenario = format!("nodes = 3\nscript = '{}'\n", file.display());
    write("time,node\n0,1\n# a pause\n7.5,2\n7.5 0\n");
    let first = outcome("central", &scenario);
    let command = first.report.command.clone();
    assert!(command.contains("--script 1@0,2@7.5,0@7.5"), "{command}");
    // The recording holds the times, so that it replays although the file has changed.
    write("0 0\n");
    let entry = find("central").unwrap();
    let (_, plan) = crate::catalog().plan_of(first.run.as_ref().unwrap()).unwrap();
    assert!(entry.replay(&plan, first.run.as_ref().unwrap()).is_ok());
    for (text, line) in [("0 0\n1 x y\n", 2), ("zero 0\n", 1), ("# none\n", 1)] {
        write(text);
        let said = why("central", &scenario);
        assert!(said.contains(&format!("trace.csv:{line}: expected")), "{said}");
    }
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_coordinator_with_much_to_do_saturates_first() {
    let throughput = |lock: &str, service: &str| {
        let text = format!("nodes = 16\nentries = 20\nwarm-up = 4\nservice = {service}\n");
        measures(lock, &text)["mutex"]["throughput"].as_f64().unwrap()
    };
    for lock in ["central", "suzuki-kasami"] {
        assert!(throughput(lock, "0.5") < throughput(lock, "0"), "{lock}");
    }
    // Without service times the coordinator is nearly as fast as the token; busy, it is far behind.
    let ratio = |service| throughput("central", service) / throughput("raymond", service);
    assert!(ratio("2") < ratio("0"), "{} {}", ratio("2"), ratio("0"));
}

#[test]
fn large_messages_take_longer_to_send() {
    let text = "nodes = 6\nentries = 3\n";
    let run = |more: &str| measures("suzuki-kasami", &format!("{text}{more}"));
    let (fast, slow) = (run(""), run("bandwidth = 10\n"));
    assert_eq!(fast["messages"].get("bytes"), None);
    let bytes = slow["messages"]["bytes"].as_u64().unwrap();
    assert!(bytes > slow["messages"]["sent"].as_u64().unwrap(), "{slow}");
    assert!(slow["time"].as_f64() > fast["time"].as_f64(), "{slow}");
    assert!(why("central", "bandwidth = 0").contains("--bandwidth 0"));
    assert!(why("central", "service = 'arrivals:2'").contains("--service"));
}

#[test]
fn a_busy_node_that_crashes_loses_its_messages_and_the_run_ends() {
    let text = "nodes = 4\nentries = 3\nservice = 1\nfaults = ['crash:0@4', 'restart:0@9']\n";
    let report = outcome("central", text).report;
    assert!(report.messages.lost > 0, "{report:?}");
    let paused = "nodes = 4\nentries = 3\nservice = 1\nfaults = ['pause:0@4-9']\n";
    assert_eq!(outcome("central", paused).report.verdict.name(), "ok");
}

#[test]
fn timeouts_assume_that_no_message_waits_at_a_busy_node() {
    let plan = find("bully").unwrap().plan(Scenario::parse("service = 1", "t").unwrap()).unwrap();
    assert!(plan.broken.iter().any(|(_, by)| by.contains("busy nodes")), "{:?}", plan.broken);
}

#[test]
fn a_series_shows_the_clients_at_regular_times() {
    let report = measures("central", "nodes = 3\nentries = 4\nsample = 5\n");
    let series = report["mutex"]["series"].as_array().unwrap();
    let times: Vec<f64> = series.iter().map(|m| m["time"].as_f64().unwrap()).collect();
    assert_eq!(times[..3], [5.0, 10.0, 15.0]);
    assert!(series.iter().all(|m| m["inside"].as_u64() <= Some(1)));
    assert!(why("central", "sample = 0").contains("--sample 0"));
}

#[test]
fn jains_index_shows_who_waits() {
    let fairness = |lock: &str, text: &str| {
        measures(lock, &format!("nodes = 5\n{text}"))["mutex"]["fairness"].clone()
    };
    // In turn, all wait as long; alone, the coordinator does not wait at all.
    let busy = fairness("central", "entries = 30\nwarm-up = 6\n")["waits"].as_f64().unwrap();
    let idle = fairness("central", "entries = 10\nload = 'low'\n")["waits"].as_f64().unwrap();
    assert!(busy > 0.95 && idle < 0.9, "{busy} {idle}");
    assert_eq!(fairness("central", "entries = 3\n")["entries"], 1.0);
}
