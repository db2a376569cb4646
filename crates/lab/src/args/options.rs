//! A hint for an option that the command lacks, but another command has.

use clap::Command;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use konklave_catalog::program;

/// The hint names at most this many commands.
const NAMED: usize = 3;

/// `error`, with a tip that names the commands with this option. Without it, clap advises to pass the option as a
/// value.
pub(crate) fn with_owners(mut error: clap::Error, command: &Command) -> clap::Error {
    let option = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(option)) if error.kind() == ErrorKind::UnknownArgument => option,
        _ => return error,
    };
    if let Some(tip) = owners(option, command) {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// A sentence with the visible commands that have this option; none if no command has it.
fn owners(option: &str, command: &Command) -> Option<String> {
    let name = option.strip_prefix("--")?;
    let has = |c: &&Command| c.get_arguments().any(|arg| arg.get_long() == Some(name));
    let visible = command.get_subcommands().filter(|c| !c.is_hide_set());
    let owners: Vec<String> =
        visible.filter(has).map(|c| format!("`{} {}`", program(), c.get_name())).collect();
    let (named, rest) = owners.split_at(owners.len().min(NAMED));
    let commands = match (named, rest.len()) {
        ([], _) => return None,
        ([first], _) => first.clone(),
        (_, 0) => {
            let (last, others) = named.split_last()?;
            format!("{} and {last}", others.join(", "))
        }
        (_, 1) => format!("{} and 1 other command", named.join(", ")),
        (_, more) => format!("{} and {more} other commands", named.join(", ")),
    };
    Some(format!("`{option}` is an option of {commands}"))
}

#[cfg(test)]
mod tests {
    use clap::Arg;

    use super::*;

    fn program_with(commands: &[(&'static str, &[&'static str])]) -> Command {
        let of = |(name, options): &(&'static str, &[&'static str])| {
            let args = options.iter().map(|option| Arg::new(*option).long(*option));
            Command::new(*name).args(args)
        };
        Command::new("konklave").subcommands(commands.iter().map(of))
    }

    #[test]
    fn hint_names_the_commands_with_the_option() {
        let all = ["seed", "nodes"].as_slice();
        let command = program_with(&[("run", &["seed"]), ("check", &["seed", "property"])]);
        assert_eq!(
            owners("--property", &command).as_deref().map(|s| s.contains("check`")),
            Some(true)
        );
        assert!(owners("--seed", &command).unwrap().ends_with("run` and `konklave check`"));
        assert_eq!(owners("--colour", &command), None);
        assert_eq!(owners("-p", &command), None);
        let many = program_with(&[("a", all), ("b", all), ("c", all), ("d", all), ("e", all)]);
        assert!(owners("--nodes", &many).unwrap().ends_with("c` and 2 other commands"));
    }

    #[test]
    fn tip_replaces_the_advice_to_pass_a_value() {
        let command = program_with(&[("run", &["seed"]), ("check", &["property"])]);
        let parsed = command.clone().try_get_matches_from(["konklave", "run", "--property", "x"]);
        let shown = with_owners(parsed.unwrap_err(), &command).to_string();
        assert!(shown.contains("`--property` is an option of `"), "{shown}");
        assert!(!shown.contains("as a value"), "{shown}");
    }
}
