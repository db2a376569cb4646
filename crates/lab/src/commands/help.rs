//! `help`: the syntax of faults, topologies, delays, properties and scenario files.

use std::io::Write;

use clap::ValueEnum;
use clap::builder::StyledStr;
use konklave_catalog::{Catalog, Error, did_you_mean};
use konklave_process::topology::Spec;
use konklave_sim::{DELAY_FORMS, FAULT_FORMS};

use crate::Done;
use crate::args::{HelpArgs, Topic, command_line, lacking};
use crate::output::{colours, stdout};

const SCENARIOS: &str = "\
A scenario file is TOML. Its keys are the options of `run` under the headings Group, Workload, Network
and Run, without dashes. The option `--fault` is the list `faults`, `--set` the list `set`, and
`--no-fifo` is `fifo = false`. Options for output stand only on the command line. An option of the
command line takes precedence over a key of the file.

  algorithm = \"mutex/suzuki-kasami\"
  nodes = 5
  entries = 10
  delay = \"uniform:0.5..1.5\"
  hold = \"2\"
  seed = 7
  faults = [\"crash:2@40\", \"lose:/Token#3\"]";

const EXIT_CODES: &str = "\
0    success
1    a property is violated, a run is stuck, or a replay differs
2    undecided: a limit was reached first
64   wrong use
65   bad data in a file: wrong content, no text, or (for `replay`) cut off
66   a file cannot be opened or read
69   a needed service or resource is not available
70   a bug of konklave
71   the operating system refused an operation
73   a file cannot be created
74   output cannot be written
75   a lock was not obtained (`lock`, `elect`; --conflict-exit-code)
76   a lock was lost while the command ran; the command was stopped
77   permission denied
78   wrong configuration
126  the command under a lock cannot be executed
127  the command under a lock is not found
128+n the command under a lock was ended by signal n
130  interrupted twice";

pub(crate) fn help(catalog: &Catalog, args: &HelpArgs) -> Done {
    let mut out = stdout();
    let topic = match args.topic.as_deref() {
        None => None,
        Some(word) => match Topic::from_str(word, true) {
            Ok(topic) => Some(topic),
            Err(_) => return of_command(word),
        },
    };
    match topic {
        None => write!(out, "{}", styled(&command_line().render_long_help()))?,
        Some(Topic::Faults) => {
            writeln!(out, "{FAULT_FORMS}")?;
            writeln!(
                out,
                "\nIn real worlds (--world tcp, udp, multicast or threads): crash and restart at a TIME, lose, duplicate, cut and\n\
                 partition; also --loss and --duplicate. With one seed, the k-th message of a channel meets the same fate."
            )?;
        }
        Some(Topic::Delays) => {
            for form in DELAY_FORMS.split(", ") {
                writeln!(out, "{}", form.trim_start_matches("or "))?;
            }
        }
        Some(Topic::Topologies) => {
            for (syntax, meaning) in Spec::kinds() {
                writeln!(out, "{syntax:<22} {meaning}")?;
            }
        }
        Some(Topic::Properties) => {
            for property in catalog.properties() {
                writeln!(out, "{:<12} {}", property.word, property.meaning)?;
            }
        }
        Some(Topic::Scenarios) => writeln!(out, "{SCENARIOS}")?,
        Some(Topic::ExitCodes) => writeln!(out, "{EXIT_CODES}")?,
    }
    out.flush()?;
    Ok(0)
}

/// A help text with its styles, if stdout shows them.
fn styled(help: &StyledStr) -> String {
    if colours() { help.ansi().to_string() } else { help.to_string() }
}

/// The help of a command, as `konklave COMMAND --help` prints it.
fn of_command(name: &str) -> Done {
    let mut cli = command_line();
    cli.build();
    if let Some(command) = cli.find_subcommand_mut(name) {
        let mut out = stdout();
        write!(out, "{}", styled(&command.render_long_help()))?;
        out.flush()?;
        return Ok(0);
    }
    if let Some(hint) = lacking(name, &cli) {
        return Err(Error::Usage(hint).into());
    }
    let topics: Vec<String> = Topic::value_variants()
        .iter()
        .filter_map(|topic| Some(topic.to_possible_value()?.get_name().to_owned()))
        .collect();
    let commands = cli.get_subcommands().filter(|c| !c.is_hide_set()).map(|c| c.get_name());
    let near = did_you_mean(name, topics.iter().map(String::as_str).chain(commands));
    Err(Error::Usage(format!(
        "there is no help on `{name}`{near}; topics are {} and the names of commands",
        topics.join(", ")
    ))
    .into())
}
