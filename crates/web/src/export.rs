//! Runs as files: pictures, the player and exports for other tools.

use std::collections::BTreeSet;

use konklave_trace::diagram::{Options, layout_all};
use konklave_trace::export::{csv, html_race, mermaid, plantuml, shiviz, tikz};
use konklave_trace::{Filter, Run, svg};
use serde::Deserialize;

use crate::Shared;
use crate::refusal::Refusal;

/// The body of `POST /api/export`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExportRequest {
    /// The number under which the server keeps the runs.
    id: u64,
    form: Form,
    /// Nodes whose lanes come first.
    #[serde(default)]
    lanes: Vec<u32>,
    /// Only these nodes.
    nodes: Option<BTreeSet<u32>>,
    /// Only these kinds of messages.
    kinds: Option<BTreeSet<String>>,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq, Debug)]
#[serde(rename_all = "kebab-case")]
enum Form {
    Svg,
    Html,
    Tikz,
    Mermaid,
    Plantuml,
    Shiviz,
    Csv,
    Run,
}

/// A file.
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    pub(crate) content: Vec<u8>,
}

/// The runs as a file.
pub(crate) fn export(shared: &Shared, request: &ExportRequest) -> Result<File, Refusal> {
    let runs = shared.store.find(request.id);
    let runs =
        runs.ok_or_else(|| Refusal::gone("the workbench no longer keeps this run; run it again"))?;
    let only = Filter { nodes: request.nodes.clone(), kinds: request.kinds.clone(), window: None };
    for run in runs.iter() {
        only.check(run).map_err(Refusal::invalid)?;
    }
    let conditions = runs.first().map_or(&[][..], |run| shared.catalog.conditions(&run.header));
    let options = Options { only, lanes: request.lanes.clone(), ..Options::of(conditions) };
    let all: Vec<&Run> = runs.iter().collect();
    let picture = || svg::stack(&layout_all(&all, &options));
    let one = || match all.as_slice() {
        [run] => Ok(*run),
        _ => Err(Refusal::invalid("a race can be exported as SVG or HTML")),
    };
    let (ending, kind, content) = match request.form {
        Form::Svg => ("svg", "image/svg+xml", picture().into_bytes()),
        Form::Html => ("html", "text/html", html_race(&all, &options).into_bytes()),
        Form::Tikz => ("tex", "application/x-tex", tikz(one()?, &options).into_bytes()),
        Form::Mermaid => ("mmd", "text/plain", mermaid(one()?, &options).into_bytes()),
        Form::Plantuml => ("puml", "text/plain", plantuml(one()?, &options).into_bytes()),
        Form::Shiviz => ("log", "text/plain", shiviz(one()?, &options).into_bytes()),
        Form::Csv => ("csv", "text/csv", csv(one()?, &options).into_bytes()),
        Form::Run => ("run", "application/x-ndjson", one()?.to_text().into_bytes()),
    };
    let name = match all.as_slice() {
        [run] => run.header.algorithm.replace('/', "-"),
        _ => "race".to_owned(),
    };
    Ok(File { name: format!("{name}.{ending}"), kind, content })
}
