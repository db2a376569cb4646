//! The reference of commands, from the help of each.

use std::path::Path;

use anyhow::Result;

use super::{GATHERED, Program, write};

/// Topics of `konklave help`.
const TOPICS: &[&str] =
    &["faults", "topologies", "delays", "properties", "scenarios", "exit-codes"];

/// Writes the page of all commands and the page of the small languages.
pub(super) fn write_pages(program: &Program) -> Result<()> {
    let folder = Path::new(GATHERED).join("en/reference");
    let help = program.stdout(&["--help"])?;
    let mut page = String::from("# Commands\n\nThis page is `--help` of each command.\n\n");
    page.push_str(&block(&help));
    for name in names(&help) {
        page.push_str(&format!("## konklave {name}\n\n"));
        page.push_str(&block(&program.stdout(&[name, "--help"])?));
    }
    write(&folder.join("commands.md"), &page)?;
    let mut page = String::from("# Small languages\n\nThis page is `konklave help TOPIC`.\n\n");
    for topic in TOPICS {
        page.push_str(&format!("## {topic}\n\n"));
        page.push_str(&block(&program.stdout(&["help", topic])?));
    }
    write(&folder.join("languages.md"), &page)
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
