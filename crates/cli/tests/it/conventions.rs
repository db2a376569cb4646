//! Formats, help, completions, environment, closed pipes.

use std::process::Stdio;

use serde_json::Value;

use super::{Folder, command, konklave, konklave_line};

fn json(line: &str) -> Value {
    let said = konklave_line(line);
    serde_json::from_str(&said.out)
        .unwrap_or_else(|e| panic!("{line}: {e}: {}{}", said.out, said.err))
}

#[test]
fn a_run_as_json_has_what_the_schema_says() {
    let run = json("run ricart-agrawala -n 4 --entries 3 --format json");
    assert_eq!(run["schema"], "konklave.run/1");
    assert_eq!(run["algorithm"], "mutex/ricart-agrawala");
    assert_eq!(
        (&run["nodes"], &run["seed"], &run["verdict"]),
        (&4.into(), &1.into(), &"ok".into())
    );
    assert_eq!(run["violations"], Value::Array(vec![]));
    let messages = &run["messages"];
    assert_eq!((&messages["sent"], &messages["delivered"]), (&72.into(), &72.into()));
    assert_eq!((&messages["lost"], &messages["duplicated"]), (&0.into(), &0.into()));
    assert_eq!(messages["by_kind"]["Request"], 36);
    let mutex = &run["mutex"];
    assert_eq!((&mutex["entries"], &mutex["messages_per_entry"]), (&12.into(), &6.0.into()));
    for spread in ["sync_delay", "response", "wait"] {
        for part in ["mean", "min", "max", "p99"] {
            assert!(mutex[spread][part].is_number(), "{spread}.{part}");
        }
    }
    assert_eq!((&mutex["order_inversions"], &mutex["fences_monotone"]), (&0.into(), &true.into()));
    let bound = &run["bounds"][0];
    assert_eq!((&bound["metric"], &bound["limit"]), (&"messages_per_entry".into(), &6.0.into()));
    assert_eq!((&bound["measured"], &bound["holds"]), (&6.0.into(), &true.into()));
    let run = json("run chang-roberts --ids 3,9,1,7 --initiators 1 --format json");
    let election = &run["election"];
    assert_eq!((&election["leader"], &election["informed"]), (&9.into(), &4.into()));
    assert_eq!(election["winner_rule"], "max-all");
}

#[test]
fn a_check_as_json_has_what_the_schema_says() {
    let check = json("check ricart-agrawala -n 2 --mistake no-tie-break --format json");
    assert_eq!(check["schema"], "konklave.check/1");
    assert_eq!(
        (&check["verdict"], &check["property"]),
        (&"violated".into(), &"mutual exclusion".into())
    );
    assert_eq!(check["witness"].as_array().map(Vec::len), Some(7));
    for key in ["states", "transitions", "depth", "seconds", "states_per_second", "peak_bytes"] {
        assert!(check[key].is_number(), "{key}");
    }
    assert!(check["reduction"].is_string() && check["budgets"]["crash"].is_number());
}

#[test]
fn every_command_has_help_with_examples() {
    let commands = konklave(&["--help"]).out;
    for name in [
        "list",
        "run",
        "check",
        "costs",
        "compare",
        "sweep",
        "reproduce",
        "tolerance",
        "replay",
        "draw",
        "export",
        "race",
        "ui",
        "ring",
        "demo",
        "new",
        "agent",
        "keys",
        "lock",
        "elect",
        "status",
        "who",
        "why",
        "members",
        "watch",
        "revoke",
        "step-down",
        "send",
        "recv",
        "record",
        "fence",
        "doctor",
        "completions",
        "man",
    ] {
        assert!(commands.contains(name), "{name} is not in the help");
        let said = konklave(&[name, "--help"]);
        assert_eq!(said.code, 0, "{name}");
        assert!(said.out.contains("Examples:"), "{name} shows no example");
    }
    for topic in ["faults", "topologies", "delays", "properties", "scenarios", "exit-codes"] {
        let said = konklave(&["help", topic]);
        assert!(said.code == 0 && said.out.lines().count() > 3, "{topic}");
    }
}

#[test]
fn the_examples_of_the_help_can_be_typed() {
    let folder = Folder::new("examples");
    folder.write("lossy.toml", "algorithm = \"central\"\nnodes = 3\nloss = 0.1\n");
    let witness = folder.file("witness.run");
    assert_eq!(konklave_line(&format!("check central -n 3 --loss 1 --record {witness}")).code, 1);
    let mut tried = 0;
    for name in
        ["list", "run", "check", "replay", "shrink", "draw", "export", "race", "ring", "help"]
    {
        let help = konklave(&[name, "--help"]).out;
        let examples = help.lines().skip_while(|line| *line != "Examples:");
        for line in examples.filter_map(|line| line.strip_prefix("  konklave ")) {
            // Redirections are the shell's; words behind three spaces are a remark.
            let line = line.split("   ").next().unwrap_or_default();
            if line.contains(['|', '>', '&']) {
                continue;
            }
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let said = command(&words).current_dir(folder.file("")).output().unwrap();
            let code = said.status.code();
            let why = String::from_utf8_lossy(&said.stderr);
            assert!(matches!(code, Some(0..=2)), "{line}: {code:?} {why}");
            tried += 1;
        }
    }
    assert!(tried > 20, "{tried}");
}

