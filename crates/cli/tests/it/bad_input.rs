//! Bad input gets a clear message, the documented exit code, and leaves nothing behind.

use std::process::Command;

use super::{Folder, konklave, konklave_line};

/// The command fails with this code and says these words, without a panic.
#[track_caller]
fn refused(line: &str, code: i32, words: &[&str]) {
    let said = konklave_line(line);
    assert_eq!(said.code, code, "{line}\n{}{}", said.out, said.err);
    for word in words {
        assert!(said.err.contains(word), "{line}: no `{word}` in\n{}", said.err);
    }
    assert!(!said.err.contains("panicked"), "{line}\n{}", said.err);
    assert!(said.out.is_empty(), "{line}: stdout is not empty\n{}", said.out);
}

#[test]
fn groups_that_are_none() {
    refused("run central -n 0", 64, &["at least one node"]);
    refused("run chang-roberts --ids 3,1,3", 64, &["unique", "3 is given twice"]);
    refused("run chang-roberts --ids 3,x", 64, &["`x` is not an id"]);
    refused("run chang-roberts -n 4 --ids 3,1", 64, &["names 2 nodes", "--nodes is 4"]);
    refused("run chang-roberts --ids 3,99999999", 64, &["too large"]);
    refused("run central -n -3", 64, &["-3"]);
    refused("run central -n many", 64, &["many"]);
    refused("run central -n 99999999999", 64, &["2^24"]);
}

#[test]
fn topologies_that_do_not_fit() {
    refused(
        "run tree-wave -n 5 --topology ring",
        64,
        &["tree-wave cannot run on ring", "it needs a tree"],
    );
    refused("run central -n 5 --topology path", 64, &["complete graph"]);
    refused("run bully -n 5 --topology ring", 64, &["bully cannot run on ring", "complete graph"]);
    refused("check quorum -n 3 --topology path", 64, &["complete graph"]);
    refused("run franklin -n 5 --topology star", 64, &["franklin cannot run on star", "ring"]);
    refused("run tree-wave --topology moebius", 64, &["moebius"]);
    refused("run tree-wave -n 6 --topology hypercube", 64, &["power of two"]);
    refused("run tree-wave --topology /nowhere/net.txt", 66, &["/nowhere/net.txt"]);
}

#[test]
fn names_that_nobody_has_are_answered_with_the_nearest() {
    refused(
        "run ricard-agrawala",
        64,
        &["there is no algorithm `ricard-agrawala`", "did you mean `ricart-agrawala`"],
    );
    refused("check tree_waves", 64, &["did you mean `tree-wave`"]);
    refused("list mutexes", 64, &["did you mean `mutex`"]);
    refused("run tree-wave --mistake leafrule", 64, &["leaf-rule"]);
    refused("run heartbeat --set perod=3", 64, &["period"]);
    refused("run heartbeat --set period=often", 64, &["<number>"]);
    refused("check central --property exclusoin", 64, &["did you mean `exclusion`"]);
    refused("dance", 64, &["dance"]);
    refused(
        "run maekawa --property exclusion",
        64,
        &["`--property` is an option of `konklave check`"],
    );
    refused("run", 64, &["no algorithm given"]);
}

#[test]
fn worlds_that_cannot_be() {
    refused("run central --loss 1.5", 64, &["between 0 and 1"]);
    refused("run central --delay warp", 64, &["`warp` is not a delay", "uniform"]);
    refused("run central --fault melt:1@2", 64, &["melt", "crash:NODE@TIME"]);
    refused("run central -n 3 --fault crash:7@2", 64, &["p7 is not a member", "0, 1, 2"]);
    refused("run central --hold forever", 64, &["--hold"]);
    refused("run central -n 3 --requests 1,2", 64, &["2 numbers, but the group has 3 nodes"]);
    refused("run chang-roberts -n 3 --initiators 5", 64, &["p5 is not a member"]);
    refused("run central --entries 2 --requests 1,1,1,1,1", 64, &["cannot be combined"]);
    refused("check central -n 65", 64, &["at most 64 nodes"]);
}

