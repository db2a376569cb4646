//! Breadth first through all states, level by level, on all cores.
//!
//! Nothing here knows the types of an algorithm: states are numbers, and what they mean is asked of a
//! [`Craft`]. So all of it is compiled once, not once for each algorithm.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Barrier, PoisonError};

use konklave_process::{Group, Violation};

use crate::checkpoint::{CheckpointError, CheckpointReader, CheckpointWriter, Checkpoints};
use crate::expand::{NumberedState, Rules};
use crate::options::{Options, links};
use crate::reduce::Commutation;
use crate::report::{Bounded, FEWEST_MESSAGES, MOST_MESSAGES, Progress};
use crate::semantics::Semantics;
use crate::shared::{Block, Job, Level, Shared, StatePosition, Task, expand_state, read, write};
use crate::store::{BLOCK, SHARD_BITS, SHARDS, fingerprint};
use crate::symmetry::{Permutation, ROUNDS, Scratch, Symmetry};
use crate::tables::{Inputs, Tables};

/// What was counted up to some level.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Counters {
    pub(crate) transitions: u64,
    pub(crate) ends: u64,
    pub(crate) messages: Option<(u32, u32)>,
    pub(crate) dearest: Option<u64>,
    pub(crate) cheapest: Option<u64>,
}

/// How likely it is that two of so many states have the same 64 bits.
fn missed(states: u64) -> f64 {
    let states = states as f64;
    (states * states / 2f64.powi(65)).min(1.0)
}

/// What the search came to.
enum Found {
    Nothing,
    /// More must be visited than was thought: the search begins again.
    Again,
    Bound(Bounded),
    /// The state, none for the start itself; the last step, if it is that which breaks something.
    Broken {
        state: Option<u64>,
        last: Option<u32>,
        violation: Violation,
    },
}

/// How to come to a state again: the series of draws at the start, the steps from there, and the
/// steps that lead from there round to the same state, where the run goes on for ever.
pub(crate) struct StatePath {
    pub(crate) violation: Violation,
    pub(crate) series: u32,
    pub(crate) steps: Vec<u32>,
    pub(crate) round: Option<Vec<u32>>,
}

/// What the search comes to in the end.
pub(crate) enum Verdict {
    Exhausted,
    Violated(StatePath),
    Bounded(Bounded),
}

/// All that was found, in numbers.
pub(crate) struct SearchResult {
    pub(crate) verdict: Verdict,
    pub(crate) states: u64,
    pub(crate) tally: Counters,
    pub(crate) depth: u32,
    pub(crate) peak_bytes: u64,
    pub(crate) dearest: Option<StatePath>,
    pub(crate) cheapest: Option<StatePath>,
    pub(crate) reduced: bool,
    pub(crate) missed: f64,
    /// How many permutations there were, and which places stood for each other.
    pub(crate) symmetry: Option<(usize, Vec<Vec<u32>>)>,
    /// The first permutation that was refuted, and by what.
    pub(crate) asymmetry: Option<(Permutation, &'static str)>,
}

/// What is to be searched, and how.
pub(crate) struct SearchRequest<'a> {
    pub(crate) group: &'a Group,
    pub(crate) options: &'a Options,
    /// Whether deliveries that commute may be put off.
    pub(crate) reduce: bool,
    /// Whether one state stands for all that it can be renamed to.
    pub(crate) symmetry: bool,
    pub(crate) checkpoints: &'a Checkpoints,
}

/// Searches until the answer is known. Returns also what the numbers in it stand for.
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
    let rules = Rules { inputs: Inputs { n: group.len() as u32 }, options: options.clone(), links };
    let mut commutation = reduce.then(Commutation::default);
    let mut tables =
        Tables { barred: commutation.is_some().then(Default::default), ..Tables::default() };
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
        search.keeper = (!checkpoints.are_none())
            .then(|| CheckpointWriter::new(checkpoints, options, &refuted));
        if let Some(from) = reader.take() {
            search.resume(from)?;
        }
        let found = search.explore(workers);
        if let Some(failed) = search.keeper.take().and_then(|keeper| keeper.failed) {
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
            // All numbers are given anew, so what is known of commutation is void, too.
            semantics.forget();
            commutation = commutation.map(|_| Commutation::default());
            tables = Tables {
                barred: commutation.is_some().then(Default::default),
                symmetry: Symmetry::without(&refuted, rules.inputs.n),
                ..Tables::default()
            };
            continue;
        }
        tables.barred = commutation.as_ref().and_then(Commutation::barred);
        commutation = commutation.filter(|_| tables.barred.is_some());
    }
}

