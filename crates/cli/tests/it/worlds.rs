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
fn options_of_the_simulator_are_refused() {
    for option in ["--delay exponential", "--no-fifo", "--fault delay:#1+2", "--fault pause:0@1-2"]
    {
        let said = konklave_line(&format!("run central --world tcp {option}"));
        assert_eq!(said.code, 64, "{option}");
        assert!(said.err.contains("--world sim"), "{option}: {}", said.err);
    }
}

#[test]
fn multicasts_repair_injected_losses_in_every_real_world() {
    let folder = Folder::new("losses");
    for world in ["threads", "tcp", "udp", "multicast"] {
        for algorithm in ["ack", "nack --set beats=6", "srm"] {
            let record = folder.file("losses.run");
            let run = run(&format!(
                "run {algorithm} -n 4 --entries 3 --loss 0.1 --duplicate 0.1 --seed 5 --world {world} --unit 5 \
                 --record {record} --format json"
            ));
            assert_eq!(run["verdict"], "ok", "{algorithm} in {world}: {run}");
            assert_eq!(run["multicast"]["delivered"], 48, "{algorithm} in {world}");
            for fate in ["lost", "duplicated"] {
                let count = run["messages"][fate].as_u64().unwrap_or(0);
                assert!(count > 0, "{algorithm} in {world}: no message was {fate}");
            }
            let replayed = konklave_line(&format!("replay {record}"));
            assert_eq!(replayed.code, 0, "{algorithm} in {world}: {}", replayed.err);
        }
    }
}

#[test]
fn one_lost_message_is_the_same_in_every_world() {
    for world in ["sim", "threads", "tcp", "udp", "multicast"] {
        // The grant to p2 is lost: p2 waits for ever, and no other client is served after it.
        let run = run(&format!(
            "run central -n 3 --initiators 2 --hold 0 --fault lose:0>2/Grant --world {world} --unit 2 \
             --time-limit 50 --format json"
        ));
        assert_eq!(run["verdict"], "stuck", "{world}: {run}");
        assert_eq!(run["messages"]["lost"], 1, "{world}: {run}");
        assert_eq!(run["messages"]["sent"], 2, "{world}: {run}");
    }
}

#[test]
fn a_fault_without_effect_is_named_in_every_world_and_in_replays() {
    let folder = Folder::new("without-effect");
    for world in ["sim", "threads", "tcp", "udp"] {
        let record = folder.file("none.run");
        let run = run(&format!(
            "run central -n 3 --hold 0 --fault lose:/Grant#99 --world {world} --unit 2 --record {record} --format json"
        ));
        let named = run["faults_without_effect"][0].as_str().unwrap_or_default();
        assert_eq!(named, "lose:/Grant#99: only 2 such messages were sent", "{world}: {run}");
        let replayed = konklave_line(&format!("replay {record}"));
        assert_eq!(replayed.code, 0, "{world}: {}{}", replayed.out, replayed.err);
    }
}

#[test]
fn a_cut_loses_messages_of_its_channel_and_time() {
    let run = run(
        "run central -n 3 --initiators 2 --hold 0 --fault cut:2>0@0-1000 --world tcp --unit 2 \
         --time-limit 50 --format json",
    );
    assert_eq!((&run["verdict"], &run["messages"]["lost"]), (&"stuck".into(), &1.into()), "{run}");
    let run = run_after_partition();
    assert_eq!((&run["verdict"], &run["messages"]["lost"]), (&"ok".into(), &0.into()), "{run}");
}

/// A partition that is over before the first request.
fn run_after_partition() -> Value {
    run(
        "run central -n 3 --initiators 2 --hold 0 --think 20 --fault partition:0,1|2@0-5 --world tcp \
         --unit 5 --format json",
    )
}
