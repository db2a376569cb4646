//! `draw`: a recorded run as a picture.

use std::path::Path;

use konklave_trace::{diagram, svg};

use super::read_run;
use crate::Done;
use crate::args::DrawArgs;
use crate::output::Target;

pub(crate) fn draw(args: &DrawArgs) -> Done {
    let path = args.output.clone().unwrap_or_else(|| args.file.with_extension("svg"));
    let run = read_run(&args.file)?;
    let target = Target::open(&path)?;
    let options = diagram::Options {
        nodes: args.only.as_ref().map(|nodes| nodes.iter().copied().collect()),
        most_labels: args.labels,
        ..diagram::Options::default()
    };
    target.finish(svg::draw(&run, &options).as_bytes())?;
    if path != Path::new("-") {
        eprintln!("konklave: drawn to {}", path.display());
    }
    Ok(0)
}
