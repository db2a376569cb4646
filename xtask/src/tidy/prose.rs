//! Rules for readers: no line hides its subject behind "who" or "what", functions fit a screen, files fit a mind.

use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::read;

/// Words that begin a line without naming its subject.
const VAGUE: &[&str] = &["Those", "What", "Whatever", "Who", "Whoever", "Whom", "Whose"];

/// The most lines of a function, from `fn` to the closing brace.
const LONGEST_FUNCTION: usize = 70;

/// Files of up to so many lines fit a mind. Longer ones are listed, but are no error.
const LONGEST_FILE: usize = 400;

/// The number of longest files to list.
const LISTED_FILES: usize = 5;

/// Checks all files in git, and the subject of the last commit. Prints the longest files.
pub(super) fn prose(root: &Path, broken: &mut Vec<String>) -> Result<()> {
    let mut vague = Vec::new();
    let mut long = Vec::new();
    let mut files = Vec::new();
    // Sources without their history are not checked.
    let Some(listed) = git(root, &["ls-files", "*.rs", "*.md"]) else { return Ok(()) };
    for name in listed.lines() {
        // A file that was deleted, but not yet in git.
        if !root.join(name).is_file() {
            continue;
        }
        let text = read(&root.join(name))?;
        let starts = if name.ends_with(".md") { page_starts } else { comment_starts };
        let found = text.lines().enumerate().filter(|(_, line)| vague_word(starts(line)).is_some());
        vague.extend(found.map(|(i, line)| (name.to_owned(), i + 1, line.trim().to_owned())));
        if name.ends_with(".rs") {
            long.extend(
                long_functions(&text)
                    .map(|(line, function, n)| (name.to_owned(), line, function, n)),
            );
            files.push((text.lines().count(), name.to_owned()));
        }
    }
    let subject = git(root, &["log", "-1", "--format=%s"]).unwrap_or_default();
    if vague_word(&subject).is_some() {
        broken.push(format!("the last commit: name the subject of the line: {}", subject.trim()));
    }
    judge_vague(&vague, broken);
    judge_functions(&long, broken);
    files.sort_unstable_by(|a, b| b.cmp(a));
    let longest = files.iter().take(LISTED_FILES).filter(|(lines, _)| *lines > LONGEST_FILE);
    let longest: Vec<String> = longest.map(|(lines, name)| format!("{name} ({lines})")).collect();
    let over = files.iter().filter(|(lines, _)| *lines > LONGEST_FILE).count();
    println!(
        "xtask: {over} files have more than {LONGEST_FILE} lines; the longest are {}",
        longest.join(", ")
    );
    Ok(())
}

/// The output of a git command; none without git, or outside of a repository.
fn git(root: &Path, args: &[&str]) -> Option<String> {
    let output = Command::new("git").args(args).current_dir(root).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The text of a comment; empty for a line of code.
fn comment_starts(line: &str) -> &str {
    let comment = line.trim_start().strip_prefix("//").unwrap_or_default();
    comment.trim_start_matches(['/', '!']).trim_start()
}

/// The text of a heading, or of an item of a list; empty for other lines of a page.
fn page_starts(line: &str) -> &str {
    let heading = line.starts_with('#').then(|| line.trim_start_matches('#'));
    heading.or_else(|| line.strip_prefix("- ")).unwrap_or_default().trim_start_matches([' ', '*'])
}

/// The first word of a text, if it is vague.
fn vague_word(text: &str) -> Option<&'static str> {
    let first = text.split(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
    VAGUE.iter().copied().find(|word| *word == first)
}

fn judge_vague(found: &[(String, usize, String)], broken: &mut Vec<String>) {
    for (name, line, text) in found {
        broken.push(format!("{name}:{line}: name the subject of the line: {text}"));
    }
}

fn judge_functions(found: &[(String, usize, String, usize)], broken: &mut Vec<String>) {
    for (name, line, function, n) in found {
        broken.push(format!(
            "{name}:{line}: `{function}` has {n} lines; split it, {LONGEST_FUNCTION} are allowed"
        ));
    }
}

/// The line, the name and the length of each function that is too long. The text is formatted by rustfmt, so a
/// function ends at the first closing brace with its own indentation.
fn long_functions(text: &str) -> impl Iterator<Item = (usize, String, usize)> {
    let lines: Vec<&str> = text.lines().collect();
    let mut long = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else { continue };
        let indent = &line[..line.len() - line.trim_start().len()];
        let signature = lines[i..].iter().position(|l| l.ends_with(['{', ';', '}']));
        let Some(opens) = signature.filter(|at| lines[i + at].ends_with('{')) else { continue };
        let closing = format!("{indent}}}");
        let body = lines[i + opens..].iter().position(|l| *l == closing);
        let length = body.map_or(0, |end| opens + end + 1);
        if length > LONGEST_FUNCTION {
            long.push((i + 1, name.to_owned(), length));
        }
    }
    long.into_iter()
}

/// The name of the function that this line begins to define.
fn function_name(line: &str) -> Option<&str> {
    let (before, after) = line.trim_start().split_once("fn ")?;
    let is_modifier =
        |word: &str| word.starts_with("pub") || matches!(word, "const" | "async" | "in" | "extern");
    let modifiers = before.split_whitespace().all(|word| is_modifier(word) || word.ends_with(')'));
    let name = after.split(['(', '<']).next()?;
    (modifiers && !name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comment_that_hides_its_subject_is_reported() {
        for line in [
            "/// What is asked.",
            "    // Who waits, oldest last.",
            "//! Whatever strikes: one leader.",
        ] {
            assert!(vague_word(comment_starts(line)).is_some(), "{line}");
        }
        for line in [
            "/// The question.",
            "let what = 1; // Who",
            "/// Whether it holds.",
            "Who",
            "/// Whole runs.",
        ] {
            assert!(vague_word(comment_starts(line)).is_none(), "{line}");
        }
    }

    #[test]
    fn heading_or_item_that_hides_its_subject_is_reported() {
        for line in ["# What a check proves", "- Who leads", "- **Whoever** leads"] {
            assert!(vague_word(page_starts(line)).is_some(), "{line}");
        }
        for line in ["# Verdicts", "What follows is prose.", "- The leader"] {
            assert!(vague_word(page_starts(line)).is_none(), "{line}");
        }
    }

    #[test]
    fn report_of_a_vague_line_has_its_place() {
        let mut broken = Vec::new();
        judge_vague(&[("a/b.rs".to_owned(), 1, "/// What is asked.".to_owned())], &mut broken);
        assert_eq!(broken, ["a/b.rs:1: name the subject of the line: /// What is asked."]);
    }

    /// A function of `n` lines, inside an `impl`, behind a method without a body.
    fn function(n: usize) -> String {
        let body = "        step();\n".repeat(n - 4);
        format!(
            "trait A {{\n    fn none(\n    );\n    pub(crate) fn long(\n        x: u8,\n    ) {{\n{body}    }}\n}}\n"
        )
    }

    #[test]
    fn function_longer_than_a_screen_is_reported() {
        assert_eq!(long_functions(&function(70)).count(), 0);
        let long: Vec<_> = long_functions(&function(71)).collect();
        assert_eq!(long, [(4, "long".to_owned(), 71)]);
        let found: Vec<_> =
            long.into_iter().map(|(l, f, n)| ("a.rs".to_owned(), l, f, n)).collect();
        let mut broken = Vec::new();
        judge_functions(&found, &mut broken);
        assert_eq!(broken, ["a.rs:4: `long` has 71 lines; split it, 70 are allowed"]);
    }
}
