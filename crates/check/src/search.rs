//! Breadth first through all states, level by level, on all cores.
//!
//! A level is cut into batches. All workers look at the states of a batch and write down where their
//! steps lead; what the tables do not know yet, the first of them works out; then all workers put the
//! new states in, each into shards of its own. Shards, batches and the order within them do not
//! depend on how many workers there are, and so neither does anything that is found.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Barrier, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use konklave_process::{Application, Monitor, Process, Violation};

use crate::checkpoint::{CheckpointError, Checkpoints, Keeper, Reader, unfit};
use crate::draws::Draws;
use crate::expand::{Expander, Node, Rules};
use crate::model::Model;
use crate::options::{Options, Timing};
use crate::reduce::Commutation;
use crate::store::{BLOCK, Batch, GROUP, SHARD_BITS, SHARDS, Shard, fingerprint};
use crate::tables::{Inputs, Miss, Tables};
use crate::witness::Witness;
use crate::workshop::Workshop;

/// What was found.
#[derive(Clone, Debug)]
pub struct Report<P: Process> {
    /// The verdict.
    pub outcome: Outcome<P>,
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
    pub dearest: Option<Witness<P>>,
    /// A run with the fewest messages, likewise.
    pub cheapest: Option<Witness<P>>,
    /// Whether one order of commuting deliveries stood for all.
    pub reduced: bool,
    /// How likely it is that a state was missed because another had its fingerprint: 0 where states
    /// are compared whole.
    pub missed: f64,
}

/// The verdict.
#[derive(Clone, Debug)]
pub enum Outcome<P: Process> {
    /// Every state was seen, and all is well.
    Exhausted,
    /// A property breaks, and this is how.
    Violated(Witness<P>),
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
    /// All states were seen, but fingerprints alone cannot tell whether a run goes on for ever.
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

/// Where the states of a level are, in each shard: the first, and how many.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    base: u64,
    ranges: Vec<(u64, u64)>,
    pub(crate) size: u64,
}

/// A state by its place in its level and in the store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Spot {
    pub(crate) position: u32,
    shard: u32,
    at: u32,
}

/// What one worker found in one batch.
#[derive(Default)]
pub(crate) struct Sink {
    batch: Batch,
    pub(crate) transitions: u64,
    ends: Vec<(Spot, u32)>,
    unfinished: Vec<Spot>,
    /// The first step that breaks something: from which state, which step, what.
    broken: Option<(u32, u32, u32)>,
    /// Whether something may happen beyond the deepest level.
    deeper: bool,
    node: Node,
    expander: Expander,
}

impl Sink {
    fn clear(&mut self) {
        self.batch.clear();
        self.ends.clear();
        self.unfinished.clear();
        self.broken = None;
    }
}

/// Some states of a level that a worker takes at once.
#[derive(Clone, Copy)]
struct Block {
    shard: u32,
    at: u32,
    count: u32,
    position: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Task {
    Look,
    Put,
    Stop,
}

struct Job {
    task: Task,
    blocks: Vec<Block>,
    /// The number of the first state of the level.
    base: u64,
    /// Whether this is the deepest level that may be looked at.
    deepest: bool,
}

/// All that workers share.
pub(crate) struct Shared {
    pub(crate) rules: Rules,
    pub(crate) tables: RwLock<Tables>,
    pub(crate) shards: Vec<RwLock<Shard>>,
    /// One for each worker, and one for what the first works out for all.
    sinks: Vec<RwLock<Sink>>,
    job: RwLock<Job>,
}

pub(crate) fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    fn new(rules: Rules, workers: usize, tables: Tables) -> Self {
        let compact = rules.options.compact;
        Self {
            rules,
            tables: RwLock::new(tables),
            shards: (0..SHARDS).map(|_| RwLock::new(Shard::new(compact))).collect(),
            sinks: (0..=workers).map(|_| RwLock::default()).collect(),
            job: RwLock::new(Job { task: Task::Stop, blocks: Vec::new(), base: 0, deepest: false }),
        }
    }

    /// Does the part of worker `me` of the task; says whether there is more to come.
    fn work(&self, me: usize, workers: usize) -> bool {
        let job = read(&self.job);
        match job.task {
            Task::Look => self.look(&job, me, workers),
            Task::Put => {
                for shard in (me..SHARDS).step_by(workers) {
                    self.put(&job, shard, workers);
                }
            }
            Task::Stop => return false,
        }
        true
    }

