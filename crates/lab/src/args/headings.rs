//! The list of commands in `konklave --help`, under headings instead of one flat list.

use std::fmt::Write as _;

use clap::{Command, CommandFactory};

use super::Cli;

/// The headings and the commands under each, in the order of the help. Commands that a build lacks are left out.
const HEADINGS: [(&str, &[&str]); 7] = [
    ("Learn", &["demo", "list", "run", "ui"]),
    ("Verify", &["check", "guarantees", "tolerance", "replay", "shrink"]),
    ("Measure", &["compare", "costs", "sweep", "anchors", "reproduce"]),
    ("Draw", &["draw", "race", "export"]),
    (
        "Operate a group",
        &["agent", "keys", "lock", "elect", "send", "recv", "fence", "revoke", "step-down"],
    ),
    ("Inspect a group", &["status", "who", "why", "members", "watch", "record", "doctor"]),
    (MORE, &["new", "ring", "help", "completions", "man"]),
];

/// The heading of every visible command that no heading names.
const MORE: &str = "More";

/// Lines of the help are at most this long.
const WIDTH: usize = 100;

/// The command line, whose help lists the commands under headings.
pub(crate) fn command_line() -> Command {
    let command = Cli::command();
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}{{after-help}}",
        list(&command)
    );
    command.help_template(template)
}

/// The visible subcommands of `command` under their headings, each with the first line of its own help.
fn list(command: &Command) -> String {
    let visible = || command.get_subcommands().filter(|c| !c.is_hide_set());
    let width = visible().map(|c| c.get_name().len()).max().unwrap_or(0);
    let (header, literal) = (command.get_styles().get_header(), command.get_styles().get_literal());
    let mut text = String::new();
    for (heading, names) in HEADINGS {
        let named = names.iter().filter_map(|name| visible().find(|c| c.get_name() == *name));
        let unnamed = visible().filter(|c| heading == MORE && heading_of(c.get_name()).is_none());
        let commands: Vec<&Command> = named.chain(unnamed).collect();
        if commands.is_empty() {
            continue;
        }
        let _ = writeln!(text, "{header}{heading}:{header:#}");
        for command in commands {
            let name = command.get_name();
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = write!(text, "  {literal}{name}{literal:#}{:1$}", "", width - name.len() + 2);
            let mut column = width + 4;
            for (i, word) in about.split_whitespace().enumerate() {
                let length = word.chars().count();
                if i > 0 && column + 1 + length > WIDTH {
                    let _ = write!(text, "\n{:1$}", "", width + 4);
                    column = width + 4;
                } else if i > 0 {
                    text.push(' ');
                    column += 1;
                }
                text.push_str(word);
                column += length;
            }
            text.push('\n');
        }
    }
    text.truncate(text.trim_end().len());
    text
}

/// The heading that names the command `name`.
fn heading_of(name: &str) -> Option<&'static str> {
    HEADINGS.into_iter().find(|(_, names)| names.contains(&name)).map(|(heading, _)| heading)
}

#[cfg(test)]
mod tests {
    use clap::builder::Styles;

    use super::*;

    fn visible() -> Vec<String> {
        let command = Cli::command();
        let shown = command.get_subcommands().filter(|c| !c.is_hide_set());
        shown.map(|c| c.get_name().to_owned()).collect()
    }

    #[test]
    fn every_visible_command_stands_under_exactly_one_heading() {
        for name in visible() {
            let times = HEADINGS.iter().filter(|(_, names)| names.contains(&&*name)).count();
            assert_eq!(times, 1, "{name}");
        }
    }

    #[cfg(all(feature = "agent", feature = "ui"))]
    #[test]
    fn every_name_under_a_heading_is_a_visible_command() {
        let visible = visible();
        for name in HEADINGS.iter().flat_map(|(_, names)| *names) {
            assert!(visible.iter().any(|v| v == name), "{name}");
        }
    }

    #[test]
    fn help_lists_each_command_once_and_fits_a_screen() {
        let help = command_line().render_long_help().to_string();
        for name in visible() {
            let lines = help.lines().filter(|l| l.starts_with(&format!("  {name} "))).count();
            assert_eq!(lines, 1, "{name}: {help}");
        }
        assert!(help.lines().all(|line| line.chars().count() <= WIDTH), "{help}");
        assert!(help.lines().count() <= 60, "{help}");
    }

    #[test]
    fn unknown_command_is_listed_under_more() {
        let command = Command::new("mine").styles(Styles::plain());
        let listed = list(&command.subcommand(Command::new("extra").about("x")));
        assert_eq!(listed, "More:\n  extra  x");
    }
}
