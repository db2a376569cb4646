//! `new`: a crate for an algorithm of one's own, ready to run and to check.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf, absolute};

use konklave_catalog::{Catalog, Error};
use serde_json::{Value, json};

use crate::Done;
use crate::args::{Kind, NewArgs};
use crate::output::{Format, print_csv, print_json, stdout};

/// The crate konklave-lab that this program was built from.
const OWN_SOURCE: &str = env!("CARGO_MANIFEST_DIR");

/// Names in the templates, which are replaced by those of the new crate.
const KEBAB: &str = "my-algorithm";
const SNAKE: &str = "my_algorithm";
const CAMEL: &str = "MyAlgorithm";

/// The files of one kind of crate, and texts of its README.
struct Template {
    problem: &'static str,
    /// The source files: path in the new crate, content.
    sources: &'static [(&'static str, &'static str)],
    mistake: &'static str,
    rivals: &'static str,
}

macro_rules! template {
    ($path:literal) => {
        include_str!(concat!("../../templates/", $path))
    };
}

const MAIN: (&str, &str) = ("src/main.rs", template!("main.rs"));

impl Kind {
    fn template(self) -> Template {
        match self {
            Self::Election => Template {
                problem: "election",
                sources: &[
                    ("src/lib.rs", template!("election/lib.rs")),
                    MAIN,
                    ("tests/group.rs", template!("election/test.rs")),
                ],
                mistake: "passes-all -n 2",
                rivals: " chang-roberts franklin",
            },
            Self::Mutex => Template {
                problem: "mutex",
                sources: &[
                    ("src/lib.rs", template!("mutex/lib.rs")),
                    MAIN,
                    ("tests/group.rs", template!("mutex/test.rs")),
                ],
                mistake: "grants-at-once -n 2",
                rivals: " central ricart-agrawala",
            },
            Self::Multicast => Template {
                problem: "multicast",
                sources: &[
                    ("src/lib.rs", template!("multicast/lib.rs")),
                    MAIN,
                    ("tests/group.rs", template!("multicast/test.rs")),
                ],
                mistake: "drops-early -n 2 --requests 2,0 --no-fifo",
                rivals: " fifo causal",
            },
            Self::Own => Template {
                problem: "counting",
                sources: &[
                    ("src/lib.rs", template!("own/lib.rs")),
                    ("src/problem.rs", template!("own/problem.rs")),
                    MAIN,
                    ("tests/group.rs", template!("own/test.rs")),
                ],
                mistake: "read-then-write -n 2",
                rivals: "",
            },
        }
    }
}

pub(crate) fn new(catalog: &Catalog, args: &NewArgs) -> Done {
    let template = args.problem.template();
    let name = name(catalog, &args.name, template.problem)?;
    let lab = Lab::find(args.lab.as_deref(), Path::new(OWN_SOURCE))?;
    let folder = args.path.clone().unwrap_or_else(|| PathBuf::from(&args.name));
    let files = files(&template, &name, &lab);
    write(&folder, &files)?;
    let next = [
        format!("cargo run -- run {name} -n 5"),
        format!("cargo run -- check {name} -n 3"),
        format!("cargo run -- compare {} {name}{} -n 5", template.problem, template.rivals),
    ];
    match args.format {
        Format::Text => {
            let mut out = stdout();
            let folder = folder.display();
            let problem = template.problem;
            writeln!(
                out,
                "{problem}/{name} is in {folder}; it builds with konklave-lab in {}.",
                lab.0.display()
            )?;
            for (path, _) in &files {
                writeln!(out, "  {path}")?;
            }
            writeln!(out, "Next:\n  cd {folder}")?;
            for command in &next {
                writeln!(out, "  {command}")?;
            }
            out.flush()?;
        }
        Format::Json | Format::Jsonl => {
            let report = json!({
                "schema": "konklave.new/1",
                "name": name,
                "algorithm": format!("{}/{name}", template.problem),
                "problem": template.problem,
                "folder": absolute(&folder)?,
                "files": files.iter().map(|(path, _)| path).collect::<Vec<_>>(),
                "lab": { "path": lab.0 },
                "next": next,
            });
            print_json(&report, args.format)?;
        }
        Format::Csv => {
            let row = |(path, content): &(String, String)| {
                let lines = content.lines().count().to_string();
                vec![("file".to_owned(), path.clone()), ("lines".to_owned(), lines)]
            };
            print_csv(&files.iter().map(row).collect::<Vec<_>>())?;
        }
    }
    Ok(0)
}

/// Words that are no names of crates.
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate",
    "do", "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl",
    "in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref",
    "return", "self", "static", "struct", "super", "trait", "true", "try", "type", "typeof",
    "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];
/// Names that Cargo refuses, or that the new crate uses for another crate.
const RESERVED: &[&str] = &[
    "alloc",
    "build",
    "core",
    "deps",
    "examples",
    "incremental",
    "konklave-lab",
    "konklave-testkit",
    "proc-macro",
    "serde",
    "std",
    "test",
];