    fn look(&self, job: &Job, me: usize, workers: usize) {
        let (tables, mut sink) = (read(&self.tables), write(&self.sinks[me]));
        sink.clear();
        let share = job.blocks.len().div_ceil(workers);
        let blocks = job.blocks.iter().skip(share * me).take(share);
        for block in blocks {
            let shard = read(&self.shards[block.shard as usize]);
            let rows = shard.looked_at();
            let mut at = block.at;
            for i in 0..block.count {
                let spot = Spot { position: block.position + i, shard: block.shard, at };
                let packed = rows.get(at);
                if look_at(spot, packed, &tables, &self.rules, job.deepest, &mut sink).is_err() {
                    sink.unfinished.push(spot);
                }
                at = rows.after(at);
            }
        }
    }

    /// Puts what was found for `shard` in, in the order of the states it follows on.
    fn put(&self, job: &Job, number: usize, workers: usize) {
        let mut shard = write(&self.shards[number]);
        let extra = read(&self.sinks[workers]);
        let extra = &extra.batch;
        let mut late = extra.heads[number].iter().peekable();
        for sink in &self.sinks[..workers] {
            let sink = read(sink);
            let batch = &sink.batch;
            for group in batch.heads[number].chunks(GROUP) {
                shard.touch(group);
                for head in group {
                    while let Some(early) = late.next_if(|late| late.parent < head.parent) {
                        let parent = job.base + u64::from(early.parent);
                        shard.insert(early.hash, parent, early.step, extra.packed(early));
                    }
                    let parent = job.base + u64::from(head.parent);
                    shard.insert(head.hash, parent, head.step, batch.packed(head));
                }
            }
        }
        for head in late {
            let parent = job.base + u64::from(head.parent);
            shard.insert(head.hash, parent, head.step, extra.packed(head));
        }
    }

    fn bytes(&self) -> u64 {
        let shards: usize = self.shards.iter().map(|shard| read(shard).bytes()).sum();
        let sinks = self.sinks.iter().map(|sink| read(sink).batch.bytes());
        (shards + sinks.sum::<usize>() + read(&self.tables).bytes()) as u64
    }
}

/// Writes down where the steps from one state lead, unless something must be worked out first.
fn look_at(
    spot: Spot,
    packed: &[u8],
    tables: &Tables,
    rules: &Rules,
    deepest: bool,
    sink: &mut Sink,
) -> Result<(), Miss> {
    let Sink { batch, transitions, ends, broken, deeper, node, expander, .. } = sink;
    node.unpack(tables, rules, packed);
    let (mut step, mut first) = (0, None);
    let known = expander.expand(node, tables, rules, &mut |next| {
        if next.violated && first.is_none() {
            first = Some((spot.position, step, next.reaction));
        }
        let code = step << 1 | u32::from(next.goes_on);
        batch.push(spot.position, code, next.most(), |bytes| next.write(rules, bytes));
        step += 1;
    });
    match known {
        Err(miss) => {
            batch.retract(spot.position);
            Err(miss)
        }
        Ok(progress) => {
            *transitions += u64::from(step);
            if !progress {
                ends.push((spot, node.sent));
            }
            if deepest {
                batch.retract(spot.position);
                *deeper |= step > 0;
            } else if broken.is_none_or(|(position, ..)| spot.position < position) {
                *broken = first.or(*broken);
            }
            Ok(())
        }
    }
}

impl Level {
    pub(crate) fn ranges(&self) -> &[(u64, u64)] {
        &self.ranges
    }
}

/// What was counted up to some level.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Tally {
    pub(crate) transitions: u64,
    pub(crate) ends: u64,
    pub(crate) messages: Option<(u32, u32)>,
    pub(crate) dearest: Option<u64>,
    pub(crate) cheapest: Option<u64>,
}

impl<P: Process, A: Application<P>, M: Monitor<P>> Model<P, A, M> {
    /// Goes through all states. `watch` is told from time to time how far it has come, and says
    /// whether to go on.
    pub fn explore(&self, watch: impl FnMut(Progress) -> bool) -> Report<P> {
        let report = self.explore_from(&Checkpoints::default(), watch);
        report.expect("no file is read or written")
    }