#[test]
fn files_that_say_nothing_sensible() {
    let folder = Folder::new("files");
    let scenario = folder.write("s.toml", "algorithm = \"central\"\nnoodles = 4\n");
    refused(&format!("run --scenario {scenario}"), 65, &["s.toml:2:", "noodles", "nodes"]);
    let scenario = folder.write("t.toml", "algorithm = \"central\"\nnodes = \n");
    refused(&format!("run --scenario {scenario}"), 65, &["t.toml:2:"]);
    let scenario = folder.write("u.toml", "nodes = 4\nalgorithm = \"centrall\"\n");
    refused(&format!("run --scenario {scenario}"), 65, &["u.toml:2:", "centrall", "central"]);
    let scenario = folder.write("v.toml", "algorithm = \"central\"\nhold = true\n");
    refused(&format!("run --scenario {scenario}"), 65, &["v.toml:2:", "a number"]);
    let scenario = folder.write("y.toml", "algorithm = \"central\"\nrequests = [1, [2], 3]\n");
    refused(&format!("run --scenario {scenario}"), 65, &["y.toml:2:", "a list"]);
    let study = "algorithms = [\"central\"]\n[vary]\nhold = [1]\ndelay = [\"slow\"]\n";
    let study = folder.write("w.toml", study);
    refused(&format!("sweep {study}"), 65, &["w.toml:4:", "slow"]);
    let study = folder.write("x.toml", "algorithms = [\"centrall\"]\n");
    refused(&format!("sweep {study}"), 65, &["x.toml:1:", "central"]);
    let net = folder.write("net.txt", "0 1\n1 x\n");
    refused(&format!("run tree-wave --topology {net}"), 65, &["net.txt:2:"]);
    for (text, words) in [
        ("nodes = \"three\"", ["z.toml:2:", "expected a whole number"]),
        ("loss = \"much\"", ["z.toml:2:", "expected a number"]),
        ("topology = \"ring\"", ["z.toml:2:", "central cannot run on ring"]),
        ("topology = \"scale-free:20\"", ["z.toml:2:", "(scale-free:4)"]),
        ("topology = \"rring\"", ["z.toml:2:", "did you mean ring"]),
        ("set = [\"fence=7\"]", ["z.toml:2:", "fence"]),
    ] {
        let file = folder.write("z.toml", &format!("algorithm = \"central\"\n{text}\n"));
        refused(&format!("run --scenario {file}"), 65, &words);
    }
    let file = folder.write("zz.toml", "set = [\"period=0\"]\nalgorithm = \"heartbeat\"\n");
    refused(&format!("run --scenario {file}"), 65, &["zz.toml:1:", "period must be at least 1"]);
    for (text, word) in [
        ("", "delays.links:1: expected lines"),
        ("0 1 2\n0 9 2\n", "delays.links:2: p9 is not a member"),
        ("0 1 2\n0 1 2\n", "delays.links:2: `0 1 2` repeats line 1"),
    ] {
        let file = folder.write("delays.links", text);
        refused(&format!("run central -n 3 --delay {file}"), 65, &[word]);
    }
    let links = folder.write("delays.txt", "0 1 fast\n");
    refused(&format!("run central --delay {links}"), 65, &["delays.txt:1:"]);
    let run = folder.write("not.run", "hello\n");
    refused(&format!("replay {run}"), 65, &["not.run:1:"]);
    refused(&format!("draw {run}"), 65, &["not.run:1:"]);
    refused("replay /nowhere.run", 66, &["/nowhere.run"]);
}

#[test]
fn one_rule_for_all_files_that_are_read() {
    let folder = Folder::new("rule");
    let binary = folder.file("binary.txt");
    std::fs::write(&binary, b"# fine\n\xff\xfe\n").unwrap();
    for command in [
        "run --scenario",
        "run central --topology",
        "run central --delay",
        "replay",
        "draw",
        "ring 3 -c",
    ] {
        let nothing = folder.file("none/nothing.txt");
        refused(&format!("{command} {nothing}"), 66, &["nothing.txt"]);
        refused(&format!("{command} {}", folder.file("")), 66, &["directory"]);
        refused(&format!("{command} {binary}"), 65, &["binary.txt:"]);
    }
}

