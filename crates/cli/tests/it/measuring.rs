//! Comparing, sweeping, reproducing.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;

use super::{Folder, command, konklave, konklave_line};

const STUDY: &str = "\
algorithms = ['central', 'suzuki-kasami']
nodes = [3, 5]
seeds = 6

[base]
entries = 3

[vary]
delay = ['constant', 'exponential']
";

#[test]
fn shards_put_together_are_the_same_bytes_as_one_piece() {
    let folder = Folder::new("shards");
    let study = folder.write("study.toml", STUDY);
    let (whole, one, two, merged) =
        (folder.file("whole"), folder.file("one"), folder.file("two"), folder.file("merged"));
    assert_eq!(konklave(&["sweep", &study, "-o", &whole]).code, 0);
    assert_eq!(konklave(&["sweep", &study, "-o", &one, "--shard", "1/2"]).code, 0);
    // The second as a task of a Slurm array would be.
    let task = command(&["sweep", &study, "-o", &two])
        .env("SLURM_ARRAY_TASK_ID", "8")
        .env("SLURM_ARRAY_TASK_MIN", "7")
        .env("SLURM_ARRAY_TASK_COUNT", "2")
        .output()
        .expect("konklave starts");
    assert!(task.status.success());
    let said = konklave(&["sweep", "merge", &one, &merged, "-o", &folder.file("no")]);
    assert_eq!(said.code, 66, "{}", said.err);
    let said = konklave(&["sweep", "merge", &one, "-o", &folder.file("no")]);
    assert_eq!(said.code, 65, "{}", said.err);
    assert!(said.err.contains("24 of 48 cases"), "{}", said.err);
    assert_eq!(konklave(&["sweep", "merge", &two, &one, "-o", &merged]).code, 0);
    assert!(fs::read(&merged).expect("merged") == fs::read(&whole).expect("whole"));
    // An existing file is not replaced unasked.
    fs::write(&merged, "mine\n").expect("a file");
    let said = konklave(&["sweep", "merge", &two, &one, "-o", &merged]);
    assert_eq!(said.code, 64, "{}", said.err);
    assert!(said.err.contains("--overwrite"), "{}", said.err);
    assert_eq!(fs::read_to_string(&merged).expect("a file"), "mine\n");
    assert_eq!(konklave(&["sweep", "merge", &two, &one, "-o", &merged, "--overwrite"]).code, 0);
    assert!(fs::read(&merged).expect("merged") == fs::read(&whole).expect("whole"));
}

#[test]
fn a_row_that_was_altered_is_not_merged_and_not_gone_on_with() {
    let folder = Folder::new("altered");
    let study = folder.write("study.toml", STUDY);
    let (one, two, merged) = (folder.file("one"), folder.file("two"), folder.file("merged"));
    assert_eq!(konklave(&["sweep", &study, "-o", &one, "--shard", "1/2"]).code, 0);
    assert_eq!(konklave(&["sweep", &study, "-o", &two, "--shard", "2/2"]).code, 0);
    let whole = fs::read_to_string(&two).expect("results");
    let mut lines: Vec<String> = whole.lines().map(str::to_owned).collect();
    // Case 5 is the third of the second shard: a figure is made to look better by hand.
    let row: Value = serde_json::from_str(&lines[3]).expect("a row");
    assert_eq!(row["case"], 5);
    let messages = format!("\"messages\":{}", row["measures"]["messages"]);
    lines[3] = lines[3].replacen(&messages, "\"messages\":1.0", 1);
    fs::write(&two, lines.join("\n") + "\n").expect("results can be altered");
    for line in [vec!["merge", &one, &two, "-o", &merged], vec![&study, "-o", &two, "--resume"]] {
        let said = konklave(&[&["sweep"], &line[..]].concat());
        assert_eq!(said.code, 65, "{}", said.err);
        assert!(said.err.contains(&format!("{two}:4: case 5")), "{}", said.err);
    }
    assert!(!fs::exists(&merged).expect("a folder that can be read"));
    // The advice of the message puts it right.
    lines.remove(3);
    fs::write(&two, lines.join("\n") + "\n").expect("results can be altered");
    assert_eq!(konklave(&["sweep", &study, "-o", &two, "--shard", "2/2", "--resume"]).code, 0);
    assert_eq!(fs::read_to_string(&two).expect("results"), whole);
    assert_eq!(konklave(&["sweep", "merge", &one, &two, "-o", &merged]).code, 0);
}

