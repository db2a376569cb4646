//! The search: breadth first through all states, level by level, on all cores.
//!
//! States are numbers here. Only [`Semantics`] knows the values behind them; the search asks it for every
//! step that the tables do not have yet.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Barrier, PoisonError};

use konklave_process::{Group, Violation};

use crate::checkpoint::{CheckpointError, CheckpointReader, CheckpointWriter, Checkpoints};
use crate::expand::{NumberedState, Rules};
use crate::options::{Options, links};
use crate::reduce::Commutation;
use crate::report::{Bounded, FEWEST_MESSAGES, MOST_MESSAGES, Progress};
use crate::semantics::Semantics;
use crate::shared::{Job, Level, Shared, StateLocation, Task, expand_state, read, write};
use crate::store::{BLOCK, SHARD_BITS, SHARDS, fingerprint};
use crate::symmetry::{CYCLES, Permutation, Scratch, Symmetry};
use crate::tables::{Inputs, Tables};

/// Counters up to some level. `costliest` and `cheapest` are numbers of end states.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Counters {
    pub(crate) transitions: u64,
    pub(crate) ends: u64,
    pub(crate) messages: Option<(u32, u32)>,
    pub(crate) costliest: Option<u64>,
    pub(crate) cheapest: Option<u64>,
}

/// An upper bound on the probability that two of these states have the same 64-bit hash.
fn miss_probability(states: u64) -> f64 {
    let states = states as f64;
    (states * states / 2f64.powi(65)).min(1.0)
}

/// How a level ended the search.
enum LevelResult {
    Exhausted,
    /// An assumption of reduction or symmetry was refuted: the search restarts without it.
    Restart,
    Bounded(Bounded),
    /// A property is violated: in this state (none: at the start), by its step `last` if there is one.
    Violated {
        state: Option<u64>,
        last: Option<u32>,
        violation: Violation,
    },
}

/// How to reach a state again, and the violation found there.
///
/// `start` is the index of the start state. `steps` are the indices of the steps from there. For a run that
/// never ends, `cycle` leads from the state reached back to it.
pub(crate) struct StatePath {
    pub(crate) violation: Violation,
    pub(crate) start: u32,
    pub(crate) steps: Vec<u32>,
    pub(crate) cycle: Option<Vec<u32>>,
}

/// The verdict of a finished search.
pub(crate) enum SearchVerdict {
    Exhausted,
    Violated(StatePath),
    Bounded(Bounded),
}

/// The result of a finished search, in numbers.
pub(crate) struct SearchResult {
    pub(crate) verdict: SearchVerdict,
    pub(crate) states: u64,
    pub(crate) tally: Counters,
    pub(crate) depth: u32,
    pub(crate) peak_bytes: u64,
    pub(crate) costliest: Option<StatePath>,
    pub(crate) cheapest: Option<StatePath>,
    pub(crate) reduced: bool,
    pub(crate) miss_probability: f64,
    /// With symmetry: how many permutations there were, and the classes of interchangeable places.
    pub(crate) symmetry: Option<(usize, Vec<Vec<u32>>)>,
    /// The first permutation that was refuted, and why.
    pub(crate) asymmetry: Option<(Permutation, &'static str)>,
}

/// The input of a search: the group, the options, the reductions to use, and the checkpoints.
pub(crate) struct SearchRequest<'a> {
    pub(crate) group: &'a Group,
    pub(crate) options: &'a Options,
    /// Whether a delivery that commutes with all others is taken alone (partial-order reduction).
    pub(crate) reduce: bool,
    /// Whether one state stands for all its renamed forms.
    pub(crate) symmetry: bool,
    pub(crate) checkpoints: &'a Checkpoints,
}

