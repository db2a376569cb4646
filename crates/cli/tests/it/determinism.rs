//! The same command gives the same bytes, and a recorded run replays.

use konklave_catalog::Catalog;

use super::{Folder, konklave, konklave_line};

#[test]
fn every_algorithm_runs_twice_alike_and_replays() {
    let folder = Folder::new("determinism");
    for entry in Catalog::builtin().entries() {
        let name = entry.name();
        let record = folder.file("run.run");
        let args = [
            "run",
            &name,
            "-n",
            "6",
            "--seed",
            "7",
            "--delay",
            "exponential",
            "--entries",
            "2",
            "--think",
            "exponential:3",
            "--record",
            &record,
            "--format",
            "json",
        ];
        let first = konklave(&args);
        let recorded =
            std::fs::read(&record).unwrap_or_else(|e| panic!("{name}: {e} {}", first.err));
        let second = konklave(&args);
        assert_eq!(first.out, second.out, "{name}");
        assert!(recorded == std::fs::read(&record).unwrap(), "{name}: another recording");
        let replayed = konklave(&["replay", &record]);
        assert_eq!(replayed.code, 0, "{name}: {}{}", replayed.out, replayed.err);
        let drawn = konklave(&["draw", &record, "-o", &folder.file("run.svg")]);
        assert_eq!(drawn.code, 0, "{name}: {}", drawn.err);
        let svg = std::fs::read_to_string(folder.file("run.svg")).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{name}");
    }
}

#[test]
fn a_witness_is_recorded_replayed_and_drawn() {
    let folder = Folder::new("witness");
    let (run, svg) = (folder.file("w.run"), folder.file("w.svg"));
    let found = konklave_line(&format!(
        "check tree-wave -n 4 --topology path --initiators 0,3 --mistake leaf-rule --record {run} --svg {svg}"
    ));
    assert_eq!(found.code, 1, "{}", found.err);
    assert_eq!(konklave(&["replay", &run]).code, 0);
    assert!(std::fs::read_to_string(&svg).unwrap().contains("deadlock"));
}

#[test]
fn a_changed_recording_is_told_from_the_true_one() {
    let folder = Folder::new("changed");
    let record = folder.file("run.run");
    assert_eq!(konklave(&["run", "central", "-n", "3", "--record", &record]).code, 0);
    let text = std::fs::read_to_string(&record).unwrap();
    assert!(text.contains("\"Grant\":{\"request\":1,\"fence\":2}"), "{text}");
    let changed = text.replacen(
        "\"Grant\":{\"request\":1,\"fence\":2}",
        "\"Grant\":{\"request\":1,\"fence\":9}",
        1,
    );
    let changed = folder.write("changed.run", &changed);
    let said = konklave(&["replay", &changed]);
    assert_eq!(said.code, 1, "{}{}", said.out, said.err);
    assert!(said.out.contains("different"), "{}", said.out);
}

#[test]
fn the_command_that_repeats_a_run_repeats_it() {
    let line = "run suzuki-kasami -n 4 --entries 3 --delay uniform:0.5..1.5 --hold exponential:2 --seed 9 --no-fifo --fault delay:0>1#1+4 --format json";
    let first = konklave_line(line);
    let report: serde_json::Value = serde_json::from_str(&first.out).unwrap();
    let again = report["command"].as_str().unwrap().trim_start_matches("konklave ").to_owned();
    assert_eq!(konklave_line(&format!("{again} --format json")).out, first.out);
}
