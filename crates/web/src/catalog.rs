//! The catalog for the page: algorithms with their data sheets, and the syntax of options.

use std::sync::Arc;

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use konklave_catalog::{Catalog, Entry};
use konklave_process::topology::Spec;
use serde_json::{Value, json};

use crate::exercise::exercise;
use crate::{Shared, limits};

/// The catalog, as JSON.
pub(crate) async fn catalog(State(shared): State<Arc<Shared>>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], shared.catalog_text.clone())
}

/// The part of `catalog` that the page needs.
pub(crate) fn text(catalog: &Catalog) -> String {
    let topologies: Vec<_> = Spec::kinds().iter().filter(|(kind, _)| *kind != "FILE").collect();
    let properties: Vec<_> = catalog.properties().iter().map(|p| (p.word, p.meaning)).collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "algorithms": catalog.entries().iter().map(sheet).collect::<Vec<_>>(),
        "topologies": topologies,
        "faults": konklave_sim::FAULT_FORMS,
        "properties": properties,
        "limits": {
            "nodes": limits::NODES, "steps": limits::STEPS, "racers": limits::RACERS,
            "states": limits::STATES,
        },
    })
    .to_string()
}

fn sheet(entry: &Entry) -> Value {
    let sheet = &entry.sheet;
    let default = sheet.topologies.first().map(|&shape| Spec::default_for(shape).to_string());
    json!({
        "name": entry.name(),
        "problem": entry.problem.name,
        "holds": entry.problem.holds,
        "title": sheet.title,
        "idea": sheet.idea,
        "source": sheet.source,
        "topologies": named(sheet.topologies),
        "topology": default,
        "assumes": named(sheet.assumes),
        "guarantees": named(sheet.guarantees),
        "winner": sheet.winner.map(|winner| winner.to_string()),
        "fence": sheet.fence,
        "costs": sheet.costs.iter().map(|c| json!({
            "metric": c.metric, "formula": c.formula, "when": c.when,
        })).collect::<Vec<_>>(),
        "switches": sheet.switches.iter().map(|s| json!({
            "name": s.name, "values": s.values, "what": s.what,
        })).collect::<Vec<_>>(),
        "mistakes": sheet.mistakes.iter().map(|m| json!({
            "name": m.name, "what": m.what, "breaks": m.breaks,
            "exercise": exercise(entry, m),
        })).collect::<Vec<_>>(),
    })
}

fn named<T: ToString>(items: &[T]) -> Vec<String> {
    items.iter().map(ToString::to_string).collect()
}