#[test]
fn ids_that_are_too_large_are_told_the_limit() {
    for large in ["16777216", "4294967296"] {
        for line in [
            format!("run central --ids {large},1"),
            format!("run central --initiators {large}"),
            format!("run central --down {large}"),
            format!("run central --script {large}@1"),
            format!("run central --fault crash:{large}@1"),
            format!("ring --ids {large},1"),
        ] {
            refused(&line, 64, &["16777215"]);
        }
    }
    refused(
        "run extinction -n 12 --topology scale-free:20",
        64,
        &["scale-free:20", "scale-free:11"],
    );
}

#[test]
fn options_without_effect_are_named() {
    for (line, word) in [
        ("run heartbeat -n 2 --entries 3", "`--entries` has no effect"),
        ("check heartbeat -n 2 --requests 1,1 --max-states 9", "`--requests` has no effect"),
        ("run chang-roberts -n 3 --hold 2", "`--hold` has no effect"),
        ("run ack -n 3 --hold 2", "`--hold` has no effect"),
        ("run central -n 3 --script 0@0 --think 3", "`--think` has no effect"),
        ("run central -n 3 --load low --think 3", "`--load` has no effect"),
    ] {
        let said = konklave_line(line);
        assert!(said.err.contains(word), "{line}: {}", said.err);
    }
    refused(
        "run central -n 3 --initiators 0 --requests 1,1,0",
        64,
        &["--requests lets p1 make 1 request, but --initiators does not name it"],
    );
}

#[test]
fn output_that_cannot_be_written_is_known_before_the_work_starts() {
    let folder = Folder::new("unwritable");
    // A run that would take for ever: it must not even begin.
    refused(
        "run heartbeat -n 50 --time-limit 1e12 --record /nowhere/x.run",
        73,
        &["/nowhere/x.run"],
    );
    refused("run central --svg /nowhere/x.svg", 73, &["/nowhere/x.svg"]);
    refused("check central --record /nowhere/x.run", 73, &["/nowhere/x.run"]);
    let directory = folder.file("");
    refused(&format!("run central --svg {directory}"), 73, &["directory"]);
}

#[test]
fn a_full_disk_is_known_before_the_work_starts() {
    let folder = Folder::new("full");
    let disk = folder.file("");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=4k", "konklave-test", &disk])
        .output()
        .is_ok_and(|o| o.status.success());
    if !mounted {
        return eprintln!("skipped: no disk may be mounted here");
    }
    let record = folder.file("x.run");
    let run =
        konklave(&["run", "heartbeat", "-n", "50", "--time-limit", "1e12", "--record", &record]);
    let line =
        format!("sweep --algorithms ricart-agrawala --nodes 50 --seeds 100000 --output {record}");
    let sweep = konklave_line(&line);
    let left = std::fs::read_dir(&disk).unwrap().count();
    let unmounted = Command::new("umount").arg(&disk).status().is_ok_and(|s| s.success());
    for said in [run, sweep] {
        assert_eq!(said.code, 73, "{}{}", said.out, said.err);
        assert!(said.err.contains("x.run"), "{}", said.err);
    }
    assert_eq!(left, 0, "nothing half-written is left");
    assert!(unmounted);
}

#[test]
fn a_fault_for_a_kind_of_message_that_was_never_sent_is_told() {
    let said = konklave_line("run ricart-agrawala -n 3 --fault lose:/Replay");
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    let told =
        "had no effect: no Replay was sent (did you mean `Reply`?); kinds sent: Reply, Request";
    assert!(said.err.contains(told), "{}", said.err);
    let said = konklave_line("run ricart-agrawala -n 3 --fault lose:/Reply");
    assert!(!said.err.contains("no effect"), "{}", said.err);
}

#[test]
fn nothing_half_written_is_left_behind() {
    let folder = Folder::new("half");
    let record = folder.file("run.run");
    assert_eq!(konklave(&["check", "central", "--record", &record]).code, 0);
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 0, "no witness, no file");
    assert_eq!(konklave(&["run", "central", "--record", &record]).code, 0);
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 1);
}

#[test]
fn a_recording_that_was_cut_off_is_used_as_far_as_it_goes() {
    let folder = Folder::new("cut");
    let record = folder.file("run.run");
    assert_eq!(konklave(&["run", "central", "--record", &record]).code, 0);
    let text = std::fs::read_to_string(&record).unwrap();
    let half = folder.write("half.run", &text[..text.len() / 2]);
    let said = konklave(&["replay", &half]);
    assert_eq!(said.code, 65, "{}{}", said.out, said.err);
    assert!(said.err.contains("cut off"), "{}", said.err);
}

