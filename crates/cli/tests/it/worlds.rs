//! The same algorithms in all three worlds: the same counts, the same verdicts, runs that replay.

use konklave_catalog::Catalog;
use serde_json::Value;

use super::{Folder, konklave_line};

fn run(line: &str) -> Value {
    let said = konklave_line(line);
    serde_json::from_str(&said.out).unwrap_or_else(|e| panic!("{line}: {e}: {}", said.err))
}

#[test]
fn exact_counts_are_the_same_in_every_world() {
    for (algorithm, messages) in [
        ("central", 12),
        ("ricart-agrawala", 40),
        ("chang-roberts --ids 3,9,1,7,4 --initiators 1", 14),
        ("chang-roberts", 14),
        ("tree-wave --topology star", 16),
    ] {
        for world in ["sim", "threads", "tcp"] {
            let run = run(&format!("run {algorithm} -n 5 --hold 0 --world {world} --format json"));
            assert_eq!(run["verdict"], "ok", "{algorithm} in {world}: {run}");
            assert_eq!(run["messages"]["sent"], messages, "{algorithm} in {world}");
            assert_eq!(run["messages"]["delivered"], messages, "{algorithm} in {world}");
        }
    }
}

#[test]
fn a_bound_on_messages_that_is_not_kept_is_a_violation_in_every_world() {
    for world in ["sim", "threads", "tcp"] {
        let line = "run ring-list -n 4 --initiators 0 --format json";
        let right = run(&format!("{line} --world {world}"));
        assert_eq!(right["verdict"], "ok", "{world}: {right}");
        let wrong = run(&format!("{line} --mistake no-forward --world {world}"));
        let broken: Vec<&Value> = wrong["violations"].as_array().into_iter().flatten().collect();
        let properties: Vec<&str> = broken.iter().filter_map(|v| v["property"].as_str()).collect();
        assert_eq!(properties, ["termination", "bound"], "{world}: {wrong}");
        let detail = broken[1]["detail"].as_str().unwrap_or_default();
        assert!(detail.ends_with("= 8, but 5 was measured"), "{world}: {detail}");
    }
    // With several initiators, and with timers, no formula gives an exact number in real time.
    for line in ["run tree-wave -n 6", "run bully -n 5 --down 4 --initiators 0"] {
        let run = run(&format!("{line} --world threads --format json"));
        assert_eq!(run["verdict"], "ok", "{line}: {run}");
        assert_eq!(run["bounds"][0]["holds"], Value::Null, "{line}: {run}");
    }
}

#[test]
fn every_algorithm_runs_on_sockets_and_its_recording_replays() {
    let folder = Folder::new("worlds");
    for entry in Catalog::builtin().entries() {
        let (name, record) = (entry.name(), folder.file("tcp.run"));
        // Many elections are held once and for all.
        let entries = if entry.problem.name == "mutex" { 3 } else { 1 };
        // And heartbeats against lost tails end only after a while.
        let more = if name == "multicast/nack" { "--set beats=4" } else { "" };
        // A term that a busy machine makes too long ends in another one: it must not be too short.
        let time = match &*name {
            "election/quorum" => "--unit 20 --time-limit 150",
            _ => "--unit 2 --time-limit 500",
        };
        let run = run(&format!(
            "run {name} -n 5 --entries {entries} {more} --hold 0 --world tcp {time} --record {record} --format json"
        ));
        assert_eq!(run["verdict"], "ok", "{name}: {run}");
        let replayed = konklave_line(&format!("replay {record}"));
        assert_eq!(replayed.code, 0, "{name}: {}{}", replayed.out, replayed.err);
    }
}

#[test]
fn reliable_multicasts_run_on_datagrams_and_their_recordings_replay() {
    let folder = Folder::new("datagrams");
    for world in ["udp", "multicast"] {
        for algorithm in ["ack", "nack --set beats=3", "srm", "token-order"] {
            let record = folder.file("datagrams.run");
            let run = run(&format!(
                "run {algorithm} -n 5 --entries 3 --world {world} --unit 5 --record {record} --format json"
            ));
            assert_eq!(run["verdict"], "ok", "{algorithm} in {world}: {run}");
            assert_eq!(run["multicast"]["delivered"], 75, "{algorithm} in {world}");
            let replayed = konklave_line(&format!("replay {record}"));
            assert_eq!(replayed.code, 0, "{algorithm} in {world}: {}", replayed.err);
        }
    }
}

#[test]
fn a_real_crash_is_noticed_by_the_detector() {
    let run = run(
        "run heartbeat -n 3 --world tcp --unit 20 --fault crash:1@8 --time-limit 40 --format json",
    );
    assert_eq!(run["verdict"], "ok", "{run}");
    assert_eq!(run["detector"]["suspicions"], 2);
}

#[test]
fn what_only_a_simulator_can_do_is_refused() {
    for option in
        ["--loss 0.1", "--delay exponential", "--no-fifo", "--fault lose:#1", "--fault pause:0@1-2"]
    {
        let said = konklave_line(&format!("run central --world tcp {option}"));
        assert_eq!(said.code, 64, "{option}");
        assert!(said.err.contains("--world sim"), "{option}: {}", said.err);
    }
}
