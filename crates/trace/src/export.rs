//! A run for other tools: pictures for papers and pages, sequence diagrams, logs and tables.
//!
//! All of them take the [`Options`](crate::diagram::Options) of a diagram: whose lanes, which
//! messages, when. The same run gives the same bytes.

mod csv;
mod html;
mod mermaid;
#[cfg(feature = "png")]
mod pdf;
mod plantuml;
#[cfg(feature = "png")]
mod png;
mod sequence;
mod shiviz;
mod tikz;

pub use csv::{csv, table};
pub use html::{html, html_race};
pub use mermaid::mermaid;
#[cfg(feature = "png")]
pub use pdf::pdf;
pub use plantuml::plantuml;
#[cfg(feature = "png")]
pub use png::{PngError, png};
pub use shiviz::shiviz;
pub use tikz::tikz;