#[test]
fn a_law_has_its_formula_also_where_the_sheet_counts_per_entry() {
    let said = konklave_line("sweep --algorithms ricart-agrawala --nodes 2,4,8 --seeds 2");
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("the formula: 2(n − 1) for each entry"), "{}", said.out);
    assert!(said.out.contains("formula 112"), "{}", said.out);
}

#[test]
fn a_law_that_does_not_fit_is_not_told() {
    let said = konklave_line(
        "sweep --algorithms virtual-synchrony --nodes 1,2,3,5,9 --seeds 2 --measure latency_max",
    );
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("fits no law: the nearest"), "{}", said.out);
    assert!(said.out.contains("R² ≥ 0.9"), "{}", said.out);
    let said = konklave_line("sweep --algorithms central --nodes 2,4 --seeds 2 --format json");
    let report: Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!(report["growth"][0]["fit"], Value::Null);
    assert!(report["growth"][0]["why"].as_str().is_some_and(|why| why.contains("3 different n")));
}

/// With seed 3 both nodes know the leader at 7.92 T; a timer that is cancelled before would fire at 1670 T.
#[test]
fn sweep_measures_time_until_the_last_event_that_mattered() {
    let line =
        "sweep --algorithms firewire --nodes 2,3 --with topology=path --seeds 8 --measure time";
    let said = konklave_line(&format!("{line} --format json"));
    assert_eq!(said.code, 0, "{}", said.err);
    let report: Value = serde_json::from_str(&said.out).expect("JSON");
    let groups = report["groups"].as_array().expect("groups");
    assert_eq!(groups.len(), 2);
    for group in groups {
        let measures = &group["measures"];
        assert_eq!(measures["time"], measures["time_to_all"], "{}", group["parameters"]);
        let n = &group["parameters"]["nodes"];
        let time = |seed: u64| {
            let run = konklave_line(&format!(
                "run firewire -n {n} --topology path --seed {seed} --format json"
            ));
            let run: Value = serde_json::from_str(&run.out).expect("JSON");
            run["time"].as_f64().expect("a time")
        };
        let longest = (1..=8).map(time).fold(0.0, f64::max);
        assert_eq!(measures["time"]["max"], longest, "n = {n}");
        assert!(longest < 100.0, "n = {n}: {longest}");
    }
}

#[test]
fn sweep_has_a_column_for_each_moment_of_a_time_series() {
    let folder = Folder::new("series");
    let table = folder.file("runs.csv");
    let line = format!(
        "sweep --algorithms central --nodes 3 --seeds 2 --with sample=0.5 --measure series.0.5.waiting --table {table}"
    );
    let said = konklave_line(&line);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("series.0.5.waiting"), "{}", said.out);
    let csv = fs::read_to_string(&table).expect("a table");
    let run = konklave_line("run central -n 3 --seed 1 --sample 0.5 --format json");
    let run: Value = serde_json::from_str(&run.out).expect("JSON");
    let moments = run["mutex"]["series"].as_array().expect("a series");
    assert!(moments.len() > 3, "{moments:?}");
    let mut lines = csv.lines();
    let names: Vec<&str> = lines.next().expect("names").split(',').collect();
    let first: Vec<&str> = lines.next().expect("a run").split(',').collect();
    for moment in moments {
        for measure in ["entries", "waiting", "inside"] {
            let at = moment["time"].as_f64().expect("a time").to_string().replace('.', "_");
            let name = format!("series_{at}_{measure}");
            let column = names.iter().position(|known| *known == name).expect("a column");
            assert_eq!(first[column], moment[measure].to_string(), "{name}");
        }
    }
}

#[test]
fn duplicates_are_refused() {
    let said = konklave_line("sweep --algorithms central --nodes 8,8");
    assert_eq!(said.code, 64, "{}", said.err);
    assert!(said.err.contains("nodes: 8 occurs twice"), "{}", said.err);
    let said = konklave_line("compare mutex central mutex/central");
    assert_eq!(said.code, 64, "{}", said.err);
    assert!(said.err.contains("named twice"), "{}", said.err);
}

