//! `konklave ring`, the report's program, as the report calls it.

use super::{Folder, konklave_line};

#[test]
fn three_elections_are_told_in_the_log() {
    let said = konklave_line("ring 8 -n 3 --sleep 0 --worker-sleep 1 --log --seed 4");
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert!(said.err.matches("INFO").count() >= 6, "{}", said.err);
}

#[test]
fn results_are_lines_or_json() {
    let said = konklave_line("ring 5 -n 2 --sleep 0 --worker-sleep 0 --seed 4");
    assert_eq!((said.code, said.out.lines().count()), (0, 2), "{}{}", said.out, said.err);
    let said = konklave_line("ring 5 -n 2 --sleep 0 --worker-sleep 0 --seed 4 --json");
    let rows: Vec<serde_json::Value> =
        said.out.lines().map(|l| serde_json::from_str(l).expect("a JSON line")).collect();
    assert_eq!(rows.len(), 3);
    assert_eq!(rows[2]["type"], "summary");
}

#[test]
fn bad_options_are_named() {
    for (line, code, word) in [
        ("ring", 64, "SIZE"),
        ("ring 0", 64, "0"),
        ("ring 3 --log-level 9", 64, "9"),
        ("ring 3 --sleep -1", 64, "-1"),
        ("ring 3 --log-file /nowhere/x.log", 73, "/nowhere/x.log"),
        ("ring 3 -c /nowhere.toml", 66, "/nowhere.toml"),
    ] {
        let said = konklave_line(line);
        assert_eq!(said.code, code, "{line}: {}{}", said.out, said.err);
        assert!(said.err.contains(word), "{line}: {}", said.err);
    }
}

#[test]
fn a_config_file_sets_what_the_command_line_leaves_open() {
    let folder = Folder::new("ring");
    let log = folder.file("ring.log");
    let config = folder.write(
        "ring.toml",
        &format!(
            "size = 4\nnumber-of-elections = 1\nworker_sleep = 0\nsleep = 0\nlog-file = \"{log}\"\n"
        ),
    );
    let said = konklave_line(&format!("ring -c {config}"));
    assert_eq!(said.code, 0, "{}{}", said.out, said.err);
    assert!(std::fs::read_to_string(&log).unwrap().contains("INFO"));
    let config = folder.write("bad.toml", "size = 4\nslep = 3\n");
    let said = konklave_line(&format!("ring -c {config}"));
    assert_eq!(said.code, 65);
    assert!(said.err.contains("bad.toml:2:") && said.err.contains("sleep"), "{}", said.err);
}

#[test]
fn elections_can_be_held_by_other_algorithms_in_other_worlds() {
    // From 4, the highest is two hops away: d + 2n messages, as the workers of the ring send.
    let ring = "ring --ids 17,4,99 --initiator 4 -n 2 --sleep 0 --worker-sleep 10";
    let said = konklave_line(&format!("{ring} --simulate"));
    let line =
        |k: u32| format!("election {k}: worker 4 started, worker 99 leads, 7 messages, 60.0 ms\n");
    assert_eq!((said.code, said.out), (0, line(1) + &line(2)), "{}", said.err);
    for world in ["--tcp", "--algorithm chang-roberts", "--tcp --algorithm ring-list"] {
        let said = konklave_line(&format!("{ring} {world} --json"));
        assert_eq!(said.code, 0, "{world}: {}{}", said.out, said.err);
        let rows: Vec<serde_json::Value> =
            said.out.lines().map(|l| serde_json::from_str(l).expect("a JSON line")).collect();
        assert_eq!((rows.len(), &rows[1]["leader"]), (3, &99.into()), "{world}");
    }
    let said = konklave_line("ring 1000 -n 2 --seed 1 --simulate --algorithm franklin");
    assert_eq!((said.code, said.out.lines().count()), (0, 2), "{}{}", said.out, said.err);
    for (more, word) in [
        ("--algorithm raymond", "solves mutex"),
        ("--algorithm frankin", "did you mean"),
        ("--simulate --fail 4@start", "--fail works only"),
        ("--simulate --tcp", "cannot be used with"),
    ] {
        let said = konklave_line(&format!("{ring} {more}"));
        assert_eq!(said.code, 64, "{more}: {}{}", said.out, said.err);
        assert!(said.err.contains(word), "{more}: {}", said.err);
    }
    // Three on a ring are linked with everyone, five are not.
    let said = konklave_line("ring 5 --simulate --algorithm bully");
    assert_eq!(said.code, 64, "{}{}", said.out, said.err);
    assert!(said.err.contains("complete graph"), "{}", said.err);
}
