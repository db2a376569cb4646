//! What a search found, and how it is asked for.

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

/// What was found.
#[derive(Clone, Debug)]
pub struct Report {
    /// The verdict.
    pub outcome: Outcome,
    /// How many different states were reached.
    pub states: u64,
    /// How many steps lead from one to another.
    pub transitions: u64,
    /// The length of the longest shortest way to a state.
    pub depth: u32,
    /// How long it took.
    pub elapsed: Duration,
    /// The most memory the states took, about.
    pub peak_bytes: u64,
    /// How many of the states are ends.
    pub ends: u64,
    /// The fewest and the most messages of a run that ends, where they were counted.
    pub messages: Option<(u32, u32)>,
    /// A run with the most messages, where they were counted and all is well.
    pub costliest: Option<Witness>,
    /// A run with the fewest messages, likewise.
    pub cheapest: Option<Witness>,
    /// Whether one order of commuting deliveries stood for all.
    pub reduced: bool,
    /// How likely it is that a state was missed because another had its fingerprint: 0 where states
    /// are compared whole.
    pub miss_probability: f64,
    /// Which processes stood for each other, where that was asked for.
    pub symmetry: Option<Interchangeable>,
}

/// Which processes stood for each other.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Interchangeable {
    /// By how many permutations a state was renamed; 1 if only by the one that moves nobody.
    pub permutations: usize,
    /// Who stood for whom.
    pub classes: Vec<Vec<ProcessId>>,
    /// Why there are no more, if there could be: how processes would have changed places, and what
    /// came in between.
    pub refuted: Option<String>,
}

/// The verdict.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Every state was seen, and all is well.
    Exhausted,
    /// A property breaks, and this is how.
    Violated(Witness),
    /// Nothing was found before the search had to give up.
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
    /// It was told to.
    Interrupted,
    /// All states were seen, but a run may go round for ever, and fingerprints alone cannot tell whether
    /// that is fair.
    Compact,
    /// Only some runs were tried.
    Sample,
}

/// How far the search has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// States reached.
    pub states: u64,
    /// Steps tried.
    pub transitions: u64,
    /// How deep.
    pub depth: u32,
    /// How many states wait to be looked at.
    pub frontier: u64,
}

/// What stands in place of a property in the witness of the costliest run.
pub const MOST_MESSAGES: &str = "most messages";

/// What stands in place of a property in the witness of the cheapest run.
pub const FEWEST_MESSAGES: &str = "fewest messages";

impl Model {
    /// Goes through all states. `watch` is told from time to time how far it has come, and says
    /// whether to go on.
    pub fn explore(&self, watch: impl FnMut(Progress) -> bool) -> Report {
        let report = self.explore_from(&Checkpoints::default(), watch);
        report.expect("no file is read or written")
    }

    /// As [`Model::explore`], going on from a checkpoint and writing others, as `checkpoints` says.
    /// What is found is the same as without.
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

    /// Whether deliveries may be put off: only where nothing but messages and clients decides what
    /// happens, and no judge remembers in which order messages came.
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
