//! Random runs, for models with too many states to visit all.

use konklave_process::Rng;
use rustc_hash::FxHashSet;

use crate::expand::{Continuation, Expander};
use crate::report::Bounded;
use crate::search::{Search, SearchVerdict, StatePath};
use crate::shared::write;
use crate::store::fingerprint;

/// Which random runs to try. The shards of one seed try different runs, so that several machines can share
/// the work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Swarm {
    /// The index of this shard, from 0 on.
    pub shard: u32,
    /// How many shards there are.
    pub of: u32,
    /// The seed of all random choices.
    pub seed: u64,
    /// How many runs this shard tries.
    pub runs: u64,
}

/// A run that has not ended after this many steps is given up.
const LONGEST: u32 = 100_000;

impl Search<'_, '_> {
    /// Tries random runs until a property is violated or all runs are done.
    pub(crate) fn swarm(&mut self, swarm: Swarm) -> SearchVerdict {
        let mut seen = FxHashSet::default();
        for run in 0..swarm.runs {
            let stream = run * u64::from(swarm.of.max(1)) + u64::from(swarm.shard);
            let mut rng = Rng::new(swarm.seed).fork(stream);
            if let Some(path) = self.random_run(&mut rng, &mut seen) {
                return SearchVerdict::Violated(path);
            }
            self.states = seen.len() as u64;
            if seen.len() as u64 * 16 > self.options.max_bytes {
                return SearchVerdict::Bounded(Bounded::Memory);
            }
            if run % 64 == 0 && !self.report_progress() {
                return SearchVerdict::Bounded(Bounded::Interrupted);
            }
        }
        SearchVerdict::Bounded(Bounded::Sample)
    }

    /// Makes one random run. In each state all possible steps are judged, not only the one taken.
    fn random_run(&mut self, rng: &mut Rng, seen: &mut FxHashSet<u64>) -> Option<StatePath> {
        let path = |steps, violation| StatePath { violation, start: 0, steps, cycle: None };
        let starts = self.semantics.starts(&mut write(&self.shared.tables), &self.shared.rules);
        let (mut numbered, _) = starts.into_iter().next()?;
        let (mut steps, mut packed) = (Vec::new(), Vec::new());
        let mut expander = Expander::default();
        let rules = &self.shared.rules;
        let deepest = self.options.max_depth.min(LONGEST);
        loop {
            packed.clear();
            numbered.pack(rules, &mut packed);
            seen.insert(fingerprint(&packed));
            let mut tables = write(&self.shared.tables);
            let (continuation, count, broken) = loop {
                let (mut count, mut broken) = (0, None);
                let known = expander.expand(&numbered, &tables, rules, &mut |step| {
                    if step.violated && broken.is_none() {
                        broken = Some((count, step.reaction));
                    }
                    count += 1;
                });
                match known {
                    Ok(continuation) => break (continuation, count, broken),
                    Err(query) => self.semantics.resolve(query, &mut tables),
                }
            };
            self.tally.transitions += u64::from(count);
            self.depth = self.depth.max(steps.len() as u32);
            if continuation < Continuation::Necessary {
                self.tally.ends += u64::from(continuation == Continuation::Nothing);
                let ended =
                    self.semantics.judge_end(&numbered.locals, numbered.environment, &mut tables);
                if let Some(violation) = ended {
                    return Some(path(steps, violation));
                }
            }
            if let Some((step, reaction)) = broken {
                steps.push(step);
                let violation = self.semantics.violation(reaction);
                return Some(path(steps, violation));
            }
            if count == 0 || steps.len() as u32 >= deepest {
                return None;
            }
            let chosen = rng.below(count);
            let (mut next, mut i) = (None, 0);
            let known = expander.expand(&numbered, &tables, rules, &mut |step| {
                if i == chosen {
                    next = Some(step.numbered(&tables, rules));
                }
                i += 1;
            });
            debug_assert!(known.is_ok(), "everything was worked out just now");
            steps.push(chosen);
            numbered = next.expect("one of the steps was chosen");
        }
    }
}
