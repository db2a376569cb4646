//! Exports, parts of runs, races.

use super::{Folder, konklave, konklave_line};

/// A recorded run in a folder of its own.
fn recorded(name: &str) -> (Folder, String) {
    let folder = Folder::new(name);
    let run = folder.file("run.run");
    let line = format!("run ricart-agrawala -n 3 --entries 2 --fault crash:2@9 --record {run}");
    let said = konklave_line(&line);
    assert!(std::path::Path::new(&run).exists(), "{}", said.err);
    (folder, run)
}

fn refused(line: &str, code: i32, words: &[&str]) {
    let said = konklave_line(line);
    assert_eq!(said.code, code, "{line}: {}{}", said.out, said.err);
    for word in words {
        assert!(said.err.contains(word), "{line}: no `{word}` in: {}", said.err);
    }
    assert!(said.out.is_empty(), "{line}: {}", said.out);
}

#[test]
fn a_run_goes_into_every_form() {
    let (folder, run) = recorded("forms");
    let forms: [(&str, &str, &[u8]); 11] = [
        ("svg", "svg", b"<svg"),
        ("png", "png", b"\x89PNG"),
        ("pdf", "pdf", b"%PDF-1.4"),
        ("tikz", "tex", b"\\documentclass"),
        ("mermaid", "mmd", b"---\ntitle"),
        ("plantuml", "puml", b"@startuml"),
        ("shiviz", "shiviz", b"p0 starts"),
        ("csv", "csv", b"line,at,time,node,event,"),
        ("parquet", "parquet", b"PAR1"),
        ("html", "html", b"<!doctype html>"),
        ("runz", "runz", b"konkrun\x03"),
    ];
    // A build may leave out what takes long to build.
    let lacks = |form| {
        ["png", "pdf"].contains(&form) && !cfg!(feature = "png")
            || form == "parquet" && !cfg!(feature = "parquet")
    };
    for (form, ending, begin) in forms {
        if lacks(form) {
            let feature = if form == "pdf" { "png" } else { form };
            refused(&format!("export {run} --to {form}"), 64, &[&format!("--features {feature}")]);
            continue;
        }
        let said = konklave(&["export", &run, "--to", form]);
        assert_eq!(said.code, 0, "{form}: {}", said.err);
        assert!(said.out.is_empty(), "talk goes to stderr");
        let file = folder.file(&format!("run.{ending}"));
        let content = std::fs::read(&file).unwrap();
        assert!(
            content.starts_with(begin),
            "{form}: {:?}",
            String::from_utf8_lossy(&content[..20])
        );
        // The ending alone says it, too, and the same run gives the same bytes.
        let again = folder.file(&format!("again.{ending}"));
        assert_eq!(konklave(&["export", &run, "-o", &again]).code, 0, "{form}");
        assert_eq!(std::fs::read(&again).unwrap(), content, "{form}");
    }
    let said = konklave(&["export", &run, "--to", "csv", "-o", "-"]);
    assert!(said.code == 0 && said.out.starts_with("line,at,time"), "{}", said.err);
}

#[test]
fn a_compact_recording_is_the_same_run() {
    let (folder, run) = recorded("compact");
    let text = std::fs::read_to_string(&run).unwrap();
    let compact = folder.file("c.runz");
    assert_eq!(konklave(&["export", &run, "-o", &compact]).code, 0);
    let back = folder.file("back.run");
    assert_eq!(konklave(&["export", &compact, "-o", &back]).code, 0);
    assert_eq!(std::fs::read_to_string(&back).unwrap(), text);
    for line in [
        // Told, hence held in memory; and streamed.
        format!("run ricart-agrawala -n 3 --entries 2 --record {compact}"),
        format!("run ricart-agrawala -n 5 --entries 40 --record {compact} --format json"),
    ] {
        let said = konklave_line(&line);
        assert_eq!(said.code, 0, "{}", said.err);
        let said = konklave(&["replay", &compact]);
        assert!(said.code == 0 && said.out.contains("the same"), "{}{}", said.out, said.err);
    }
    let bytes = std::fs::read(&compact).unwrap();
    let half = folder.file("half.runz");
    std::fs::write(&half, &bytes[..bytes.len() / 2]).unwrap();
    let said = konklave(&["replay", &half]);
    assert!(said.code == 65 && said.err.contains("cut off"), "{}{}", said.out, said.err);
    let mut damaged = bytes;
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0x10;
    std::fs::write(&half, &damaged).unwrap();
    let said = konklave(&["replay", &half]);
    let told = said.err.contains("damaged: its check sum does not fit");
    assert!(told || said.err.contains("cut off"), "{}{}", said.out, said.err);
    std::fs::write(&half, b"konkrun\x09").unwrap();
    refused(&format!("replay {half}"), 65, &["half.runz:1:", "version"]);
}

