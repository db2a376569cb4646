//! `shrink`: reduces a recorded violation to its necessary steps.

use konklave_catalog::Catalog;
use std::io::Write;

use konklave_trace::text;
use serde_json::json;

use super::run::recording;
use super::{plan_of, read_run};
use crate::Done;
use crate::args::ShrinkArgs;
use crate::output::{Format, Target, print_csv, print_json, stdout};

pub(crate) fn shrink(catalog: &Catalog, args: &ShrinkArgs) -> Done {
    let run = read_run(&args.file)?;
    let (entry, plan) = plan_of(catalog, &run, &args.file)?;
    let shrunk = entry.shrink(&plan, &run)?;
    if let Some(target) = Target::open_if(args.record.as_ref())? {
        target.finish(&recording(&shrunk.run, args.record.as_deref())?)?;
    }
    let (before, after) = shrunk.steps;
    let (asked, asks) = shrunk.requests;
    match args.format {
        Format::Text => {
            let mut out = stdout();
            let options = text::Options { debug: args.debug, ..text::Options::default() };
            writeln!(out, "{}", text::transcript(&shrunk.run, &options))?;
            writeln!(
                out,
                "{} · {} nodes",
                shrunk.run.header.algorithm,
                shrunk.run.header.nodes.len()
            )?;
            writeln!(out, "steps       {before} → {after}")?;
            writeln!(out, "requests    {asked} → {asks}")?;
            writeln!(out, "why         {}", shrunk.explanation)?;
            out.flush()?;
        }
        Format::Json | Format::Jsonl => {
            let report = json!({
                "schema": "konklave.shrink/1",
                "algorithm": shrunk.run.header.algorithm,
                "property": shrunk.property,
                "steps": { "before": before, "after": after },
                "requests": { "before": asked, "after": asks },
                "explanation": shrunk.explanation,
            });
            print_json(&report, args.format)?;
        }
        Format::Csv => print_csv(&[vec![
            ("algorithm".into(), shrunk.run.header.algorithm.clone()),
            ("property".into(), shrunk.property.clone()),
            ("steps_before".into(), before.to_string()),
            ("steps_after".into(), after.to_string()),
        ]])?,
    }
    Ok(0)
}
