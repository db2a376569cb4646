//! The report of a search, and the functions that start one.

use std::time::Duration;

use konklave_process::{Monitor, ProcessId};

use crate::checkpoint::{CheckpointError, Checkpoints, unfit};
use crate::model::Model;
use crate::options::{Options, Timing};
use crate::replay::Replay;
use crate::search::{self, SearchResult, SearchVerdict};
use crate::semantics::Semantics;
use crate::stopwatch::Stopwatch;
use crate::witness::Witness;

/// The result of a search.
#[derive(Clone, Debug)]
pub struct Report {
    /// The verdict.
    pub outcome: Outcome,
    /// How many distinct states were reached.
    pub states: u64,
    /// How many steps there are between them.
    pub transitions: u64,
    /// The depth: the most steps that a shortest path to a state has.
    pub depth: u32,
    /// How long the search took.
    pub elapsed: Duration,
    /// About how much memory the search used at its peak.
    pub peak_bytes: u64,
    /// How many of the states are ends.
    pub ends: u64,
    /// The fewest and the most messages of a run that ends, if messages were counted.
    pub messages: Option<(u32, u32)>,
    /// A run with the most messages, if messages were counted and no property is violated.
    pub costliest: Option<Witness>,
    /// A run with the fewest messages, under the same conditions.
    pub cheapest: Option<Witness>,
    /// Whether partial-order reduction was in effect: one order of commuting deliveries stood for all.
    pub reduced: bool,
    /// An upper bound on the probability that a state was missed because another has the same hash; 0 if
    /// states are compared whole.
    pub miss_probability: f64,
    /// Which processes were interchangeable, if symmetry was asked for.
    pub symmetry: Option<Interchangeable>,
}

/// Which processes were interchangeable.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interchangeable {
    /// How many permutations of the processes preserve the model; 1 if only the identity does.
    pub permutations: usize,
    /// The classes of interchangeable processes.
    pub classes: Vec<Vec<ProcessId>>,
    /// The first permutation that was refuted, and why, if one was.
    pub refuted: Option<String>,
}

/// The verdict of a search.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Every state was visited, and no property is violated.
    Exhausted,
    /// A property is violated by this run.
    Violated(Witness),
    /// The search gave up before it found a violation.
    Bounded(Bounded),
}

/// Why the search gave up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Bounded {
    /// Too many states.
    States,
    /// Too deep.
    Depth,
    /// Too much memory.
    Memory,
    /// The caller interrupted it.
    Interrupted,
    /// All states were visited, but a run may go on forever, and hashes alone cannot tell whether that run
    /// is fair.
    Compact,
    /// Only random runs were tried.
    Sample,
}

/// The progress of a search.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// States reached.
    pub states: u64,
    /// Steps tried.
    pub transitions: u64,
    /// Depth of the current level.
    pub depth: u32,
    /// States still to be expanded.
    pub frontier: u64,
}

/// Stands in place of a property in the witness of a run with the most messages.
pub const MOST_MESSAGES: &str = "most messages";

/// Stands in place of a property in the witness of a run with the fewest messages.
pub const FEWEST_MESSAGES: &str = "fewest messages";

impl Model {
    /// Explores all states. `watch` is called with the progress now and then, and returns whether to go
    /// on.
    pub fn explore(&self, watch: impl FnMut(Progress) -> bool) -> Report {
        let report = self.explore_from(&Checkpoints::default(), watch);
        report.expect("no file is read or written")
    }

    /// As [`Model::explore`], but resumes from a checkpoint or writes checkpoints, as `checkpoints` says. The
    /// report is the same as without.
    pub fn explore_from(
        &self,
        checkpoints: &Checkpoints,
        mut watch: impl FnMut(Progress) -> bool,
    ) -> Result<Report, CheckpointError> {
        if let Some(why) = unfit(&self.options).filter(|_| !checkpoints.are_none()) {
            return Err(CheckpointError::Unfit(why));
        }
        assert!(self.n() <= 64, "only small groups are explored");
        let cuts = self.options.cuts > 0 || self.options.breaks > 0;
        assert!(!cuts || self.n() <= 8, "channels are cut and links break in groups of up to 8");
        let begun = Stopwatch::start();
        let mut semantics = Semantics::new(self);
        let question = search::SearchRequest {
            group: &self.group,
            options: &self.options,
            reduce: self.is_reducible(),
            symmetry: self.options.symmetry && self.options.swarm.is_none(),
            checkpoints,
        };
        let (found, shared) = search::search(&question, &mut semantics, &mut watch)?;
        let mut replay = Replay::new(self, &shared, &mut semantics);
        let SearchResult { tally, .. } = found;
        let symmetry = self.options.symmetry.then(|| self.interchangeable(&found));
        Ok(Report {
            outcome: match found.verdict {
                SearchVerdict::Exhausted => Outcome::Exhausted,
                SearchVerdict::Violated(path) => Outcome::Violated(replay.witness(path)),
                SearchVerdict::Bounded(bound) => Outcome::Bounded(bound),
            },
            states: found.states,
            transitions: tally.transitions,
            depth: found.depth,
            peak_bytes: found.peak_bytes,
            ends: tally.ends,
            messages: tally.messages.filter(|_| self.options.count_messages),
            costliest: found.costliest.map(|path| replay.witness(path)),
            cheapest: found.cheapest.map(|path| replay.witness(path)),
            reduced: found.reduced,
            miss_probability: found.miss_probability,
            symmetry,
            elapsed: begun.elapsed(),
        })
    }

    fn interchangeable(&self, found: &SearchResult) -> Interchangeable {
        let id = |place: &u32| self.group.id(*place as usize);
        let (permutations, classes) = found.symmetry.clone().unwrap_or((1, Vec::new()));
        let refuted = found.asymmetry.as_ref().map(|(permutation, why)| {
            let moves = (0u32..).zip(permutation).filter(|(from, to)| from != *to);
            let moves = moves.map(|(from, to)| format!("{} as {}", id(&from), id(to)));
            format!("{}: {why}", moves.collect::<Vec<_>>().join(", "))
        });
        let classes = classes.iter().map(|class| class.iter().map(id).collect()).collect();
        Interchangeable { permutations, classes, refuted }
    }

    /// Whether partial-order reduction applies: there are no faults and no clock, and no judge remembers
    /// the order of messages.
    fn is_reducible(&self) -> bool {
        let Options { crashes, restarts, losses, duplicates, cuts, breaks, app_messages, .. } =
            self.options;
        let faults = [crashes, restarts, losses, duplicates, cuts, breaks, app_messages];
        self.options.reduce
            && faults == [0; 7]
            && self.options.timing == Timing::Anytime
            && self.options.clock.is_none()
            && self.options.swarm.is_none()
            && !self.monitor.remembers_messages()
    }
}
