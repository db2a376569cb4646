//! Options of `check` that choose the search: initial states, shares, processes that may crash.

use serde_json::Value;

use super::{Folder, konklave, konklave_line};

fn found(line: &str, code: i32) -> Value {
    let said = konklave_line(&format!("{line} --format json"));
    assert_eq!(said.code, code, "{line}: {}", said.err);
    serde_json::from_str(&said.out).expect("a report")
}

/// How many messages the steps of a witness send: "sends Request to p0 and p2" are two.
fn sends(report: &Value) -> usize {
    let is_node = |word: &&str| {
        let id = word.trim_end_matches(',').strip_prefix('p');
        id.is_some_and(|id| !id.is_empty() && id.chars().all(|c| c.is_ascii_digit()))
    };
    let steps = report["witness"].as_array().expect("steps").iter();
    let parts = steps.flat_map(|step| step.as_str().unwrap_or_default().split("; "));
    let sent = parts.filter_map(|part| part.strip_prefix("sends ")?.split_once(" to "));
    let receivers = sent.map(|(_, to)| to.split(" (").next().unwrap_or(to));
    receivers.map(|to| to.split(' ').filter(is_node).count()).sum()
}

#[test]
fn the_cheapest_and_the_dearest_run_are_shown_and_cost_what_is_said() {
    let least = found("check chang-roberts -n 3 --minimise messages", 0);
    let most = found("check chang-roberts -n 3 --maximise messages", 0);
    assert_eq!(least["messages"], most["messages"]);
    let (low, high) = (&least["messages"][0], &least["messages"][1]);
    assert!(low.as_u64() < high.as_u64(), "{low} … {high}");
    assert!(least["witness_length"].as_u64() > Some(0));
    assert_eq!(low.as_u64(), Some(sends(&least) as u64));
    assert_eq!(high.as_u64(), Some(sends(&most) as u64));
    let said = konklave_line("check chang-roberts -n 3 --minimise messages");
    assert!(said.out.starts_with("A run with the fewest messages, "), "{}", said.out);
    assert!(said.out.contains("--minimise messages"), "it says how to find it again");
    let both = "check chang-roberts --minimise messages --maximise messages";
    assert_eq!(konklave_line(both).code, 64);
}

/// The adversary finds the dearest legal run: what the sources call the worst case is reached, not only
/// kept.
#[test]
fn the_worst_cases_of_the_sources_are_reached() {
    let reached = [
        // n(n + 1)/2 and n for the announcement: descending ids, everyone starts.
        ("chang-roberts -n 3 --ids desc", 6 + 3),
        ("chang-roberts -n 4 --ids desc", 10 + 4),
        // 3n + k − 4: all start before any is woken.
        ("tree-wave -n 4 --topology path", 3 * 4 + 4 - 4),
        // 2n for each of n lists that go round at once.
        ("ring-list -n 3", 2 * 3 * 3),
        // n for each entry: the token is never at the process that requests it.
        ("suzuki-kasami -n 3", 3 * 3),
        // 2(n − 1) for each entry: no permission stays.
        ("carvalho-roucairol -n 3", 3 * 2 * 2),
        // 3(n − 1) for each entry, always.
        ("lamport -n 3", 3 * 3 * 2),
    ];
    for (what, most) in reached {
        let report = found(&format!("check {what} --maximise messages"), 0);
        assert_eq!(report["messages"][1], most, "{what}");
        assert_eq!(sends(&report), most as usize, "{what}: the run that is shown costs as much");
    }
}

