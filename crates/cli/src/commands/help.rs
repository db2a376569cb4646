//! `help`: the small languages of the options.

use std::io::Write;

use clap::CommandFactory;
use konklave_catalog::PROPERTIES;
use konklave_process::topology::Spec;
use konklave_sim::{DELAY_FORMS, FAULT_FORMS};

use crate::Done;
use crate::args::{Cli, HelpArgs, Topic};
use crate::output::stdout;

const SCENARIOS: &str = "\
A scenario file is TOML. What is run and what goes wrong have keys: the options of `run` under Group,
Workload, Network and Run, without their dashes; `--fault` is the list `faults`, `--set` the list `set`,
`--no-fifo` is `fifo = false`. Where a run is shown or kept is up to the command line, which also goes
before the file.

  algorithm = \"mutex/suzuki-kasami\"
  nodes = 5
  entries = 10
  delay = \"uniform:0.5..1.5\"
  hold = \"2\"
  seed = 7
  faults = [\"crash:2@40\", \"lose:/Token#3\"]";

const EXIT_CODES: &str = "\
0    fine
1    a property is violated, a run is stuck, a replay differs
2    undecided: a bound was reached first
64   wrong use
65   bad data in a file
66   a file cannot be read
69   something that is needed is not there
70   our own bug
71   the operating system refused something
73   a file cannot be created
74   output error
75   a lock was not obtained (`lock`, `elect`; --conflict-exit-code)
76   a lock was lost while the command ran, and the command was stopped
77   not allowed
78   wrong configuration
126  the command under a lock cannot be run
127  the command under a lock is not found
128+n the command under a lock was ended by signal n
130  interrupted twice";

pub(crate) fn help(args: &HelpArgs) -> Done {
    let mut out = stdout();
    match args.topic {
        None => write!(out, "{}", Cli::command().render_long_help())?,
        Some(Topic::Faults) => writeln!(out, "{FAULT_FORMS}")?,
        Some(Topic::Delays) => writeln!(out, "{}", DELAY_FORMS.replace("], ", "]\n"))?,
        Some(Topic::Topologies) => {
            for (syntax, meaning) in Spec::kinds() {
                writeln!(out, "{syntax:<22} {meaning}")?;
            }
        }
        Some(Topic::Properties) => {
            for (name, _, meaning) in PROPERTIES {
                writeln!(out, "{name:<12} {meaning}")?;
            }
        }
        Some(Topic::Scenarios) => writeln!(out, "{SCENARIOS}")?,
        Some(Topic::ExitCodes) => writeln!(out, "{EXIT_CODES}")?,
    }
    out.flush()?;
    Ok(0)
}