/// Searches until there is a verdict. Also returns the tables that give the result's numbers a meaning.
pub(crate) fn search(
    question: &SearchRequest<'_>,
    semantics: &mut Semantics<'_>,
    watch: &mut dyn FnMut(Progress) -> bool,
) -> Result<(SearchResult, Shared), CheckpointError> {
    let SearchRequest { group, options, reduce, symmetry, checkpoints } = *question;
    let workers = match options.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        threads => threads,
    };
    let workers = workers.min(SHARDS);
    let links = links(options, group).collect();
    let coordinator = options.coordinator.and_then(|p| group.place(p)).map(|place| place as u32);
    let inputs = Inputs { n: group.len() as u32 };
    let rules = Rules { inputs, options: options.clone(), links, coordinator };
    let mut commutation = reduce.then(Commutation::default);
    let mut tables =
        Tables { dependent: commutation.is_some().then(Default::default), ..Tables::default() };
    let mut refuted = Vec::new();
    let mut reader = None;
    if let Some(file) = &checkpoints.resume {
        let mut from = CheckpointReader::open(file, checkpoints, options)?;
        refuted = from.refuted(rules.inputs.n)?;
        reader = Some(from);
    }
    if symmetry {
        tables.symmetry = Symmetry::without(&refuted, rules.inputs.n);
    }
    loop {
        let shared = Shared::new(rules.clone(), workers, tables);
        let mut search = Search::new(group, options, &shared, semantics, commutation, watch);
        search.checkpoint_writer = (!checkpoints.are_none())
            .then(|| CheckpointWriter::new(checkpoints, options, &refuted));
        if let Some(from) = reader.take() {
            search.resume(from)?;
        }
        let found = search.explore(workers);
        if let Some(failed) = search.checkpoint_writer.take().and_then(|writer| writer.failed) {
            return Err(failed);
        }
        commutation = search.commutation;
        if let Some(mut found) = found {
            found.asymmetry = refuted.into_iter().next();
            return Ok((found, shared));
        }
        tables = shared.tables.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(symmetry) = tables.symmetry.take_if(|symmetry| symmetry.is_refuted()) {
            for (permutation, why) in symmetry.refuted() {
                if !refuted.iter().any(|(known, _)| known == permutation) {
                    refuted.push((permutation.clone(), why));
                }
            }
            // All values get new numbers, so the known commutations are void, too.
            semantics.forget();
            commutation = commutation.map(|_| Commutation::default());
            tables = Tables {
                dependent: commutation.is_some().then(Default::default),
                symmetry: Symmetry::without(&refuted, rules.inputs.n),
                ..Tables::default()
            };
            continue;
        }
        tables.dependent = commutation.as_ref().and_then(Commutation::dependent);
        commutation = commutation.filter(|_| tables.dependent.is_some());
    }
}

/// One search, run by the first worker: the only one that may run handlers.
pub(crate) struct Search<'a, 'm> {
    pub(crate) group: &'a Group,
    pub(crate) options: &'a Options,
    pub(crate) shared: &'a Shared,
    pub(crate) semantics: &'a mut Semantics<'m>,
    /// With reduction: which deliveries commute.
    commutation: Option<Commutation>,
    /// How many steps were known when commutation was last checked.
    compared: usize,
    watch: &'a mut dyn FnMut(Progress) -> bool,
    pub(crate) levels: Vec<Level>,
    pub(crate) states: u64,
    pub(crate) tally: Counters,
    pub(crate) depth: u32,
    frontier: u64,
    pub(crate) peak_bytes: u64,
    reported_at: u64,
    /// The counters before the current level.
    before_level: Counters,
    /// Writes checkpoints, if the caller wants any.
    checkpoint_writer: Option<CheckpointWriter>,
}

/// The other workers join from a level of this size on; earlier in tests, whose models are small.
const MANY: u64 = if cfg!(test) { 16 } else { 4096 };

impl<'a, 'm> Search<'a, 'm> {
    fn new(
        group: &'a Group,
        options: &'a Options,
        shared: &'a Shared,
        semantics: &'a mut Semantics<'m>,
        commutation: Option<Commutation>,
        watch: &'a mut dyn FnMut(Progress) -> bool,
    ) -> Self {
        let compared = read(&shared.tables).acts.len();
        Self {
            group,
            options,
            shared,
            semantics,
            commutation,
            compared,
            watch,
            levels: Vec::new(),
            states: 0,
            tally: Counters::default(),
            depth: 0,
            frontier: 0,
            peak_bytes: 0,
            reported_at: 0,
            before_level: Counters::default(),
            checkpoint_writer: None,
        }
    }

