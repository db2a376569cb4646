//! A replay finds whatever was done to a recording: every field, every line.

use std::time::Duration;

use konklave_catalog::{CheckPlan, Error, RealWorld, Scenario, Transport};
use konklave_trace::{Difference, Place, Run};
use serde_json::Value;

use crate::{catalog, find};

fn scenario(text: &str) -> Scenario {
    Scenario::parse(text, "test").expect("a scenario")
}

fn simulated(text: &str) -> Run {
    let scenario = scenario(text);
    let entry = find(scenario.algorithm.as_deref().unwrap()).unwrap();
    let plan = entry.plan(Scenario { algorithm: Some(entry.name()), ..scenario }).unwrap();
    entry.simulate(&plan, true).unwrap().run.expect("it was recorded")
}

fn on_threads(text: &str) -> Run {
    let scenario = scenario(text);
    let entry = find(scenario.algorithm.as_deref().unwrap()).unwrap();
    let plan = entry.plan(Scenario { algorithm: Some(entry.name()), ..scenario }).unwrap();
    let world = RealWorld { transport: Transport::Threads, unit: Duration::from_millis(2) };
    entry.run_on_network(&plan, world, true).unwrap().run.expect("it was recorded")
}

/// The difference that a replay finds in a file; an edit may also make the file no recording at all.
fn found(text: &str) -> Result<Option<Difference>, Error> {
    let run = Run::read("x.run", text.as_bytes()).map_err(|e| Error::Data(e.to_string()))?;
    let (entry, plan) = catalog().plan_of(&run)?;
    Ok(entry.replay(&plan, &run).err())
}

/// Every way to change one value of `line` a little, with where it is.
fn edits(line: &Value) -> Vec<(String, Value)> {
    let inner = |key: String, edits: Vec<(String, Value)>, put: &dyn Fn(Value) -> Value| {
        edits.into_iter().map(|(path, value)| (format!("{key}.{path}"), put(value))).collect()
    };
    match line {
        Value::Object(fields) => fields
            .iter()
            .flat_map(|(key, value)| -> Vec<(String, Value)> {
                let put = |new: Value| {
                    let mut fields = fields.clone();
                    fields.insert(key.clone(), new);
                    Value::Object(fields)
                };
                inner(key.clone(), edits(value), &put)
            })
            .collect(),
        Value::Array(items) => (0..items.len())
            .flat_map(|i| -> Vec<(String, Value)> {
                let put = |new: Value| {
                    let mut items = items.clone();
                    items[i] = new;
                    Value::Array(items)
                };
                inner(i.to_string(), edits(&items[i]), &put)
            })
            .collect(),
        Value::Null => vec![(String::new(), 1.into())],
        Value::Bool(yes) => vec![(String::new(), (!yes).into())],
        Value::Number(n) => {
            let more =
                n.as_u64().map_or_else(|| (n.as_f64().unwrap() + 1.0).into(), |n| (n + 1).into());
            vec![(String::new(), more)]
        }
        Value::String(word) => vec![(String::new(), format!("{word}s").into())],
    }
}

/// Edits every value of every line; what `may_pass` need not be found.
fn edit_everything(run: &Run, may_pass: impl Fn(&str) -> bool) {
    let text = run.to_text();
    assert_eq!(found(&text).unwrap(), None, "{}", run.header.algorithm);
    let lines: Vec<&str> = text.lines().collect();
    for (i, line) in lines.iter().enumerate() {
        for (path, edited) in edits(&serde_json::from_str(line).unwrap()) {
            let edited = edited.to_string();
            let mut lines = lines.clone();
            lines[i] = &edited;
            let what = || format!("{}:{} {path} {edited}", run.header.algorithm, i + 1);
            match found(&(lines.join("\n") + "\n")) {
                Ok(None) => assert!(may_pass(&path), "nothing was found: {}", what()),
                Ok(Some(difference)) if run.header.world == "sim" => {
                    let line = difference.place.line(run.entries.len());
                    assert_eq!(line, i + 1, "{}: {difference}", what());
                }
                Ok(Some(_)) | Err(_) => {}
            }
        }
    }
}

#[test]
fn an_edit_of_any_field_of_a_simulated_run_is_found_on_its_line() {
    for text in [
        "algorithm = 'ricart-agrawala'\nnodes = 2\napp-messages = 1",
        "algorithm = 'central'\nnodes = 2\nfaults = ['crash:1@0.5', 'restart:1@4']",
        "algorithm = 'itai-rodeh'\nnodes = 2\ndelay = 'uniform'",
        "algorithm = 'chang-roberts'\nnodes = 2\nset = ['mode=hardened']\nduplicate = 0.3",
        "algorithm = 'heartbeat'\nnodes = 2\ntime-limit = 3\nloss = 0.2",
    ] {
        edit_everything(&simulated(text), |_| false);
    }
}