#[test]
fn completions_and_the_manual_come_from_the_same_source() {
    for shell in ["bash", "zsh", "fish", "powershell"] {
        assert!(konklave(&["completions", shell]).out.contains("konklave"), "{shell}");
    }
    assert!(konklave(&["man"]).out.contains(".TH konklave"));
    assert!(konklave(&["man", "run"]).out.contains("scenario"));
    assert_eq!(konklave(&["man", "dance"]).code, 64);
}

#[test]
fn flags_go_before_the_environment_and_that_before_the_file() {
    let folder = Folder::new("precedence");
    let file =
        folder.write("s.toml", "algorithm = \"central\"\nnodes = 3\nseed = 3\nentries = 2\n");
    let run = |args: &[&str], seed: Option<&str>| -> Value {
        let mut command = command(args);
        if let Some(seed) = seed {
            command.env("KONKLAVE_SEED", seed);
        }
        serde_json::from_slice(&command.output().unwrap().stdout).unwrap()
    };
    let args = ["run", "--scenario", &file, "--format", "json"];
    let from_file = run(&args, None);
    assert_eq!((&from_file["seed"], &from_file["mutex"]["entries"]), (&3.into(), &6.into()));
    assert_eq!(run(&args, Some("4"))["seed"], 4);
    assert_eq!(run(&[&args[..], &["--seed", "5"]].concat(), Some("4"))["seed"], 5);
}

#[test]
fn data_goes_to_stdout_and_talk_to_stderr() {
    let said = konklave_line("run central -n 3 --loss 0.5 --seed 3 --format json");
    assert!(said.err.contains("central assumes that no message is lost"), "{}", said.err);
    serde_json::from_str::<Value>(&said.out).expect("stdout is JSON alone");
}

#[test]
fn csv_has_a_header_and_one_row() {
    let said = konklave_line("run central -n 3 --format csv");
    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[0].split(',').count(), lines[1].split(',').count());
    assert!(lines[0].starts_with("algorithm,nodes,"));
}