#[test]
fn a_delay_says_how_many_hand_overs_it_rests_on() {
    let said =
        konklave_line("sweep --algorithms central --nodes 1,3 --seeds 2 --measure sync_delay.mean");
    assert_eq!(said.code, 0, "{}", said.err);
    let lines: Vec<&str> = said.out.lines().collect();
    assert!(lines[0].contains("—(no hand-over)"), "{}", said.out);
    // Three processes enter, and the last one hands the lock to no other.
    assert!(lines[1].contains("deviation 0") && lines[1].contains("of 4"), "{}", said.out);
    let said = konklave_line("compare mutex central -n 1 --seeds 2 --no-faults");
    assert!(said.out.contains("—(no hand-over)"), "{}", said.out);
    let said = konklave_line("compare mutex central -n 3 --seeds 2 --no-faults --format json");
    let all: Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!(all["columns"][1]["of"], "hand-overs");
    assert!(all["lines"][1]["samples"][1].as_u64() > Some(0), "{all:#}");
}

#[test]
fn a_results_file_that_was_cut_off_is_gone_on_with() {
    let folder = Folder::new("resume");
    let study = folder.write("study.toml", STUDY);
    let results = folder.file("results");
    assert_eq!(konklave(&["sweep", &study, "-o", &results]).code, 0);
    let whole = fs::read(&results).expect("results");
    fs::write(&results, &whole[..whole.len() / 2]).expect("results can be cut");
    assert_eq!(konklave(&["sweep", &study, "-o", &results]).code, 64, "it would be overwritten");
    let said = konklave(&["sweep", &study, "-o", &results, "--resume"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.err.contains("cut off"), "{}", said.err);
    assert!(fs::read(&results).expect("results") == whole);
    let other = folder.write("other.toml", &STUDY.replace("seeds = 6", "seeds = 7"));
    let said = konklave(&["sweep", &other, "-o", &results, "--resume"]);
    assert_eq!(said.code, 65, "{}", said.err);
    fs::write(&results, "not results\n").expect("results can be spoilt");
    let said = konklave(&["sweep", &study, "-o", &results, "--resume"]);
    assert_eq!(said.code, 65, "{}", said.err);
    assert!(said.err.contains("results:1:"), "{}", said.err);
}

#[test]
fn a_wrong_study_is_named_with_its_line() {
    let folder = Folder::new("study");
    let study = folder.write("study.toml", "algorithms = ['central']\nsedes = 3\n");
    let said = konklave(&["sweep", &study]);
    assert_eq!(said.code, 65);
    assert!(said.err.contains("study.toml:2:") && said.err.contains("sedes"), "{}", said.err);
    let said = konklave_line("sweep --algorithms centrl");
    assert_eq!(said.code, 64);
    assert!(said.err.contains("central"), "{}", said.err);
    assert_eq!(konklave_line("sweep").code, 64);
    assert_eq!(konklave_line("sweep --algorithms central --shard 3/2").code, 64);
    assert_eq!(konklave_line("sweep --algorithms central -o /nowhere/results").code, 73);
    assert_eq!(konklave_line("sweep --algorithms central --plot /nowhere/p.svg").code, 73);
}

#[test]
fn a_plot_has_a_line_for_every_algorithm() {
    let folder = Folder::new("plot");
    let plot = folder.file("plot.svg");
    let line = format!("sweep --algorithms central,lamport --nodes 2,4,8 --seeds 3 --plot {plot}");
    assert_eq!(konklave_line(&line).code, 0);
    let picture = fs::read_to_string(&plot).expect("a plot");
    assert!(picture.starts_with("<svg") && picture.contains(">lamport<"));
}

#[test]
fn a_plot_takes_the_form_of_its_name_and_the_width_of_a_column() {
    let folder = Folder::new("plot-forms");
    let base = "sweep --algorithms central,lamport,raymond --nodes 2,4,8 --seeds 3 --vary hold=1,3 \
                --facet hold --log x,y";
    let plot = |name: &str, more: &str| {
        let file = folder.file(name);
        let said = konklave_line(&format!("{base} --plot {file} {more}"));
        assert_eq!(said.code, 0, "{}", said.err);
        fs::read(&file).expect("a plot")
    };
    let svg = String::from_utf8(plot("p.svg", "")).expect("text");
    assert!(svg.contains("width=\"88.00mm\"") && svg.contains(">hold = 3<"), "{svg}");
    let tex = String::from_utf8(plot("p.tex", "--width 180")).expect("text");
    assert!(tex.contains("paperwidth=510.24bp") && tex.contains("\\begin{tikzpicture}"), "{tex}");
    if cfg!(feature = "png") {
        assert!(plot("p.pdf", "").starts_with(b"%PDF"));
        assert!(plot("p.png", "").starts_with(b"\x89PNG"));
    }
}

#[test]
fn plots_that_cannot_be_are_refused() {
    let folder = Folder::new("no-plots");
    let plot = folder.file("p.svg");
    for (options, why) in [
        ("--facet hold".to_owned(), "name its file with --plot"),
        ("--plot-x hold".to_owned(), "name its file with --plot"),
        (format!("--plot {plot} --width 3"), "between 30 and 1000 mm"),
        (format!("--plot {plot} --facet hold"), "--facet hold: it does not vary"),
        (format!("--plot {plot} --plot-x hold"), "parameters are nodes"),
        (format!("--plot {plot} --measure lost --log y"), "values above 0"),
        (format!("--plot {}", folder.file("p.gif")), ".svg, .png or .pdf"),
    ] {
        let said =
            konklave_line(&format!("sweep --algorithms central --nodes 2,4 --seeds 2 {options}"));
        assert_eq!(said.code, 64, "{options}: {}", said.err);
        assert!(said.err.contains(why), "{options}: {}", said.err);
    }
    assert_eq!(fs::read_dir(&folder.0).expect("a folder").count(), 0);
}

#[test]
fn every_number_of_a_run_can_be_measured() {
    for measure in ["messages.by_kind.Token", "steps", "fairness.waits", "wait_per_node.2"] {
        let said = konklave_line(&format!(
            "sweep --algorithms central,suzuki-kasami --nodes 4 --seeds 2 --measure {measure}"
        ));
        assert_eq!(said.code, 0, "{measure}: {}", said.err);
        assert!(said.out.contains(&format!("{measure} ")), "{measure}: {}", said.out);
    }
    let said = konklave_line("sweep --algorithms central --nodes 4 --seeds 2 --measure stepps");
    assert_eq!(said.code, 64, "{}", said.out);
    assert!(said.err.contains("did you mean `steps`"), "{}", said.err);
}

#[test]
fn differences_are_told_to_people_and_machines() {
    let base = "sweep --algorithms central,raymond --nodes 4 --seeds 5 --with entries=20 \
                --with think=exponential:5*n --measure response.mean --against central";
    let said = konklave_line(base);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("− that of mutex/central, pair by pair"), "{}", said.out);
    let said = konklave_line(&format!("{base} --format json"));
    let report: Value = serde_json::from_str(&said.out).expect("JSON");
    let difference = &report["differences"][0];
    assert_eq!(
        (&difference["algorithm"], &difference["pairs"]),
        (&"mutex/raymond".into(), &5.into())
    );
    assert!(difference["p"].as_f64().is_some_and(|p| (0.0..=1.0).contains(&p)), "{report:#}");
    for (line, why) in [
        (base.replace("--against central", "--against lamport"), "it is not in the study"),
        (base.replace("--seeds 5", "--seeds 1"), "at least two seeds"),
        ("compare mutex central raymond --against lamport".into(), "it is not compared"),
        ("compare mutex central raymond --against central --seeds 1".into(), "two --seeds"),
    ] {
        let said = konklave_line(&line);
        assert_eq!(said.code, 64, "{line}: {}", said.out);
        assert!(said.err.contains(why), "{line}: {}", said.err);
    }
}

