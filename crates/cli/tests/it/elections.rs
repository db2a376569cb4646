//! book/en/learn/elections.md, computed: what was explored of every election, which mistakes are caught and
//! how soon, which formulas its runs keep. `UPDATE=1` rewrites it.

use std::fmt::Write as _;
use std::path::Path;

use konklave_catalog::{BoundReport, Catalog, Entry, Verdict};
use serde_json::Value;

use super::{konklave_line, words};

/// A small group of each, explored whole. Algorithms that watch for ever get a last term or group.
const EXPLORED: &[(&str, &str)] = &[
    ("adoption", "-n 4 --topology ring --initiators 0,2"),
    ("bully", "-n 3 --crash 1 --synchronous"),
    (
        "bully-1982",
        "-n 3 --set check=0 --crash 1 --restart 1 --synchronous --property unique --property agreement",
    ),
    ("chang-roberts", "-n 5 --ids desc"),
    ("dolev-klawe-rodeh", "-n 5 --ids 0,3,1,4,2"),
    ("extinction", "-n 4 --topology ring --initiators 0,2"),
    (
        "firewire",
        "-n 4 --topology star --set reset=wire --set timeout=0 --set short-max=240 --set long-max=570",
    ),
    ("franklin", "-n 4"),
    ("hirschberg-sinclair", "-n 4"),
    ("invitation", "-n 3 --set max-count=2 --synchronous --property unique"),
    ("itai-rodeh", "-n 4 --set range=2 --set phases=untold"),
    (
        "quorum",
        "-n 3 --requests 0,0,0 --set jitter=1 --set max-term=1 --set max-beats=1 --crash 1 --restart 1 --no-detector --synchronous --early 1 --property unique",
    ),
    ("ring-list", "-n 4 --ids desc"),
    ("tree-wave", "-n 5 --topology path"),
    ("virtual-tree", "-n 3 --topology ring --initiators 0 --crash 1"),
    ("virtual-tree-wave", "-n 3 --topology ring"),
];

fn check(line: &str) -> Value {
    let said = konklave_line(line);
    serde_json::from_str(&said.out).unwrap_or_else(|e| panic!("{line}: {e}\n{}", said.err))
}

/// The checker's verdict on the right algorithm.
fn explored(entry: &Entry) -> String {
    let (_, args) = EXPLORED
        .iter()
        .find(|(name, _)| *name == entry.sheet.name)
        .unwrap_or_else(|| panic!("{}: which group shall be explored?", entry.sheet.name));
    assert!(!words(args).is_empty());
    let line = format!("check {} {args}", entry.sheet.name);
    let report = check(&format!("{line} --format json"));
    assert_eq!(report["verdict"], "exhausted", "{line}: {report}");
    format!("`{line}`: {} states", report["states"])
}

/// Each mistake, with the property that breaks and the length of the shortest witness.
fn caught(entry: &Entry) -> String {
    let mut all = Vec::new();
    for mistake in entry.sheet.mistakes {
        let name = mistake.name;
        if mistake.caught_by.is_empty() && mistake.shown_by(entry.sheet.name).is_some() {
            all.push(format!("`{name}`: {}, shown by a run", mistake.breaks));
            continue;
        }
        if mistake.caught_by.is_empty() {
            all.push(format!("`{name}`: {}, shown by its tests", mistake.breaks));
            continue;
        }
        let line = format!("check {} --mistake {name} {}", entry.sheet.name, mistake.caught_by);
        let report = check(&format!("{line} --format json"));
        assert_eq!(report["property"], mistake.breaks, "{line}");
        all.push(format!("`{name}`: {} in {} steps", mistake.breaks, report["witness_length"]));
    }
    if all.is_empty() { "none known".into() } else { all.join("; ") }
}

/// How many runs kept each formula, out of the standard cases over n.
fn kept(entry: &Entry) -> String {
    let rows = entry.costs(&[1, 2, 3, 5, 10, 20], 1).expect("the standard cases run");
    let mut formulas: Vec<(&BoundReport, u32)> = Vec::new();
    for row in &rows {
        assert_eq!(row.verdict, Verdict::Ok, "{}", row.command);
        for bound in row.bounds.iter().filter(|bound| bound.holds.is_some()) {
            assert_eq!(bound.holds, Some(true), "{}: {}", row.command, bound.formula);
            let same = |b: &BoundReport| (&b.formula, b.exact) == (&bound.formula, bound.exact);
            match formulas.iter_mut().find(|(b, _)| same(b)) {
                Some((_, runs)) => *runs += 1,
                None => formulas.push((bound, 1)),
            }
        }
    }
    let told = formulas.iter().map(|(bound, runs)| {
        let relation = if bound.exact { "=" } else { "≤" };
        format!("{relation} {} in {runs} of {} runs", bound.formula, rows.len())
    });
    let told: Vec<String> = told.collect();
    if told.is_empty() { format!("{} runs, no formula", rows.len()) } else { told.join("; ") }
}

