//! The reference of commands, from the help of each.

use std::path::Path;

use anyhow::Result;

use super::{GATHERED, Program, write};

/// Topics of `konklave help`.
const TOPICS: &[&str] =
    &["faults", "topologies", "delays", "properties", "scenarios", "exit-codes"];

/// A page of one language: its name, its title and its first sentence.
type Opening = (&'static str, &'static str, &'static str);

const COMMANDS: &[Opening] = &[
    ("en", "Commands", "This page is `--help` of each command."),
    (
        "de",
        "Befehle",
        "Diese Seite zeigt `--help` jedes Befehls. Das Programm spricht Englisch, darum ist auch die Hilfe englisch. \
         Auf Deutsch erklären die Kapitel [Messen](../measure/index.md) und [Betreiben](../operate/index.md) die Befehle.",
    ),
];

const LANGUAGES: &[Opening] = &[
    ("en", "Small languages", "This page is `konklave help TOPIC`."),
    (
        "de",
        "Kleine Sprachen",
        "Diese Seite zeigt `konklave help THEMA`: wie man Störungen, Topologien, Verzögerungen, Eigenschaften und Szenarien \
         schreibt. Das Programm spricht Englisch, darum ist auch diese Hilfe englisch.",
    ),
];

/// Writes the page of all commands and the page of the small languages, with an opening in each language.
pub(super) fn write_pages(program: &Program) -> Result<()> {
    let help = program.stdout(&["--help"])?;
    let mut commands = block(&help);
    for name in names(&help) {
        commands.push_str(&format!("## konklave {name}\n\n"));
        commands.push_str(&block(&program.stdout(&[name, "--help"])?));
    }
    write_each(COMMANDS, "commands.md", &commands)?;
    let mut languages = String::new();
    for topic in TOPICS {
        languages.push_str(&format!("## {topic}\n\n"));
        languages.push_str(&block(&program.stdout(&["help", topic])?));
    }
    write_each(LANGUAGES, "languages.md", &languages)
}

fn write_each(openings: &[Opening], file: &str, content: &str) -> Result<()> {
    for (language, title, opening) in openings {
        let path = Path::new(GATHERED).join(language).join("reference").join(file);
        write(&path, &format!("# {title}\n\n{opening}\n\n{content}"))?;
    }
    Ok(())
}

/// The commands that the help names: words behind two blanks at the start of a line, under a heading.
fn names(help: &str) -> Vec<&str> {
    let named = help.lines().filter_map(|line| {
        let rest = line.strip_prefix("  ")?;
        let (name, about) = rest.split_once("  ")?;
        let is_name = name.chars().all(|c| c.is_ascii_lowercase() || c == '-');
        (is_name && name.starts_with(|c: char| c.is_ascii_lowercase()) && !about.is_empty())
            .then_some(name)
    });
    named.filter(|name| *name != "help").collect()
}

fn block(text: &str) -> String {
    format!("```text\n{}\n```\n\n", text.trim_end())
}
