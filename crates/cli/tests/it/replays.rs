//! `replay` names the place where a run differs, and reports a file that was cut off.

use super::{Folder, konklave_line};

fn recorded(folder: &Folder, name: &str, line: &str) -> (String, String) {
    let file = folder.file(name);
    let said = konklave_line(&format!("{line} --record {file}"));
    assert!(said.code <= 1, "{line}: {}", said.err);
    let text = std::fs::read_to_string(&file).expect("it was recorded");
    (file, text)
}

#[test]
fn a_difference_is_told_with_file_line_and_what_was_expected() {
    let folder = Folder::new("differences");
    let (file, text) = recorded(&folder, "a.run", "run ricart-agrawala -n 3 --delay uniform");
    assert_eq!(konklave_line(&format!("replay {file}")).code, 0);
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    // Blank lines count as lines.
    lines.insert(3, String::new());
    let at = lines[8].find(",\"node\"").expect("a step");
    let was = lines[8][6..at].to_owned();
    lines[8].replace_range(6..at, "7");
    let edited = folder.write("edited.run", &(lines.join("\n") + "\n"));
    let said = konklave_line(&format!("replay {edited}"));
    assert_eq!(said.code, 1, "{}", said.out);
    let expected = format!("edited.run:9: `at` differs\n  recorded: 7\n  expected: {was}\n");
    assert!(said.out.contains(&expected), "{}", said.out);
}

#[test]
fn seed_verdict_and_numbers_of_messages_are_verified() {
    let folder = Folder::new("fields");
    let (_, text) = recorded(&folder, "a.run", "run central -n 3");
    let last = text.lines().count();
    for (from, to, line) in [
        ("\"seed\":1,\"world\"", "\"seed\":2,\"world\"", 1),
        ("{\"end\":\"ok\"", "{\"end\":\"violated\"", last),
        ("\"sent\":6", "\"sent\":7", last),
    ] {
        assert!(text.contains(from), "{from}: {text}");
        let file = folder.write("b.run", &text.replacen(from, to, 1));
        let said = konklave_line(&format!("replay {file}"));
        assert_eq!(said.code, 1, "{to}: {}{}", said.out, said.err);
        assert!(said.out.contains(&format!("b.run:{line}: ")), "{to}: {}", said.out);
    }
}

#[test]
fn a_recording_that_was_cut_off_is_told_in_every_form() {
    let folder = Folder::new("cut");
    let (_, text) = recorded(&folder, "a.run", "run central -n 3");
    let lines: Vec<&str> = text.lines().collect();
    // Within a line, and between two.
    let within = &text[..text.len() / 2];
    let between = lines[..lines.len() - 1].join("\n") + "\n";
    for half in [within, &between] {
        let file = folder.write("half.run", half);
        let said = konklave_line(&format!("replay {file} --format json"));
        assert_eq!(said.code, 65, "{}{}", said.out, said.err);
        assert!(said.err.contains("half.run:") && said.err.contains("cut off"), "{}", said.err);
        assert!(said.out.contains("\"complete\": false"), "{}", said.out);
    }
    let compact = folder.file("a.runz");
    assert_eq!(konklave_line(&format!("run central -n 3 --entries 9 --record {compact}")).code, 0);
    assert_eq!(konklave_line(&format!("replay {compact}")).code, 0);
    let bytes = std::fs::read(&compact).unwrap();
    std::fs::write(&compact, &bytes[..bytes.len() / 2]).unwrap();
    let said = konklave_line(&format!("replay {compact}"));
    assert!(said.code == 65 && said.err.contains("cut off"), "{}{}", said.out, said.err);
}

#[test]
fn every_witness_replays() {
    let folder = Folder::new("witnesses");
    for check in [
        "check tree-wave -n 4 --topology path --initiators 0,3 --mistake leaf-rule",
        "check ricart-agrawala -n 3 --requests 2,1,1 --mistake request-clock --property order",
        "check chang-roberts -n 3 --crash 1 --mistake no-hop-limit --property livelock",
        "check central -n 3 --loss 1",
        "check bully -n 2 --initiators 0 --property unique",
        "check central -n 2 --crash 1 --restart 1 --amnesia",
        "check central -n 3 --requests 1,1,1 --app-messages 1 --property order",
        "check central -n 3 --maximise messages",
    ] {
        let file = folder.file("w.run");
        let checked = konklave_line(&format!("{check} --record {file}"));
        assert!(checked.code <= 1, "{check}: {}", checked.err);
        assert!(std::fs::metadata(&file).is_ok(), "{check}: {}", checked.out);
        let said = konklave_line(&format!("replay {file}"));
        assert_eq!(said.code, 0, "{check}: {}{}", said.out, said.err);
        let _ = std::fs::remove_file(&file);
    }
}
