//! Checks that each algorithm is registered wherever CONTRIBUTING.md says.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::read;

/// The problems, and the crate that compiles each problem's algorithms for the worlds.
const PROBLEMS: &[(&str, &str)] = &[
    ("detector", "builtin-group"),
    ("election", "builtin-election"),
    ("group", "builtin-group"),
    ("multicast", "builtin-multicast"),
    ("mutex", "builtin-mutex"),
];

/// Lists the missing parts of each algorithm. A file with a data sheet beside it is an algorithm.
pub(super) fn algorithms(root: &Path, broken: &mut Vec<String>) -> Result<()> {
    let glossary = read(&root.join("GLOSSARY.md"))?;
    let tests = "crates/algorithms/tests/it";
    let test_modules = read(&root.join(tests).join("main.rs"))?;
    for (problem, builtin) in PROBLEMS {
        let folder = format!("crates/algorithms/src/{problem}");
        let builtin = format!("crates/{builtin}/src/lib.rs");
        let problem_file = read(&root.join(format!("{folder}.rs")))?;
        let compiled = read(&root.join(&builtin))?;
        for name in names(&root.join(&folder))? {
            let full = format!("{problem}/{}", name.replace('_', "-"));
            let mut need = |there: bool, what: String| {
                if !there {
                    broken.push(format!("{full}: {what}"));
                }
            };
            let sheet = format!("{folder}/{name}/sheet.rs");
            need(root.join(&sheet).is_file(), format!("its data sheet is missing: {sheet}"));
            let module = format!("pub mod {name};");
            need(problem_file.contains(&module), format!("`{module}` is missing in {folder}.rs"));
            let known = compiled.contains(&format!("::{problem}::{name}::"));
            need(known, format!("its line is missing in ALGORITHMS of {builtin}"));
            need(
                glossary.contains(&format!("`{full}`")),
                "its row is missing in GLOSSARY.md".into(),
            );
            let (own, shared) =
                (format!("{tests}/{name}.rs"), format!("{tests}/{problem}/{name}.rs"));
            let is_tested = root.join(&own).is_file() || root.join(shared).is_file();
            need(is_tested, format!("its tests are missing: {own}"));
            let named = test_modules.contains(&format!("\nmod {name};"));
            let in_main = !root.join(&own).is_file() || named;
            need(in_main, format!("`mod {name};` is missing in {tests}/main.rs"));
            let story = format!("crates/cli/tests/stories/{problem}/{name}.txt");
            need(root.join(&story).is_file(), format!("its story is missing: {story}"));
        }
    }
    Ok(())
}

/// The algorithms of a folder: the files that implement `Process`.
fn names(folder: &Path) -> Result<Vec<String>> {
    let files =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let name = |file: fs::DirEntry| {
        let name = file.file_name().into_string().ok()?.strip_suffix(".rs")?.to_owned();
        let is_process = fs::read_to_string(file.path()).is_ok_and(|t| t.contains(" Process for "));
        is_process.then_some(name)
    };
    let mut names: Vec<String> = files.filter_map(|file| name(file.ok()?)).collect();
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    /// A copy of the files that the rule reads, removed after the test.
    struct Copy(PathBuf);

    impl Copy {
        fn new() -> Self {
            let root = std::env::temp_dir().join(format!("konklave-tidy-{}", std::process::id()));
            let copy = Self(root);
            for path in ["GLOSSARY.md", "crates/algorithms", "crates/cli/tests/stories"] {
                copy.take(Path::new(path));
            }
            for (_, builtin) in PROBLEMS {
                copy.take(&Path::new("crates").join(builtin));
            }
            copy
        }

        fn take(&self, path: &Path) {
            let (from, to) = (super::super::root().join(path), self.0.join(path));
            if from.is_dir() {
                fs::create_dir_all(&to).unwrap();
                for file in fs::read_dir(from).unwrap() {
                    self.take(&path.join(file.unwrap().file_name()));
                }
            } else {
                fs::create_dir_all(to.parent().unwrap()).unwrap();
                fs::copy(from, to).unwrap();
            }
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn replace(&self, path: &str, old: &str, new: &str) {
            let text = fs::read_to_string(self.0.join(path)).unwrap();
            assert!(text.contains(old), "{path} has no {old}");
            self.write(path, &text.replacen(old, new, 1));
        }

        fn broken(&self) -> Vec<String> {
            let mut broken = Vec::new();
            algorithms(&self.0, &mut broken).unwrap();
            broken
        }
    }

    impl Drop for Copy {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    /// Following CONTRIBUTING.md step by step removes one complaint after the other.
    #[test]
    fn following_contributing_step_by_step_leaves_nothing_missing() {
        let contributing = read(&super::super::root().join("CONTRIBUTING.md")).unwrap();
        let is_documented =
            |path: &str| assert!(contributing.contains(path), "not documented: {path}");
        let copy = Copy::new();
        assert_eq!(copy.broken(), Vec::<String>::new());
        let old = "crates/algorithms/src/mutex/central";
        let rules = fs::read_to_string(copy.0.join(format!("{old}.rs"))).unwrap();
        let sheet = fs::read_to_string(copy.0.join(format!("{old}/sheet.rs"))).unwrap();
        is_documented("crates/algorithms/src/<problem>/<name>.rs");
        copy.write("crates/algorithms/src/mutex/my_lock.rs", &rules.replace("Central", "MyLock"));
        is_documented("<name>/sheet.rs");
        let sheet = sheet.replace("Central", "MyLock").replace("\"central\"", "\"my-lock\"");
        copy.write("crates/algorithms/src/mutex/my_lock/sheet.rs", &sheet);
        assert_eq!(copy.broken().len(), 5, "{:?}", copy.broken());
        is_documented("`pub mod <name>;`");
        copy.replace(
            "crates/algorithms/src/mutex.rs",
            "pub mod lamport;",
            "pub mod lamport;\npub mod my_lock;",
        );
        assert_eq!(copy.broken().len(), 4, "{:?}", copy.broken());
        is_documented("crates/builtin-<problem>/src/lib.rs");
        let line = "erased::<konklave_algorithms::mutex::lamport::Lamport>(),";
        let both = format!("{line}\n    {}", line.replace("lamport::Lamport", "my_lock::MyLock"));
        copy.replace("crates/builtin-mutex/src/lib.rs", line, &both);
        assert_eq!(copy.broken().len(), 3, "{:?}", copy.broken());
        is_documented("GLOSSARY.md");
        copy.replace(
            "GLOSSARY.md",
            "| Zentraler",
            "| Mein Schloss | `mutex/my-lock` | |\n| Zentraler",
        );
        assert_eq!(copy.broken().len(), 2, "{:?}", copy.broken());
        is_documented("crates/algorithms/tests/it/<name>.rs");
        copy.write("crates/algorithms/tests/it/my_lock.rs", "");
        let missing = copy.broken();
        assert!(missing[0].contains("`mod my_lock;`"), "{missing:?}");
        is_documented("`mod <name>;`");
        copy.replace(
            "crates/algorithms/tests/it/main.rs",
            "\nmod lamport;",
            "\nmod lamport;\nmod my_lock;",
        );
        is_documented("crates/cli/tests/stories/<problem>/<name>.txt");
        copy.write("crates/cli/tests/stories/mutex/my_lock.txt", "");
        assert_eq!(copy.broken(), Vec::<String>::new());
    }
}