#[test]
fn a_check_says_which_assumptions_its_budgets_break() {
    for (line, word) in [
        (
            "check central -n 2 --loss 1",
            "assumes that no message is lost; here messages may be lost, so",
        ),
        (
            "check lamport -n 2 --duplicate 1",
            "no message arrives twice; here messages may arrive twice",
        ),
        (
            "check lamport -n 2 --no-fifo",
            "of one channel keep their order; here messages may overtake",
        ),
        (
            "check central -n 2 --crash 1",
            "central assumes that no process crashes; here nodes may crash",
        ),
        ("check bully -n 2", "have known bounds; here timers may fire at any time"),
    ] {
        let said = konklave_line(line);
        assert!(said.err.contains(word), "{line}: {}", said.err);
    }
    for line in ["check central -n 2", "check bully -n 2 --synchronous"] {
        assert_eq!(konklave_line(line).err, "", "{line}");
    }
    // The verdict reports it, for people and for machines.
    let line = "check lamport -n 2 --requests 1,0 --no-fifo";
    let said = konklave_line(line);
    assert!(
        said.code == 0 && said.out.contains("although it assumes FIFO channels"),
        "{}",
        said.out
    );
    let json: serde_json::Value =
        serde_json::from_str(&konklave_line(&format!("{line} --format json")).out).unwrap();
    assert_eq!(json["broken_assumptions"], serde_json::json!(["FIFO channels"]));
}

#[test]
fn a_recording_that_lacks_a_step_is_not_the_same_run() {
    let folder = Folder::new("lacking");
    let file = folder.file("run.run");
    assert_eq!(konklave_line(&format!("run central -n 5 --record {file}")).code, 0);
    assert_eq!(konklave_line(&format!("replay {file}")).code, 0);
    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    // Any step that nothing after it depends on: the last one before the end.
    let (last, rest) = (lines.len() - 1, &lines[..lines.len() - 2]);
    std::fs::write(&file, format!("{}\n{}\n", rest.join("\n"), lines[last])).unwrap();
    let said = konklave_line(&format!("replay {file}"));
    assert!(
        said.code == 1 && said.out.contains("something is missing before the end"),
        "{}{}",
        said.out,
        said.err
    );
}

#[test]
fn a_scenario_file_may_say_numbers_and_lists_where_the_command_line_has_words() {
    let folder = Folder::new("words");
    let text = "algorithm = \"central\"\nnodes = 3\nhold = 2\nrequests = [1, 2, 0]\n";
    let said =
        konklave_line(&format!("run --scenario {} --format json", folder.write("s.toml", text)));
    let line = "run central -n 3 --hold 2 --requests 1,2,0 --format json";
    assert_eq!((said.code, said.out), (0, konklave_line(line).out));
}

#[test]
fn unit_has_no_effect_in_the_simulator() {
    let said = konklave_line("run central --unit 10");
    assert!(
        said.code == 0 && said.err.contains("`--unit` has no effect with `--world sim`"),
        "{}",
        said.err
    );
}

#[test]
fn numbers_that_are_huge_together_are_no_bug() {
    let said = konklave_line("run central -n 3 --entries 4000000000 --step-limit 10 --format json");
    assert_eq!(said.code, 2, "{}", said.err);
}

#[test]
fn a_study_says_nothing_that_would_be_ignored() {
    let folder = Folder::new("studies");
    for (name, more, line) in [
        ("a.toml", "[vary]\nalgorithm = [\"lamport\"]\n", "a.toml:3:"),
        ("b.toml", "[base]\nseed = 7\n", "b.toml:3:"),
        ("c.toml", "[base]\nset = [\"quorums=zz\"]\n", "quorums=zz"),
        ("d.toml", "seeds = 0\n", "d.toml:2: seeds"),
        ("e.toml", "nodes = []\n", "e.toml:2: nodes"),
        ("f.toml", "[vary]\nhold = []\n", "f.toml:3: hold"),
        ("h.toml", "[vary]\nhold = [1]\n[[only]]\nhold = 2\n", "h.toml:3: the study: hold"),
    ] {
        let study = folder.write(name, &format!("algorithms = [\"maekawa\"]\n{more}"));
        refused(&format!("sweep {study}"), 65, &[line]);
    }
    let study = folder.write("g.toml", "algorithms = []\n");
    refused(&format!("sweep {study}"), 65, &["g.toml:1: algorithms"]);
    // On the command line the same is a wrong use.
    refused("sweep --algorithms maekawa --vary hold=long", 64, &["hold", "long"]);
    refused("sweep --algorithms maekawa --with set=quorums", 64, &["quorums", "NAME=VALUE"]);
}