/// One search, by the one worker that may run handlers.
pub(crate) struct Search<'a, 'm> {
    pub(crate) group: &'a Group,
    pub(crate) options: &'a Options,
    pub(crate) shared: &'a Shared,
    pub(crate) semantics: &'a mut Semantics<'m>,
    /// What is known of commutation, where the search is reduced.
    commutation: Option<Commutation>,
    /// How many steps were known when commutation was last looked at.
    compared: usize,
    watch: &'a mut dyn FnMut(Progress) -> bool,
    pub(crate) levels: Vec<Level>,
    pub(crate) states: u64,
    pub(crate) tally: Counters,
    pub(crate) depth: u32,
    frontier: u64,
    pub(crate) peak_bytes: u64,
    told: u64,
    /// What was counted before the level that is looked at.
    mark: Counters,
    /// Writes checkpoints, if there are to be any.
    keeper: Option<CheckpointWriter>,
}

/// From this many states in a level on, the other workers are called; earlier in tests, which are small.
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
            told: 0,
            mark: Counters::default(),
            keeper: None,
        }
    }

    /// Goes on from where a checkpoint was written: asks all again that was asked, so that all has its
    /// number, and puts the states in.
    fn resume(&mut self, mut from: CheckpointReader) -> Result<(), CheckpointError> {
        let _ = self.start();
        let asked = from.asked()?;
        {
            let mut tables = write(&self.shared.tables);
            for &query in &asked.queries {
                let is_named = tables.symmetry.as_ref().is_none_or(|names| names.know(query));
                if !self.semantics.knows(query) || !is_named {
                    return Err(from.changed());
                }
                self.semantics.resolve(query, &mut tables);
                if tables.symmetry.as_ref().is_some_and(Symmetry::is_refuted) {
                    return Err(from.changed());
                }
            }
        }
        if self.semantics.digest() != asked.digest {
            return Err(from.changed());
        }
        let tally = from.tally()?;
        let shared = self.shared;
        from.levels(shared, || self.turn())?;
        (self.tally, self.mark) = (tally, tally);
        if let Some(keeper) = &mut self.keeper {
            keeper.queries = asked.queries;
        }
        Ok(())
    }

    /// Writes down all up to the level that is looked at, if that is wanted.
    fn keep(&mut self) {
        let Some(keeper) = self.keeper.as_mut().filter(|keeper| keeper.file.is_some()) else {
            return;
        };
        let digest = self.semantics.digest();
        keeper.keep(self.shared, &self.levels, self.mark, digest);
    }

    /// Searches, and reports what was found; none if it must be done again with more to visit.
    fn explore(&mut self, workers: usize) -> Option<SearchResult> {
        let options = self.options;
        let verdict = match options.swarm {
            Some(swarm) => self.swarm(swarm),
            None => match self.run(workers) {
                Found::Again => return None,
                Found::Nothing if self.must_compare(true) => return None,
                Found::Nothing if self.commutation.is_some() => {
                    if self.may_go_round() {
                        self.commutation = None;
                        return None;
                    }
                    Verdict::Exhausted
                }
                Found::Nothing if self.goes_round_alike() => return None,
                Found::Nothing => self.judge_cycles(),
                Found::Bound(bound) => Verdict::Bounded(bound),
                Found::Broken { state, last, violation } => {
                    let mut way = self.path_to(state, violation);
                    way.steps.extend(last);
                    Verdict::Violated(way)
                }
            },
        };
        let (mut dearest, mut cheapest) = (None, None);
        if let (Verdict::Exhausted, Some((fewest, most)), true) =
            (&verdict, self.tally.messages, options.count_messages)
        {
            let run = |number: Option<u64>, what, messages: u32| {
                let violation = Violation::new(what, format!("{messages} messages"));
                number.map(|number| self.path_to(Some(number), violation))
            };
            dearest = run(self.tally.dearest, MOST_MESSAGES, most);
            cheapest = run(self.tally.cheapest, FEWEST_MESSAGES, fewest);
        }
        Some(SearchResult {
            verdict,
            states: self.states,
            tally: self.tally,
            depth: self.depth,
            peak_bytes: self.peak_bytes,
            dearest,
            cheapest,
            reduced: self.commutation.is_some(),
            missed: if options.compact { missed(self.states) } else { 0.0 },
            symmetry: read(&self.shared.tables).symmetry.as_ref().map(|s| (s.len(), s.classes())),
            asymmetry: None,
        })
    }

    /// Where the search is reduced and much is new (or `anyway`): whether what was taken to commute,
    /// or to stand for each other, does not.
    fn must_compare(&mut self, anyway: bool) -> bool {
        let Some(commutation) = &mut self.commutation else { return false };
        let mut tables = write(&self.shared.tables);
        if !anyway && tables.acts.len() * 4 < self.compared * 5 {
            return false;
        }
        let barred = self.semantics.commute(commutation, &mut tables);
        self.compared = tables.acts.len();
        // What only runs left out would meet may refute, too.
        barred || tables.symmetry.as_ref().is_some_and(Symmetry::is_refuted)
    }

    /// Whether a run might go on for ever. Then a delivery that is put off could be put off for ever,
    /// and what is judged of runs without end was not seen: nothing may be reduced.
    fn may_go_round(&self) -> bool {
        let timers = read(&self.shared.tables).locals.iter().any(|facts| facts.has_timers());
        let compact = self.options.compact;
        timers || compact || self.shared.shards.iter().any(|shard| read(shard).cycles)
    }

    /// Whether runs that never end must be judged, of which one state for many cannot tell: who of
    /// those that stand for each other waits for ever, and what is fair to whom. Then none stand for
    /// each other.
    fn goes_round_alike(&mut self) -> bool {
        let judged = ["livelock", "starvation"].iter().any(|p| self.options.judges(p));
        let cycles = self.shared.shards.iter().any(|shard| read(shard).cycles);
        let mut tables = write(&self.shared.tables);
        let Some(symmetry) = tables.symmetry.as_mut().filter(|_| judged && cycles) else {
            return false;
        };
        symmetry.give_up(ROUNDS);
        true
    }

    /// Whether some processes were taken to stand for each other that do not.
    fn is_refuted(&self) -> bool {
        read(&self.shared.tables).symmetry.as_ref().is_some_and(Symmetry::is_refuted)
    }

    fn run(&mut self, workers: usize) -> Found {
        let is_resumed = !self.levels.is_empty();
        if !is_resumed && let Some(violation) = self.start() {
            return Found::Broken { state: None, last: None, violation };
        }
        if self.is_refuted() {
            return Found::Again;
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

    fn run_together(&mut self, workers: usize) -> Found {
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
            // A handler may panic: then the others must not wait for ever.
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

    /// Puts in the states in which everyone has come up.
    fn start(&mut self) -> Option<Violation> {
        let mut broken = None;
        let starts = {
            let mut tables = write(&self.shared.tables);
            self.semantics.starts(&mut tables, &self.shared.rules)
        };
        for (series, (node, violation)) in starts.into_iter().enumerate() {
            broken = broken.or(violation);
            let mut scratch = Scratch::of(node);
            let tables = read(&self.shared.tables);
            let symmetry = tables.symmetry.as_ref().filter(|symmetry| !symmetry.is_refuted());
            let node = match symmetry {
                Some(symmetry) => {
                    symmetry.canonical(&tables, &self.shared.rules, &mut scratch);
                    scratch.best
                }
                None => scratch.here,
            };
            let mut packed = Vec::new();
            node.pack(&self.shared.rules, &mut packed);
            let hash = fingerprint(&packed);
            let shard = &self.shared.shards[(hash >> (64 - SHARD_BITS)) as usize];
            write(shard).insert(hash, 0, (series as u32) << 1, &packed);
        }
        self.turn();
        broken
    }

    /// The level that grew is the next to be looked at.
    fn turn(&mut self) {
        let mut ranges = Vec::new();
        for shard in &self.shared.shards {
            let mut shard = write(shard);
            let size = shard.turn();
            ranges.push((shard.len - size, size));
        }
        let size = ranges.iter().map(|(_, size)| size).sum();
        let base = self.levels.last().map_or(0, |level| level.base + level.size);
        self.levels.push(Level { base, ranges, size });
        self.states = base + size;
        self.mark = self.tally;
    }

    /// Looks at one level. Returns what the search came to, if it is over.
    fn level(&mut self, work: &mut dyn FnMut(&Shared), workers: usize) -> Option<Found> {
        let level = self.levels.last().expect("there is a start").clone();
        if level.size == 0 {
            self.levels.pop();
            return Some(Found::Nothing);
        }
        self.depth = self.levels.len() as u32 - 1;
        let deepest = self.depth == self.options.max_depth;
        let many = if self.options.compact { 24 } else { 96 };
        let batch = many * workers;
        let mut blocks = Vec::new();
        let mut position = 0;
        for (number, shard) in self.shared.shards.iter().enumerate() {
            for &(at, count) in &read(shard).blocks {
                blocks.push(Block { shard: number as u32, at, count, position });
                position += count;
            }
        }
        let (mut broken, mut broken_end, mut looked) = (None::<(u32, u32, u32)>, None, 0);
        let mut deeper = false;
        for blocks in blocks.chunks(batch) {
            {
                let mut job = write(&self.shared.job);
                *job =
                    Job { task: Task::Expand, blocks: blocks.to_vec(), base: level.base, deepest };
            }
            work(self.shared);
            self.work_out(workers, deepest);
            if self.is_refuted() {
                return Some(Found::Again);
            }
            for output in &self.shared.outputs {
                let mut output = write(output);
                self.tally.transitions += std::mem::take(&mut output.transitions);
                deeper |= std::mem::take(&mut output.deeper);
                broken = [broken, output.broken].into_iter().flatten().min();
                let ends = std::mem::take(&mut output.ends);
                for (end, sent) in ends {
                    if let Some(violation) = self.end(end, sent, level.base) {
                        let earlier = broken_end.as_ref().is_none_or(|(spot, _)| end < *spot);
                        if earlier {
                            broken_end = Some((end, violation));
                        }
                    }
                }
            }
            if self.is_refuted() {
                return Some(Found::Again);
            }
            if broken.is_none() && broken_end.is_none() {
                write(&self.shared.job).task = Task::Insert;
                work(self.shared);
            }
            looked += blocks.iter().map(|block| u64::from(block.count)).sum::<u64>();
            if let Some(bound) = self.bound(level.size - looked) {
                // What is already known to be broken is more than a bound.
                if broken.is_none() && broken_end.is_none() {
                    self.keep();
                    return Some(Found::Bound(bound));
                }
                break;
            }
        }
        if let Some((spot, violation)) = broken_end {
            let state = Some(level.base + u64::from(spot.position));
            return Some(Found::Broken { state, last: None, violation });
        }
        if let Some((position, step, reaction)) = broken {
            let violation = self.semantics.violation(reaction);
            let state = Some(level.base + u64::from(position));
            return Some(Found::Broken { state, last: Some(step), violation });
        }
        if deeper {
            self.keep();
            return Some(Found::Bound(Bounded::Depth));
        }
        self.turn();
        if self.keeper.as_ref().is_some_and(CheckpointWriter::is_due) {
            self.keep();
        }
        if self.keeper.as_ref().is_some_and(|keeper| keeper.failed.is_some()) {
            return Some(Found::Bound(Bounded::Interrupted));
        }
        self.must_compare(false).then_some(Found::Again)
    }

    /// Looks at the states that the workers could not finish, and works out what they lacked.
    fn work_out(&mut self, workers: usize, deepest: bool) {
        let shared = self.shared;
        let mut extra = write(&shared.outputs[workers]);
        extra.clear();
        let mut tables = write(&shared.tables);
        for output in &shared.outputs[..workers] {
            for &spot in &read(output).unfinished {
                let shard = read(&shared.shards[spot.shard as usize]);
                let packed = shard.current_rows().get(spot.at);
                while let Err(query) =
                    expand_state(spot, packed, &tables, &shared.rules, deepest, &mut extra)
                {
                    self.semantics.resolve(query, &mut tables);
                    if tables.symmetry.as_ref().is_some_and(Symmetry::is_refuted) {
                        return;
                    }
                    if let Some(keeper) = &mut self.keeper {
                        keeper.queries.push(query);
                    }
                }
            }
        }
    }

    /// Judges an end.
    fn end(&mut self, spot: StatePosition, sent: u32, base: u64) -> Option<Violation> {
        self.tally.ends += 1;
        let (least, most) = self.tally.messages.unwrap_or((u32::MAX, 0));
        if self.tally.dearest.is_none() || sent > most {
            self.tally.dearest = Some(base + u64::from(spot.position));
        }
        if self.tally.cheapest.is_none() || sent < least {
            self.tally.cheapest = Some(base + u64::from(spot.position));
        }
        self.tally.messages = Some((least.min(sent), most.max(sent)));
        let mut node = NumberedState::default();
        let shard = read(&self.shared.shards[spot.shard as usize]);
        let mut tables = write(&self.shared.tables);
        node.unpack(&tables, &self.shared.rules, shard.current_rows().get(spot.at));
        self.semantics.judge_end(&node.locals, node.environment, &mut tables)
    }

    /// Tells how far we have come; returns the bound that was reached, if any.
    fn bound(&mut self, waiting: u64) -> Option<Bounded> {
        let states: u64 = self.shared.shards.iter().map(|shard| read(shard).len).sum();
        let options = self.options;
        self.states = states;
        if states > options.max_states {
            return Some(Bounded::States);
        }
        if states < self.told + 4096 {
            return None;
        }
        self.told = states;
        self.count_bytes(0);
        if self.peak_bytes > options.max_bytes {
            return Some(Bounded::Memory);
        }
        let seen = self.levels.last().map_or(0, |level| level.base + level.size);
        self.frontier = waiting + states - seen;
        (!self.tell()).then_some(Bounded::Interrupted)
    }

    /// Tells how far we have come; says whether to go on.
    pub(crate) fn tell(&mut self) -> bool {
        (self.watch)(Progress {
            states: self.states,
            transitions: self.tally.transitions,
            depth: self.depth,
            frontier: self.frontier,
        })
    }

    /// Notes how much memory is in use, with `more` besides.
    pub(crate) fn count_bytes(&mut self, more: u64) {
        let bytes = self.shared.bytes() + self.semantics.bytes() as u64 + more;
        self.peak_bytes = self.peak_bytes.max(bytes);
    }

    /// In which shard the state with this number is, and which of its states it is.
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

    /// The number of a state, by its shard and which of its states it is.
    pub(crate) fn number(&self, shard: usize, index: u64) -> u64 {
        let level = self.levels.partition_point(|level| level.ranges[shard].0 <= index) - 1;
        let level = &self.levels[level];
        let before: u64 = level.ranges[..shard].iter().map(|(_, size)| size).sum();
        level.base + before + index - level.ranges[shard].0
    }

    /// How to come to state `number`, or only to the start, and what is wrong there.
    pub(crate) fn path_to(&self, number: Option<u64>, violation: Violation) -> StatePath {
        let (series, steps) = number.map_or((0, Vec::new()), |number| self.path(number));
        StatePath { violation, series, steps, round: None }
    }

    /// The steps that lead to state `number`: the series of draws at the start, then the steps.
    pub(crate) fn path(&self, number: u64) -> (u32, Vec<u32>) {
        let starts = self.levels[0].size;
        let (mut steps, mut at) = (Vec::new(), number);
        loop {
            let (shard, index) = self.place(at);
            let (parent, step) = read(&self.shared.shards[shard]).path(index);
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