/// The name of crate and algorithm, in the form of the command line: `MyLock` and `my_lock` are `my-lock`.
fn name(catalog: &Catalog, given: &str, problem: &str) -> Result<String, Error> {
    let refuse = |why: String, better: &str| {
        Err(Error::Usage(format!(
            "`{given}` cannot be the name of a crate: {why}, e.g. `{better}`"
        )))
    };
    let rule = "letters (a to z), digits, `-` and `_` are allowed";
    let is_allowed = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if let Some(c) = given.chars().find(|c| !is_allowed(c)) {
        return refuse(format!("it contains {c:?}; {rule}"), "my-lock");
    }
    if !given.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return refuse("a name must begin with a letter".into(), "my-lock");
    }
    if given.len() > 64 {
        return refuse("it is longer than 64 characters".into(), "my-lock");
    }
    let name = kebab(given);
    let better = match name.starts_with("my-") {
        true => format!("{name}-2"),
        false => format!("my-{name}"),
    };
    if KEYWORDS.contains(&name.as_str()) {
        return refuse("it is a keyword of Rust; take another name".into(), &better);
    }
    if RESERVED.contains(&name.as_str()) {
        return refuse("Cargo or a dependency uses this name; take another one".into(), &better);
    }
    if name == problem || catalog.problems().iter().any(|known| known.name == name) {
        return refuse("it is the name of a problem; take another name".into(), &better);
    }
    if let Ok(entry) = catalog.find(&name) {
        let why = format!("the catalog has {}; take another name", entry.name());
        return refuse(why, &better);
    }
    Ok(name)
}

fn kebab(given: &str) -> String {
    let mut name = String::new();
    let mut last = '-';
    for c in given.chars() {
        let begins_word = c.is_ascii_uppercase() && !last.is_ascii_uppercase();
        if (begins_word || matches!(c, '-' | '_')) && !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
        if c.is_ascii_alphanumeric() {
            name.push(c.to_ascii_lowercase());
        }
        last = c;
    }
    name.trim_end_matches('-').to_owned()
}

/// The type of the algorithm: `my-lock` is `MyLock`. A word that the sources use for something else gets
/// an ending.
fn camel(name: &str, sources: &[(&str, &str)]) -> String {
    const PRELUDE: &str = "Box Clone Copy Default Drop Eq Err Fn From Hash Into Iterator None Ok Option Ord Result \
                           Send Some String Sync ToString Vec";
    let mut camel = String::new();
    for word in name.split('-') {
        let (first, rest) = word.split_at(word.len().min(1));
        camel += &(first.to_ascii_uppercase() + rest);
    }
    let not_in_word = |c: char| !(c.is_ascii_alphanumeric() || c == '_');
    let uses = |text: &str| text.split(not_in_word).any(|word| word == camel);
    if uses(PRELUDE) || sources.iter().any(|(_, text)| uses(text)) {
        camel += "Algorithm";
    }
    camel
}

/// The folder of the crate konklave-lab that the new crate depends on; its testkit lies beside it.
struct Lab(PathBuf);

impl Lab {
    /// The folder `given`, or `own`, where this program was built.
    fn find(given: Option<&Path>, own: &Path) -> Result<Self, Error> {
        let Some(given) = given else {
            if manifest_of(own).is_ok() && manifest_of(&testkit(own)).is_ok() {
                return Ok(Self(own.to_owned()));
            }
            return Err(Error::Unreadable {
                file: own.display().to_string(),
                why: io::Error::new(
                    io::ErrorKind::NotFound,
                    "the sources of this program are no longer there, and konklave-lab is in no registry; \
                     name the folder `crates/lab` of Konklave's sources with --lab",
                ),
            });
        };
        let wrong = |why: io::Error| Error::Unreadable {
            file: format!("--lab {}", given.display()),
            why: io::Error::new(
                why.kind(),
                format!("{why}; name the folder `crates/lab` of Konklave's sources"),
            ),
        };
        let folder = fs::canonicalize(given).map_err(wrong)?;
        if !manifest_of(&folder).map_err(wrong)?.contains("name = \"konklave-lab\"") {
            return Err(wrong(io::Error::other("its Cargo.toml is not that of konklave-lab")));
        }
        manifest_of(&testkit(&folder)).map_err(|_| {
            wrong(io::Error::other("the crate konklave-testkit is not beside it, in ../testkit"))
        })?;
        Ok(Self(folder))
    }

    /// The lines of Cargo.toml for konklave-lab and konklave-testkit.
    fn sources(&self) -> [String; 2] {
        [self.0.clone(), testkit(&self.0)]
            .map(|path| format!("path = {}", Value::from(path.to_string_lossy())))
    }

    /// The versions of all dependencies that konklave-lab was tested with, where they are known.
    fn lock_file(&self) -> Option<String> {
        fs::read_to_string(self.0.ancestors().nth(2)?.join("Cargo.lock")).ok()
    }
}

fn testkit(lab: &Path) -> PathBuf {
    lab.with_file_name("testkit")
}

fn manifest_of(folder: &Path) -> io::Result<String> {
    fs::read_to_string(folder.join("Cargo.toml"))
}