    /// Resumes from a checkpoint: repeats its queries, so that every value gets its number again, then
    /// inserts its states.
    fn resume(&mut self, mut from: CheckpointReader) -> Result<(), CheckpointError> {
        let _ = self.start();
        let recorded = from.queries()?;
        {
            let mut tables = write(&self.shared.tables);
            for &query in &recorded.queries {
                let is_named = tables.symmetry.as_ref().is_none_or(|names| names.covers(query));
                if !self.semantics.knows(query) || !is_named {
                    return Err(from.changed());
                }
                self.semantics.resolve(query, &mut tables);
                if tables.symmetry.as_ref().is_some_and(Symmetry::is_refuted) {
                    return Err(from.changed());
                }
            }
        }
        if self.semantics.digest() != recorded.digest {
            return Err(from.changed());
        }
        let tally = from.tally()?;
        let shared = self.shared;
        from.levels(shared, || self.start_level())?;
        (self.tally, self.before_level) = (tally, tally);
        if let Some(writer) = &mut self.checkpoint_writer {
            writer.queries = recorded.queries;
        }
        Ok(())
    }

    /// Writes a checkpoint of all levels up to the current one, if the caller wants any.
    fn write_checkpoint(&mut self) {
        let Some(checkpoint_writer) =
            self.checkpoint_writer.as_mut().filter(|writer| writer.file.is_some())
        else {
            return;
        };
        let digest = self.semantics.digest();
        checkpoint_writer.write_checkpoint(self.shared, &self.levels, self.before_level, digest);
    }

    /// Searches and returns the result; none if the search must restart.
    fn explore(&mut self, workers: usize) -> Option<SearchResult> {
        let options = self.options;
        let verdict = match options.swarm {
            Some(swarm) => self.swarm(swarm),
            None => match self.run(workers) {
                LevelResult::Restart => return None,
                LevelResult::Exhausted if self.must_restart(true) => return None,
                LevelResult::Exhausted if self.commutation.is_some() => {
                    if self.may_repeat_forever() {
                        self.commutation = None;
                        return None;
                    }
                    SearchVerdict::Exhausted
                }
                LevelResult::Exhausted if self.must_drop_symmetry() => return None,
                LevelResult::Exhausted => self.judge_cycles(),
                LevelResult::Bounded(bound) => SearchVerdict::Bounded(bound),
                LevelResult::Violated { state, last, violation } => {
                    let mut path = self.path_to(state, violation);
                    path.steps.extend(last);
                    SearchVerdict::Violated(path)
                }
            },
        };
        let (mut costliest, mut cheapest) = (None, None);
        if let (SearchVerdict::Exhausted, Some((fewest, most)), true) =
            (&verdict, self.tally.messages, options.count_messages)
        {
            let run = |number: Option<u64>, what, messages: u32| {
                let violation = Violation::new(what, format!("{messages} messages"));
                number.map(|number| self.path_to(Some(number), violation))
            };
            costliest = run(self.tally.costliest, MOST_MESSAGES, most);
            cheapest = run(self.tally.cheapest, FEWEST_MESSAGES, fewest);
        }
        Some(SearchResult {
            verdict,
            states: self.states,
            tally: self.tally,
            depth: self.depth,
            peak_bytes: self.peak_bytes,
            costliest,
            cheapest,
            reduced: self.commutation.is_some(),
            miss_probability: if options.compact { miss_probability(self.states) } else { 0.0 },
            symmetry: read(&self.shared.tables).symmetry.as_ref().map(|s| (s.len(), s.classes())),
            asymmetry: None,
        })
    }

    /// With reduction: whether the search must restart, because a delivery taken to commute does not.
    /// Checks only after many new steps, or if `anyway`.
    fn must_restart(&mut self, anyway: bool) -> bool {
        let Some(commutation) = &mut self.commutation else { return false };
        let mut tables = write(&self.shared.tables);
        if !anyway && tables.acts.len() * 4 < self.compared * 5 {
            return false;
        }
        let dependent = self.semantics.commute(commutation, &mut tables);
        self.compared = tables.acts.len();
        // A step that only a run left out would make may refute a permutation, too.
        dependent || tables.symmetry.as_ref().is_some_and(Symmetry::is_refuted)
    }

