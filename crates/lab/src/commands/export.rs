//! `export`: a recorded run for other tools.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use konklave_catalog::{Catalog, Error};
use konklave_trace::diagram::Options;
use konklave_trace::export::{csv, html, mermaid, plantuml, shiviz, table, tikz};
use konklave_trace::{Run, compact, svg};

use super::draw::options;
use super::{read_run, readable, salvage};
use crate::Done;
use crate::args::{ExportArgs, Form};
use crate::formats::{parquet, pdf, png};
use crate::output::Target;

/// Mermaid's default limit of characters.
const MERMAID_MOST: usize = 50_000;

/// TeX keeps a whole page in its memory; so many lines of ours fill about four fifths of the five
/// million words that pdflatex and xelatex have as they come.
const TEX_MOST: usize = 8000;

pub(crate) fn export(catalog: &Catalog, args: &ExportArgs) -> Done {
    let form = form(args)?;
    let path = args.output.clone().unwrap_or_else(|| args.file.with_extension(ending(form)));
    let on_screen = path == Path::new("-") && io::stdout().is_terminal();
    if on_screen && matches!(form, Form::Png | Form::Pdf | Form::Parquet | Form::Runz) {
        return usage("this form is binary; name a file with --output, or use a pipe");
    }
    if path == args.file {
        return usage(format!("{} would overwrite the run itself", path.display()));
    }
    if !(args.scale >= 0.1 && args.scale <= 20.0) {
        return usage(format!("--scale {}: must lie between 0.1 and 20", args.scale));
    }
    let shown = &args.shown;
    let filtered = shown.only.is_some() || shown.only_kinds.is_some() || shown.window.is_some();
    if filtered && matches!(form, Form::Run | Form::Runz) {
        return usage(
            "--only, --only-kinds and --window do not work with the forms run and runz: a part of a run cannot be replayed",
        );
    }
    readable(&args.file)?;
    let target = Target::open(&path)?;
    let run = whole(args)?;
    let options = options(catalog, &args.shown, &run)?;
    let content = content(form, &run, &options, args.scale)?;
    if form == Form::Mermaid && content.len() > MERMAID_MOST {
        tell!(
            "{} characters; Mermaid takes {MERMAID_MOST} unless its maxTextSize is \
             raised: show less with --only, --only-kinds or --window",
            content.len()
        );
    }
    let lines = content.iter().filter(|byte| **byte == b'\n').count();
    if form == Form::Tikz && lines > TEX_MOST {
        tell!(
            "{lines} lines are more than the memory of pdflatex and xelatex holds (about \
             {TEX_MOST}): compile with lualatex, or show less with --only, --only-kinds or --window"
        );
    }
    target.finish(&content)?;
    if path != Path::new("-") {
        tell!("exported to {}", path.display());
    }
    Ok(0)
}

/// Reads the run. A run that was cut off is refused, because its figures would be wrong unnoticed.
fn whole(args: &ExportArgs) -> Result<Run, Error> {
    if args.partial {
        return read_run(&args.file);
    }
    let salvaged = salvage(&args.file)?;
    match salvaged.cut {
        Some(problem) => {
            Err(Error::Data(format!("{problem}; --partial exports the readable part")))
        }
        None => Ok(salvaged.run),
    }
}

fn usage<T>(message: impl Into<String>) -> Result<T, crate::Failure> {
    Err(Error::Usage(message.into()).into())
}

fn content(form: Form, run: &Run, options: &Options, scale: f32) -> Result<Vec<u8>, Error> {
    Ok(match form {
        Form::Svg => svg::draw(run, options).into_bytes(),
        Form::Png => png(&svg::draw(run, options), scale)?,
        Form::Pdf => pdf(&svg::draw(run, options))?,
        Form::Tikz => tikz(run, options).into_bytes(),
        Form::Mermaid => mermaid(run, options).into_bytes(),
        Form::Plantuml => plantuml(run, options).into_bytes(),
        Form::Shiviz => shiviz(run, options).into_bytes(),
        Form::Csv => csv(run, options).into_bytes(),
        Form::Parquet => parquet(&table(run, options))?,
        Form::Html => html(run, options).into_bytes(),
        // A recording can be read only as a whole.
        Form::Run => run.to_text().into_bytes(),
        Form::Runz => compact::write(run, Vec::new()).expect("memory takes every byte"),
    })
}

/// The form that was asked for, by name or by the ending of the output.
fn form(args: &ExportArgs) -> Result<Form, Error> {
    if let Some(form) = args.to {
        return Ok(form);
    }
    let known = |path: &PathBuf| {
        let end = path.extension()?.to_str()?.to_lowercase();
        Form::value_variants().iter().copied().find(|form| ending(*form) == end)
    };
    let forms: Vec<String> = Form::value_variants()
        .iter()
        .filter_map(|form| Some(form.to_possible_value()?.get_name().to_owned()))
        .collect();
    args.output.as_ref().and_then(known).ok_or_else(|| {
        Error::Usage(format!(
            "the form of the export is unknown; name it with --to: one of {}",
            forms.join(", ")
        ))
    })
}

/// How files of this form end.
fn ending(form: Form) -> &'static str {
    match form {
        Form::Svg => "svg",
        Form::Png => "png",
        Form::Pdf => "pdf",
        Form::Tikz => "tex",
        Form::Mermaid => "mmd",
        Form::Plantuml => "puml",
        Form::Shiviz => "shiviz",
        Form::Csv => "csv",
        Form::Parquet => "parquet",
        Form::Html => "html",
        Form::Run => "run",
        Form::Runz => "runz",
    }
}