#[test]
#[cfg(all(feature = "parquet", feature = "png"))]
fn tables_and_plots_take_the_form_of_their_names() {
    let folder = Folder::new("tables");
    let (csv, parquet, png) =
        (folder.file("t.csv"), folder.file("t.parquet"), folder.file("p.png"));
    let base = "sweep --algorithms central,lamport --nodes 2,3 --seeds 2 --vary hold=1,2";
    assert_eq!(konklave_line(&format!("{base} --table {csv} --plot {png}")).code, 0);
    assert_eq!(konklave_line(&format!("{base} --table {parquet}")).code, 0);
    let table = fs::read_to_string(&csv).expect("a table");
    assert!(table.starts_with("case_,algorithm,hold,nodes,seed,verdict,"), "{table}");
    assert_eq!(table.lines().count(), 1 + 2 * 2 * 2 * 2);
    assert!(fs::read(&parquet).expect("a table").starts_with(b"PAR1"));
    assert!(fs::read(&png).expect("a plot").starts_with(b"\x89PNG"));
    let said = konklave_line(&format!("{base} --table {}", folder.file("t.xls")));
    assert_eq!(said.code, 64);
    assert!(said.err.contains(".parquet"), "{}", said.err);
}

#[test]
fn a_comparison_is_drawn_and_told_to_machines() {
    let folder = Folder::new("compare");
    let (svg, html) = (folder.file("c.svg"), folder.file("c.html"));
    let said = konklave(&[
        "compare", "mutex", "central", "raymond", "-n", "4", "--seeds", "2", "--svg", &svg,
        "--html", &html, "--format", "json",
    ]);
    assert_eq!(said.code, 0, "{}", said.err);
    let all: Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!((&all["schema"], &all["nodes"]), (&"konklave.compare/1".into(), &4.into()));
    assert_eq!(all["lines"].as_array().map(Vec::len), Some(4));
    assert!(all["lines"][0]["endurance"]["crashes_tried"].as_u64() > Some(0));
    let picture = fs::read_to_string(&svg).expect("a picture");
    assert!(picture.contains("raymond") && picture.matches("<polygon").count() == 4);
    assert!(fs::read_to_string(&html).expect("a page").contains("<table>"));
    let said = konklave_line("compare mutex central bully");
    assert_eq!(said.code, 64);
    assert!(said.err.contains("bully solves election"), "{}", said.err);
    let csv = konklave_line("compare mutex central -n 3 --seeds 2 --no-faults --format csv");
    assert_eq!(csv.out.lines().count(), 3);
}