#[test]
fn the_table_of_elections_is_what_is_found() {
    let mut text = String::from(
        "# Elections: what was found\n\n\
         This page is computed: `UPDATE=1 cargo test -p konklave-cli elections` writes it, and the same\n\
         test fails when it is out of date. *Explored* is one group of each; the tests beside each\n\
         algorithm explore many more (every graph of four, every tree and every ring of five).\n\n\
         | election | explored | mistakes caught | counts kept |\n|---|---|---|---|\n",
    );
    for entry in
        Catalog::builtin().entries().iter().filter(|entry| entry.problem.name == "election")
    {
        let cell = |text: String| text.replace('|', "\\|");
        let _ = writeln!(
            text,
            "| `{}` | {} | {} | {} |",
            entry.sheet.name,
            cell(explored(entry)),
            cell(caught(entry)),
            cell(kept(entry)),
        );
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../book/en/learn/elections.md");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &text).expect("docs can be written");
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(written, text, "`UPDATE=1 cargo test -p konklave-cli elections` rewrites it");
}

#[test]
fn every_arrangement_of_a_ring_is_tried_by_one_command() {
    let said = konklave_line("costs election --enumerate --nodes 1,2,5 --format json");
    assert_eq!(said.code, 0, "{}", said.err);
    let rows: Vec<Value> = serde_json::from_str(&said.out).unwrap();
    let find = |name: &str, n: u64| {
        let row = rows.iter().find(|row| row["algorithm"] == name && row["nodes"] == n);
        row.unwrap_or_else(|| panic!("no row for {name}, {n} nodes"))
    };
    // n·H_n to get round, n to tell: 5 · (1 + 1/2 + 1/3 + 1/4 + 1/5) + 5.
    let row = find("election/chang-roberts", 5);
    assert_eq!(row["arrangements"], 24);
    assert!((row["mean"].as_f64().unwrap() - (5.0 * 137.0 / 60.0 + 5.0)).abs() < 1e-9, "{row}");
    assert_eq!((&row["fewest"], &row["most"]), (&14.into(), &20.into()));
    for n in [1, 2] {
        assert_eq!(find("election/franklin", n)["arrangements"], 1);
    }
    assert!(rows.iter().all(|row| row["algorithm"] != "election/itai-rodeh"), "it has no ids");
    for (line, word) in [
        ("costs election --enumerate --nodes 10", "at most 9"),
        ("costs mutex --enumerate", "rings"),
    ] {
        let said = konklave_line(line);
        assert_eq!(said.code, 64, "{line}");
        assert!(said.err.contains(word), "{line}: {}", said.err);
    }
}

#[test]
fn a_run_that_is_too_long_is_said_to_be_and_breaks_nothing() {
    let line = "costs bully --nodes 3,31";
    let said = konklave_line(&format!("{line} --format json"));
    assert_eq!(said.code, 0, "{}", said.err);
    let rows: Vec<Value> = serde_json::from_str(&said.out).unwrap();
    let (cut, whole): (Vec<_>, Vec<_>) =
        rows.iter().partition(|row| row["verdict"] == "unfinished");
    assert!(whole.len() > cut.len() && !cut.is_empty(), "{rows:?}");
    assert!(cut.iter().all(|row| row["nodes"] == 31 && row["cut_off_after"].as_u64().is_some()));
    assert!(whole.iter().all(|row| row["verdict"] == "ok" && row["cut_off_after"].is_null()));
    let text = konklave_line(line);
    assert_eq!(text.out.matches("too long, cut off after ").count(), cut.len(), "{}", text.out);
}

#[test]
fn bully_without_options_runs_as_on_the_slide() {
    let said = konklave_line("run bully -n 4 --format json");
    let run: Value = serde_json::from_str(&said.out).expect(&said.err);
    assert_eq!(run["command"], "konklave run bully -n 4 --initiators 0 --down 3 --seed 1");
    assert_eq!(run["bounds"][0]["holds"], true, "{run}");
}