#[test]
fn a_reader_who_goes_away_is_no_error() {
    let mut child = command(&["run", "ricart-agrawala", "-n", "20", "--entries", "20", "--story"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn demo_plays_five_acts_and_leaves_no_file_behind() {
    let folder = Folder::new("demo");
    let start = std::time::Instant::now();
    let said = command(&["demo"]).current_dir(folder.file("")).output().unwrap();
    let took = start.elapsed();
    let (out, err) =
        (String::from_utf8(said.stdout).unwrap(), String::from_utf8_lossy(&said.stderr));
    assert_eq!(said.status.code(), Some(0), "{err}");
    for act in [
        "Elect a leader",
        "Take a lock",
        "Check a rule from a lecture slide",
        "Crash the holder",
        "Crash the holder in a real group",
    ] {
        assert!(out.contains(act), "{act}");
    }
    assert!(out.contains("p99 leads") && out.contains("6 steps to a deadlock"), "{out}");
    assert!(out.contains("the next holder after"), "{out}");
    assert!(out.contains("a late write of member 1") && out.contains("is refused"), "{out}");
    assert_eq!(
        (out.matches("is accepted").count(), out.matches("is refused").count()),
        (2, 1),
        "{out}"
    );
    assert!(took.as_secs() < 15, "a tour of ten seconds took {took:?}");
    assert!(out.contains("--svg FILE"), "{out}");
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 0, "the demo left a file behind");
}

#[test]
fn demo_draws_the_lock_if_asked() {
    let folder = Folder::new("demo-picture");
    let picture = folder.file("demo.svg");
    let said = konklave(&["demo", "--svg", &picture]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains(&picture), "{}", said.out);
    assert!(std::fs::read_to_string(&picture).unwrap().starts_with("<svg"));
}

#[test]
fn initiators_are_the_processes_with_any_request() {
    for (algorithm, figure) in [
        ("central", "/mutex/entries"),
        ("ack", "/multicast/sent"),
        ("lock-table", "/group/entries"),
    ] {
        let run = json(&format!("run {algorithm} -n 4 --initiators 1,3 --entries 2 --format json"));
        assert_eq!(run.pointer(figure), Some(&4.into()), "{algorithm}: {run}");
        assert_eq!(run["verdict"], "ok", "{algorithm}");
    }
    let all = json("check central -n 3 --entries 1 --format json");
    let one = json("check central -n 3 --entries 1 --initiators 1 --format json");
    assert_eq!(one["budgets"]["requests"], serde_json::json!([0, 1, 0]));
    assert!(one["states"].as_u64() < all["states"].as_u64(), "{one} {all}");
}

#[test]
fn help_on_a_command_is_that_of_the_command() {
    let said = konklave_line("help run");
    assert_eq!((said.code, &*said.out), (0, &*konklave_line("run --help").out));
    let said = konklave_line("help delay");
    assert!(said.code == 64 && said.err.contains("did you mean `delays`"), "{}", said.err);
    let delays = konklave_line("help delays").out;
    assert!(["hops", "a file of links"].iter().all(|word| delays.contains(word)), "{delays}");
}

#[test]
fn a_run_that_ends_by_itself_leaves_nothing_over() {
    for world in ["sim", "threads"] {
        let line = "run central -n 3 --requests 0,1,1 --format json --world";
        assert_eq!(json(&format!("{line} {world}"))["verdict"], "ok", "{world}");
    }
    // No client waits, but for the coordinator the lock is still taken: `check` has the same verdict.
    let run = json("run central -n 2 --requests 0,1 --fault lose:/Release --format json");
    assert_eq!(
        (&run["verdict"], run["waiting"].as_array().map(Vec::len)),
        (&"violated".into(), Some(0))
    );
    let broken = &run["violations"][0];
    assert_eq!(broken["property"], "quiescence", "{run}");
    let check = "check central -n 2 --requests 0,1 --loss 1 --property quiescence --format json";
    assert_eq!(json(check)["property"], "quiescence");
}

#[test]
fn every_start_of_a_script_takes_place() {
    // The second initiator knows the leader, and starts an election all the same.
    let run = json("run chang-roberts -n 4 --script 0@0,2@30 --format json");
    assert_eq!(run["verdict"], "ok", "{run}");
    assert_eq!(run["messages"]["sent"], (3 + 8) + (1 + 8), "{run}");
}

#[test]
fn each_election_has_a_winner_of_its_own() {
    let line = "run chang-roberts -n 5 --load low --entries 5 --set mode=original --format json";
    let run = json(line);
    assert_eq!(run["verdict"], "ok", "{run}");
}

#[test]
fn a_detector_says_that_delays_without_a_bound_break_its_assumption() {
    let said = konklave_line("run heartbeat -n 3 --delay exponential --seed 3");
    assert!(said.err.contains("delays have a bound; here delays have no bound"), "{}", said.err);
    assert_eq!(said.err.matches("delays have a bound").count(), 1, "once: {}", said.err);
    assert!(said.out.contains("although it assumes bounded delays"), "{}", said.out);
    for delay in ["uniform:0.5..1.5", "hops"] {
        assert_eq!(
            konklave_line(&format!("run heartbeat -n 3 --delay {delay}")).err,
            "",
            "{delay}"
        );
    }
}

#[test]
fn a_script_says_who_asks_when() {
    let run = json("run central -n 3 --script 2@1,1@4,2@9 --hold 1 --format json");
    assert_eq!((&run["verdict"], &run["mutex"]["entries"]), (&"ok".into(), &3.into()));
    assert_eq!(run["mutex"]["entries_per_node"], serde_json::json!([[0, 0], [1, 1], [2, 2]]));
    // The last process asks at 9, enters at 11 and leaves at 12; its release arrives at 13.
    assert_eq!(run["time"], 13.0);
    let election = json("run chang-roberts -n 4 --script 1@2 --format json");
    assert_eq!(election["messages"]["sent"], 2 + 8);
    for (bad, word) in [("1", "NODE@TIME"), ("9@1", "p9 is not a member"), ("1@x", "1@x")] {
        let said = konklave_line(&format!("run central -n 3 --script {bad}"));
        assert!(said.code == 64 && said.err.contains(word), "{bad}: {}", said.err);
    }
}

#[test]
fn a_data_sheet_tells_how_large_quorums_are_without_a_run() {
    let figures = |line: &str| {
        let said = konklave_line(&format!("list {line} --format json"));
        let sheet: Value = serde_json::from_str(&said.out).unwrap();
        sheet["quorums"].clone()
    };
    let plane = figures("maekawa -n 91 --set quorums=plane");
    assert_eq!(
        (&plane["nodes"], &plane["most"], &plane["heaviest_load"]),
        (&91.into(), &10.into(), &10.into())
    );
    let votes = figures("voting -n 5 --set votes=2,1,1,1,0");
    assert_eq!((&votes["least"], &votes["sets"]["asked"]["most"]), (&2.into(), &4.into()));
    assert_eq!(figures("sanders -n 4")["sets"]["informed"]["heaviest_load"], 3);
    assert_eq!(figures("central"), Value::Null);
    // A run says the same.
    let run = konklave_line("run cao-singhal -n 7 --set quorums=plane").out;
    assert!(run.contains("quorums     of 3, each process in 3\n"), "{run}");
    let sheet = konklave_line("list cao-singhal -n 7 --set quorums=plane").out;
    assert!(sheet.contains("Quorums     of 3, each process in 3   (7 nodes"), "{sheet}");
    assert_eq!(konklave_line("list mutex -n 7").code, 64);
    assert_eq!(konklave_line("list maekawa -n 7 --set quorums=13").code, 64);
}