#[test]
fn export_and_draw_honour_the_same_width() {
    let folder = Folder::new("width");
    let run = folder.file("wide.run");
    let said = konklave_line(&format!("run ricart-agrawala -n 4 --entries 6 --record {run}"));
    assert_eq!(said.code, 0, "{}", said.err);
    let width_of = |text: &str, before: &str| {
        let rest = text.split_once(before).expect("a width").1;
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        rest[..digits].parse::<f64>().expect("a number")
    };
    let mut widths = Vec::new();
    for points in [4500, 9000] {
        let file = |name: &str| folder.file(&format!("{points}-{name}"));
        let (svg, tex, drawn) = (file("e.svg"), file("e.tex"), file("d.svg"));
        for line in [
            format!("export {run} -o {svg} --width {points}"),
            format!("export {run} -o {tex} --width {points}"),
            format!("draw {run} -o {drawn} --width {points}"),
        ] {
            assert_eq!(konklave_line(&line).code, 0, "{line}");
        }
        let read = |path: &str| std::fs::read_to_string(path).unwrap();
        assert_eq!(read(&svg), read(&drawn), "{points}");
        let width = width_of(&read(&svg), "width=\"");
        // The page of TeX has half a point more on either side.
        assert_eq!(width_of(&read(&tex), "paperwidth="), width + 1.0, "{points}");
        assert!(width <= f64::from(points), "{points}: {width}");
        widths.push(width);
    }
    assert!(widths[0] < widths[1], "{widths:?}");
}

/// TeX has a limit, and says so only after a minute.
#[test]
fn picture_too_long_for_tex_is_reported() {
    let folder = Folder::new("tex");
    for (entries, warned) in [(2, false), (30, true)] {
        let run = folder.file("long.run");
        let line = format!("run ricart-agrawala -n 10 --entries {entries} --record {run}");
        assert_eq!(konklave_line(&line).code, 0);
        let said = konklave(&["export", &run, "--to", "tikz"]);
        assert_eq!(said.code, 0, "{}", said.err);
        let told = said.err.contains("lualatex") && said.err.contains("--only");
        assert_eq!(told, warned, "{}", said.err);
    }
}

