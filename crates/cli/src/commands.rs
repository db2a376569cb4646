//! The commands, one file each.

mod check;
mod costs;
mod demo;
mod draw;
mod guarantees;
mod help;
mod list;
mod meta;
mod replay;
mod ring;
mod run;

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use konklave_catalog::Error;
use konklave_trace::Run;

use crate::Done;
use crate::args::{Cli, Command};

pub(crate) fn dispatch(cli: Cli) -> Done {
    match cli.command {
        Command::List(args) => list::list(&args),
        Command::Run(args) => run::run(*args),
        Command::Check(args) => check::check(*args),
        Command::Costs(args) => costs::costs(&args),
        Command::Guarantees(args) => guarantees::guarantees(&args),
        Command::Replay(args) => replay::replay(&args),
        Command::Draw(args) => draw::draw(&args),
        Command::Ring(args) => ring::ring(&args),
        Command::Demo(args) => demo::demo(&args),
        Command::Help(args) => help::help(&args),
        Command::Completions(args) => meta::completions(&args),
        Command::Man(args) => meta::man(&args),
    }
}

/// Reads a recorded run. One that was cut off is read as far as it goes, and that is said.
fn read_run(path: &Path) -> Result<Run, Error> {
    let file = path.display().to_string();
    let source = File::open(path).map_err(|why| Error::Unreadable { file: file.clone(), why })?;
    let salvaged =
        Run::salvage(&file, BufReader::new(source)).map_err(|e| Error::Data(e.to_string()))?;
    if let Some(problem) = &salvaged.cut {
        eprintln!("konklave: {problem}; what is there is used");
    }
    Ok(salvaged.run)
}
