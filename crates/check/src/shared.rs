//! What all workers share, and what each of them does.
//!
//! A level is cut into batches. All workers look at the states of a batch and write down where their
//! steps lead; what the tables do not know yet, the first of them works out; then all workers put the
//! new states in, each into shards of its own. Shards, batches and the order within them do not
//! depend on how many workers there are, and so neither does anything that is found.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::expand::{Expander, NumberedState, Rules, WORD};
use crate::store::{Batch, GROUP, SHARDS, Shard};
use crate::symmetry::Scratch;
use crate::tables::{Query, Tables};

/// Where the states of a level are, in each shard: the first, and how many.
#[derive(Clone, Debug)]
pub(crate) struct Level {
    pub(crate) base: u64,
    pub(crate) ranges: Vec<(u64, u64)>,
    pub(crate) size: u64,
}

/// A state by its place in its level and in the store.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct StateLocation {
    pub(crate) position: u32,
    pub(crate) shard: u32,
    pub(crate) at: u32,
}

/// What one worker found in one batch.
#[derive(Default)]
pub(crate) struct WorkerOutput {
    batch: Batch,
    pub(crate) transitions: u64,
    pub(crate) ends: Vec<(StateLocation, u32)>,
    pub(crate) unfinished: Vec<StateLocation>,
    /// The first step that breaks something: from which state, which step, what.
    pub(crate) broken: Option<(u32, u32, u32)>,
    /// Whether something may happen beyond the deepest level.
    pub(crate) deeper: bool,
    numbered: NumberedState,
    expander: Expander,
    scratch: Scratch,
}

impl WorkerOutput {
    pub(crate) fn clear(&mut self) {
        self.batch.clear();
        self.ends.clear();
        self.unfinished.clear();
        self.broken = None;
    }
}

/// Some states of a level that a worker takes at once.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    pub(crate) shard: u32,
    pub(crate) at: u32,
    pub(crate) count: u32,
    pub(crate) position: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    Expand,
    Insert,
    Stop,
}

pub(crate) struct Job {
    pub(crate) task: Task,
    pub(crate) blocks: Vec<Block>,
    /// The number of the first state of the level.
    pub(crate) base: u64,
    /// Whether this is the deepest level that may be looked at.
    pub(crate) deepest: bool,
}

/// All that workers share.
pub(crate) struct Shared {
    pub(crate) rules: Rules,
    pub(crate) tables: RwLock<Tables>,
    pub(crate) shards: Vec<RwLock<Shard>>,
    /// One for each worker, and one for what the first works out for all.
    pub(crate) outputs: Vec<RwLock<WorkerOutput>>,
    pub(crate) job: RwLock<Job>,
}

pub(crate) fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    pub(crate) fn new(rules: Rules, workers: usize, tables: Tables) -> Self {
        let compact = rules.options.compact;
        Self {
            rules,
            tables: RwLock::new(tables),
            shards: (0..SHARDS).map(|_| RwLock::new(Shard::new(compact))).collect(),
            outputs: (0..=workers).map(|_| RwLock::default()).collect(),
            job: RwLock::new(Job { task: Task::Stop, blocks: Vec::new(), base: 0, deepest: false }),
        }
    }

    /// Does the part of worker `me` of the task; says whether there is more to come.
    pub(crate) fn work(&self, me: usize, workers: usize) -> bool {
        let job = read(&self.job);
        match job.task {
            Task::Expand => self.look(&job, me, workers),
            Task::Insert => {
                for shard in (me..SHARDS).step_by(workers) {
                    self.put(&job, shard, workers);
                }
            }
            Task::Stop => return false,
        }
        true
    }

    fn look(&self, job: &Job, me: usize, workers: usize) {
        let (tables, mut output) = (read(&self.tables), write(&self.outputs[me]));
        output.clear();
        let share = job.blocks.len().div_ceil(workers);
        let blocks = job.blocks.iter().skip(share * me).take(share);
        for block in blocks {
            let shard = read(&self.shards[block.shard as usize]);
            let rows = shard.current_rows();
            let mut at = block.at;
            for i in 0..block.count {
                let location =
                    StateLocation { position: block.position + i, shard: block.shard, at };
                let packed = rows.get(at);
                if expand_state(location, packed, &tables, &self.rules, job.deepest, &mut output)
                    .is_err()
                {
                    output.unfinished.push(location);
                }
                at = rows.after(at);
            }
        }
    }

    /// Puts what was found for `shard` in, in the order of the states it follows on.
    fn put(&self, job: &Job, number: usize, workers: usize) {
        let mut shard = write(&self.shards[number]);
        let extra = read(&self.outputs[workers]);
        let extra = &extra.batch;
        let mut late = extra.heads[number].iter().peekable();
        for output in &self.outputs[..workers] {
            let output = read(output);
            let batch = &output.batch;
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

    pub(crate) fn bytes(&self) -> u64 {
        let shards: usize = self.shards.iter().map(|shard| read(shard).bytes()).sum();
        let outputs = self.outputs.iter().map(|output| read(output).batch.bytes());
        (shards + outputs.sum::<usize>() + read(&self.tables).bytes()) as u64
    }
}

/// Writes down where the steps from one state lead, unless something must be worked out first.
pub(crate) fn expand_state(
    location: StateLocation,
    packed: &[u8],
    tables: &Tables,
    rules: &Rules,
    deepest: bool,
    output: &mut WorkerOutput,
) -> Result<(), Query> {
    let WorkerOutput {
        batch, transitions, ends, broken, deeper, numbered, expander, scratch, ..
    } = output;
    numbered.unpack(tables, rules, packed);
    let (mut step, mut first) = (0, None);
    let known = expander.expand(numbered, tables, rules, &mut |next| {
        if next.violated && first.is_none() {
            first = Some((location.position, step, next.reaction));
        }
        let code = step << 1 | u32::from(next.untimed_progress);
        step += 1;
        let Some(symmetry) = &tables.symmetry else {
            batch.push(location.position, code, next.most(), |bytes| next.write(rules, bytes));
            return;
        };
        next.write_to(&mut scratch.here);
        symmetry.canonical(tables, rules, scratch);
        let Scratch { best, packed, .. } = scratch;
        packed.clear();
        best.pack(rules, packed);
        batch.push(location.position, code, packed.len() + WORD, |bytes| {
            let (row, zeros) = bytes.split_at_mut(packed.len());
            row.copy_from_slice(packed);
            zeros.fill(0);
            row.len()
        });
    });
    match known {
        Err(query) => {
            batch.retract(location.position);
            Err(query)
        }
        Ok(progress) => {
            *transitions += u64::from(step);
            if !progress {
                ends.push((location, numbered.sent));
            }
            if deepest {
                batch.retract(location.position);
                *deeper |= step > 0;
            } else if broken.is_none_or(|(position, ..)| location.position < position) {
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
