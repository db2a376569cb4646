//! The commands, one file each.

mod anchors;
mod buffer;
mod check;
mod compare;
mod costs;
mod demo;
mod draw;
mod export;
mod guarantees;
mod help;
mod list;
mod member;
mod meta;
mod plot;
mod race;
mod replay;
mod reproduce;
mod ring;
mod run;
mod shrink;
mod sweep;
mod tolerance;
mod ui;

use crate::output::open_input;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use konklave_catalog::{Entry, Error, Plan};
use konklave_trace::{Run, Salvaged, compact};

use crate::Done;
use crate::args::{Cli, Command};

pub(crate) fn dispatch(cli: Cli) -> Done {
    match cli.command {
        Command::List(args) => list::list(&args),
        Command::Run(args) => run::run(*args),
        Command::Check(args) => check::check(*args),
        Command::Costs(args) => costs::costs(&args),
        Command::Anchors(args) => anchors::anchors(&args),
        Command::Compare(args) => compare::compare(*args),
        Command::Sweep(args) => sweep::sweep(*args),
        Command::Reproduce(args) => reproduce::reproduce(&args),
        Command::Tolerance(args) => tolerance::tolerate(&args),
        Command::Guarantees(args) => guarantees::guarantees(&args),
        Command::Replay(args) => replay::replay(&args),
        Command::Shrink(args) => shrink::shrink(&args),
        Command::Draw(args) => draw::draw(&args),
        Command::Export(args) => export::export(&args),
        Command::Race(args) => race::race(*args),
        Command::Agent(command) => {
            Ok(konklave_agent::run(command).unwrap_or_else(|failure| failure.report()))
        }
        Command::Ui(args) => ui::ui(&args),
        Command::Ring(args) => ring::ring(&args),
        Command::Demo(args) => demo::demo(&args),
        Command::Help(args) => help::help(&args),
        Command::Member(args) => member::member(&args),
        Command::Buffer(args) => buffer::buffer(&args),
        Command::Completions(args) => meta::completions(&args),
        Command::Man(args) => meta::man(&args),
    }
}

/// Whether there is something to read: known before anything is opened for writing.
fn readable(path: &Path) -> Result<(), Error> {
    open_input(path).map(drop)
}

/// Reads a recorded run, in either form. One that was cut off is read as far as it goes, and that
/// is said.
fn read_run(path: &Path) -> Result<Run, Error> {
    let Salvaged { run, cut } = salvage(path)?;
    if let Some(problem) = cut {
        tell!("konklave: {problem}; what is there is used");
    }
    Ok(run)
}

/// The algorithm and the plan that a recorded run names in its header.
fn plan_of(run: &Run, path: &Path) -> Result<(&'static Entry, Plan), Error> {
    if run.header.algorithm == konklave_agent::recorder::ALGORITHM {
        return Err(Error::Data(format!(
            "{}: a recording of real agents is no run that could be run again; `replay` judges it, \
             `draw` and `export` show it",
            path.display()
        )));
    }
    konklave_catalog::plan_of(run)
        .map_err(|e| Error::Data(format!("{}:1: in the header: {e}", path.display())))
}

/// Reads a recorded run, in either form, as far as it goes.
fn salvage(path: &Path) -> Result<Salvaged, Error> {
    let file = path.display().to_string();
    let unreadable = |why| Error::Unreadable { file: file.clone(), why };
    let mut source = BufReader::new(open_input(path)?);
    let salvaged = if source.fill_buf().map_err(unreadable)?.starts_with(&compact::MAGIC[..7]) {
        let mut bytes = Vec::new();
        source.read_to_end(&mut bytes).map_err(unreadable)?;
        compact::salvage(&file, &bytes)
    } else {
        Run::salvage(&file, source)
    };
    salvaged.map_err(|e| Error::Data(e.to_string()))
}
