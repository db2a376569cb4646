//! Why a run went wrong: the step that decided, and the chain of steps that led to it.

use std::collections::{BTreeMap, BTreeSet};

use konklave_process::{Condition, Lasting};

use crate::causality::causes;
use crate::messages::messages;
use crate::spans::{Span, spans};
use crate::text::{incident_line, step_lines, time};
use crate::{EffectRecord, Entry, IncidentKind, InputRecord, Run};

/// A chain of causes has at most this many steps, and as many faults are listed.
const MOST: usize = 12;

/// The causes of the first violation of `run`, or of its end if it violates nothing: the step that decided, and
/// for each process that is inside, leads or waits at that moment, the step that made it so; each with the steps
/// that led to it, back to a request or a fault. Empty if no process made a step.
pub fn why(run: &Run, conditions: &[Condition]) -> Vec<String> {
    let is_violation = |entry: &Entry| matches!(entry, Entry::Incident(i) if matches!(i.kind, IncidentKind::Violation { .. }));
    let broken = run.entries.iter().position(is_violation);
    let moment = broken.unwrap_or(run.entries.len());
    let mut teller = Teller::of(run, moment);
    if broken.is_some()
        && let Some(decided) = (0..moment).rev().find(|&i| run.entries[i].step().is_some())
    {
        teller.tell("the step that decided".to_owned(), decided);
    }
    for span in spans(run, conditions) {
        let lasts = span.begin < moment && span.end.is_none_or(|end| end >= moment);
        if let Some(node) = span.node.filter(|_| lasts && is_of_interest(&span)) {
            let name = run.header.name_of(node);
            teller.tell(format!("{name}: {}", span.label), span.begin);
        }
    }
    teller.tell_faults();
    teller.lines
}

/// Whether the condition may explain a violation: a follower explains nothing that its leader does not.
fn is_of_interest(span: &Span) -> bool {
    matches!(span.what, Lasting::Waiting | Lasting::Inside | Lasting::Leading)
}

struct Teller<'a> {
    run: &'a Run,
    /// The entries before this one count.
    moment: usize,
    causes: BTreeMap<usize, usize>,
    told: BTreeSet<usize>,
    lines: Vec<String>,
}

impl<'a> Teller<'a> {
    fn of(run: &'a Run, moment: usize) -> Self {
        Self { run, moment, causes: causes(run), told: BTreeSet::new(), lines: Vec::new() }
    }

    /// Tells the step `i` under `title`, and the steps that led to it.
    fn tell(&mut self, title: String, i: usize) {
        if self.told.contains(&i) {
            return;
        }
        self.lines.push(title);
        let mut next = Some(i);
        for number in 0.. {
            let Some(i) = next else { break };
            let arrow = if number == 0 { "  " } else { "  ← " };
            if !self.told.insert(i) {
                self.lines.push(format!("{arrow}{} (see above)", self.line(i)));
                break;
            }
            if number == MOST {
                self.lines.push(format!("{arrow}earlier steps"));
                break;
            }
            self.lines.push(format!("{arrow}{}", self.line(i)));
            next = self.cause(i);
        }
    }

    /// The faults before the moment, the last ones if they are many.
    fn tell_faults(&mut self) {
        let sent = messages(self.run);
        let mut faults: Vec<String> = Vec::new();
        for entry in &self.run.entries[..self.moment] {
            let Entry::Incident(incident) = entry else { continue };
            match incident.kind {
                IncidentKind::AppMessage { .. } | IncidentKind::Violation { .. } => {}
                _ => {
                    let at = time(&self.run.header, incident.at);
                    let line = incident_line(incident, &self.run.header, &sent);
                    faults.push(format!("  {at} {line}"));
                }
            }
        }
        if !faults.is_empty() {
            self.lines.push("faults before it".to_owned());
            let skipped = faults.len().saturating_sub(MOST);
            self.lines.extend((skipped > 0).then(|| format!("  {skipped} earlier ones")));
            self.lines.extend(faults.drain(skipped..));
        }
    }

    fn line(&self, i: usize) -> String {
        let header = &self.run.header;
        let at = time(header, self.run.entries[i].at());
        let lines = self.run.entries[i].step().map(|step| step_lines(step, header, false));
        format!("{at} {}", lines.unwrap_or_default().join("; "))
    }

    /// The step that caused step `i`: it sent the message, or set the timer. None for a request or a start.
    fn cause(&self, i: usize) -> Option<usize> {
        let step = self.run.entries[i].step()?;
        match &step.input {
            InputRecord::Message { .. } | InputRecord::Stamp { .. } => self.causes.get(&i).copied(),
            InputRecord::Timer(timer) => (0..i).rev().find(|&earlier| {
                self.run.entries[earlier].step().is_some_and(|before| {
                    let sets = |effect: &EffectRecord| {
                        matches!(effect, EffectRecord::SetTimer { timer: set, .. } if set == timer)
                    };
                    before.node == step.node && before.effects.iter().any(sets)
                })
            }),
            InputRecord::Start
            | InputRecord::Recover { .. }
            | InputRecord::Request(_)
            | InputRecord::Suspect(_)
            | InputRecord::Trust(_) => None,
        }
    }
}