    /// Whether a run might go on forever. If so, a delivery could be postponed forever, and the runs that
    /// livelock and starvation are judged by were left out. So the search restarts without reduction.
    fn may_repeat_forever(&self) -> bool {
        let timers = read(&self.shared.tables).locals.iter().any(|facts| facts.has_timers());
        let compact = self.options.compact;
        timers || compact || self.shared.shards.iter().any(|shard| read(shard).cycles)
    }

    /// Whether symmetry must be dropped, because runs that never end must be judged. One state that stands
    /// for many cannot tell which of the interchangeable processes waits forever.
    fn must_drop_symmetry(&mut self) -> bool {
        let judged = ["livelock", "starvation"].iter().any(|p| self.options.judges(p));
        let cycles = self.shared.shards.iter().any(|shard| read(shard).cycles);
        let mut tables = write(&self.shared.tables);
        let Some(symmetry) = tables.symmetry.as_mut().filter(|_| judged && cycles) else {
            return false;
        };
        symmetry.refute_all(CYCLES);
        true
    }

    /// Whether processes that were taken to be interchangeable are not.
    fn is_refuted(&self) -> bool {
        read(&self.shared.tables).symmetry.as_ref().is_some_and(Symmetry::is_refuted)
    }

    fn run(&mut self, workers: usize) -> LevelResult {
        let is_resumed = !self.levels.is_empty();
        if !is_resumed && let Some(violation) = self.start() {
            return LevelResult::Violated { state: None, last: None, violation };
        }
        if self.is_refuted() {
            return LevelResult::Restart;
        }
        loop {
            if workers > 1 && self.levels.last().is_some_and(|level| level.size >= MANY) {
                return self.run_together(workers);
            }
            if let Some(found) = self.level(
                &mut |shared| {
                    shared.work(0, 1);
                },
                1,
            ) {
                return found;
            }
        }
    }

    fn run_together(&mut self, workers: usize) -> LevelResult {
        let shared = self.shared;
        let barrier = Barrier::new(workers);
        std::thread::scope(|scope| {
            for me in 1..workers {
                let barrier = &barrier;
                scope.spawn(move || {
                    loop {
                        barrier.wait();
                        let more = shared.work(me, workers);
                        barrier.wait();
                        if !more {
                            break;
                        }
                    }
                });
            }
            let mut together = |shared: &Shared| {
                barrier.wait();
                shared.work(0, workers);
                barrier.wait();
            };
            // If a handler panics, the other workers must not wait at the barrier forever.
            let found = catch_unwind(AssertUnwindSafe(|| {
                loop {
                    if let Some(found) = self.level(&mut together, workers) {
                        return found;
                    }
                }
            }));
            write(&shared.job).task = Task::Stop;
            together(shared);
            found.unwrap_or_else(|panic| resume_unwind(panic))
        })
    }

    /// Inserts the start states; returns a violation found there.
    fn start(&mut self) -> Option<Violation> {
        let mut broken = None;
        let starts = {
            let mut tables = write(&self.shared.tables);
            self.semantics.starts(&mut tables, &self.shared.rules)
        };
        for (start, (numbered, violation)) in starts.into_iter().enumerate() {
            broken = broken.or(violation);
            let mut scratch = Scratch::of(numbered);
            let tables = read(&self.shared.tables);
            let symmetry = tables.symmetry.as_ref().filter(|symmetry| !symmetry.is_refuted());
            let numbered = match symmetry {
                Some(symmetry) => {
                    symmetry.canonical(&tables, &self.shared.rules, &mut scratch);
                    scratch.best
                }
                None => scratch.here,
            };
            let mut packed = Vec::new();
            numbered.pack(&self.shared.rules, &mut packed);
            let hash = fingerprint(&packed);
            let shard = &self.shared.shards[(hash >> (64 - SHARD_BITS)) as usize];
            write(shard).insert(hash, 0, (start as u32) << 1, &packed);
        }
        self.start_level();
        broken
    }

    /// Makes the next level the current one.
    fn start_level(&mut self) {
        let mut ranges = Vec::new();
        for shard in &self.shared.shards {
            let mut shard = write(shard);
            let size = shard.start_level();
            ranges.push((shard.len - size, size));
        }
        let size = ranges.iter().map(|(_, size)| size).sum();
        let base = self.levels.last().map_or(0, |level| level.base + level.size);
        self.levels.push(Level { base, ranges, size });
        self.states = base + size;
        self.before_level = self.tally;
    }

