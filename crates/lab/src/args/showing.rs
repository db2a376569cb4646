//! Options of the commands that show a recorded run.

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
Exit codes: 0 the same, step by step · 1 different · 65 the file is no run")]
pub(crate) struct ReplayArgs {
    /// Recorded run
    pub(crate) file: PathBuf,
    /// Print the run step by step
    #[arg(long)]
    pub(crate) story: bool,
    /// Print the states of processes, too
    #[arg(long)]
    pub(crate) states: bool,
    /// Print the run step by step in raw values, as they are recorded, instead of sentences
    #[arg(long)]
    pub(crate) debug: bool,
    /// Print only the events of these nodes
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) only: Option<Vec<u32>>,
    /// Output format
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
    /// Recorded run
    pub(crate) file: PathBuf,
    /// Picture file; `-` is stdout [default: the name of the run with .svg]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) shown: ShownArgs,
}

/// The part of a run that is shown, and its size.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Selection and layout")]
pub(crate) struct ShownArgs {
    /// Show only these nodes and the messages between them
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) only: Option<Vec<u32>>,
    /// Show only these kinds of messages
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) only_kinds: Option<Vec<String>>,
    /// Show only this time, in the unit of the run; either end may be left out
    #[arg(long, value_name = "FROM..TO")]
    pub(crate) window: Option<String>,
    /// Nodes whose lanes come first, in this order
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) lanes: Vec<u32>,
    /// Largest width of a diagram in points, as far as it stays legible
    #[arg(long, value_name = "POINTS", default_value_t = 4500.0)]
    pub(crate) width: f64,
    /// Label at most this many arrows; beyond that, colours show the kinds
    #[arg(long, value_name = "N", default_value_t = 150)]
    pub(crate) labels: usize,
}

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  konklave export run.run --to html                 writes run.html: open it, step with ← and →
  konklave export run.run --to png --only 0,1,2
  konklave export witness.run -o figure.tex         the ending chooses the form
  konklave export run.run --to mermaid -o - >> notes.md
  konklave export run.run --to parquet && duckdb -c \"select event, count(*) from 'run.parquet' group by 1\"")]
pub(crate) struct ExportArgs {
    /// Recorded run
    pub(crate) file: PathBuf,
    /// Form [default: by the ending of --output]
    #[arg(long, value_enum)]
    pub(crate) to: Option<Form>,
    /// Output file; `-` is stdout [default: beside the run]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Export the readable part of a recording that was cut off
    #[arg(long)]
    pub(crate) partial: bool,
    /// Pixels of the PNG for each point of the SVG
    #[arg(long, value_name = "K", default_value_t = 2.0)]
    pub(crate) scale: f32,
    #[command(flatten)]
    pub(crate) shown: ShownArgs,
}

/// The forms of an exported run.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// Space–time diagram
    Svg,
    /// Space–time diagram as pixels
    Png,
    /// Space–time diagram as outlines on a page of its size
    Pdf,
    /// Space–time diagram as a LaTeX document
    Tikz,
    /// Sequence diagram for Markdown pages
    Mermaid,
    /// Sequence diagram for PlantUML
    Plantuml,
    /// Log with vector clocks
    Shiviz,
    /// Table of all events
    Csv,
    /// Table of all events for DuckDB, Polars, pandas
    Parquet,
    /// Player: one offline file that steps forwards and backwards
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
Exit codes: 0 every run is ok · 1 a run is violated or stuck · 2 a run was cut off")]
#[command(allow_negative_numbers = true)]
pub(crate) struct RaceArgs {
    /// Two to four algorithms: problem/name, or the name alone
    #[arg(required = true, num_args = 2..=4, value_name = "ALGORITHM")]
    pub(crate) algorithms: Vec<String>,

    #[command(flatten)]
    pub(crate) scenario: Scenario,

    /// Scenario file (TOML) with values for options that are not given
    #[arg(long = "scenario", env = "KONKLAVE_SCENARIO", value_name = "FILE", help_heading = "Run")]
    pub(crate) file: Option<PathBuf>,

    /// Draw the diagrams above each other, on one time axis
    #[arg(long, env = "KONKLAVE_SVG", value_name = "FILE", help_heading = "Output")]
    pub(crate) svg: Option<PathBuf>,

    /// Write one HTML player for all runs
    #[arg(long, env = "KONKLAVE_HTML", value_name = "FILE", help_heading = "Output")]
    pub(crate) html: Option<PathBuf>,

    /// Output format
    #[arg(long, env = "KONKLAVE_FORMAT", value_enum, default_value_t, help_heading = "Output")]
    pub(crate) format: Format,
}