#[test]
fn a_search_in_pieces_finds_the_same_as_at_one_go() {
    let folder = Folder::new("checkpoint");
    let file = folder.write("file", "");
    let line = "check ricart-agrawala -n 3";
    let cases = [("", 0, 6), (" --mistake no-tie-break", 1, 6), (" --no-fifo --loss 1", 1, 2)];
    for (more, code, depth) in cases {
        let line = format!("{line}{more}");
        let whole = found(&line, code);
        let first = found(&format!("{line} --max-depth {depth} --checkpoint {file}"), 2);
        assert!(first["states"].as_u64() < whole["states"].as_u64());
        let rest = found(&format!("{line} --resume {file} --threads 1"), code);
        for figure in ["verdict", "states", "transitions", "depth", "property", "witness"] {
            assert_eq!(rest[figure], whole[figure], "{line}: {figure}");
        }
    }
    let said = konklave_line(&format!("{line} --max-states 100 --checkpoint {file}"));
    assert_eq!(said.code, 2, "{}", said.err);
    assert!(said.out.contains(&format!("continue    with `--resume {file}`")), "{}", said.out);

    let refused = |line: &str, code: i32, why: &str| {
        let said = konklave(&format!("{line} --resume {file}").split(' ').collect::<Vec<_>>());
        assert_eq!(said.code, code, "{line}: {}", said.err);
        assert!(said.err.contains(why), "{line}: {}", said.err);
    };
    refused("check ricart-agrawala -n 4", 65, "another model");
    refused("check ricart-agrawala -n 3 --mistake no-tie-break", 65, "another model");
    refused("check ricart-agrawala -n 3 --crash 1", 65, "another choice of options");
    refused("check ricart-agrawala -n 3 --reduce", 64, "--re");
    folder.write("file", "nothing of the kind");
    refused(line, 65, "not a checkpoint");
    assert_eq!(konklave_line(&format!("{line} --resume {file}.none")).code, 66);
    assert_eq!(konklave_line(&format!("{line} --checkpoint {file}/below")).code, 73);
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
fn broken_properties_depend_on_the_crashing_process() {
    let lock = "check central -n 3 --crash 1 --property deadlock";
    let holder = found(&format!("{lock} --victim holder"), 1);
    assert_eq!(holder["property"], "deadlock");
    let command = holder["command"].as_str().expect("a command");
    assert!(command.contains("--crash 1 --victim holder"), "{command}");
    let anyone = found(lock, 1);
    assert!(anyone["witness_length"].as_u64() <= holder["witness_length"].as_u64());
    assert_eq!(konklave_line(&format!("{lock} --victim nobody")).code, 64);
}

#[test]
fn coordinator_and_idle_owner_of_the_token_are_not_idle() {
    let roles = [
        ("central", "idle", 0),
        ("central", "coordinator", 1),
        ("central", "idle-token-holder", 0),
        ("suzuki-kasami", "idle", 0),
        ("suzuki-kasami", "idle-token-holder", 1),
        ("ricart-agrawala", "coordinator", 0),
        // That a star has a middle says nothing of the algorithm.
        ("raymond --topology star", "coordinator", 0),
    ];
    for (lock, role, code) in roles {
        let line = format!("check {lock} -n 3 --crash 1 --property deadlock --victim {role}");
        assert_eq!(konklave_line(&line).code, code, "{line}");
    }
}

#[test]
fn fingerprints_alone_exhaust_what_cannot_go_round_and_say_what_may_be_missed() {
    let (whole, compact) = ("check ricart-agrawala -n 3", "check ricart-agrawala -n 3 --compact");
    let (whole, compact) = (found(whole, 0), found(compact, 0));
    assert_eq!(compact["verdict"], "exhausted");
    assert_eq!(whole["states"], compact["states"]);
    assert!(compact["missed"].as_f64() > Some(0.0) && whole["missed"].as_f64() == Some(0.0));
    found("check ricart-agrawala -n 3 --mistake no-tie-break --compact", 1);
}

#[test]
fn interchangeable_processes_are_found_and_named() {
    let line = "check central -n 4";
    let (full, few) = (found(line, 0), found(&format!("{line} --symmetry"), 0));
    assert!(few["states"].as_u64() < full["states"].as_u64().map(|full| full / 4), "{few}");
    assert_eq!(few["symmetry"]["interchangeable"], serde_json::json!([[1, 2, 3]]));
    assert_eq!(few["symmetry"]["permutations"], 6);
    assert!(full.get("symmetry").is_none(), "nobody asked");
    let said = konklave_line(&format!("{line} --symmetry")).out;
    assert!(said.contains("symmetry    p1, p2, p3 are interchangeable, 6 permutations"), "{said}");
    assert!(said.contains("--symmetry"), "it says how to do it again: {said}");
    let said = konklave_line("check ricart-agrawala -n 3 --symmetry").out;
    assert!(said.contains("symmetry    none: no two processes are interchangeable ("), "{said}");
    // One run at a time has no other that could stand for it.
    assert_eq!(konklave_line(&format!("{line} --symmetry --shard 1/2")).code, 64);
}

#[test]
fn symmetry_works_with_reduction_and_with_checkpoints() {
    let line = "check central -n 4 --symmetry";
    let (alike, both) = (found(line, 0), found(&format!("{line} --reduce"), 0));
    assert_eq!(both["reduction"], "commutation");
    assert_eq!(both["symmetry"], alike["symmetry"]);
    assert!(both["states"].as_u64() < alike["states"].as_u64(), "{both}");
    let folder = Folder::new("alike");
    let file = folder.write("file", "");
    found(&format!("{line} --max-depth 9 --checkpoint {file}"), 2);
    let rest = found(&format!("{line} --resume {file}"), 0);
    for figure in ["verdict", "states", "transitions", "depth", "symmetry"] {
        assert_eq!(rest[figure], alike[figure], "{figure}");
    }
}

#[test]
fn a_link_may_break_where_there_is_one() {
    // On a star, a process that loses its link to the middle suspects the middle, and waits all the same.
    let lock = "check raymond -n 3 --topology star --property deadlock";
    let report = found(&format!("{lock} --break 1"), 1);
    assert_eq!(report["budgets"]["break"], 1);
    let steps = report["witness"].as_array().expect("steps");
    let said = |step: &Value| step.as_str().is_some_and(|step| step.contains("link p0 – p"));
    assert!(steps.iter().any(said), "{steps:?}");
    assert!(report["command"].as_str().is_some_and(|command| command.contains("--break 1")));
    assert_eq!(konklave_line("check central -n 9 --break 1").code, 64);
    // A member that is up and suspected by one other: a view without it, and what is wrong with that.
    let cases = [
        ("leader -n 3 --property unique", "same-epoch", "one leader per epoch"),
        ("lifted -n 3 --requests 1,1,0 --property exclusion", "own-summary", "mutual exclusion"),
    ];
    for (what, mistake, breaks) in cases {
        let line = format!("check {what} --set retry=off --break 1");
        found(&line, 0);
        assert_eq!(found(&format!("{line} --mistake {mistake}"), 1)["property"], breaks, "{line}");
    }
}

#[test]
fn every_arrangement_of_ids_is_explored_one_after_the_other() {
    // Turning a ring changes nothing: 3! of 4! arrangements are different.
    let all = konklave_line("check chang-roberts -n 4 --ids every");
    assert_eq!(all.code, 0, "{}{}", all.out, all.err);
    assert!(all.out.contains("6 of 6 arrangements"), "{}", all.out);
    assert!(all.out.contains("again       konklave check"), "{}", all.out);
    assert!(all.out.contains("--ids every"), "{}", all.out);
    // A tree has no such symmetry.
    let all = konklave_line("check tree-wave -n 4 --topology star --ids every --format json");
    let report: Value = serde_json::from_str(&all.out).expect("JSON");
    assert_eq!(report["arrangements"], serde_json::json!({"explored": 24, "of": 24}));
    // The one that breaks something is named.
    let mistake = "check dolev-klawe-rodeh --mistake detector-is-leader -n 3 --ids every";
    let broken = konklave_line(mistake);
    assert_eq!(broken.code, 1, "{}{}", broken.out, broken.err);
    assert!(
        broken.out.contains("--ids 0,1,2") || broken.out.contains("--ids 0,2,1"),
        "{}",
        broken.out
    );
}

#[test]
fn every_arrangement_is_for_small_groups_and_for_check() {
    let large = konklave_line("check chang-roberts -n 9 --ids every");
    assert_eq!(large.code, 64, "{}", large.err);
    assert!(large.err.contains("the most is 8"), "{}", large.err);
    let run = konklave_line("run chang-roberts -n 4 --ids every");
    assert_eq!(run.code, 64, "{}", run.err);
    assert!(run.err.contains("`check`"), "{}", run.err);
}
