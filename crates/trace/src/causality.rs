//! Lamport's happened-before relation between the steps of a run, by vector time.

use std::collections::BTreeMap;

use crate::messages::messages;
use crate::{Entry, Run};

/// The causal order of the steps of a run. Steps are named by their index in [`Run::entries`].
///
/// Its memory is one number for each step and node, so it is for runs short enough to read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Causality {
    /// For each step: its place in node order, and how many steps of each place it knows of.
    times: BTreeMap<usize, (usize, Vec<u32>)>,
}

impl Causality {
    /// The order of `run`.
    pub fn of(run: &Run) -> Self {
        let nodes = &run.header.nodes;
        let places: BTreeMap<u32, usize> =
            nodes.iter().enumerate().map(|(place, &id)| (id, place)).collect();
        let causes = causes(run);
        let mut now = vec![vec![0; nodes.len()]; nodes.len()];
        let mut times: BTreeMap<usize, (usize, Vec<u32>)> = BTreeMap::new();
        for (i, entry) in run.entries.iter().enumerate() {
            let Entry::Step(step) = entry else { continue };
            let Some(&place) = places.get(&step.node) else { continue };
            if let Some((_, known)) = causes.get(&i).and_then(|cause| times.get(cause)) {
                now[place].iter_mut().zip(known).for_each(|(mine, theirs)| {
                    *mine = (*mine).max(*theirs);
                });
            }
            now[place][place] += 1;
            times.insert(i, (place, now[place].clone()));
        }
        Self { times }
    }

    /// The vector time of step `i`: the number of known steps of each node in node order, itself included.
    pub fn vector(&self, i: usize) -> Option<&[u32]> {
        self.times.get(&i).map(|(_, vector)| vector.as_slice())
    }

    /// Whether step `a` happened before step `b`, so that it could have caused it.
    pub fn before(&self, a: usize, b: usize) -> bool {
        let (Some((place, known)), Some((_, later))) = (self.times.get(&a), self.times.get(&b))
        else {
            return false;
        };
        a != b && known[*place] <= later[*place]
    }

    /// Whether neither of two steps could have caused the other.
    pub fn concurrent(&self, a: usize, b: usize) -> bool {
        a != b
            && self.times.contains_key(&a)
            && self.times.contains_key(&b)
            && !self.before(a, b)
            && !self.before(b, a)
    }

    /// All steps that happened before step `i`. The past of a message is that of its sending.
    pub fn past(&self, i: usize) -> Vec<usize> {
        self.times.range(..i).map(|(&j, _)| j).filter(|&j| self.before(j, i)).collect()
    }

    /// All steps that step `i` happened before. The future of a message is that of its receipt.
    pub fn future(&self, i: usize) -> Vec<usize> {
        self.times.range(i..).map(|(&j, _)| j).filter(|&j| self.before(i, j)).collect()
    }

    /// All pairs of concurrent steps.
    pub fn concurrent_pairs(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.times.keys().flat_map(move |&a| {
            let later = self.times.range(a + 1..).map(|(&b, _)| b);
            later.filter(move |&b| self.concurrent(a, b)).map(move |b| (a, b))
        })
    }
}

/// For each step that receives a message, the step that sent it.
pub fn causes(run: &Run) -> BTreeMap<usize, usize> {
    let mut causes = BTreeMap::new();
    // A message of the application leaves after its sender's last step.
    let mut last_step: BTreeMap<u32, usize> = BTreeMap::new();
    let mut sender_step = BTreeMap::new();
    for (i, entry) in run.entries.iter().enumerate() {
        if let Entry::Step(step) = entry {
            last_step.insert(step.node, i);
        }
        if let Entry::Incident(incident) = entry
            && let crate::IncidentKind::AppMessage { from, .. } = incident.kind
            && let Some(&step) = last_step.get(&from)
        {
            sender_step.insert(i, step);
        }
    }
    for message in messages(run).values() {
        let sent = sender_step.get(&message.sent).copied().unwrap_or(message.sent);
        causes.extend(message.received.iter().map(|&received| (received, sent)));
    }
    causes
}