    /// As [`Model::explore`], going on from a checkpoint and writing others, as `checkpoints` says.
    /// What is found is the same as without.
    pub fn explore_from(
        &self,
        checkpoints: &Checkpoints,
        mut watch: impl FnMut(Progress) -> bool,
    ) -> Result<Report<P>, CheckpointError> {
        if let Some(why) = unfit(&self.options).filter(|_| !checkpoints.are_none()) {
            return Err(CheckpointError::Unfit(why));
        }
        assert!(self.n() <= 64, "only small groups are explored");
        assert!(self.options.cuts == 0 || self.n() <= 8, "channels are cut in groups of up to 8");
        let begun = Instant::now();
        let workers = match self.options.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        };
        let workers = workers.min(SHARDS);
        let rules = Rules { inputs: Inputs { n: self.n() }, options: self.options.clone() };
        let mut commutation = self.is_reducible().then(Commutation::default);
        let mut workshop = Workshop::new(self);
        let mut tables =
            Tables { barred: commutation.is_some().then(Default::default), ..Tables::default() };
        loop {
            let shared = Shared::new(rules.clone(), workers, tables);
            let mut search = Search::new(self, &shared, workshop, commutation, &mut watch);
            search.keeper =
                (!checkpoints.are_none()).then(|| Keeper::new(checkpoints, &self.options));
            if let Some(file) = &checkpoints.resume {
                search.resume(Reader::open(file, checkpoints, &self.options)?)?;
            }
            let found = search.explore(workers);
            if let Some(failed) = search.keeper.take().and_then(|keeper| keeper.failed) {
                return Err(failed);
            }
            match found {
                Some(mut report) => {
                    report.elapsed = begun.elapsed();
                    return Ok(report);
                }
                None => {
                    (workshop, commutation) = (search.workshop, search.commutation);
                    tables = shared.tables.into_inner().unwrap_or_else(PoisonError::into_inner);
                    tables.barred = commutation.as_ref().and_then(Commutation::barred);
                    commutation = commutation.filter(|_| tables.barred.is_some());
                }
            }
        }
    }

    /// Whether deliveries may be put off: only where nothing but messages and clients decides what
    /// happens, and no judge remembers in which order messages came.
    fn is_reducible(&self) -> bool {
        let Options { crashes, restarts, losses, duplicates, cuts, app_messages, .. } =
            self.options;
        let faults = [crashes, restarts, losses, duplicates, cuts, app_messages];
        self.options.reduce
            && faults == [0; 6]
            && self.options.timing == Timing::Anytime
            && self.options.swarm.is_none()
            && !self.monitor.remembers_messages()
    }
}

/// What stands in place of a property in the witness of the dearest run.
pub const MOST_MESSAGES: &str = "most messages";

/// What stands in place of a property in the witness of the cheapest run.
pub const FEWEST_MESSAGES: &str = "fewest messages";

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

/// One search, by the one worker that may run handlers.
pub(crate) struct Search<'a, 'm, P: Process, A, M: Monitor<P>> {
    pub(crate) model: &'m Model<P, A, M>,
    pub(crate) shared: &'a Shared,
    pub(crate) workshop: Workshop<'m, P, A, M>,
    /// What is known of commutation, where the search is reduced.
    commutation: Option<Commutation>,
    /// How many steps were known when commutation was last looked at.
    compared: usize,
    watch: &'a mut dyn FnMut(Progress) -> bool,
    pub(crate) levels: Vec<Level>,
    pub(crate) states: u64,
    pub(crate) transitions: u64,
    pub(crate) depth: u32,
    pub(crate) ends: u64,
    frontier: u64,
    messages: Option<(u32, u32)>,
    dearest: Option<u64>,
    cheapest: Option<u64>,
    pub(crate) peak_bytes: u64,
    told: u64,
    /// What was counted before the level that is looked at.
    mark: Tally,
    /// Writes checkpoints, if there are to be any.
    keeper: Option<Keeper>,
}

/// From this many states in a level on, the other workers are called.
const MANY: u64 = 4096;

impl<'a, 'm, P: Process, A: Application<P>, M: Monitor<P>> Search<'a, 'm, P, A, M> {
    fn new(
        model: &'m Model<P, A, M>,
        shared: &'a Shared,
        workshop: Workshop<'m, P, A, M>,
        commutation: Option<Commutation>,
        watch: &'a mut dyn FnMut(Progress) -> bool,
    ) -> Self {
        let compared = read(&shared.tables).acts.len();
        Self {
            model,
            shared,
            workshop,
            commutation,
            compared,
            watch,
            levels: Vec::new(),
            states: 0,
            transitions: 0,
            depth: 0,
            ends: 0,
            frontier: 0,
            messages: None,
            dearest: None,
            cheapest: None,
            peak_bytes: 0,
            told: 0,
            mark: Tally::default(),
            keeper: None,
        }
    }