#[test]
fn reproduce_draws_its_cases_and_names_its_chapters() {
    let folder = Folder::new("reproduce");
    let figures = folder.file("figures");
    let said = konklave(&["reproduce", "central", "--format", "json", "--output", &figures]);
    assert_eq!(said.code, 0, "{}", said.err);
    let rows: Vec<Value> = serde_json::from_str(&said.out).expect("JSON");
    let commands = |row: &Value| row["cases"].as_array().map_or(0, Vec::len);
    assert!(rows.len() > 10 && rows.iter().all(|row| commands(row) > 0), "{rows:?}");
    assert!(rows.iter().all(|row| row["schema"] == "konklave.reproduce/2"));
    let pictures = fs::read_dir(&figures).expect("figures").flatten();
    let pictures = pictures.filter(|f| f.path().extension().is_some_and(|e| e == "svg")).count();
    assert!(pictures > rows.len() / 2, "{pictures} pictures of {} statements", rows.len());
    let table = konklave_line("reproduce ring-buffer --format markdown").out;
    let rows: Vec<&str> = table.lines().skip(2).collect();
    assert!(rows.len() == 2 && rows.iter().all(|row| row.contains(" | refuted")), "{table}");
    let csv = konklave_line("reproduce ring-buffer --format csv");
    assert_eq!(csv.out.lines().count(), 1 + 4, "{}", csv.out);
    let said = konklave_line("reproduce nothing-like-that");
    assert_eq!(said.code, 64);
    let chapters: Vec<&str> = said
        .err
        .trim()
        .rsplit("the chapters are ")
        .next()
        .unwrap_or_default()
        .split(", ")
        .collect();
    let different: BTreeSet<&&str> = chapters.iter().collect();
    assert!(chapters.len() > 10 && different.len() == chapters.len(), "{}", said.err);
}
