//! The plot of a study.

use konklave_catalog::Error;
use konklave_sweep::{Figure, Plot, Row, combinations};

use crate::args::{PlotAxis, SweepArgs};
use crate::failure::Failure;
use crate::output::{Picture, Target};

/// The plot that was asked for.
fn plot_of(args: &SweepArgs) -> Plot {
    Plot {
        measure: args.measure.clone(),
        x: args.plot_x.clone(),
        facet: args.facet.clone(),
        log_x: args.log.contains(&PlotAxis::X),
        log_y: args.log.contains(&PlotAxis::Y),
        width: args.width.unwrap_or(Plot::COLUMN),
    }
}

/// Where the plot goes.
pub(super) enum PlotTarget {
    Picture(Picture),
    Tex(Target),
}

pub(super) fn target(args: &SweepArgs) -> Result<Option<PlotTarget>, Failure> {
    let Some(path) = &args.plot else {
        let given = [
            ("--plot-x", args.plot_x != "nodes"),
            ("--facet", args.facet.is_some()),
            ("--log", !args.log.is_empty()),
            ("--width", args.width.is_some()),
        ];
        return match given.iter().find(|(_, given)| *given) {
            Some((option, _)) => {
                let why = format!("{option} describes a plot; name its file with --plot");
                Err(Error::Usage(why).into())
            }
            None => Ok(None),
        };
    };
    if let Some(width) = args.width
        && !(30.0..=1000.0).contains(&width)
    {
        let why = format!("--width {width}: must lie between 30 and 1000 mm");
        return Err(Error::Usage(why).into());
    }
    let tex = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("tex"));
    Ok(Some(match tex {
        true => PlotTarget::Tex(Target::open(path)?),
        false => PlotTarget::Picture(Picture::open(path)?),
    }))
}

/// Draws `rows` and writes the picture.
pub(super) fn finish(target: PlotTarget, args: &SweepArgs, rows: &[Row]) -> Result<(), Failure> {
    let figure = Figure::new(&combinations(rows), &plot_of(args)).map_err(Error::Usage)?;
    match target {
        PlotTarget::Picture(target) => target.finish(&figure.svg())?,
        PlotTarget::Tex(target) => target.finish(figure.tikz().as_bytes())?,
    }
    Ok(())
}
