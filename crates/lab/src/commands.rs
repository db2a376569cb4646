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
mod new;
mod race;
mod replay;
mod reproduce;
mod ring;
mod run;
mod shrink;
mod sweep;
mod tolerance;
#[cfg(feature = "ui")]
mod ui;

use crate::output::open_input;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use konklave_catalog::{Catalog, Entry, Error, Plan};
use konklave_trace::{Run, Salvaged, compact};

use crate::Done;
use crate::args::{Cli, Command};

pub(crate) fn dispatch(catalog: &'static Catalog, cli: Cli) -> Done {
    match cli.command {
        Command::List(args) => list::list(catalog, &args),
        Command::Run(args) => run::run(catalog, *args),
        Command::Check(args) => check::check(catalog, *args),
        Command::Costs(args) => costs::costs(catalog, &args),
        Command::Anchors(args) => anchors::anchors(catalog, &args),
        Command::Compare(args) => compare::compare(catalog, *args),
        Command::Sweep(args) => sweep::sweep(catalog, *args),
        Command::Reproduce(args) => reproduce::reproduce(&args),
        Command::Tolerance(args) => tolerance::tolerate(catalog, &args),
        Command::Guarantees(args) => guarantees::guarantees(catalog, &args),
        Command::Replay(args) => replay::replay(catalog, &args),
        Command::Shrink(args) => shrink::shrink(catalog, &args),
        Command::Draw(args) => draw::draw(catalog, &args),
        Command::Export(args) => export::export(catalog, &args),
        Command::Race(args) => race::race(catalog, *args),
        #[cfg(feature = "agent")]
        Command::Agent(command) => {
            Ok(konklave_agent::run(command).unwrap_or_else(|failure| failure.report()))
        }
        #[cfg(feature = "ui")]
        Command::Ui(args) => ui::ui(catalog, &args),
        Command::New(args) => new::new(catalog, &args),
        Command::Ring(args) => ring::ring(catalog, &args),
        Command::Demo(args) => demo::demo(catalog, &args),
        #[cfg(feature = "agent")]
        Command::DemoMember(args) => demo::members::member(&args),
        Command::Help(args) => help::help(catalog, &args),
        Command::Member(args) => member::member(catalog, &args),
        Command::Buffer(args) => buffer::buffer(&args),
        Command::Completions(args) => meta::completions(&args),
        Command::Man(args) => meta::man(&args),
    }
}

/// Checks that a file can be read, before any file is opened for writing.
fn readable(path: &Path) -> Result<(), Error> {
    open_input(path).map(drop)
}

/// Reads a recorded run in either form. Of a run that was cut off it reads the first part, with a warning.
fn read_run(path: &Path) -> Result<Run, Error> {
    let Salvaged { run, cut } = salvage(path)?;
    if let Some(problem) = cut {
        tell!("{problem}; only the readable part is used");
    }
    Ok(run)
}

/// The algorithm and the plan that a recorded run names in its header.
fn plan_of<'a>(catalog: &'a Catalog, run: &Run, path: &Path) -> Result<(&'a Entry, Plan), Error> {
    #[cfg(feature = "agent")]
    if run.header.algorithm == konklave_agent::recorder::ALGORITHM {
        return Err(Error::Data(format!(
            "{}: a recording of agents cannot be repeated; `replay` judges it, \
             `draw` and `export` show it",
            path.display()
        )));
    }
    catalog
        .plan_of(run)
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
