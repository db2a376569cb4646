//! `new`: the crates that it writes compile, run, check and test; what cannot be written is refused.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

use super::{Folder, Said, command};

/// Cargo in one of the new crates. They share a target folder, so their dependencies are built once.
fn cargo(crate_folder: &Path, args: &[&str]) -> Said {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(args).current_dir(crate_folder).env("NO_COLOR", "1");
    cargo.env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("new"));
    // The outer Cargo's decisions for its workspace do not hold here.
    for name in ["RUSTC_WORKSPACE_WRAPPER", "CARGO_BUILD_TARGET", "CARGO_ENCODED_RUSTFLAGS"] {
        cargo.env_remove(name);
    }
    let Output { status, stdout, stderr } = cargo.output().expect("cargo starts");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    Said { out: text(&stdout), err: text(&stderr), code: status.code().unwrap_or(-1) }
}

fn new_in(folder: &Folder, args: &[&str]) -> Said {
    let args = [&["new"], args].concat();
    let Output { status, stdout, stderr } =
        command(&args).current_dir(folder.file("")).output().expect("konklave starts");
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    Said { out: text(&stdout), err: text(&stderr), code: status.code().unwrap_or(-1) }
}

/// The names of everything in a folder.
fn content(folder: &Folder) -> Vec<String> {
    let entries = std::fs::read_dir(folder.file("")).expect("the folder is there");
    entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect()
}

/// Their files are written; with `KONKLAVE_LONG=1` they are also built, checked, compared and tested.
#[test]
fn new_crates_of_all_kinds_build_run_and_pass_their_tests() {
    let folder = Folder::new("new-kinds");
    // Name, kind, the mistake and the arguments that catch it.
    for (name, kind, mistake, arguments) in [
        ("ring-one", "election", "passes-all", "-n 2"),
        ("LockOne", "mutex", "grants-at-once", "-n 2"),
        ("cast_one", "multicast", "drops-early", "-n 2 --requests 2,0 --no-fifo"),
        ("tally", "own", "read-then-write", "-n 2"),
    ] {
        let said = new_in(&folder, &[name, "--problem", kind, "--format", "json"]);
        assert_eq!(said.code, 0, "{name}: {}", said.err);
        let report: Value = serde_json::from_str(&said.out).expect("JSON");
        assert_eq!(report["schema"], "konklave.new/1");
        let crate_folder = folder.0.join(name);
        for file in report["files"].as_array().expect("a list of files") {
            let file = crate_folder.join(file.as_str().unwrap());
            assert!(file.is_file(), "{} was not written", file.display());
        }
        let algorithm = report["name"].as_str().unwrap();
        let readme = std::fs::read_to_string(crate_folder.join("README.md")).unwrap();
        for command in report["next"].as_array().unwrap() {
            assert!(readme.contains(command.as_str().unwrap()), "{name}: {command} in {readme}");
        }
        // A laboratory of its own takes minutes to build.
        if std::env::var_os("KONKLAVE_LONG").is_none() {
            continue;
        }
        let check = ["run", "--offline", "--", "check", algorithm, "-n", "3"];
        let right = cargo(&crate_folder, &check);
        assert_eq!(right.code, 0, "{name}: {}{}", right.out, right.err);
        assert!(right.out.contains("exhausted"), "{name}: {}", right.out);
        assert!(!right.err.contains("warning"), "{name}: {}", right.err);
        let mut check = vec!["run", "--offline", "--", "check", algorithm, "--mistake", mistake];
        check.extend(arguments.split(' '));
        let wrong = cargo(&crate_folder, &check);
        assert_eq!(wrong.code, 1, "{name}: {}{}", wrong.out, wrong.err);
        let compare = report["next"][2].as_str().unwrap().replace("cargo run", "run --offline");
        let compare = cargo(&crate_folder, &compare.split(' ').collect::<Vec<_>>());
        assert!(compare.code == 0 && compare.out.contains(algorithm), "{name}: {}", compare.err);
        // One kind is enough to see that tests find the testkit; the checks above cover the rest.
        if kind == "election" || kind == "own" {
            let tested = cargo(&crate_folder, &["test", "--offline", "--test", "group"]);
            assert_eq!(tested.code, 0, "{name}: {}{}", tested.out, tested.err);
            assert!(tested.out.contains("3 passed"), "{name}: {}", tested.out);
        }
    }
}

#[test]
fn names_that_cannot_be_used_are_refused_with_a_reason() {
    let folder = Folder::new("new-names");
    for (name, reason) in [
        ("", "begin with a letter"),
        ("2pc", "begin with a letter"),
        ("_x", "begin with a letter"),
        ("my lock", "contains ' '"),
        ("a/b", "contains '/'"),
        ("wähler", "contains 'ä'"),
        ("async", "keyword of Rust"),
        ("serde", "a dependency uses this name"),
        ("mutex", "name of a problem"),
        ("central", "the catalog has mutex/central"),
        ("Chang_Roberts", "the catalog has election/chang-roberts"),
    ] {
        let said = new_in(&folder, &[name]);
        assert_eq!(said.code, 64, "{name}: {}", said.err);
        assert!(said.err.contains(reason) && said.err.contains("e.g. `"), "{name}: {}", said.err);
    }
    let said = new_in(&folder, &["counting", "--problem", "own"]);
    assert!(said.code == 64 && said.err.contains("name of a problem"), "{}", said.err);
    assert!(content(&folder).is_empty(), "{:?}", content(&folder));
}

#[test]
fn existing_and_missing_folders_are_refused_and_left_alone() {
    let folder = Folder::new("new-folders");
    std::fs::create_dir(folder.0.join("mine")).unwrap();
    folder.write("file", "mine, too");
    for path in ["mine", "file"] {
        let said = new_in(&folder, &["abc", "--path", path]);
        assert_eq!(said.code, 73, "{path}: {}", said.err);
        assert!(said.err.contains("exists already") && said.err.contains("--path"), "{}", said.err);
    }
    let said = new_in(&folder, &["abc", "--path", "no/such/abc"]);
    assert!(said.code == 73 && said.err.contains("create it first"), "{}", said.err);
    let mut names = content(&folder);
    names.sort();
    assert_eq!(names, ["file", "mine"], "nothing else was written");
    assert_eq!(std::fs::read_dir(folder.0.join("mine")).unwrap().count(), 0);
    assert_eq!(std::fs::read_to_string(folder.0.join("file")).unwrap(), "mine, too");
}

#[test]
fn lab_is_the_folder_of_the_crate() {
    let folder = Folder::new("new-lab");
    for lab in ["no-such-folder", ".", env!("CARGO_MANIFEST_DIR")] {
        let said = new_in(&folder, &["abc", "--lab", lab]);
        assert_eq!(said.code, 66, "{lab}: {}", said.err);
        assert!(said.err.contains("crates/lab"), "{lab}: {}", said.err);
    }
    assert!(content(&folder).is_empty(), "{:?}", content(&folder));
    let lab = Path::new(env!("CARGO_MANIFEST_DIR")).join("../lab");
    let said = new_in(&folder, &["abc", "--lab", &lab.to_string_lossy()]);
    assert_eq!(said.code, 0, "{}", said.err);
    let manifest = std::fs::read_to_string(folder.0.join("abc/Cargo.toml")).unwrap();
    let lab = lab.canonicalize().unwrap();
    assert!(manifest.contains(&format!("path = \"{}\"", lab.display())), "{manifest}");
    assert!(manifest.contains("\n[workspace]\n"), "{manifest}");
}
