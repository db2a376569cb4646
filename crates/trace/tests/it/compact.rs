//! The compact form: the same run in fewer bytes, and nothing that breaks the reader.

use std::fs::File;
use std::io::BufReader;

use crate::files::path_of;
use konklave_trace::{Entry, Run, Salvaged, compact};
use serde_json::json;

const RUNS: [&str; 3] = ["ricart-agrawala", "chang-roberts", "faults"];

fn stored(name: &str) -> Run {
    let file = format!("{name}.run");
    Run::read(&file, BufReader::new(File::open(path_of(&file)).unwrap())).unwrap()
}

fn packed(run: &Run) -> Vec<u8> {
    compact::write(run, Vec::new()).unwrap()
}

#[test]
fn packing_and_reading_are_inverse() {
    for name in RUNS {
        let run = stored(name);
        let bytes = packed(&run);
        let Salvaged { run: read, cut } = compact::salvage("x.runz", &bytes).unwrap();
        assert!(cut.is_none());
        assert_eq!(read, run);
        assert_eq!(read.to_text(), run.to_text());
        assert!(bytes.len() * 2 < run.to_text().len(), "{name}: {} bytes", bytes.len());
    }
}

/// Reading rounds to the nearest double, and 5/11 is one that a quick reader misses.
#[test]
fn numbers_keep_their_last_digit() {
    let mut run = stored("ricart-agrawala");
    let numbers = json!([0.45454545454545453, 0.1, 2.0 / 3.0, 1e-7, 5e-324, f64::MAX]);
    run.footer.as_mut().unwrap().summary = numbers;
    let text = run.to_text();
    assert_eq!(Run::read("x.run", text.as_bytes()).unwrap().to_text(), text);
    assert_eq!(compact::salvage("x", &packed(&run)).unwrap().run.to_text(), text);
}

#[test]
fn every_value_of_json_comes_back() {
    let mut run = stored("ricart-agrawala");
    let values = [
        json!(null),
        json!([true, false, 0, 127, 128, u64::MAX, -1, i64::MIN, 0.5, -1e300, ""]),
        json!({"a": {"b": {"c": [[[]], {}]}}, "ä 💡": "line\nbreak", "": 1}),
        json!((0..40).collect::<Vec<u32>>()),
        json!(
            (0..5000).map(|i| (format!("k{i}"), i)).collect::<std::collections::BTreeMap<_, _>>()
        ),
    ];
    let steps = run.entries.iter_mut().filter_map(|entry| match entry {
        Entry::Step(step) => Some(step),
        Entry::Incident(_) => None,
    });
    for (step, value) in steps.zip(values.iter().cycle()) {
        step.state = Some(value.clone());
    }
    assert_eq!(compact::salvage("x", &packed(&run)).unwrap().run, run);
}

#[test]
fn a_file_that_is_cut_off_is_read_as_far_as_it_goes() {
    let run = stored("faults");
    let bytes = packed(&run);
    let mut most = 0;
    for end in 0..bytes.len() {
        match compact::salvage("x.runz", &bytes[..end]) {
            Ok(Salvaged { run: read, cut }) => {
                let cut = cut.expect("it is cut off");
                assert!(cut.cut_off && read.footer.is_none());
                assert_eq!(read.entries[..], run.entries[..read.entries.len()]);
                assert!(read.entries.len() >= most, "more bytes, no fewer entries");
                most = read.entries.len();
            }
            Err(error) => assert!(most == 0, "{error}"),
        }
    }
    assert_eq!(most, run.entries.len());
}

#[test]
fn no_wrong_byte_breaks_the_reader() {
    let bytes = packed(&stored("faults"));
    for place in 0..bytes.len() {
        for change in [1, 0x40, 0x80, 0xff] {
            let mut wrong = bytes.clone();
            wrong[place] ^= change;
            match compact::salvage("x.runz", &wrong) {
                // A length that leads beyond the end.
                Ok(Salvaged { cut, .. }) => assert!(cut.is_some(), "{place}: as if it were right"),
                // Its name, or another version, in which something comes after the end.
                Err(_) if place < 8 => {}
                Err(error) => {
                    let told = error.to_string();
                    let clear = told.contains("damaged: its check sum does not fit");
                    assert!(clear || told.contains("cut off within its header"), "{place}: {told}");
                }
            }
        }
    }
    let error = |bytes: &[u8]| compact::salvage("x.runz", bytes).unwrap_err().to_string();
    assert_eq!(error(b"hello"), "x.runz:1: this is no run in the compact form");
    let newer = "x.runz:1: this version of the compact form is not known here";
    assert_eq!(error(b"konkrun\x04"), newer);
    let mut more = bytes;
    more.push(0);
    assert!(error(&more).contains("something comes after the end"));
}

#[test]
fn files_without_a_check_sum_are_read_as_before() {
    for name in RUNS {
        let run = stored(name);
        let mut old = packed(&run);
        old.truncate(old.len() - 4);
        old[7] = 2;
        let Salvaged { run: read, cut } = compact::salvage("x.runz", &old).unwrap();
        assert!(cut.is_none());
        assert_eq!(read, run);
        old.push(0);
        let told = compact::salvage("x.runz", &old).unwrap_err().to_string();
        assert!(told.ends_with("something comes after the end; nothing should"), "{told}");
    }
}