/// All files of the new crate: path, content.
fn files(template: &Template, name: &str, lab: &Lab) -> Vec<(String, String)> {
    let camel = camel(name, template.sources);
    let [lab_source, testkit_source] = lab.sources();
    let manifest = template!("Cargo.toml.in")
        .replace("{{lab}}", &lab_source)
        .replace("{{testkit}}", &testkit_source);
    let problem_file = match template.sources.iter().any(|(path, _)| *path == "src/problem.rs") {
        true => {
            "\n| `src/problem.rs` | the problem: requests, indications, clients, judge, meter |"
        }
        false => "",
    };
    let readme = template!("README.md")
        .replace("{{problem}}", template.problem)
        .replace("{{problem_file}}", problem_file)
        .replace("{{mistake}}", template.mistake)
        .replace("{{rivals}}", template.rivals);
    let mut files = vec![
        ("Cargo.toml".to_owned(), manifest),
        ("README.md".to_owned(), readme),
        (".gitignore".to_owned(), "/target\n".to_owned()),
    ];
    files.extend(template.sources.iter().map(|(path, text)| ((*path).into(), (*text).into())));
    for (_, content) in &mut files {
        let named = content.replace(KEBAB, name).replace(SNAKE, &name.replace('-', "_"));
        *content = named.replace(CAMEL, &camel);
    }
    files.extend(lab.lock_file().map(|lock| ("Cargo.lock".to_owned(), lock)));
    files
}

/// Writes all files, or none: into a folder beside the right place, which is then renamed.
fn write(folder: &Path, files: &[(String, String)]) -> Result<(), Error> {
    let fail = |why| Error::Unwritable { file: folder.display().to_string(), why };
    let place = absolute(folder).map_err(fail)?;
    if place.symlink_metadata().is_ok() {
        let message = "it exists already; remove it, or name another folder with --path";
        return Err(fail(io::Error::new(io::ErrorKind::AlreadyExists, message)));
    }
    let (Some(parent), Some(last)) = (place.parent(), place.file_name()) else {
        return Err(fail(io::Error::other("it names no new folder")));
    };
    if !parent.is_dir() {
        let message = format!("there is no folder {}; create it first", parent.display());
        return Err(fail(io::Error::new(io::ErrorKind::NotFound, message)));
    }
    let draft = parent.join(format!(".{}.{}.part", last.to_string_lossy(), std::process::id()));
    let fill = || -> io::Result<()> {
        for sub in ["src", "tests"] {
            fs::create_dir_all(draft.join(sub))?;
        }
        for (path, content) in files {
            fs::write(draft.join(path), content)?;
        }
        fs::rename(&draft, &place)
    };
    let done = fill();
    if done.is_err() {
        let _ = fs::remove_dir_all(&draft);
    }
    done.map_err(fail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_one_form() {
        for given in ["my-lock", "my_lock", "MyLock", "My-Lock", "my--lock", "my-lock_"] {
            assert_eq!(kebab(given), "my-lock", "{given}");
        }
        assert_eq!(kebab("ABC"), "abc");
        assert_eq!(kebab("x2"), "x2");
    }

    #[test]
    fn type_name_avoids_words_of_the_template() {
        let sources = Kind::Own.template().sources;
        assert_eq!(camel("my-lock", sources), "MyLock");
        for word in ["message", "clients", "option", "case"] {
            assert!(camel(word, sources).ends_with("Algorithm"), "{word}");
        }
    }

    #[test]
    fn no_placeholder_is_left_over() {
        for kind in [Kind::Election, Kind::Mutex, Kind::Multicast, Kind::Own] {
            for (path, content) in files(&kind.template(), "abc", &Lab(OWN_SOURCE.into())) {
                if path == "Cargo.lock" {
                    continue;
                }
                for left in ["{{", KEBAB, SNAKE, CAMEL] {
                    assert!(!content.contains(left), "{kind:?} {path}: {left}");
                }
            }
        }
    }

    #[test]
    fn without_the_sources_the_error_names_the_option() {
        let here = Lab::find(None, Path::new(OWN_SOURCE)).map(|lab| lab.0);
        assert_eq!(here.expect("the sources are here"), Path::new(OWN_SOURCE));
        let Err(error) = Lab::find(None, Path::new("/no/such/crates/lab")) else {
            panic!("a folder that is not there is no laboratory");
        };
        let told = error.to_string();
        assert!(told.contains("/no/such/crates/lab") && told.contains("--lab"), "{told}");
        assert_eq!(error.exit_code(), 66);
    }

    #[test]
    fn readme_and_data_sheet_name_the_same_mistake() {
        for kind in [Kind::Election, Kind::Mutex, Kind::Multicast, Kind::Own] {
            let template = kind.template();
            let (mistake, arguments) = template.mistake.split_once(' ').expect("a mistake and -n");
            let sheet = template.sources[0].1;
            assert!(sheet.contains(&format!("name: \"{mistake}\"")), "{kind:?}");
            assert!(sheet.contains(&format!("caught_by: \"{arguments}\"")), "{kind:?}");
        }
    }
}