#[test]
fn parts_of_a_run_are_drawn() {
    let (_folder, run) = recorded("parts");
    let said = konklave(&[
        "draw",
        &run,
        "-o",
        "-",
        "--window",
        "1..3",
        "--only-kinds",
        "Reply",
        "--lanes",
        "2,1",
    ]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert!(said.out.contains("only 1 to 3 T") && said.out.contains("only Reply"), "{}", said.out);
    let lanes: Vec<&str> = said.out.lines().filter(|l| l.contains("class=\"name\"")).collect();
    assert!(lanes[0].contains(">p2<") && lanes[2].contains(">p0<"), "{lanes:?}");
}

#[test]
fn wishes_that_cannot_be_fulfilled() {
    let (folder, run) = recorded("wishes");
    refused(&format!("export {run}"), 64, &["name it with --to", "mermaid"]);
    refused(&format!("export {run} -o x.doc"), 64, &["name it with --to"]);
    refused(&format!("export {run} --to word"), 64, &["word", "plantuml"]);
    refused(
        &format!("export {run} --to svg --only 7"),
        64,
        &["--only: there is no node 7", "0, 1, 2"],
    );
    refused(
        &format!("export {run} --to svg --only-kinds Token"),
        64,
        &["`Token`", "Reply, Request"],
    );
    refused(&format!("export {run} --to csv --window 7"), 64, &["--window", "like 2.5..10"]);
    refused(&format!("export {run} --to csv --window 5..2"), 64, &["ends before it begins"]);
    refused(&format!("export {run} --to csv --window 900..901"), 64, &["nothing happens then"]);
    refused(&format!("draw {run} --lanes 0,9"), 64, &["--lanes: there is no node 9"]);
    refused(&format!("draw {run} --width 3"), 64, &["between 100 and"]);
    refused(&format!("export {run} --to png --scale 0"), 64, &["--scale"]);
    if cfg!(feature = "png") {
        refused(&format!("export {run} --to png --scale 20"), 64, &["too large"]);
    }
    refused(&format!("export {run} --to run"), 64, &["overwrite the run itself"]);
    refused(&format!("export {run} --to svg -o /nowhere/x.svg"), 73, &["/nowhere/x.svg"]);
    refused("export /nowhere.run --to svg", 66, &["/nowhere.run"]);
    let wrong = folder.write("not.run", "hello\n");
    refused(&format!("export {wrong} --to svg"), 65, &["not.run:1:"]);
    let left: Vec<_> = std::fs::read_dir(&folder.0).unwrap().collect();
    assert_eq!(left.len(), 2, "nothing half written is left behind: {left:?}");
}

#[test]
fn a_recording_that_was_cut_off_is_no_run() {
    let (folder, run) = recorded("cut");
    let text = std::fs::read_to_string(&run).unwrap();
    let lines: Vec<&str> = text.lines().take(9).collect();
    let cut = folder.write("cut.run", &(lines.join("\n") + "\n"));
    refused(&format!("export {cut} --to csv"), 65, &["cut.run:10: cut off", "--partial"]);
    let torn = folder.write("torn.run", &text[..text.len() / 2]);
    let line = text[..text.len() / 2].lines().count();
    refused(&format!("export {torn} --to parquet"), 65, &[&format!("torn.run:{line}:")]);
    let table = folder.file("cut.csv");
    assert!(!std::path::Path::new(&table).exists());
    let said = konklave(&["export", &cut, "--to", "csv", "--partial"]);
    assert!(said.code == 0 && said.err.contains("only the readable part is used"), "{}", said.err);
    assert!(std::fs::read_to_string(&table).unwrap().lines().count() > 9);
}

#[test]
fn a_race_has_one_picture_and_a_table() {
    let folder = Folder::new("race");
    let (picture, page) = (folder.file("race.svg"), folder.file("race.html"));
    let line =
        format!("race central ricart-agrawala suzuki-kasami -n 3 --svg {picture} --html {page}");
    let said = konklave_line(&line);
    assert_eq!(said.code, 0, "{}", said.err);
    let lines: Vec<&str> = said.out.lines().collect();
    assert!(lines.len() == 4 && lines[0].ends_with("messages       time  verdict"), "{}", said.out);
    assert!(lines[2].starts_with("mutex/ricart-agrawala         12 "), "{}", said.out);
    let picture = std::fs::read_to_string(&picture).unwrap();
    assert_eq!(picture.matches("data-track=").count(), 3);
    assert!(std::fs::read_to_string(&page).unwrap().contains("mutex/suzuki-kasami"));
    let said = konklave_line("race central ricart-agrawala -n 3 --format json");
    let race: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(race["runs"].as_array().map(Vec::len), Some(2));
    let said = konklave_line("race suzuki-kasami ricart-agrawala -n 3 --fault lose:/Token");
    assert_eq!(said.code, 1, "one of them is stuck: {}", said.out);
    assert!(said.out.contains("stuck") && said.out.contains("ok"), "{}", said.out);
}

#[test]
fn races_that_cannot_be() {
    refused("race central", 64, &["2"]);
    refused("race central central central central central", 64, &["central"]);
    refused("race central ricard-agrawala", 64, &["did you mean `ricart-agrawala`"]);
    refused("race central tree-wave -n 4 --topology path", 64, &["mutex/central:", "complete"]);
    refused("race central ricart-agrawala --svg /nowhere/x.svg", 73, &["/nowhere/x.svg"]);
}