#[test]
fn a_variable_that_is_set_to_nothing_says_nothing() {
    let line = ["run", "central", "-n", "3", "--format", "json"];
    let plain = konklave(&line);
    let blank = [("KONKLAVE_SET", "\n"), ("KONKLAVE_FAULTS", ""), ("KONKLAVE_ENTRIES", "")];
    let said = Command::new(env!("CARGO_BIN_EXE_konklave")).args(line).envs(blank).output();
    let said = said.expect("konklave starts");
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    assert_eq!(String::from_utf8_lossy(&said.stdout), plain.out);
}

#[test]
fn a_closed_stderr_is_no_reason_to_fail() {
    let full = std::fs::File::options().write(true).open("/dev/full").expect("Linux has it");
    let line = ["run", "central", "-n", "3", "--loss", "0.3", "--format", "json"];
    let said = Command::new(env!("CARGO_BIN_EXE_konklave")).args(line).stderr(full).output();
    assert_eq!(said.expect("konklave starts").status.code(), Some(konklave(&line).code));
}

#[test]
fn later_initiator_that_learns_of_an_election_starts_none() {
    for line in [
        "run chang-roberts -n 4 --load low",
        "run chang-roberts -n 4 --think uniform:0..9 --seed 3",
        "run tree-wave -n 4 --topology path --think uniform:0..9",
    ] {
        let said = konklave_line(&format!("{line} --format json"));
        assert_eq!(said.code, 0, "{line}\n{}{}", said.out, said.err);
    }
}

#[test]
fn a_recording_whose_header_names_nothing_is_bad_data() {
    let folder = Folder::new("headers");
    let run = folder.write("a.run", "");
    assert_eq!(konklave_line(&format!("run central -n 2 --record {run}")).code, 0);
    let text = std::fs::read_to_string(&run).expect("it was recorded");
    let run = folder.write("b.run", &text.replace("mutex/central", "mutex/centrall"));
    refused(&format!("replay {run}"), 65, &["b.run:1:", "centrall", "central"]);
    let stranger =
        text.replacen("\"from\":0", "\"from\":7", 1).replacen("\"from\":1", "\"from\":7", 1);
    let said = konklave_line(&format!("replay {}", folder.write("d.run", &stranger)));
    assert!(
        said.code == 1 && said.out.contains("recorded: 7"),
        "{} {}{}",
        said.code,
        said.out,
        said.err
    );
    let run = folder.write("c.run", &text.replace("\"scenario\":{", "\"scenario\":{\"x\":1,"));
    refused(&format!("shrink {run}"), 65, &["c.run:1:", "`x`"]);
}

#[test]
fn loss_on_an_algorithm_that_assumes_none_runs_and_says_so() {
    let said = konklave_line("run suzuki-kasami -n 3 --fault lose:/Token --format json");
    assert_eq!(said.code, 1);
    assert!(
        said.err.contains("assumes that no message is lost") && said.err.contains("block"),
        "{}",
        said.err
    );
    let run: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(run["verdict"], "stuck");
    assert_eq!(run["messages"]["lost"], 1);
}

#[test]
fn a_bus_with_a_loop_says_so_in_every_world() {
    for world in ["sim", "threads", "tcp"] {
        let line = format!("run firewire -n 4 --topology ring --world {world} --format json");
        let said = konklave_line(&line);
        let run: serde_json::Value = serde_json::from_str(&said.out).expect(&said.err);
        assert_eq!(run["election"]["leader"], serde_json::Value::Null, "{world}: {run}");
        assert!(run["election"]["loops"].as_u64() > Some(0), "{world}: {run}");
    }
}
