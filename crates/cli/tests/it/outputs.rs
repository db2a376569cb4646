//! Output files: which are written, and which are left alone.

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::{Folder, command, konklave, konklave_line, words};

fn refused(line: &str, code: i32, word: &str) {
    let said = konklave_line(line);
    assert_eq!(said.code, code, "{line}: {}{}", said.out, said.err);
    assert!(said.err.contains(word), "{line}: {}", said.err);
}

#[test]
fn one_file_is_not_taken_for_two_outputs() {
    let folder = Folder::new("two");
    let file = folder.file("same.svg");
    refused(&format!("run central --record {file} --svg {file}"), 64, "two outputs");
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0);
}

#[test]
fn a_picture_is_what_its_name_says() {
    let folder = Folder::new("forms");
    let (png, svg, jpg) = (folder.file("x.png"), folder.file("x.svg"), folder.file("x.jpg"));
    if cfg!(feature = "png") {
        assert_eq!(konklave(&["run", "central", "--svg", &png]).code, 0);
        assert!(fs::read(&png).unwrap().starts_with(b"\x89PNG"));
    }
    assert_eq!(konklave(&["run", "central", "--svg", &svg]).code, 0);
    assert!(fs::read(&svg).unwrap().starts_with(b"<svg"));
    for line in ["run central --svg", "race central lamport --svg", "compare mutex central --svg"] {
        refused(&format!("{line} {jpg}"), 64, "pictures end in .svg, .png or .pdf");
    }
    assert!(!fs::exists(&jpg).unwrap());
}

#[test]
fn a_run_too_long_for_a_picture_is_told_all_the_same() {
    let folder = Folder::new("long");
    let file = folder.file("x.svg");
    let line = format!("run chang-roberts -n 60000 --initiators 0 --svg {file} --format json");
    let said = konklave_line(&line);
    assert_eq!(said.code, 64, "{}", said.err);
    assert!(said.err.contains("too many for one picture"), "{}", said.err);
    assert!(said.out.contains("\"leader\": 59999"), "{}", said.out);
    assert!(!fs::exists(&file).unwrap());
}

#[test]
fn an_interrupt_leaves_nothing_half_written() {
    let folder = Folder::new("interrupt");
    let line = format!("run heartbeat -n 50 --time-limit 1e12 --record {}", folder.file("x.runz"));
    let line = words(&line);
    let line: Vec<&str> = line.iter().map(String::as_str).collect();
    let mut child = command(&line).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begin = Instant::now();
    while fs::read_dir(&folder.0).unwrap().count() == 0 {
        assert!(begin.elapsed() < Duration::from_secs(30), "it never began to write");
        std::thread::sleep(Duration::from_millis(10));
    }
    let signalled = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(signalled.unwrap().success());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0, "the draft is gone");
}

#[test]
fn a_device_is_neither_read_for_ever_nor_replaced() {
    refused("replay /dev/zero", 66, "it is a device");
    refused("sweep --algorithms central --output /dev/null --overwrite", 73, "/dev/null");
    assert!(!fs::metadata("/dev/null").unwrap().is_file(), "it is what it was");
}

#[test]
fn a_study_refuses_what_it_would_ignore() {
    for (line, word) in [
        ("sweep --algorithms central --vary nodes=3,4", "--nodes"),
        ("sweep --algorithms central --with seed=7", "--seeds"),
        (
            "sweep --algorithms tree-wave --nodes 4 --with topology=ring --skip-impossible",
            "no combination of this study can run",
        ),
    ] {
        refused(line, 64, word);
    }
    for (name, value) in [("SLURM_ARRAY_TASK_ID", "2"), ("KONKLAVE_SHARDS", "2")] {
        let study = ["sweep", "--algorithms", "central", "--seeds", "1"];
        let said = command(&study).env(name, value).output().unwrap();
        assert_eq!(said.status.code(), Some(64), "{name} alone");
        assert!(String::from_utf8_lossy(&said.stderr).contains(name), "{name} is named");
    }
    let folder = Folder::new("merge");
    let shard = folder.file("1.jsonl");
    let line = format!("sweep --algorithms central --seeds 2 --output {shard}");
    assert_eq!(konklave_line(&line).code, 0);
    let before = fs::read(&shard).unwrap();
    refused(&format!("sweep merge {shard} --output {shard}"), 64, "one of the shards");
    assert_eq!(fs::read(&shard).unwrap(), before);
}

#[test]
fn faults_that_make_no_sense_are_refused() {
    for (fault, word) in [
        ("restart:1@3", "no fault crashes this node"),
        ("partition:0,1|1@2", "two sides"),
        ("cut:0>0@1", "no channel to itself"),
    ] {
        refused(&format!("run central -n 3 --fault {fault}"), 64, word);
    }
    refused("run bully -n 2 --down 0,1", 64, "at least one node must be up");
}

/// A late answer looks like a loop to a FireWire node: the summary tells the node's belief, not a property of the path.
#[test]
fn verdict_loop_claims_no_loop_of_a_path() {
    let line = "run firewire -n 3 --topology path --initiators all --fault lose:#7";
    let told = konklave_line(line);
    let verdict = told.out.lines().find(|line| line.starts_with("verdict")).expect("a verdict");
    let words = "loop: a process takes the links for a loop, so it knows no leader";
    assert!(verdict.contains(words), "{verdict}");
}
