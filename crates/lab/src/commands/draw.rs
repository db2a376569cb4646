//! `draw`: a recorded run as a picture.

use std::path::Path;

use konklave_catalog::{Catalog, Error};
use konklave_trace::diagram::Options;
use konklave_trace::{Filter, Run, known_node, svg};

use super::{read_run, readable};
use crate::Done;
use crate::args::{DrawArgs, ShownArgs};
use crate::output::Picture;

pub(crate) fn draw(catalog: &Catalog, args: &DrawArgs) -> Done {
    let path = args.output.clone().unwrap_or_else(|| args.file.with_extension("svg"));
    readable(&args.file)?;
    let target = Picture::open(&path)?;
    let run = read_run(&args.file)?;
    let options = options(catalog, &args.shown, &run)?;
    target.finish(&svg::draw(&run, &options))?;
    if path != Path::new("-") {
        tell!("drawn to {}", path.display());
    }
    Ok(0)
}

/// The drawing options for `run`, all values checked.
pub(crate) fn options(catalog: &Catalog, args: &ShownArgs, run: &Run) -> Result<Options, Error> {
    let window = args.window.as_ref().map(|text| Filter::parse_window(text, &run.header));
    let window = window.transpose().map_err(|e| Error::Usage(format!("--window: {e}")))?;
    let check = |option: &str, only: &Filter| {
        only.check(run).map_err(|e| Error::Usage(format!("--{option}: {e}")))
    };
    let nodes = args.only.as_ref().map(|nodes| nodes.iter().copied().collect());
    let kinds = args.only_kinds.as_ref().map(|kinds| kinds.iter().cloned().collect());
    let only = Filter { nodes, ..Filter::default() };
    check("only", &only)?;
    let only = Filter { kinds, ..only };
    check("only-kinds", &only)?;
    let only = Filter { window, ..only };
    check("window", &only)?;
    for node in &args.lanes {
        known_node(*node, &run.header).map_err(|e| Error::Usage(format!("--lanes: {e}")))?;
    }
    if !(args.width >= 100.0 && args.width <= 1e6) {
        let width = args.width;
        return Err(Error::Usage(format!("--width {width}: must lie between 100 and 1000000")));
    }
    let (lanes, most_labels, width) = (args.lanes.clone(), args.labels, args.width);
    Ok(Options { only, lanes, most_labels, width, ..Options::of(catalog.conditions(&run.header)) })
}
