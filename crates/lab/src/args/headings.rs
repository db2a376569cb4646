//! The list of commands in `konklave --help`, under headings instead of one flat list.

use std::fmt::Write as _;

use clap::error::{ContextKind, ContextValue};
use clap::{Command, CommandFactory};
use konklave_catalog::program;

use super::Cli;

/// The headings and the commands under each, in the order of the help. Commands that a build lacks are left out.
const HEADINGS: [(&str, &[&str]); 7] = [
    ("Learn", &["demo", "list", "run", "ui"]),
    ("Verify", &["check", "guarantees", "tolerance", "replay", "shrink"]),
    ("Measure", &["compare", "costs", "sweep", "anchors", "reproduce"]),
    ("Draw", &["draw", "race", "export"]),
    (OPERATE, &["agent", "keys", "lock", "elect", "send", "recv", "fence", "revoke", "step-down"]),
    (INSPECT, &["status", "who", "why", "members", "watch", "record", "doctor"]),
    (MORE, &["new", "ring", "help", "completions", "man"]),
];

/// The headings of the commands of the feature `agent`.
const OPERATE: &str = "Operate a group";
const INSPECT: &str = "Inspect a group";

/// The heading of every visible command that no heading names.
const MORE: &str = "More";

/// Lines of the help are at most this long.
const WIDTH: usize = 100;

/// The command line, whose help lists the commands under headings. Help and examples have the name of this
/// program.
pub(crate) fn command_line() -> Command {
    let command = named(possible_examples(Cli::command()), program());
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}{{after-help}}",
        list(&command)
    );
    command.help_template(template)
}

/// The name of the program in the examples.
const EXAMPLE: &str = "konklave";

/// Leaves out the examples of commands that this build lacks.
fn possible_examples(command: Command) -> Command {
    let Some(help) = command.get_after_help().map(ToString::to_string) else { return command };
    let is_possible = |line: &&str| {
        let words = line.trim_start().strip_prefix(EXAMPLE).filter(|_| line.starts_with(' '));
        let name = words.and_then(|words| words.split_whitespace().next());
        name.is_none_or(|name| command.find_subcommand(name).is_some())
    };
    let lines: Vec<&str> = help.lines().filter(is_possible).collect();
    let lines = lines.join("\n");
    command.after_help(lines)
}

/// `command` of the program `name`, in its examples, too.
fn named(command: Command, name: &'static str) -> Command {
    if name == EXAMPLE {
        return command;
    }
    let version = concat!("with Konklave ", env!("CARGO_PKG_VERSION"));
    examples_of(command.name(name).version(version), name)
}

/// `command` and all commands below it, with examples of the program `name`.
fn examples_of(mut command: Command, name: &'static str) -> Command {
    if let Some(help) = command.get_after_help().map(ToString::to_string) {
        command = command.after_help(renamed(&help, name));
    }
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").trim_start();
    if usage.starts_with(&format!("{EXAMPLE} ")) {
        command = command.override_usage(renamed(usage, name));
    }
    command.mut_subcommands(|command| examples_of(command, name))
}

/// `text` with `name` in place of the example program, wherever a command follows or a file is named after it.
fn renamed(text: &str, name: &str) -> String {
    let mut parts = text.split(EXAMPLE);
    let mut renamed = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let follows = |word: char| word.is_ascii_alphabetic() || word == '-';
        let is_called = !renamed.ends_with(|c: char| c.is_alphanumeric() || "/-_.:".contains(c))
            && part.strip_prefix(' ').is_some_and(|rest| rest.starts_with(follows));
        let is_script = renamed.ends_with("bash_completion.d/");
        renamed += if is_called || is_script { name } else { EXAMPLE };
        renamed += part;
    }
    renamed
}

/// The reason why the command line `error` names a command that this build lacks, and what would bring it.
pub(crate) fn lacking_command(error: &clap::Error) -> Option<String> {
    match error.get(ContextKind::InvalidSubcommand)? {
        ContextValue::String(name) => lacking(name, &Cli::command()),
        _ => None,
    }
}

/// The same for the command `name`; none if `command` has it, or no build does.
pub(crate) fn lacking(name: &str, command: &Command) -> Option<String> {
    let feature = match heading_of(name)? {
        OPERATE | INSPECT => "agent",
        _ if name == "ui" => "ui",
        _ => return None,
    };
    command.find_subcommand(name).is_none().then(|| {
        format!(
            "this program was built without the command `{name}`: it belongs to the feature `{feature}` of \
             konklave-lab; in Cargo.toml, write `konklave-lab = {{ …, features = [\"{feature}\"] }}`"
        )
    })
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
    fn help_and_examples_name_the_program_that_runs() {
        let command = named(Cli::command(), "my-lock");
        let mut all = vec![command];
        let mut seen = 0;
        while let Some(mut command) = all.pop() {
            let help = command.render_long_help().to_string();
            seen += help.matches("my-lock ").count();
            let names: Vec<String> = Cli::command()
                .get_subcommands()
                .map(|c| format!("konklave {}", c.get_name()))
                .collect();
            for name in names {
                assert!(!help.contains(&format!("{name} ")), "{name}: {help}");
            }
            all.extend(command.get_subcommands().cloned());
        }
        assert!(seen > 100, "{seen}");
    }

    #[test]
    fn renaming_leaves_products_and_files_alone() {
        let kept = "cargo build -p konklave-cli; /run/konklave/b.sock; b:1,konklave:7400; all of konklave]";
        assert_eq!(renamed(kept, "mine"), kept);
        let typed =
            "  konklave run x\n`konklave COMMAND --help`; > /etc/bash_completion.d/konklave";
        let expected = "  mine run x\n`mine COMMAND --help`; > /etc/bash_completion.d/mine";
        assert_eq!(renamed(typed, "mine"), expected);
    }

    #[test]
    fn lacking_command_names_its_feature() {
        let small = Command::new("mine").subcommand(Command::new("list"));
        for (name, feature) in
            [("ui", "ui"), ("lock", "agent"), ("why", "agent"), ("agent", "agent")]
        {
            let hint = lacking(name, &small).expect(name);
            assert!(hint.contains(&format!("features = [\"{feature}\"]")), "{hint}");
            let large = small.clone().subcommand(Command::new(name));
            assert_eq!(lacking(name, &large), None, "{name}");
        }
        assert_eq!(lacking("list", &small), None);
        assert_eq!(lacking("lokc", &small), None);
    }

    #[test]
    fn examples_of_commands_that_a_build_lacks_are_left_out() {
        let help = "Examples:\n  konklave list            all\n  konklave lock x -- y     wait\n`konklave COMMAND --help`";
        let command = Command::new("mine").subcommand(Command::new("list")).after_help(help);
        let left = possible_examples(command).get_after_help().unwrap().to_string();
        assert_eq!(left, "Examples:\n  konklave list            all\n`konklave COMMAND --help`");
    }

    #[test]
    fn unknown_command_is_listed_under_more() {
        let command = Command::new("mine").styles(Styles::plain());
        let listed = list(&command.subcommand(Command::new("extra").about("x")));
        assert_eq!(listed, "More:\n  extra  x");
    }
}
