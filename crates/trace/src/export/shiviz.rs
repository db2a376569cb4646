//! A log with vector clocks for ShiViz: <https://bestchai.bitbucket.io/shiviz/>. It fits ShiViz's
//! own pattern, `(?<event>.*)\n(?<host>\S*) (?<clock>{.*})`.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::causality::Causality;
use crate::diagram::Options;
use crate::messages::messages;
use crate::text::time;
use crate::{Entry, IncidentKind, Run, View};

/// `run` as a log. Each step is an event of its node, as is each incident at a node; the clocks count
/// the shown events.
pub fn shiviz(run: &Run, options: &Options) -> String {
    let messages = messages(run);
    let view = View::new(run, &messages, &options.only);
    let order = Causality::of(run);
    let places: BTreeMap<u32, usize> =
        run.header.nodes.iter().enumerate().map(|(place, &id)| (id, place)).collect();
    // For each node: the number of its shown events after its k-th step.
    let mut shown_after: Vec<Vec<u32>> = vec![vec![0]; places.len()];
    let mut shown: Vec<u32> = vec![0; places.len()];
    let mut known: Vec<Vec<u32>> = vec![vec![0; places.len()]; places.len()];
    let mut log = String::new();
    for (i, entry) in run.entries.iter().enumerate() {
        let node = match entry {
            Entry::Step(step) => step.node,
            Entry::Incident(incident) => match incident.kind {
                IncidentKind::Crash(node)
                | IncidentKind::Restart { node, .. }
                | IncidentKind::Pause(node)
                | IncidentKind::Resume(node) => node,
                IncidentKind::Lost(_)
                | IncidentKind::Duplicated(_)
                | IncidentKind::Cut(_)
                | IncidentKind::Heal(_)
                | IncidentKind::AppMessage { .. }
                | IncidentKind::Violation { .. } => continue,
            },
        };
        let Some(&place) = places.get(&node) else { continue };
        let told = view.lines(i);
        let visible = !told.is_empty();
        shown[place] += u32::from(visible);
        if entry.step().is_some() {
            shown_after[place].push(shown[place]);
        }
        if let Some(vector) = order.vector(i) {
            let counts = vector.iter().zip(&shown_after).map(|(k, after)| after[*k as usize]);
            known[place] = counts.collect();
        }
        known[place][place] = shown[place];
        if !visible {
            continue;
        }
        let told = told.join("; ").replace(['\n', '\r'], " ");
        let clock: Vec<String> = (run.header.nodes.iter().zip(&known[place]))
            .filter(|(id, count)| **count > 0 && options.only.shows_node(**id))
            .map(|(id, count)| format!("\"p{id}\":{count}"))
            .collect();
        let now = time(&run.header, entry.at());
        writeln!(log, "{told} @{now}\np{node} {{{}}}", clock.join(","))
            .expect("a string takes everything");
    }
    log
}