    /// Goes on from where a checkpoint was written: asks all again that was asked, so that all has its
    /// number, and puts the states in.
    fn resume(&mut self, mut from: Reader) -> Result<(), CheckpointError> {
        let _ = self.start();
        let asked = from.asked()?;
        {
            let mut tables = write(&self.shared.tables);
            for &miss in &asked.misses {
                if !self.workshop.knows(miss) {
                    return Err(from.changed());
                }
                self.workshop.resolve(miss, &mut tables);
            }
        }
        if self.workshop.digest() != asked.digest {
            return Err(from.changed());
        }
        let tally = from.tally()?;
        let shared = self.shared;
        from.levels(shared, || self.turn())?;
        Tally { transitions: self.transitions, ends: self.ends, .. } = tally;
        (self.messages, self.dearest, self.cheapest) =
            (tally.messages, tally.dearest, tally.cheapest);
        self.mark = tally;
        if let Some(keeper) = &mut self.keeper {
            keeper.misses = asked.misses;
        }
        Ok(())
    }

    /// Writes down all up to the level that is looked at, if that is wanted.
    fn keep(&mut self) {
        let Some(keeper) = self.keeper.as_mut().filter(|keeper| keeper.file.is_some()) else {
            return;
        };
        let digest = self.workshop.digest();
        keeper.keep(self.shared, &self.levels, self.mark, digest);
    }

    /// Searches, and reports what was found; none if it must be done again with more to visit.
    fn explore(&mut self, workers: usize) -> Option<Report<P>> {
        let options = &self.model.options;
        let outcome = match options.swarm {
            Some(swarm) => self.swarm(swarm),
            None => match self.run(workers) {
                Found::Again => return None,
                Found::Nothing if self.must_compare(true) => return None,
                Found::Nothing if self.commutation.is_some() => {
                    if self.may_go_round() {
                        self.commutation = None;
                        return None;
                    }
                    Outcome::Exhausted
                }
                Found::Nothing => self.judge_cycles(),
                Found::Bound(bound) => Outcome::Bounded(bound),
                Found::Broken { state, last, violation } => {
                    Outcome::Violated(self.witness(state, last, violation))
                }
            },
        };
        let mut report = Report {
            outcome,
            states: self.states,
            transitions: self.transitions,
            depth: self.depth,
            elapsed: Duration::ZERO,
            peak_bytes: self.peak_bytes,
            ends: self.ends,
            messages: self.messages.filter(|_| options.count_messages),
            dearest: None,
            cheapest: None,
            reduced: self.commutation.is_some(),
            missed: if options.compact { missed(self.states) } else { 0.0 },
        };
        if let (Outcome::Exhausted, Some((fewest, most))) = (&report.outcome, report.messages) {
            let (dearest, cheapest) = (self.dearest, self.cheapest);
            let mut run = |number: Option<u64>, what, messages: u32| {
                let violation = Violation::new(what, format!("{messages} messages"));
                number.map(|number| self.witness(Some(number), None, violation))
            };
            report.dearest = run(dearest, MOST_MESSAGES, most);
            report.cheapest = run(cheapest, FEWEST_MESSAGES, fewest);
        }
        report.peak_bytes = report.peak_bytes.max(self.peak_bytes);
        Some(report)
    }

    /// Where the search is reduced and much is new (or `anyway`): whether what was taken to commute
    /// does not.
    fn must_compare(&mut self, anyway: bool) -> bool {
        let Some(commutation) = &mut self.commutation else { return false };
        let mut tables = write(&self.shared.tables);
        if !anyway && tables.acts.len() * 4 < self.compared * 5 {
            return false;
        }
        let barred = self.workshop.commute(commutation, &mut tables);
        self.compared = tables.acts.len();
        barred
    }

    /// Whether a run might go on for ever. Then a delivery that is put off could be put off for ever,
    /// and what is judged of runs without end was not seen: nothing may be reduced.
    fn may_go_round(&self) -> bool {
        let timers = read(&self.shared.tables).locals.iter().any(|facts| facts.has_timers());
        let compact = self.model.options.compact;
        timers || compact || self.shared.shards.iter().any(|shard| read(shard).cycles)
    }

