//! The book: pages of `book/`, the project's own documents, and pages computed by the program, built by MkDocs.

mod algorithms;
mod commands;
mod german;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{cargo, run, tools};

/// Where the book's sources are gathered, and where it is built.
const GATHERED: &str = "target/book/pages";
const SITE: &str = "target/book/site";
const TOOLS: &str = "target/book/tools";
const CONFIG: &str = "target/book/mkdocs.yml";

/// Documents of the project that are pages of the book, too, and their place in it.
const DOCUMENTS: &[(&str, &str)] = &[
    ("ARCHITECTURE.md", "en/internals/architecture.md"),
    ("CHANGELOG.md", "en/reference/changelog.md"),
    ("CONTRIBUTING.md", "en/internals/contributing.md"),
    ("GLOSSARY.md", "en/reference/glossary.md"),
    ("docs/adr", "en/internals/adr"),
];

/// Builds the program, and then the book.
pub(crate) fn build() -> Result<()> {
    run(&mut cargo(&["build", "--quiet", "-p", "konklave-cli"]))?;
    build_with_program()
}

/// Builds the book into `target/book/site`, with the program that is in `target/debug`; says so where Python is missing.
pub(crate) fn build_with_program() -> Result<()> {
    gather()?;
    german::complete()?;
    german::mark_english_pages()?;
    let program = Program::new();
    algorithms::write_pages(&program)?;
    commands::write_pages(&program)?;
    configure(&program)?;
    let Some(mkdocs) = mkdocs()? else {
        println!(
            "xtask: the book's pages are in {GATHERED}; they are not built: no Python with venv"
        );
        return Ok(());
    };
    println!("xtask: mkdocs build");
    let mut build = Command::new(mkdocs);
    // Not `--quiet`: then `--strict` overlooks warnings.
    build.args(["build", "--strict", "--config-file", CONFIG]).env("NO_MKDOCS_2_WARNING", "1");
    let output = build.output().context("cannot start mkdocs")?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let warnings: Vec<&str> = said.lines().filter(|line| !line.starts_with("INFO")).collect();
        bail!("the book cannot be built:\n{}", warnings.join("\n"));
    }
    println!("xtask: the book is in {SITE}");
    Ok(())
}

/// Completes the configuration: every algorithm and every decision stands in the navigation.
fn configure(program: &Program) -> Result<()> {
    let mut config = String::new();
    for line in fs::read_to_string("book/mkdocs.yml").context("book/mkdocs.yml")?.lines() {
        let indent = &line[..line.len() - line.trim_start().len()];
        match line.trim_start() {
            "- Algorithms" => config.push_str(&algorithms::navigation(program, indent)?),
            "- Decisions" => config.push_str(&decisions(indent)?),
            _ => {
                config.push_str(line);
                config.push('\n');
            }
        }
    }
    write(Path::new(CONFIG), &config)
}

fn decisions(indent: &str) -> Result<String> {
    let mut names = Vec::new();
    for file in fs::read_dir("docs/adr").context("docs/adr")? {
        names.push(file?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    let mut lines = format!("{indent}- Decisions:\n");
    for name in names {
        lines.push_str(&format!("{indent}    - internals/adr/{name}\n"));
    }
    Ok(lines)
}

/// Puts the written pages and the project's documents into one folder.
fn gather() -> Result<()> {
    let to = Path::new(GATHERED);
    if to.exists() {
        fs::remove_dir_all(to).with_context(|| format!("cannot clear {GATHERED}"))?;
    }
    for language in ["en", "de"] {
        copy(&Path::new("book").join(language), &to.join(language))?;
    }
    for (from, place) in DOCUMENTS {
        copy(Path::new(from), &to.join(place))?;
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    if from.is_dir() {
        fs::create_dir_all(to).with_context(|| format!("cannot create {}", to.display()))?;
        for entry in
            fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))?
        {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    let is_page = from.extension().is_some_and(|ending| ending == "md");
    if is_page && !from.starts_with("book") {
        let text = fs::read_to_string(from).with_context(|| from.display().to_string())?;
        return write(to, &without_links_outside(&text));
    }
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    Ok(())
}

/// The project's documents link to files that are no pages: there only the words stay.
fn without_links_outside(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find("](") {
        let (words, link) = rest.split_at(open);
        let end = link.find(')').unwrap_or(link.len() - 1);
        let target = &link[2..end];
        let inside = target.starts_with('#')
            || target.starts_with("http")
            || (target.starts_with("00") && !target.contains('/'));
        kept.push_str(words);
        kept.push_str(if inside { &link[..=end] } else { "]" });
        rest = &link[end + 1..];
    }
    kept.push_str(rest);
    kept
}

fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// MkDocs in a virtual environment, with the versions of `book/requirements.txt`; none without Python.
fn mkdocs() -> Result<Option<PathBuf>> {
    let (tools, wanted) = (Path::new(TOOLS), fs::read_to_string("book/requirements.txt")?);
    let (program, stamp) = (tools.join("bin/mkdocs"), tools.join("requirements.txt"));
    if program.exists() && fs::read_to_string(&stamp).is_ok_and(|there| there == wanted) {
        return Ok(Some(program));
    }
    let venv = || {
        let made = Command::new("python3").args(["-m", "venv", TOOLS]).output();
        made.is_ok_and(|made| made.status.success())
    };
    let made = venv() || tools::install("python3-venv") && venv();
    if !made {
        return Ok(None);
    }
    println!("xtask: pip install -r book/requirements.txt");
    let mut pip = Command::new(tools.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check", "-r", "book/requirements.txt"]);
    let status = pip.status().context("cannot start pip")?;
    if !status.success() {
        bail!("pip cannot install what book/requirements.txt names");
    }
    fs::write(stamp, wanted)?;
    Ok(Some(program))
}

/// The program whose output the computed pages show.
struct Program(PathBuf);

impl Program {
    fn new() -> Self {
        let target = env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
        Self(PathBuf::from(target).join("debug/konklave"))
    }

    /// The output of a command on stdout. Exit codes above 2 are errors.
    fn stdout(&self, args: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.0);
        command.args(args).env("NO_COLOR", "1").env("COLUMNS", "100");
        for (name, _) in env::vars().filter(|(name, _)| name.starts_with("KONKLAVE_")) {
            command.env_remove(name);
        }
        let output = command.output().context("cannot start konklave")?;
        if output.status.code().is_none_or(|code| code > 2) {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("konklave {} failed: {said}", args.join(" "));
        }
        String::from_utf8(output.stdout).context("output is no UTF-8")
    }
}