    /// Expands the current level; returns a result if the search is over.
    fn level(&mut self, work: &mut dyn FnMut(&Shared), workers: usize) -> Option<LevelResult> {
        let level = self.levels.last().expect("there is a start").clone();
        if level.size == 0 {
            self.levels.pop();
            return Some(LevelResult::Exhausted);
        }
        self.depth = self.levels.len() as u32 - 1;
        let deepest = self.depth == self.options.max_depth;
        let many = if self.options.compact { 24 } else { 96 };
        let batch = many * workers;
        let blocks = self.shared.blocks();
        let (mut broken, mut broken_end, mut looked) = (None::<(u32, u32, u32)>, None, 0);
        let mut deeper = false;
        for blocks in blocks.chunks(batch) {
            let (task, base) = (Task::Expand, level.base);
            *write(&self.shared.job) = Job { task, blocks: blocks.to_vec(), base, deepest };
            work(self.shared);
            self.resolve_unfinished(workers, deepest);
            if self.is_refuted() {
                return Some(LevelResult::Restart);
            }
            for output in &self.shared.outputs {
                let mut output = write(output);
                self.tally.transitions += std::mem::take(&mut output.transitions);
                deeper |= std::mem::take(&mut output.deeper);
                broken = [broken, output.broken].into_iter().flatten().min();
                let ends = std::mem::take(&mut output.ends);
                for (end, sent) in ends {
                    if let Some(violation) = self.end(end, sent, level.base) {
                        let earlier =
                            broken_end.as_ref().is_none_or(|(location, _)| end < *location);
                        if earlier {
                            broken_end = Some((end, violation));
                        }
                    }
                }
            }
            if self.is_refuted() {
                return Some(LevelResult::Restart);
            }
            if broken.is_none() && broken_end.is_none() {
                write(&self.shared.job).task = Task::Insert;
                work(self.shared);
            }
            looked += blocks.iter().map(|block| u64::from(block.count)).sum::<u64>();
            if let Some(bound) = self.bound(level.size - looked) {
                // A violation found is worth more than the bound.
                if broken.is_none() && broken_end.is_none() {
                    self.write_checkpoint();
                    return Some(LevelResult::Bounded(bound));
                }
                break;
            }
        }
        if let Some((location, violation)) = broken_end {
            let state = Some(level.base + u64::from(location.position));
            return Some(LevelResult::Violated { state, last: None, violation });
        }
        if let Some((position, step, reaction)) = broken {
            let violation = self.semantics.violation(reaction);
            let state = Some(level.base + u64::from(position));
            return Some(LevelResult::Violated { state, last: Some(step), violation });
        }
        if deeper {
            self.write_checkpoint();
            return Some(LevelResult::Bounded(Bounded::Depth));
        }
        self.end_level()
    }

    /// Goes on to the next level, with a checkpoint if one is due; returns a result if the search is over.
    fn end_level(&mut self) -> Option<LevelResult> {
        self.start_level();
        if self.checkpoint_writer.as_ref().is_some_and(CheckpointWriter::is_due) {
            self.write_checkpoint();
        }
        if self.checkpoint_writer.as_ref().is_some_and(|writer| writer.failed.is_some()) {
            return Some(LevelResult::Bounded(Bounded::Interrupted));
        }
        self.must_restart(false).then_some(LevelResult::Restart)
    }

    /// Computes the missing table entries and expands the states that needed them.
    fn resolve_unfinished(&mut self, workers: usize, deepest: bool) {
        let shared = self.shared;
        let mut extra = write(&shared.outputs[workers]);
        extra.clear();
        let mut tables = write(&shared.tables);
        for output in &shared.outputs[..workers] {
            for &location in &read(output).unfinished {
                let shard = read(&shared.shards[location.shard as usize]);
                let packed = shard.current_rows().get(location.at);
                while let Err(query) =
                    expand_state(location, packed, &tables, &shared.rules, deepest, &mut extra)
                {
                    self.semantics.resolve(query, &mut tables);
                    if tables.symmetry.as_ref().is_some_and(Symmetry::is_refuted) {
                        return;
                    }
                    if let Some(writer) = &mut self.checkpoint_writer {
                        writer.queries.push(query);
                    }
                }
            }
        }
    }