#[test]
fn lines_that_are_swapped_left_out_or_doubled_are_found() {
    let text = simulated("algorithm = 'suzuki-kasami'\nnodes = 3\nseed = 3").to_text();
    let lines: Vec<&str> = text.lines().collect();
    let said = |lines: Vec<&str>| found(&(lines.join("\n") + "\n"));
    for i in 1..lines.len() - 1 {
        let mut without = lines.clone();
        without.remove(i);
        assert!(!matches!(said(without), Ok(None)), "line {} is missing", i + 1);
        let mut twice = lines.clone();
        twice.insert(i, lines[i]);
        assert!(!matches!(said(twice), Ok(None)), "line {} is there twice", i + 1);
        let mut swapped = lines.clone();
        swapped.swap(i, i + 1);
        assert!(!matches!(said(swapped), Ok(None)), "lines {} and {} are swapped", i + 1, i + 2);
    }
}

#[test]
fn an_edit_of_a_run_of_a_real_world_is_found_but_for_what_only_its_clock_knew() {
    for text in [
        "algorithm = 'ricart-agrawala'\nnodes = 2",
        "algorithm = 'chang-roberts'\nnodes = 3",
        "algorithm = 'bully'\nnodes = 2\nfaults = ['crash:1@20']",
        "algorithm = 'ack'\nnodes = 2",
    ] {
        let run = on_threads(text);
        assert_eq!(run.header.world, "threads");
        // How long T was stands in the header only.
        edit_everything(&run, |path| path == "at." || path == "unit." || path == "summary.time.");
    }
}

#[test]
fn a_witness_of_the_checker_replays_and_its_edits_are_found() {
    for (text, crash, amnesia) in [
        (
            "algorithm = 'tree-wave'\nnodes = 4\ntopology = 'path'\ninitiators = '0,3'\nmistake = 'leaf-rule'",
            0,
            false,
        ),
        ("algorithm = 'central'\nnodes = 2", 1, true),
    ] {
        let scenario = scenario(text);
        let entry = find(scenario.algorithm.as_deref().unwrap()).unwrap();
        let plan = entry.plan(Scenario { algorithm: Some(entry.name()), ..scenario }).unwrap();
        let mut check = CheckPlan::default();
        check.options.crashes = crash;
        check.options.restarts = crash;
        check.options.stable_storage = !amnesia;
        let checked = entry.check(&plan, &check, &mut |_| true).unwrap();
        let run = checked.witness.expect("it breaks");
        // The replay does not depend on the command that found the run, nor on the properties that it judged.
        edit_everything(&run, |path| path == "command.");
    }
}

#[test]
fn missing_end_of_a_recording_is_a_difference() {
    let run = simulated("algorithm = 'central'\nnodes = 2");
    let mut short = run.clone();
    short.entries.pop();
    let difference = found(&short.to_text()).unwrap().expect("a difference");
    assert_eq!(difference.place, Place::End, "{difference}");
    // Of what was cut off, what is there is compared.
    short.footer = None;
    let (entry, plan) = catalog().plan_of(&short).unwrap();
    assert!(entry.replay(&plan, &short).is_ok());
    short.entries.swap(2, 3);
    assert!(entry.replay(&plan, &short).is_err());
}

/// The same recording, made by a program of another name.
fn recorded_by(name: &str, run: &Run) -> Run {
    let mut run = run.clone();
    let rename =
        |command: &str| format!("{name} {}", command.split_once(' ').expect("a command").1);
    run.header.command = rename(&run.header.command);
    if let Some(footer) = &mut run.footer
        && let Some(command) = footer.summary.get("command").and_then(Value::as_str)
    {
        footer.summary["command"] = rename(command).into();
    }
    run
}

#[test]
fn replay_accepts_the_same_algorithm_in_a_program_of_another_name() {
    for run in [
        simulated("algorithm = \"central\"\nnodes = 3"),
        on_threads("algorithm = \"central\"\nnodes = 3"),
    ] {
        let other = recorded_by("my-lock", &run);
        assert_ne!(other.header.command, run.header.command);
        assert_eq!(found(&other.to_text()).unwrap(), None, "{}", run.header.world);
        // The rest of the command still counts.
        let mut changed = other;
        changed.header.command += " --hold 3";
        let difference = found(&changed.to_text()).unwrap().expect("another command");
        assert_eq!(difference.place, Place::Header, "{difference}");
    }
}