    fn run(&mut self, workers: usize) -> Found {
        let is_resumed = !self.levels.is_empty();
        if !is_resumed && let Some(violation) = self.start() {
            return Found::Broken { state: None, last: None, violation };
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
        let mut draws = Draws::default();
        let mut series = 0;
        let mut broken = None;
        loop {
            let (state, verdict) = self.model.initial(&mut draws, &mut None);
            if let Err(violation) = self.model.filter(verdict) {
                broken = broken.or(Some(violation));
            }
            let node = {
                let mut tables = write(&self.shared.tables);
                self.node_of(&state, &mut tables)
            };
            let mut packed = Vec::new();
            node.pack(&self.shared.rules, &mut packed);
            let hash = fingerprint(&packed);
            let shard = &self.shared.shards[(hash >> (64 - SHARD_BITS)) as usize];
            write(shard).insert(hash, 0, series << 1, &packed);
            series += 1;
            if !draws.advance() {
                break;
            }
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
        self.mark = Tally {
            transitions: self.transitions,
            ends: self.ends,
            messages: self.messages,
            dearest: self.dearest,
            cheapest: self.cheapest,
        };
    }

    /// Looks at one level. Returns what the search came to, if it is over.
    fn level(&mut self, work: &mut dyn FnMut(&Shared), workers: usize) -> Option<Found> {
        let level = self.levels.last().expect("there is a start").clone();
        if level.size == 0 {
            self.levels.pop();
            return Some(Found::Nothing);
        }
        self.depth = self.levels.len() as u32 - 1;
        let deepest = self.depth == self.model.options.max_depth;
        let many = if self.model.options.compact { 24 } else { 96 };
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
                *job = Job { task: Task::Look, blocks: blocks.to_vec(), base: level.base, deepest };
            }
            work(self.shared);
            self.work_out(workers, deepest);
            for sink in &self.shared.sinks {
                let mut sink = write(sink);
                self.transitions += std::mem::take(&mut sink.transitions);
                deeper |= std::mem::take(&mut sink.deeper);
                broken = [broken, sink.broken].into_iter().flatten().min();
                let ends = std::mem::take(&mut sink.ends);
                for (end, sent) in ends {
                    if let Some(violation) = self.end(end, sent, level.base) {
                        let earlier = broken_end.as_ref().is_none_or(|(spot, _)| end < *spot);
                        if earlier {
                            broken_end = Some((end, violation));
                        }
                    }
                }
            }
            if broken.is_none() && broken_end.is_none() {
                write(&self.shared.job).task = Task::Put;
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
            let violation = self.workshop.violation(reaction).clone();
            let state = Some(level.base + u64::from(position));
            return Some(Found::Broken { state, last: Some(step), violation });
        }
        if deeper {
            self.keep();
            return Some(Found::Bound(Bounded::Depth));
        }
        self.turn();
        if self.keeper.as_ref().is_some_and(Keeper::is_due) {
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
        let mut extra = write(&shared.sinks[workers]);
        extra.clear();
        let mut tables = write(&shared.tables);
        for sink in &shared.sinks[..workers] {
            for &spot in &read(sink).unfinished {
                let shard = read(&shared.shards[spot.shard as usize]);
                let packed = shard.looked_at().get(spot.at);
                while let Err(miss) =
                    look_at(spot, packed, &tables, &shared.rules, deepest, &mut extra)
                {
                    self.workshop.resolve(miss, &mut tables);
                    if let Some(keeper) = &mut self.keeper {
                        keeper.misses.push(miss);
                    }
                }
            }
        }
    }

    /// Judges an end.
    fn end(&mut self, spot: Spot, sent: u32, base: u64) -> Option<Violation> {
        self.ends += 1;
        let (least, most) = self.messages.unwrap_or((u32::MAX, 0));
        if self.dearest.is_none() || sent > most {
            self.dearest = Some(base + u64::from(spot.position));
        }
        if self.cheapest.is_none() || sent < least {
            self.cheapest = Some(base + u64::from(spot.position));
        }
        self.messages = Some((least.min(sent), most.max(sent)));
        let mut node = Node::default();
        let shard = read(&self.shared.shards[spot.shard as usize]);
        let tables = read(&self.shared.tables);
        node.unpack(&tables, &self.shared.rules, shard.looked_at().get(spot.at));
        self.workshop.judge_end(&node.locals, node.ambient, &tables)
    }

    /// Tells how far we have come; returns the bound that was reached, if any.
    fn bound(&mut self, waiting: u64) -> Option<Bounded> {
        let states: u64 = self.shared.shards.iter().map(|shard| read(shard).len).sum();
        let options = &self.model.options;
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
            transitions: self.transitions,
            depth: self.depth,
            frontier: self.frontier,
        })
    }

    /// Notes how much memory is in use, with `more` besides.
    pub(crate) fn count_bytes(&mut self, more: u64) {
        let bytes = self.shared.bytes() + self.workshop.bytes() as u64 + more;
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

    /// The steps that lead to state `number`: the series of draws at the start, then the steps.
    pub(crate) fn way(&self, number: u64) -> (u32, Vec<u32>) {
        let starts = self.levels[0].size;
        let (mut steps, mut at) = (Vec::new(), number);
        loop {
            let (shard, index) = self.place(at);
            let (parent, step) = read(&self.shared.shards[shard]).way(index);
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