    /// Judges an end. The counts are those of runs in which all clients made all their requests.
    fn end(&mut self, location: StateLocation, sent: Option<u32>, base: u64) -> Option<Violation> {
        if let Some(sent) = sent {
            self.tally.ends += 1;
            let (least, most) = self.tally.messages.unwrap_or((u32::MAX, 0));
            if self.tally.costliest.is_none() || sent > most {
                self.tally.costliest = Some(base + u64::from(location.position));
            }
            if self.tally.cheapest.is_none() || sent < least {
                self.tally.cheapest = Some(base + u64::from(location.position));
            }
            self.tally.messages = Some((least.min(sent), most.max(sent)));
        }
        let mut numbered = NumberedState::default();
        let shard = read(&self.shared.shards[location.shard as usize]);
        let mut tables = write(&self.shared.tables);
        numbered.unpack(&tables, &self.shared.rules, shard.current_rows().get(location.at));
        self.semantics.judge_end(&numbered.locals, numbered.environment, &mut tables)
    }

    /// Reports progress now and then; returns the bound that was reached, if any.
    fn bound(&mut self, waiting: u64) -> Option<Bounded> {
        let states: u64 = self.shared.shards.iter().map(|shard| read(shard).len).sum();
        let options = self.options;
        self.states = states;
        if states > options.max_states {
            return Some(Bounded::States);
        }
        if states < self.reported_at + 4096 {
            return None;
        }
        self.reported_at = states;
        self.count_bytes(0);
        if self.peak_bytes > options.max_bytes {
            return Some(Bounded::Memory);
        }
        let seen = self.levels.last().map_or(0, |level| level.base + level.size);
        self.frontier = waiting + states - seen;
        (!self.report_progress()).then_some(Bounded::Interrupted)
    }

    /// Reports progress; returns false if the caller wants to stop.
    pub(crate) fn report_progress(&mut self) -> bool {
        (self.watch)(Progress {
            states: self.states,
            transitions: self.tally.transitions,
            depth: self.depth,
            frontier: self.frontier,
        })
    }

    /// Updates the peak of memory in use, counting `more` bytes besides the store.
    pub(crate) fn count_bytes(&mut self, more: u64) {
        let bytes = self.shared.bytes() + self.semantics.bytes() as u64 + more;
        self.peak_bytes = self.peak_bytes.max(bytes);
    }

    /// The shard of state `number`, and its index there.
    pub(crate) fn place(&self, number: u64) -> (usize, u64) {
        let level = self.levels.partition_point(|level| level.base <= number) - 1;
        let level = &self.levels[level];
        let mut position = number - level.base;
        for (shard, (first, size)) in level.ranges.iter().enumerate() {
            if position < *size {
                return (shard, first + position);
            }
            position -= size;
        }
        unreachable!("a number is that of a state")
    }

    /// The number of the state at `index` in `shard`.
    pub(crate) fn number(&self, shard: usize, index: u64) -> u64 {
        let level = self.levels.partition_point(|level| level.ranges[shard].0 <= index) - 1;
        let level = &self.levels[level];
        let before: u64 = level.ranges[..shard].iter().map(|(_, size)| size).sum();
        level.base + before + index - level.ranges[shard].0
    }

    /// The path to state `number` (none: the start), with the violation found there.
    pub(crate) fn path_to(&self, number: Option<u64>, violation: Violation) -> StatePath {
        let (start, steps) = number.map_or((0, Vec::new()), |number| self.path(number));
        StatePath { violation, start, steps, cycle: None }
    }

    /// The start state and the steps that lead to state `number`.
    pub(crate) fn path(&self, number: u64) -> (u32, Vec<u32>) {
        let starts = self.levels[0].size;
        let (mut steps, mut at) = (Vec::new(), number);
        loop {
            let (shard, index) = self.place(at);
            let (parent, step) = read(&self.shared.shards[shard]).origin(index);
            if at < starts {
                steps.reverse();
                return (step, steps);
            }
            steps.push(step);
            at = parent;
        }
    }
}

const _: () = assert!(BLOCK.is_power_of_two());
