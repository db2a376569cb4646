//! What is shown of a run, and in which form.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use konklave_catalog::Scenario;

use crate::output::Format;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  konklave replay run.run
  konklave replay witness.run --story --states
  konklave replay run.run --format json
Exit codes: 0 the same, step by step · 1 different · 65 not a run")]
pub(crate) struct ReplayArgs {
    /// The recorded run
    pub(crate) file: PathBuf,
    /// Tell the run step by step
    #[arg(long)]
    pub(crate) story: bool,
    /// Tell states, too
    #[arg(long)]
    pub(crate) states: bool,
    /// Tell the run step by step in raw values, as they are recorded, instead of sentences
    #[arg(long)]
    pub(crate) debug: bool,
    /// Only what concerns these nodes
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) only: Option<Vec<u32>>,
    /// The form of the output
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t)]
    pub(crate) format: Format,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  konklave draw run.run                     writes run.svg
  konklave draw run.run -o - > picture.svg
  konklave draw run.run --only 0,2
  konklave draw run.run --window 2..8.5 --only-kinds Request,Reply --lanes 2,0")]
pub(crate) struct DrawArgs {
    /// The recorded run
    pub(crate) file: PathBuf,
    /// Where the picture goes; `-` is stdout; default: beside the run, ending in .svg
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) shown: ShownArgs,
}

/// What of a run is shown, and how.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "What is shown")]
pub(crate) struct ShownArgs {
    /// Only these nodes, and the messages between them
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) only: Option<Vec<u32>>,
    /// Only these kinds of messages
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) only_kinds: Option<Vec<String>>,
    /// Only this time, in the run's unit; either end may be left open
    #[arg(long, value_name = "FROM..TO")]
    pub(crate) window: Option<String>,
    /// These lanes first, in this order
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) lanes: Vec<u32>,
    /// Press diagrams together to be no wider than this many points, as far as one can still see
    #[arg(long, value_name = "POINTS", default_value_t = 4500.0)]
    pub(crate) width: f64,
    /// Label at most this many arrows; beyond, colours tell
    #[arg(long, value_name = "N", default_value_t = 150)]
    pub(crate) labels: usize,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  konklave export run.run --to html                 writes run.html: open it, step with ← and →
  konklave export run.run --to png --only 0,1,2
  konklave export witness.run -o figure.tex         the ending tells the form
  konklave export run.run --to mermaid -o - >> notes.md
  konklave export run.run --to parquet && duckdb -c \"select event, count(*) from 'run.parquet' group by 1\"")]
pub(crate) struct ExportArgs {
    /// The recorded run
    pub(crate) file: PathBuf,
    /// The form; default: what the ending of --output says
    #[arg(long, value_enum)]
    pub(crate) to: Option<Form>,
    /// Where it goes; `-` is stdout; default: beside the run
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Take a recording that was cut off as far as it goes, instead of refusing it
    #[arg(long)]
    pub(crate) partial: bool,
    /// PNG: so many points for one of the SVG
    #[arg(long, value_name = "K", default_value_t = 2.0)]
    pub(crate) scale: f32,
    #[command(flatten)]
    pub(crate) shown: ShownArgs,
}

/// What a run can be turned into.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// Space–time diagram
    Svg,
    /// The same as points
    Png,
    /// The same for LaTeX: a document that compiles
    Tikz,
    /// Sequence diagram for Markdown pages
    Mermaid,
    /// Sequence diagram for PlantUML
    Plantuml,
    /// Log with vector clocks
    Shiviz,
    /// Table of all that happened
    Csv,
    /// The same for DuckDB, Polars, pandas
    Parquet,
    /// Player: one file, offline, forwards and backwards
    Html,
    /// The recording as JSON lines
    Run,
    /// The recording in its compact form
    Runz,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  konklave race central ricart-agrawala suzuki-kasami -n 4 --entries 2 --svg race.svg
  konklave race ricart-agrawala suzuki-kasami -n 3 --fault crash:1@4 --html race.html
Exit codes: 0 all are fine · 1 one is violated or stuck · 2 one was cut off")]
#[command(allow_negative_numbers = true)]
pub(crate) struct RaceArgs {
    /// Two to four algorithms: problem/name, or the name alone
    #[arg(required = true, num_args = 2..=4, value_name = "ALGORITHM")]
    pub(crate) algorithms: Vec<String>,

    #[command(flatten)]
    pub(crate) scenario: Scenario,

    /// Read what is not given here from a scenario file (TOML)
    #[arg(long = "scenario", env = "KONKLAVE_SCENARIO", value_name = "FILE", help_heading = "Run")]
    pub(crate) file: Option<PathBuf>,

    /// Draw the diagrams one above the other, on one axis of time
    #[arg(long, env = "KONKLAVE_SVG", value_name = "FILE", help_heading = "Output")]
    pub(crate) svg: Option<PathBuf>,

    /// Write a player of all of them
    #[arg(long, env = "KONKLAVE_HTML", value_name = "FILE", help_heading = "Output")]
    pub(crate) html: Option<PathBuf>,

    /// The form of the output
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t, help_heading = "Output")]
    pub(crate) format: Format,
}
